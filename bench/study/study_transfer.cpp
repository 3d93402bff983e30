// SPDX-License-Identifier: Apache-2.0
//
// What measurements on one device are worth on another.
//
// A model learns from --source=N records of the source device (default 8192, drawn by the seed) and meets @n
// records of the target device, drawn at random; a quarter of the target's records, never learned from, is
// ranked. `scratch` and `gbdt_scratch` learn from the @n records alone, `none` and `gbdt_none` from the source
// alone. One adaptation updates once, with all @n records.
//
// Counters:
//   pairwise_accuracy, top5    on the records held back, mean over tasks
//   gain_over_scratch          accuracy minus that of the same kind of model from scratch with as many labels
//   gain_over_scratch_4x       the same, but scratch has four times the labels: above 0 means that a quarter of
//                              the labels is enough
//
// Programs are described by their knobs and the sizes of the task, those of auto_scheduler logs by their statements
// (--records=N of every log, default 60). Labels are relative to the best of the task in the whole log, or of what
// was drawn of it. Options: --source=N, --tasks=N logs of a device (default 8), --most=N the longest ladder (default
// 1024), --only=PART of a pair's name.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "recorded_files.hpp"
#include "recorded_programs.hpp"
#include "tunewright/adaptations/coral.hpp"
#include "tunewright/adaptations/feature_map.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/guarded.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/adaptations/shared_trunk.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/study/study.hpp"

using namespace tunewright;
using adaptations::LabelledPrograms;

namespace {

struct Pair {
  LabelledPrograms source, target;
};

/// log2(1 + number) of the whole numbers in the text of a task, padded with zeros.
std::vector<float> sizes_of(const std::string& problem) {
  constexpr std::size_t columns = 24;
  std::vector<float> sizes(columns, 0.0F);
  std::size_t next = 0;
  for (std::size_t i = 0; i < problem.size() && next < columns;) {
    if (problem[i] == '"') i = problem.find('"', i + 1);  // types hold digits
    if (i >= problem.size()) break;
    if (std::isdigit(static_cast<unsigned char>(problem[i])) == 0) {
      ++i;
      continue;
    }
    double number = 0;
    for (; i < problem.size() && std::isdigit(static_cast<unsigned char>(problem[i])) != 0; ++i)
      number = number * 10 + (problem[i] - '0');
    sizes[next++] = static_cast<float>(std::log2(1 + number));
  }
  return sizes;
}

/// Knobs and sizes of every row, a group a table.
LabelledPrograms described(const std::vector<data::Table>& tables, const features::Knobs& featurizer) {
  LabelledPrograms all;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const data::Table& table = tables[t];
    std::vector<std::string> names;
    for (const data::Parameter& parameter : table.parameters) names.push_back(parameter.name);
    const std::vector<std::size_t> places = featurizer.places(names);
    const std::vector<float> sizes = sizes_of(table.problem);
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < table.size(); ++i) best = std::min(best, table.cost_s(i));
    for (std::size_t i = 0; i < table.size(); ++i) {
      FeatureBatch knobs(featurizer.width());
      featurizer.describe(places, data::knob_values(table, i), knobs);
      std::vector<float> row(knobs.values().begin(), knobs.values().end());
      if (row.empty()) continue;
      row.insert(row.end(), sizes.begin(), sizes.end());
      if (all.x.columns() == 0) all.x = FeatureBatch(row.size());
      all.x.append_program(row);
      all.y.push_back(static_cast<float>(best / table.cost_s(i)));  // 0 for a failure
      all.group.push_back(static_cast<std::uint32_t>(t));
    }
  }
  return all;
}

Pair pair_of(const std::vector<data::Table>& source, const std::vector<data::Table>& target) {
  features::Knobs featurizer;
  for (const std::vector<data::Table>* tables : {&source, &target}) {
    for (const data::Table& table : *tables) {
      for (const Knob& knob : data::knobs_of(table)) {
        const auto known = std::find_if(featurizer.knobs.begin(), featurizer.knobs.end(),
                                        [&](const Knob& k) { return k.name == knob.name; });
        if (known == featurizer.knobs.end())
          featurizer.knobs.push_back(knob);
        else if (known->scale != KnobScale::Category && knob.scale == KnobScale::Log2)
          known->scale = KnobScale::Log2;
      }
    }
  }
  return {described(source, featurizer), described(target, featurizer)};
}

std::vector<data::Table> kernel(const study::Options& options, const std::string& name, const std::string& device) {
  const auto path = options.data / "kernel-tuner-hub" / name / (device + ".json.gz");
  return {data::read_table(path.string(), {.device = device}).table};
}

/// At most `most` logs below a folder, spread over them.
std::vector<data::Table> logs(const study::Options& options, const std::string& folder, std::size_t most) {
  std::vector<data::Table> tables;
  const auto files = study::files(options.data, folder);
  const std::size_t used = std::min(most, files.size());
  for (std::size_t i = 0; i < used; ++i)
    tables.push_back(data::read_autotvm_table(files[i * files.size() / used].string(), {.device = folder}).table);
  return tables;
}

/// Programs of auto_scheduler logs of two devices.
Pair ansor_pair(const study::Options& options, const std::string& source, const std::string& target) {
  const data::Dataset all =
      study::recorded_programs(options.data, "gpu", {.records = options.number("records", 60)}, 1).records;
  const std::vector<float> labels = all.labels();
  const std::vector<std::uint32_t> groups = all.groups();
  Pair pair;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& device = all.targets[all.target[i]];
    if (device != source && device != target) continue;
    LabelledPrograms& side = device == source ? pair.source : pair.target;
    if (side.size() == 0) side.x = FeatureBatch(all.x.columns());
    side.x.append_program(all.x.program(i));
    side.y.push_back(labels[i]);
    side.group.push_back(groups[i]);
  }
  return pair;
}

/// What one seed sees of a pair.
struct Draw {
  LabelledPrograms source, test, pool;
  models::Mlp mlp;                                         // trained on the source
  models::Gbdt gbdt;                                       // also
  std::map<std::pair<bool, std::size_t>, double> scratch;  // accuracy by (gbdt, labels)
};

models::Mlp untrained_mlp(std::uint64_t seed) {
  models::Mlp model{.hidden = 64, .threads = 1, .seed = seed};
  model.training.loss = nn::Loss::MeanSquared;
  model.training.learning_rate = 3e-3F;
  model.training.schedule = nn::Schedule::Cosine;
  model.training.batch_programs = 64;
  return model;
}
models::Gbdt untrained_gbdt(std::uint64_t seed) {
  return {.objective = models::gbdt::Objective::Squared, .threads = 1, .seed = seed};
}

Draw draw(const Pair& pair, std::size_t source, std::uint64_t seed) {
  const auto shuffled = [&](std::size_t n, std::uint64_t which) {
    std::vector<std::size_t> order = positions(n);
    Rng rng = Rng(seed).split(which);
    rng.shuffle(std::span(order));
    return order;
  };
  const auto from = shuffled(pair.source.size(), 1), to = shuffled(pair.target.size(), 2);
  const std::span<const std::size_t> own(to);
  Draw drawn;
  drawn.source = pair.source.subset(std::span(from).first(std::min(source, from.size())));
  drawn.test = pair.target.subset(own.first(to.size() / 4));
  drawn.pool = pair.target.subset(own.subspan(to.size() / 4));
  drawn.mlp = untrained_mlp(seed);
  drawn.mlp.fit(drawn.source.x, drawn.source.y, drawn.source.group);
  drawn.gbdt = untrained_gbdt(seed);
  drawn.gbdt.fit(drawn.source.x, drawn.source.y, drawn.source.group);
  return drawn;
}

struct Quality {
  double pairwise_accuracy = 0, top5 = 0;
};
template <CostModel M>
Quality quality(const M& model, const LabelledPrograms& test) {
  std::vector<float> score(test.size());
  model.predict(test.x, score);
  return {
      stats::pairwise_accuracy(score, test.y, test.group),
      stats::mean_over_tasks(score, test.y, test.group, [](auto p, auto y) { return stats::top_k_score(p, y, 5); })};
}

template <CostModel M, AdaptationFor<M> A>
Quality adapted(M model, A adaptation, const LabelledPrograms& own, const LabelledPrograms& test) {
  adaptation.update(model, own.x, own.y, own.group);
  return quality(model, test);
}

/// A recipe meets the first n labels of the pool.
struct Recipe {
  std::string name;
  bool gbdt;
  std::function<Quality(const Draw&, const LabelledPrograms& own, std::uint64_t seed)> run;
};

std::vector<Recipe> recipes() {
  using namespace adaptations;
  const auto mlp = [](const char* name, auto adaptation_of) {
    return Recipe{name, false, [=](const Draw& d, const LabelledPrograms& own, std::uint64_t) {
                    return adapted(d.mlp, adaptation_of(d), own, d.test);
                  }};
  };
  return {
      {"scratch", false,
       [](const Draw& d, const LabelledPrograms& own, std::uint64_t seed) {
         return adapted(untrained_mlp(seed), Refit{}, own, d.test);
       }},
      mlp("none", [](const Draw&) { return None{}; }),
      mlp("fine_tune", [](const Draw&) { return FineTune{}; }),
      mlp("fine_tune_output", [](const Draw&) { return FineTune{.trained = {"output"}}; }),
      mlp("momentum", [](const Draw&) { return Momentum{}; }),
      mlp("momentum_source_scale", [](const Draw&) { return Momentum{.refit_input_scale = false}; }),
      mlp("guarded_momentum",
          [](const Draw&) { return Guarded<Momentum, models::Mlp>{.transfer = {.refit_input_scale = false}}; }),
      mlp("coral", [](const Draw& d) { return Coral{.source = d.source}; }),
      mlp("feature_map", [](const Draw& d) { return FeatureMap{.source = d.source}; }),
      {"shared_trunk", false,
       [](const Draw& d, const LabelledPrograms& own, std::uint64_t seed) {
         models::Mlp model = untrained_mlp(seed);
         model.heads = 2;
         return adapted(std::move(model), SharedTrunk{.sources = {d.source}}, own, d.test);
       }},
      {"gbdt_scratch", true,
       [](const Draw& d, const LabelledPrograms& own, std::uint64_t seed) {
         return adapted(untrained_gbdt(seed), Refit{}, own, d.test);
       }},
      {"gbdt_none", true,
       [](const Draw& d, const LabelledPrograms& own, std::uint64_t) { return adapted(d.gbdt, None{}, own, d.test); }},
      {"gbdt_warm_start", true,
       [](const Draw& d, const LabelledPrograms& own, std::uint64_t seed) {
         return adapted(Transferred<models::Gbdt>{.source = d.gbdt, .own = untrained_gbdt(seed)}, WarmStart{}, own,
                        d.test);
       }},
      {"gbdt_feature_map", true,
       [](const Draw& d, const LabelledPrograms& own, std::uint64_t seed) {
         return adapted(untrained_gbdt(seed), FeatureMap{.source = d.source}, own, d.test);
       }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  const study::Plan plan{
      .name = "transfer", .seeds = 3, .folders = {"kernel-tuner-hub", "roller-tvm-logs", "droplet-autotvm"}};
  return study::run(argc, argv, plan, [](const study::Study& study) {
    const study::Options& options = study.options();
    const std::size_t tasks = options.tasks == 0 ? 8 : options.tasks;
    const std::size_t source = options.number("source", 8192), most = options.number("most", 1024);
    const std::string only = options.text("only", "");
    std::map<std::string, std::function<Pair()>> pairs;
    for (const std::string name : {"convolution_milo", "dedispersion_milo"}) {
      for (const std::string device : {"A100", "W6600", "MI250X"}) {
        pairs[name + "_A4000_to_" + device] = [=] {
          return pair_of(kernel(options, name, "A4000"), kernel(options, name, device));
        };
      }
    }
    for (const std::string device : {"x86_inteli7-3770", "arm_cortex-a72"}) {
      pairs["autotvm_3700X_to_" + device] = [=] {
        return pair_of(logs(options, "droplet-autotvm/x86_AMD3700X/resnet-18/random", tasks),
                       logs(options, "droplet-autotvm/" + device + "/resnet-18/random", tasks));
      };
    }
    for (const std::string kind : {"conv", "depthwise"}) {
      pairs["autotvm_" + kind + "_K80_to_V100"] = [=] {
        return pair_of(logs(options, "roller-tvm-logs/k80/autotvm/" + kind, tasks),
                       logs(options, "roller-tvm-logs/v100/autotvm/" + kind, tasks));
      };
    }
    pairs["ansor_K80_to_V100"] = [=] { return ansor_pair(options, "K80", "V100"); };
    pairs["ansor_V100_to_K80"] = [=] { return ansor_pair(options, "V100", "K80"); };
    for (const auto& [name, read] : pairs) {
      if (name.find(only) == std::string::npos) continue;
      const auto pair = std::make_shared<const Pair>(read());
      for (std::uint64_t seed = 0; seed < options.seeds; ++seed) {
        const auto drawn = std::make_shared<std::unique_ptr<Draw>>();  // made when it is first needed
        const std::size_t pool = pair->target.size() - pair->target.size() / 4;
        for (const Recipe& recipe : recipes()) {
          const bool unmoved = recipe.name.ends_with("none");
          for (std::size_t n = unmoved ? 0 : 16; n <= std::min(most, pool); n *= 4) {
            study::add(recipe.name + "@" + std::to_string(n), name, seed, [=](benchmark::State& state) {
              if (!*drawn) *drawn = std::make_unique<Draw>(draw(*pair, source, seed));
              Draw& d = **drawn;
              const auto first = [&](std::size_t count) { return d.pool.subset(positions(count)); };
              const auto scratch = [&](std::size_t labels) {
                const auto [at, fresh] = d.scratch.try_emplace({recipe.gbdt, labels}, 0.0);
                if (fresh) {
                  const LabelledPrograms own = first(labels);
                  at->second = recipe.gbdt
                                   ? adapted(untrained_gbdt(seed), adaptations::Refit{}, own, d.test).pairwise_accuracy
                                   : adapted(untrained_mlp(seed), adaptations::Refit{}, own, d.test).pairwise_accuracy;
                }
                return at->second;
              };
              const Quality found = recipe.run(d, first(n), seed);
              state.counters["pairwise_accuracy"] = found.pairwise_accuracy;
              state.counters["top5"] = found.top5;
              if (recipe.name.ends_with("scratch")) d.scratch[{recipe.gbdt, n}] = found.pairwise_accuracy;
              if (n == 0) return;
              state.counters["gain_over_scratch"] = found.pairwise_accuracy - scratch(n);
              if (4 * n <= std::min(most, pool))
                state.counters["gain_over_scratch_4x"] = found.pairwise_accuracy - scratch(4 * n);
            });
            if (unmoved) break;
          }
        }
      }
    }
  });
}
