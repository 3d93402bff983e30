// SPDX-License-Identifier: Apache-2.0
// How soon drafting first reaches what Ansor's search ends with.
//
//   study_pruner [--machine=simulated|real] [--seeds=N --first_seed=N --tasks=N --trials=N] [--trial_ms=N]
//                [--threads=N] [--least_steps=N --batch_programs=N --epochs=N --rate_e6=N]
//                [--steps=N --renewal_percent=N --growth_percent=N] [--hidden=N] [--population=N] [--bred=N]
//
// Each (task, seed) is searched by the recipes AnsorQuick and PrunerQuick, `--trials` measurements (200) in tens.
// Trees are trained anew whenever data grew by a fifth; the network, `--hidden` (128) wide, at doublings, in at least
// `--least_steps` mini-batches (60) of `--batch_programs` (16), `--epochs` (4) at least, at a rate of `--rate_e6`
// (1000) millionths, and `--steps` (20) after other batches; --renewal_percent=100 trains it always anew. The network
// also ranks `--bred` (20) mutations of the fastest programs for each one measured. Recipes: pruner, whose draft is
// the analyser by levels; pruner_released and pruner_printed with Pruner's own forms, on GPU tasks; random_draft with
// the network but sets drawn at random. Tasks for two cores and for two GPUs; with --machine=real those for this
// machine's CPU, compiled and run. Ansor is searched first for even seeds and last for odd ones.
//
// Time: on the simulated machine, `--trial_ms` (1000: compiling and measuring a candidate) a trial, and the processor
// time the search itself takes on this machine, exploring and learning, on one thread. With --machine=real it is wall
// time, and searches have as many threads as the machine. Counters:
//   ansor_us, final_us             latency of the best program at the end
//   reached                        1 where Ansor's final latency was reached
//   speedup                        as Pruner's paper has it: Ansor's whole time / time to reach its final latency;
//                                  where that was not reached, Ansor's whole time / the whole time
//   speedup_trials                 the same, counted in trials
//   ansor_speedup                  of Ansor over itself: it may be done long before its budget is
//   total_s, ansor_total_s         time of the whole search; reaching_s: until Ansor's final latency was reached
//   search_s, ansor_search_s       of it, what is not compiling and measuring
//   best_N, ansor_best_N           best of the two final latencies / best latency after N trials: the curves
// Data "geometric_mean" are those means over all tasks of one seed.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../two_cores.hpp"
#include "study.hpp"
#include "tunewright/adaptations/incremental_refit.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using Space = spaces::MultiLevelTiling;

struct Settings {
  std::size_t trials = 200;
  Seconds trial{1.0};
  unsigned threads = 1;
  models::PatternAware network = Parts<recipes::PrunerQuick<Space, measurers::Simulated>>{}.model;
  adaptations::IncrementalRefit incremental_refit{};
  std::size_t population = 1536;  ///< of the draft
  double mutated_factor = 20;
};

/// A measurer that tells the seconds spent in it.
template <class Measurer>
struct Watched : Measurer {
  std::shared_ptr<double> spent_s = std::make_shared<double>(0);

  std::vector<Outcome> measure(const Task& task, std::span<const loops::LoopNest> programs,
                               const OutcomeSink& sink = {}) {
    std::vector<Outcome> outcomes;
    *spent_s += study::seconds_of([&] { outcomes = Measurer::measure(task, programs, sink); });
    return outcomes;
  }
};

/// How a search went, a point a round.
struct Course {
  struct Point {
    std::size_t trials = 0;
    double best_s = 0, elapsed_s = 0;
  };
  std::vector<Point> points;
  double search_s = 0;

  void on_round(const RunStatus& status) {
    if (status.best) points.push_back({status.trials, status.best->count(), status.elapsed.count()});
  }
  [[nodiscard]] const Point& last() const {
    if (points.empty()) throw std::runtime_error("no candidate could be measured");
    return points.back();
  }
  /// The first point at least as fast as `latency_s`; the last if there is none.
  [[nodiscard]] const Point& reaching(double latency_s) const {
    for (const Point& point : points)
      if (point.best_s <= latency_s) return point;
    return last();
  }
  [[nodiscard]] double best_after(std::size_t trials) const {
    double best_s = points.front().best_s;
    for (const Point& point : points)
      if (point.trials <= trials) best_s = point.best_s;
    return best_s;
  }
};

Seconds processor_time() { return Seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC); }

template <class Recipe>
Course course(Parts<Recipe> parts, const Task& task, std::uint64_t seed, const Settings& settings) {
  parts.seed = seed;
  parts.threads = settings.threads;
  parts.model.threads = settings.threads;
  if constexpr (requires { parts.model.training; }) {
    parts.model.hidden = settings.network.hidden;
    parts.model.training = settings.network.training;
    parts.adaptation = settings.incremental_refit;
  } else {
    parts.adaptation.min_growth = 0.2;
  }
  if constexpr (requires { parts.explorer.refresh_rounds; }) {
    parts.explorer.explorer.population = settings.population;
    parts.explorer.mutated_factor = settings.mutated_factor;
  }
  constexpr bool simulated = std::same_as<typename Recipe::measurer, measurers::Simulated>;
  std::shared_ptr<double> measuring_s;
  if constexpr (simulated) {
    parts.measurer.trial = settings.trial;
    parts.clock = [virtual_clock = parts.measurer.clock] { return virtual_clock() + processor_time(); };
  } else {
    measuring_s = parts.measurer.spent_s;
  }
  const Seconds start = processor_time();
  Course course;
  Tuner<Recipe>(std::move(parts)).run(task, {.trials = settings.trials, .batch = 10}, course);
  course.search_s = simulated ? (processor_time() - start).count() : course.last().elapsed_s - *measuring_s;
  return course;
}

using Counters = std::map<std::string, double>;

Counters compare(const Course& ansor, const Course& other, const Settings& settings) {
  const Course::Point &theirs = ansor.last(), &ours = other.last();
  const Course::Point& reached = other.reaching(theirs.best_s);
  const double best_s = std::min(theirs.best_s, ours.best_s);
  Counters counters{{"ansor_us", 1e6 * theirs.best_s},
                    {"final_us", 1e6 * ours.best_s},
                    {"reached", ours.best_s <= theirs.best_s ? 1 : 0},
                    {"speedup", theirs.elapsed_s / reached.elapsed_s},
                    {"speedup_trials", static_cast<double>(theirs.trials) / static_cast<double>(reached.trials)},
                    {"ansor_speedup", theirs.elapsed_s / ansor.reaching(theirs.best_s).elapsed_s},
                    {"total_s", ours.elapsed_s},
                    {"ansor_total_s", theirs.elapsed_s},
                    {"reaching_s", reached.elapsed_s},
                    {"search_s", other.search_s},
                    {"ansor_search_s", ansor.search_s}};
  for (const std::size_t part : {20, 10, 4, 2, 1}) {
    const std::size_t trials = settings.trials / part;
    counters["best_" + std::to_string(trials)] = best_s / other.best_after(trials);
    counters["ansor_best_" + std::to_string(trials)] = best_s / ansor.best_after(trials);
  }
  return counters;
}

Task task_of(const std::string& kind, const Target& target) {
  const auto conv = [](std::int64_t size, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    return ops::conv2d_graph({.height = size,
                              .width = size,
                              .in_channels = in,
                              .out_channels = out,
                              .kernel = kernel,
                              .stride = stride,
                              .padding = kernel / 2});
  };
  const std::map<std::string, std::shared_ptr<const program::ComputeGraph>> graphs{
      {"conv3x3_28", conv(28, 128, 128, 3, 1)},
      {"conv3x3_14", conv(14, 256, 256, 3, 1)},
      {"conv1x1_56", conv(56, 64, 256, 1, 1)},
      {"conv7x7_224", conv(224, 3, 64, 7, 2)},
      {"matmul_512", ops::matmul_graph({.m = 512, .n = 512, .k = 512})},
      {"matmul_128x768x3072", ops::matmul_graph({.m = 128, .n = 768, .k = 3072})},
      {"matmul_1024", ops::matmul_graph({.m = 1024, .n = 1024, .k = 1024})},
      {"matmul_53x61x1024", ops::matmul_graph({.m = 53, .n = 61, .k = 1024})}};
  return program::make_task(kind, graphs.at(kind), target);
}
const std::vector<std::string> kinds{"conv3x3_28",  "matmul_512",  "conv1x1_56", "matmul_128x768x3072",
                                     "conv7x7_224", "matmul_1024", "conv3x3_14", "matmul_53x61x1024"};

/// Pruner's network without its draft.
template <class Measurer>
struct RandomDraft : recipes::PrunerQuick<Space, Measurer> {
  using draft = drafts::None;
  using explorer = explorers::Uniform;
};

template <class Measurer>
void add_studies(const study::Options& options, const Settings& settings, const std::vector<Target>& targets) {
  using Ansor = recipes::AnsorQuick<Space, Measurer>;
  using Pruner = recipes::PrunerQuick<Space, Measurer>;
  using Form = drafts::SymbolAnalyzer::Form;
  const auto ansor = std::make_shared<std::map<std::string, Course>>();  // by task and seed: one search for all
  const auto all = std::make_shared<std::map<std::string, std::vector<Counters>>>();
  const std::size_t tasks = options.tasks == 0 ? kinds.size() : std::min(options.tasks, kinds.size());
  const std::size_t first_seed = options.number("first_seed", 0);
  for (std::uint64_t seed = first_seed; seed < first_seed + options.seeds; ++seed) {
    for (const Target& target : targets) {
      const auto add = [&](const std::string& recipe, const auto& search) {
        const std::string group = recipe + target.name + std::to_string(seed);
        for (std::size_t t = 0; t < tasks; ++t) {
          const Task task = task_of(kinds[t], target);
          study::add(recipe, kinds[t] + "_" + target.name, seed, [=](benchmark::State& state) {
            const std::string key = task.name + target.name + std::to_string(seed);
            const auto search_ansor = [&] {
              if (ansor->count(key) == 0) (*ansor)[key] = course(Parts<Ansor>{}, task, seed, settings);
            };
            if (seed % 2 == 0) search_ansor();
            const Course other = search(task, seed);
            search_ansor();
            const Counters found = compare(ansor->at(key), other, settings);
            for (const auto& [name, value] : found) state.counters[name] = value;
            (*all)[group].push_back(found);
          });
        }
        study::add(recipe, "geometric_mean_" + target.name, seed, [=](benchmark::State& state) {
          for (const char* name : {"speedup", "speedup_trials", "ansor_speedup"}) {
            double logs = 0;
            for (const Counters& one : all->at(group)) logs += std::log(one.at(name));
            state.counters[name] = std::exp(logs / static_cast<double>(all->at(group).size()));
          }
        });
      };
      const auto pruner = [=](Form form) {
        return [=](const Task& task, std::uint64_t own_seed) {
          return course(Parts<Pruner>{.draft = {.form = form}}, task, own_seed, settings);
        };
      };
      add("pruner", pruner(Form::Hierarchical));
      if (target.kind == DeviceKind::Gpu) {
        add("pruner_released", pruner(Form::Released));
        add("pruner_printed", pruner(Form::Printed));
      }
      add("random_draft", [=](const Task& task, std::uint64_t own_seed) {
        return course(Parts<RandomDraft<Measurer>>{.explorer = {.pool = 512}}, task, own_seed, settings);
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv, {.folders = {}, .seeds = 5}, [](const study::Options& options) {
    const auto share = [&](const char* name, std::size_t otherwise) {
      return static_cast<double>(options.number(name, otherwise)) / 100;
    };
    Settings settings{.trials = options.number("trials", 200),
                      .trial = Seconds(static_cast<double>(options.number("trial_ms", 1000)) / 1e3),
                      .threads = options.few("threads", 1),
                      .incremental_refit = {.steps = options.few("steps", 20),
                                            .renewal_factor = share("renewal_percent", 200),
                                            .min_growth = share("growth_percent", 10)},
                      .population = options.number("population", 1536),
                      .mutated_factor = static_cast<double>(options.number("bred", 20))};
    settings.network.hidden = options.number("hidden", settings.network.hidden);
    nn::Training& training = settings.network.training;
    training.least_steps = options.few("least_steps", training.least_steps);
    training.batch_programs = options.number("batch_programs", training.batch_programs);
    training.epochs = options.few("epochs", training.epochs);
    training.learning_rate = static_cast<float>(options.number("rate_e6", 1000)) / 1e6F;
    const std::string machine = options.text("machine", "simulated");
    if (machine == "simulated") {
      add_studies<measurers::Simulated>(options, settings, {bench::two_cores(), gpu_target("A100"), gpu_target("T4")});
    } else if (machine == "real") {
      Target host = host_target();
      host.name = "host";
      settings.threads = options.few("threads", hardware_threads());
      add_studies<Watched<measurers::OrcJit>>(options, settings, {host});
    } else {
      throw std::invalid_argument("--machine=" + machine + ": give simulated or real");
    }
  });
}
