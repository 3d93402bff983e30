// SPDX-License-Identifier: Apache-2.0
//
// How many measurements that fail a learned filter avoids, and which valid ones it loses.
//
//   study_validity --data=DIR [--seeds=N --tasks=N --only=PART]
//
//   within  a filter taught with @n random records of a task judges 40 % of the task's records, never taught
//   pooled  the same, but one filter is taught with @n records of every task of the class
//   across  a filter taught with all records of three quarters of a class's tasks judges the others, @0
//
// Data are named <class>_<half>_<one of these>. Features and thresholds are chosen by the tasks of `choose` and judged
// by those of `judge`, every other one of a class; of kernel-tuner-hub, which has one task a device, by one device
// each.
//
// Recipes: `knobs...` are told features::Knobs, `products...` Joined<Knobs, FactorProducts>. A name alone rejects at
// even odds; `_balanced` repeats the rarer class, as LearnedValidity does by default; `_careful` has threshold 0.2;
// `_lose2` and `_lose1` learn the threshold with most_lost = 0.02 and 0.01.
//
// Counters, shares of the judged records of each task:
//   avoided_<fault>  of those that fail so, avoided_failures of all that fail: rejected
//   lost_valid       of those with a latency; lost_fast of those within 10 % of their task's best: rejected
//   failures_before, failures_after   failures in what is measured, without and with the filter
//   seconds_saved    of the price of measuring all judged records: for failures that were rejected
//
// `LearnedValidity` lets 5 % of what it rejects through, here too. --tasks=N of each half of a class (default 6).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "recorded_files.hpp"
#include "task_results.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/features/factor_products.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/filters/learned_validity.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/study/study.hpp"

using namespace tunewright;

namespace {

struct Measured {
  spaces::RecordedTable space;
  Task task;
};
using Class = std::vector<Measured>;

Measured measured(data::Table table) {
  Measured one{spaces::RecordedTable(std::make_shared<const data::Table>(std::move(table))), {}};
  one.task = data::task_of(one.space.table());
  return one;
}

/// The tasks of a log, in the order of their names; a file may hold one task by several templates. Records without a
/// configuration are of templates that did not build at all and no candidates.
std::vector<Measured> tasks_of_log(const std::string& path, const std::string& device) {
  struct Open {
    data::table_import::Builder builder;
    std::size_t rows = 0;
  };
  std::map<std::string, Open> open;
  data::read_log<data::AutoTvmLog>(path, [&](const data::AutoTvmRecord& record) {
    if (record.knobs.empty()) return;
    std::string key = record.task->name;
    json::write_array(key, record.task->arguments);
    Open& table = open[key];
    try {
      table.builder.begin_row();
      for (const data::autotvm::Knob& knob : record.knobs) {
        data::autotvm::for_each_choice(
            knob, [&](const std::string& name, const std::string& json) { table.builder.set(name, json); });
      }
      table.builder.end_row(data::to_outcome(record.result));
      ++table.rows;
    } catch (const FormatError&) {  // measured before
    }
  });
  std::vector<Measured> tasks;
  for (auto& [key, table] : open) {
    if (table.rows < 200) continue;
    data::Table built = table.builder.finish();
    built.device = device;
    built.kernel = key;
    tasks.push_back(measured(std::move(built)));
  }
  return tasks;
}

using Described = features::Joined<features::Knobs, features::FactorProducts>;

/// The knobs of all tasks of a class; scales by the values of all.
Described described(const std::vector<const Measured*>& tasks) {
  Described all;
  std::vector<Knob>& knobs = std::get<0>(all.parts).knobs;
  for (const Measured* task : tasks) {
    for (const Knob& knob : task->space.knobs()) {
      const auto known = std::find_if(knobs.begin(), knobs.end(), [&](const Knob& k) { return k.name == knob.name; });
      if (known == knobs.end()) {
        knobs.push_back(knob);
      } else if (known->scale != KnobScale::Category) {
        known->values.insert(known->values.end(), knob.values.begin(), knob.values.end());
        std::sort(known->values.begin(), known->values.end());
        known->scale = suitable_scale(known->values);
      }
    }
  }
  std::get<1>(all.parts).axes = features::FactorProducts::axes_of(knobs);
  return all;
}

struct Recipe {
  std::string name;
  bool products, balanced;
  double most_lost;
  double threshold = 0.5;
};
const std::vector<Recipe> recipes{{"knobs_balanced", false, true, 0},        {"knobs", false, false, 0},
                                  {"knobs_careful", false, false, 0, 0.2},   {"knobs_lose2", false, false, 0.02},
                                  {"products_balanced", true, true, 0},      {"products", true, false, 0},
                                  {"products_careful", true, false, 0, 0.2}, {"products_lose2", true, false, 0.02},
                                  {"products_lose1", true, false, 0.01}};

template <class F>
filters::LearnedValidity<models::Gbdt, F> filter_of(const Recipe& recipe, F featurizer) {
  return {.model = {.objective = models::gbdt::Objective::Logistic, .threads = 1},
          .featurizer = std::move(featurizer),
          .threshold = recipe.threshold,
          .log_odds = true,
          .balanced = recipe.balanced,
          .most_lost = recipe.most_lost};
}

/// Counts over the judged records of a task.
struct Verdict {
  std::map<Fault, std::pair<double, double>> failed;  // rejected, all
  double valid = 0, lost = 0, fast = 0, lost_fast = 0, seconds = 0, saved = 0;

  void add(const Measured& task, std::span<const spaces::TableRow> pool, const Kept& kept) {
    const data::Table& table = task.space.table();
    std::vector<bool> passes(pool.size(), false);
    for (const std::size_t i : kept.indices) passes[i] = true;
    double best = table.cost_s(0);
    for (std::size_t i = 0; i < table.size(); ++i) best = std::min(best, table.cost_s(i));
    for (std::size_t i = 0; i < pool.size(); ++i) {
      const Outcome& outcome = table.outcomes[pool[i].row];
      const double price = (outcome.compile_time + outcome.run_time).count();
      const double rejected = passes[i] ? 0 : 1;
      seconds += price;
      if (const Failure* failure = outcome.failure()) {
        failed[failure->fault].first += rejected;
        ++failed[failure->fault].second;
        saved += rejected * price;
      } else {
        ++valid;
        lost += rejected;
        if (table.cost_s(pool[i].row) > 1.1 * best) continue;
        ++fast;
        lost_fast += rejected;
      }
    }
  }
  void report(const std::string& task, study::TaskCounters& counters) const {
    double failures = 0, avoided = 0;
    for (const auto& [fault, counts] : failed) {
      failures += counts.second;
      avoided += counts.first;
      counters["avoided_" + std::string(name(fault))][task] = counts.first / counts.second;
    }
    if (failures > 0) counters["avoided_failures"][task] = avoided / failures;
    if (valid > 0) counters["lost_valid"][task] = lost / valid;
    if (fast > 0) counters["lost_fast"][task] = lost_fast / fast;
    counters["failures_before"][task] = failures / (failures + valid);
    const double measured = failures - avoided + valid - lost;
    counters["failures_after"][task] = measured > 0 ? (failures - avoided) / measured : 0;
    counters["seconds_saved"][task] = saved / seconds;
  }
};

/// Verdicts by task.
struct Verdicts {
  std::map<std::string, Verdict> tasks;

  void add(const Measured& task, std::span<const spaces::TableRow> pool, const Kept& kept) {
    tasks[task.task.name].add(task, pool, kept);
  }
  [[nodiscard]] study::TaskCounters counters() const {
    study::TaskCounters counters;
    for (const auto& [task, verdict] : tasks) verdict.report(task, counters);
    return counters;
  }
};

std::vector<spaces::TableRow> shuffled(const Measured& task, Rng rng) {
  std::vector<spaces::TableRow> rows;
  for (std::size_t i = 0; i < task.space.size(); ++i) rows.push_back(task.space.at(i));
  rng.shuffle(std::span(rows));
  return rows;
}

template <class F>
void teach(filters::LearnedValidity<models::Gbdt, F>& filter,
           const std::vector<std::pair<const Measured*, std::span<const spaces::TableRow>>>& parts) {
  FeatureBatch x;
  std::vector<float> label;
  for (const auto& [task, rows] : parts) {
    x.append(filter.featurizer.extract(task->space, task->task, rows));
    for (const spaces::TableRow& row : rows)
      label.push_back(task->space.table().outcomes[row.row].valid() ? 1.0F : 0.0F);
  }
  filter.teach(x, label);
}

template <class F>
void within(const Class& tasks, const Recipe& recipe, std::size_t n, std::uint64_t seed, F featurizer_of,
            Verdicts& verdicts) {
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::vector<spaces::TableRow> rows = shuffled(tasks[t], Rng(seed).split(t));
    const std::size_t taught = rows.size() * 6 / 10;
    if (n > taught) continue;
    auto filter = filter_of(recipe, featurizer_of(std::vector{&tasks[t]}));
    const std::span<const spaces::TableRow> all(rows), pool = all.subspan(taught);
    teach(filter, {{&tasks[t], all.first(n)}});
    verdicts.add(tasks[t], pool, filter.keep(tasks[t].space, tasks[t].task, pool));
  }
}

template <class F>
void pooled(const Class& tasks, const Recipe& recipe, std::size_t n, std::uint64_t seed, F featurizer_of,
            Verdicts& verdicts) {
  std::vector<const Measured*> all;
  std::vector<std::vector<spaces::TableRow>> rows;
  std::vector<std::pair<const Measured*, std::span<const spaces::TableRow>>> parts;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    all.push_back(&tasks[t]);
    rows.push_back(shuffled(tasks[t], Rng(seed).split(t)));
  }
  for (std::size_t t = 0; t < tasks.size(); ++t)
    parts.emplace_back(&tasks[t], std::span(rows[t]).first(std::min(n, rows[t].size() * 6 / 10)));
  auto filter = filter_of(recipe, featurizer_of(all));
  teach(filter, parts);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const std::span<const spaces::TableRow> pool =
        std::span<const spaces::TableRow>(rows[t]).subspan(rows[t].size() * 6 / 10);
    verdicts.add(tasks[t], pool, filter.keep(tasks[t].space, tasks[t].task, pool));
  }
}

template <class F>
void across(const Class& tasks, const Recipe& recipe, std::uint64_t seed, F featurizer_of, Verdicts& verdicts) {
  std::vector<const Measured*> order;
  for (const Measured& task : tasks) order.push_back(&task);
  Rng(seed).shuffle(std::span(order));
  const std::size_t unseen = (order.size() + 3) / 4;
  std::vector<std::vector<spaces::TableRow>> rows;
  for (const Measured* task : order) rows.push_back(shuffled(*task, Rng(seed)));
  auto filter = filter_of(recipe, featurizer_of(order));
  std::vector<std::pair<const Measured*, std::span<const spaces::TableRow>>> parts;
  for (std::size_t t = unseen; t < order.size(); ++t) parts.emplace_back(order[t], rows[t]);
  teach(filter, parts);
  for (std::size_t t = 0; t < unseen; ++t) {
    const std::span<const spaces::TableRow> pool(rows[t]);
    verdicts.add(*order[t], pool, filter.keep(order[t]->space, order[t]->task, pool));
  }
}

/// Tasks of at most `most` logs, spread over the class.
Class of_logs(const std::vector<std::filesystem::path>& files, const std::string& device, std::size_t most) {
  Class tasks;
  const std::size_t used = std::min(most, files.size());
  for (std::size_t i = 0; i < used; ++i) {
    for (Measured& task : tasks_of_log(files[i * files.size() / used].string(), device))
      tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace

int main(int argc, char** argv) {
  const study::Plan plan{.name = "validity",
                         .seeds = 3,
                         .folders = {"roller-tvm-logs", "droplet-autotvm", "kernel-tuner-hub"},
                         .options = {"only="},
                         .choosing = {"only"},
                         .unread = {"threads"}};
  return study::run(argc, argv, plan, [](const study::Study& study) {
    const study::Options& options = study.options();
    const std::size_t most = options.tasks == 0 ? 6 : options.tasks;
    const std::string only = options.text("only");
    struct Half {
      std::string name;
      std::shared_ptr<const Class> tasks;
      bool factors;  // whether its knobs are split factors
    };
    std::vector<Half> halves;
    std::vector<std::string> names;
    const auto add_logs = [&](const std::string& name, const std::string& folder) {
      names.push_back(name);
      if (name.find(only) == std::string::npos) return;
      Class all = of_logs(study::files(options.data, folder), name, 2 * most);
      std::array<Class, 2> parts;
      for (std::size_t t = 0; t < all.size(); ++t) parts[t % 2].push_back(std::move(all[t]));
      for (std::size_t half = 0; half < 2; ++half) {
        if (parts[half].empty()) continue;
        halves.push_back(
            {name + (half == 0 ? "_choose" : "_judge"), std::make_shared<const Class>(std::move(parts[half])), true});
      }
    };
    add_logs("gtx1650_conv_random", "droplet-autotvm/cuda_gtx1650/resnet-18/random");
    for (const std::string log :
         {"v100/autotvm/conv", "v100/autotvm/depthwise", "v100/autotvm/matmul_nn", "v100/autotvm/matmul_nt",
          "v100/autotvm/tensor_core", "k80/autotvm/conv", "k80/autotvm/depthwise", "k80/autotvm/matmul"}) {
      std::string name = log;
      std::replace(name.begin(), name.end(), '/', '_');
      add_logs(name, "roller-tvm-logs/" + log);
    }
    for (const auto& [device, half] : {std::pair("RTX_2080_Ti", "choose"), std::pair("RTX_3090", "judge")}) {
      const std::string name = std::string("kernel_tuner_convolution_") + half;
      names.push_back(name);
      if (name.find(only) == std::string::npos) continue;
      const auto file = options.data / "kernel-tuner-hub/convolution" / (std::string(device) + ".json.gz");
      Class one;
      one.push_back(measured(data::read_table(file.string(), {.device = device}).table));
      halves.push_back({name, std::make_shared<const Class>(std::move(one)), false});
    }
    study::check_part("only", only, names);

    const auto plain = [](const std::vector<const Measured*>& tasks) { return std::get<0>(described(tasks).parts); };
    for (const Half& half : halves) {
      const auto tasks = half.tasks;
      for (const Recipe& recipe : recipes) {
        if (recipe.products && !half.factors) continue;
        // `judge(verdicts, featurizer)`
        const auto add = [&](const std::string& subject, const char* how, std::uint64_t seed, auto judge) {
          study::add_of_tasks(options, subject, half.name + how, seed, [=](benchmark::State&) {
            Verdicts verdicts;
            if (recipe.products)
              judge(verdicts, described);
            else
              judge(verdicts, plain);
            return verdicts.counters();
          });
        };
        for (const std::uint64_t seed : options.all_seeds()) {
          for (const std::size_t n :
               half.factors ? std::array<std::size_t, 2>{64, 256} : std::array<std::size_t, 2>{128, 512}) {
            const std::string subject = recipe.name + "@" + std::to_string(n);
            add(subject, "_within", seed,
                [=](Verdicts& verdicts, auto featurizer) { within(*tasks, recipe, n, seed, featurizer, verdicts); });
            if (tasks->size() < 2 || n < 256) continue;
            add(subject, "_pooled", seed,
                [=](Verdicts& verdicts, auto featurizer) { pooled(*tasks, recipe, n, seed, featurizer, verdicts); });
          }
          if (tasks->size() < 4) continue;
          add(recipe.name + "@0", "_across", seed,
              [=](Verdicts& verdicts, auto featurizer) { across(*tasks, recipe, seed, featurizer, verdicts); });
        }
      }
    }
  });
}
