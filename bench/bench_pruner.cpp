// SPDX-License-Identifier: Apache-2.0
//
// What drafting costs and what it keeps, on one core, on CPU and GPU tasks.
//
// pruner/cost, microseconds of processor time a candidate. All contestants take turns on each of 25 batches of 512 new
// candidates, in this order on every other batch and the other way round on the rest; medians over the batches:
//   draft                   SymbolAnalyzer from configurations, having met the sketches in other candidates
//   first_draft             the same without, so with making the plans of the sketches
//   pattern_aware, gbdt     the learned models of the Pruner and Ansor recipes from configurations: replaying and
//                           lowering, describing, predicting
//   lower                   replaying and lowering, of these
//   of_programs_draft, of_programs_pattern_aware   draft and model once programs are lowered
//   session_draft           what a Tuner<Pruner> pays for a candidate that it explores, drawing and mutating aside: the
//                           limits of the target and the draft
//   session_network         the same without a draft, where Pruner's network ranks what is explored
// Times the draft is cheaper, each the median over the batches of the ratio of two times on the same batch:
//   pattern_aware_over_draft, gbdt_over_draft, of_programs_ratio, session_ratio
// pruner/best_k: of 8,000 random programs the draft keeps 512; latency of the best of all over that of the k-th best
// kept, on the simulated machine: best_1_512_of_8000 and so on; top_1 of the program the draft thinks best; spearman.
// A draft and the simulated machine are written by the same people with the same machines in mind: the second half
// says that the draft does what it means to, not how real machines behave.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/session/candidate_ranking.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/stats/robust.hpp"
#include "two_cores.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using Config = schedule::Schedule;

Task task_of(const std::string& kind, const Target& target) {
  if (kind == "conv2d") {
    return program::make_task(
        kind,
        ops::conv2d_graph(
            {.height = 28, .width = 28, .in_channels = 128, .out_channels = 128, .kernel = 3, .padding = 1}),
        target);
  }
  return program::make_task(kind, ops::matmul_graph({.m = 1024, .n = 1024, .k = 1024}), target);
}

std::vector<Config> sample(const spaces::MultiLevelTiling& space, const Task& task, std::size_t n,
                           std::uint64_t seed = 1) {
  std::vector<Config> drawn;
  for (Rng rng(seed); drawn.size() < n;) {
    if (auto config = space.sample(task, rng)) drawn.push_back(*std::move(config));
  }
  return drawn;
}

/// What takes turns, and microseconds of processor time a candidate that it took, by batch. Other programs do not take
/// part in these.
class Contest {
 public:
  using Work = std::function<void(std::span<const Config>)>;

  void add(std::string name, Work work) { contestants_.push_back({std::move(name), std::move(work), {}}); }

  /// Lets all of them work on a batch, each on a copy made just before, as candidates that were just bred.
  void run(const std::vector<Config>& batch) {
    for (Contestant& contestant : contestants_) {
      const std::vector<Config> bred = batch;
      const std::clock_t start = std::clock();
      contestant.work(std::span<const Config>(bred));
      const double spent = 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      contestant.microseconds.push_back(spent / static_cast<double>(batch.size()));
    }
    std::reverse(contestants_.begin(), contestants_.end());
  }

  void report_medians(benchmark::UserCounters& found) const {
    for (const Contestant& contestant : contestants_) found[contestant.name] = stats::median(contestant.microseconds);
  }
  /// Median over the batches of the time of one over that of another one.
  [[nodiscard]] double median_ratio(std::string_view slower, std::string_view quicker) const {
    std::vector<double> ratios = of(slower);
    const std::vector<double>& base = of(quicker);
    for (std::size_t batch = 0; batch < ratios.size(); ++batch) ratios[batch] /= base[batch];
    return stats::median(std::move(ratios));
  }

 private:
  struct Contestant {
    std::string name;
    Work work;
    std::vector<double> microseconds;  // by batch
  };

  [[nodiscard]] const std::vector<double>& of(std::string_view name) const {
    const auto found =
        std::find_if(contestants_.begin(), contestants_.end(), [name](const Contestant& c) { return c.name == name; });
    if (found == contestants_.end())
      throw std::invalid_argument("nobody named '" + std::string(name) + "' takes turns");
    return found->microseconds;
  }

  std::vector<Contestant> contestants_;
};

using Statements = features::PerStatement;
using Movements = features::Joined<features::PerStatement, features::Dataflow>;

/// Trained for a moment: what predicting costs does not depend on what was learned.
models::PatternAware trained_network(const FeatureBatch& x, std::span<const float> y) {
  models::PatternAware model{.threads = 1};
  model.training.epochs = 1;
  model.training.least_steps = 1;
  model.fit(x, y, std::vector<std::uint32_t>(y.size(), 0));
  return model;
}

using Pruner = recipes::PrunerQuick<spaces::MultiLevelTiling, measurers::Simulated>;
struct NetworkAlone : Pruner {
  using draft = drafts::None;
};

/// Ranks candidates as a session over `parts` does while it explores.
template <class Recipe>
void rank_as_a_session(const Parts<Recipe>& parts, const Task& task, std::span<const Config> configs,
                       std::span<float> score) {
  DescribedRows rows;
  benchmark::DoNotOptimize(CandidateRanking<Recipe>(parts, task, rows, samplers::Guide()).rank(configs, score));
}

void measure_cost(benchmark::State& state, const std::string& kind, const Target& target) {
  constexpr std::size_t batch = 512, batches = 25, batches_met = 8;
  const Task task = task_of(kind, target);
  const spaces::MultiLevelTiling space;
  // Few enough to stay in cache, as programs do that were just lowered.
  constexpr std::size_t lowered = 32;
  const std::vector<Config> some = sample(space, task, batch);
  std::vector<loops::LoopNest> nests;
  for (const Config& config : std::span(some).first(lowered)) nests.push_back(loops::lower(config));

  std::vector<float> score(batch);
  Rng rng(2);
  for (float& y : score) y = static_cast<float>(rng.uniform());
  const models::PatternAware network = trained_network(Movements{}.extract(space, task, some), score);
  models::Gbdt trees{.threads = 1};
  trees.fit(Statements{}.extract(space, task, some), score, std::vector<std::uint32_t>(batch, 0));
  const drafts::SymbolAnalyzer draft;
  for (std::size_t met = 0; met < batches_met; ++met)
    draft.score(space, task, std::span<const Config>(sample(space, task, batch, met)), score);

  const Parts<Pruner> drafting{.space = space};
  const Parts<NetworkAlone> predicting{.space = space, .model = network};
  for (std::size_t met = 0; met < batches_met; ++met)
    rank_as_a_session(drafting, task, std::span<const Config>(sample(space, task, batch, met)), score);

  Contest contest;
  contest.add("draft", [&](std::span<const Config> configs) { draft.score(space, task, configs, score); });
  contest.add("first_draft",
              [&](std::span<const Config> configs) { draft.score(spaces::MultiLevelTiling{}, task, configs, score); });
  contest.add("pattern_aware", [&](std::span<const Config> configs) {
    network.predict(Movements{}.extract(space, task, configs), score);
  });
  contest.add("gbdt", [&](std::span<const Config> configs) {
    trees.predict(Statements{}.extract(space, task, configs), score);
  });
  contest.add("lower", [&](std::span<const Config> configs) {
    for (const Config& config : configs) benchmark::DoNotOptimize(loops::lower(config));
  });
  contest.add("session_draft",
              [&](std::span<const Config> configs) { rank_as_a_session(drafting, task, configs, score); });
  contest.add("session_network",
              [&](std::span<const Config> configs) { rank_as_a_session(predicting, task, configs, score); });
  contest.add("of_programs_draft", [&](std::span<const Config>) {
    auto latency_s = draft.for_target(task.target);
    for (std::size_t i = 0; i < batch; ++i) benchmark::DoNotOptimize(latency_s(nests[i % lowered]));
  });
  contest.add("of_programs_pattern_aware", [&](std::span<const Config>) {
    FeatureBatch statements(features::per_statement::columns), movements(features::dataflow::columns);
    features::per_statement::Describer of_statements;
    features::dataflow::Describer of_movements;
    for (std::size_t i = 0; i < batch; ++i) {
      of_statements.describe(nests[i % lowered], task, statements);
      of_movements.describe(nests[i % lowered], task, movements);
    }
    network.predict(Movements{}.join({std::move(statements), std::move(movements)}), score);
  });
  for (auto _ : state)
    for (std::size_t b = 0; b < batches; ++b) contest.run(sample(space, task, batch, batches_met + b));
  contest.report_medians(state.counters);
  state.counters["pattern_aware_over_draft"] = contest.median_ratio("pattern_aware", "draft");
  state.counters["gbdt_over_draft"] = contest.median_ratio("gbdt", "draft");
  state.counters["session_ratio"] = contest.median_ratio("session_network", "session_draft");
  state.counters["of_programs_ratio"] = contest.median_ratio("of_programs_pattern_aware", "of_programs_draft");
}

template <class Draft>
void best_k(benchmark::State& state, const std::string& kind, const Target& target, const Draft& draft) {
  constexpr std::size_t programs = 8000, kept = 512;
  const Task task = task_of(kind, target);
  const spaces::MultiLevelTiling space;
  const std::vector<Config> configs = sample(space, task, programs);
  const measurers::Simulated machine;
  std::vector<float> score(programs), latency_s, speed;
  auto score_of = draft.score_of(task);
  for (auto _ : state) {
    for (std::size_t i = 0; i < programs; ++i) {
      const loops::LoopNest nest = space.lower(task, configs[i]);
      score[i] = score_of(nest);
      latency_s.push_back(static_cast<float>(cost_s(machine.outcome(task.target, nest))));
      speed.push_back(1 / latency_s.back());
    }
  }
  const std::vector<stats::RankedTask> ranked{{.prediction = score, .latency_s = latency_s}};
  for (const std::size_t k : {1, 5, 20})
    state.counters["best_" + std::to_string(k) + "_512_of_8000"] = stats::network_best_k_score(ranked, kept, k);
  state.counters["top_1"] = stats::network_top_k_score(ranked, 1);
  state.counters["spearman"] = stats::spearman(score, speed);
}

void add_all() {
  using drafts::SymbolAnalyzer;
  const std::vector<std::pair<std::string, Target>> targets{{"cpu", bench::two_cores()}, {"a100", gpu_target("A100")}};
  for (const auto& [device, target] : targets) {
    for (const std::string kind : {"conv2d", "matmul"}) {
      const std::string name = kind + "/" + device;
      const auto add = [&](const std::string& what, auto run) {
        benchmark::RegisterBenchmark(("pruner/" + what + "/" + name).c_str(), run)
            ->Unit(benchmark::kMillisecond)
            ->Iterations(1);
      };
      add("cost", [=](benchmark::State& state) { measure_cost(state, kind, target); });
      const auto add_draft = [&](const std::string& draft_name, const auto& draft) {
        add("best_k/" + draft_name, [=](benchmark::State& state) { best_k(state, kind, target, draft); });
      };
      add_draft("symbols", SymbolAnalyzer{});
      if (target.kind == DeviceKind::Gpu) {
        add_draft("symbols_printed", SymbolAnalyzer{.form = SymbolAnalyzer::Form::Printed});
        add_draft("symbols_released", SymbolAnalyzer{.form = SymbolAnalyzer::Form::Released});
      }
      add_draft("roofline", drafts::Roofline{});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
