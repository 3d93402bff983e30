// SPDX-License-Identifier: Apache-2.0
//
// How many measurements that fail a learned filter avoids, and which valid ones it loses.
//
//   within  a filter taught with @n random records of a task judges 40 % of the task's records, never taught
//   pooled  the same, but one filter is taught with @n records of every task of the class
//   across  a filter taught with all records of three quarters of a class's tasks judges the others, @0
//
// Counters, shares of the judged records of all tasks of a class together:
//   avoided_<fault>  of those that fail so, avoided_failures of all that fail: rejected
//   lost_valid       of those with a latency; lost_fast of those within 10 % of their task's best: rejected
//   failures_before, failures_after   failures in what is measured, without and with the filter
//   seconds_saved    of the price of measuring all judged records: for failures that were rejected
//
// `LearnedValidity` lets 5 % of what it rejects through, here too. Options: --tasks=N of each class (default 6).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "recorded_files.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/read_table.hpp"
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

/// The tasks of a log, most records first; a file may hold one task by several templates. Records without a
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

/// log2(1 + number) of the whole numbers in a name, padded with zeros.
std::vector<float> sizes_of(const std::string& name) {
  std::vector<float> sizes(16, 0.0F);
  std::size_t next = 0;
  for (std::size_t i = 0; i < name.size() && next < sizes.size(); ++i) {
    double number = 0;
    const std::size_t first = i;
    for (; i < name.size() && name[i] >= '0' && name[i] <= '9'; ++i) number = 10 * number + (name[i] - '0');
    if (i > first) sizes[next++] = static_cast<float>(std::log2(1 + number));
  }
  return sizes;
}

/// The sizes of the task and log2 of products of split factors: over all axes by the part, as in "threads of a block",
/// and over the parts of an axis, its tile, and products of the tiles of two to four axes, as in "elements of a
/// buffer". A knob of a logarithmic scale that is no part of an axis is an axis of its own. Trees cut one column at a
/// time and cannot multiply.
struct Products {
  static constexpr bool one_row = true;
  std::vector<std::string> axes{};

  FeatureBatch extract(const spaces::RecordedTable& space, const Task& task,
                       std::span<const spaces::TableRow> rows) const {
    const std::vector<Knob> knobs = space.knobs();
    std::vector<std::size_t> sets;  // of axes, as bits
    for (std::size_t set = 1; set < std::size_t{1} << std::min<std::size_t>(axes.size(), 8); ++set)
      if (std::popcount(set) <= 4) sets.push_back(set);
    const std::vector<float> sizes = sizes_of(task.name);
    FeatureBatch batch(parts + sets.size() + sizes.size());
    for (const spaces::TableRow& row : rows) {
      const std::vector<double> values = space.knob_values(row);
      const std::span<float> out = batch.append_row();
      std::vector<float> tile(axes.size(), 0.0F);
      for (std::size_t k = 0; k < knobs.size(); ++k) {
        if (!(values[k] >= 1)) continue;
        const std::size_t dot = knobs[k].name.rfind('.');
        const auto factor = static_cast<float>(std::log2(values[k]));
        const std::size_t part =
            dot == std::string::npos ? parts : static_cast<std::size_t>(knobs[k].name[dot + 1] - '0');
        if (part < parts) out[part] += factor;
        const auto axis = std::find(axes.begin(), axes.end(), knobs[k].name.substr(0, dot));
        if (axis != axes.end()) tile[static_cast<std::size_t>(axis - axes.begin())] += factor;
      }
      for (std::size_t s = 0; s < sets.size(); ++s) {
        for (std::size_t axis = 0; axis < tile.size(); ++axis)
          if ((sets[s] >> axis & 1U) != 0) out[parts + s] += tile[axis];
      }
      std::copy(sizes.begin(), sizes.end(), out.end() - static_cast<std::ptrdiff_t>(sizes.size()));
      batch.close_program();
    }
    return batch;
  }
  FeatureSchema schema() const { return {"products", 1, {}}; }

 private:
  static constexpr std::size_t parts = 5;
};
using Described = features::Joined<features::Knobs, Products>;

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
  std::vector<std::string>& axes = std::get<1>(all.parts).axes;
  for (const Knob& knob : knobs) {
    const std::string axis = knob.name.substr(0, knob.name.rfind('.'));
    const bool multiplies = axis != knob.name || knob.scale == KnobScale::Log2;
    if (multiplies && std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  }
  return all;
}

struct Recipe {
  std::string name;
  bool products, balanced;
  double most_lost;
  double threshold = 0.5;
};
const std::vector<Recipe> recipes{{"balanced", false, true, 0},
                                  {"unbalanced", false, false, 0},
                                  {"careful", false, false, 0, 0.2},
                                  {"calibrated", false, false, 0.02},
                                  {"products_balanced", true, true, 0},
                                  {"products", true, false, 0},
                                  {"products_careful", true, false, 0, 0.2},
                                  {"products_calibrated", true, false, 0.02},
                                  {"products_calibrated_1", true, false, 0.01}};

template <class F>
filters::LearnedValidity<models::Gbdt, F> filter_of(const Recipe& recipe, F featurizer) {
  return {.model = {.objective = models::gbdt::Objective::Logistic, .threads = 1},
          .featurizer = std::move(featurizer),
          .threshold = recipe.threshold,
          .log_odds = true,
          .balanced = recipe.balanced,
          .most_lost = recipe.most_lost};
}

/// Counts over all judged records.
struct Verdicts {
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
  void report(benchmark::State& state) const {
    double failures = 0, avoided = 0;
    for (const auto& [fault, counts] : failed) {
      failures += counts.second;
      avoided += counts.first;
      state.counters["avoided_" + std::string(name(fault))] = counts.first / counts.second;
    }
    state.counters["avoided_failures"] = failures > 0 ? avoided / failures : 0;
    state.counters["lost_valid"] = lost / valid;
    state.counters["lost_fast"] = fast > 0 ? lost_fast / fast : 0;
    state.counters["failures_before"] = failures / (failures + valid);
    const double measured = failures - avoided + valid - lost;
    state.counters["failures_after"] = measured > 0 ? (failures - avoided) / measured : 0;
    state.counters["seconds_saved"] = saved / seconds;
    state.counters["judged"] = failures + valid;
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

/// At most `most` tasks, spread over the class.
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
  const study::Plan plan{
      .name = "validity", .seeds = 3, .folders = {"roller-tvm-logs", "droplet-autotvm", "kernel-tuner-hub"}};
  return study::run(argc, argv, plan, [](const study::Study& study) {
    const study::Options& options = study.options();
    const std::size_t most = options.tasks == 0 ? 6 : options.tasks;
    const std::string only = options.text("only", "");
    std::vector<std::pair<std::string, std::shared_ptr<const Class>>> classes;
    const auto add = [&](const std::string& name, auto read) {
      if (name.find(only) == std::string::npos) return;
      Class tasks = read();
      if (!tasks.empty()) classes.emplace_back(name, std::make_shared<const Class>(std::move(tasks)));
    };
    add("gtx1650_conv_random", [&] {
      return of_logs(study::files(options.data, "droplet-autotvm/cuda_gtx1650/resnet-18/random"), "gtx1650", most);
    });
    for (const std::string log :
         {"v100/autotvm/conv", "v100/autotvm/depthwise", "v100/autotvm/matmul_nn", "v100/autotvm/matmul_nt",
          "v100/autotvm/tensor_core", "k80/autotvm/conv", "k80/autotvm/depthwise", "k80/autotvm/matmul"}) {
      std::string name = log;
      std::replace(name.begin(), name.end(), '/', '_');
      add(name, [&] { return of_logs(study::files(options.data, "roller-tvm-logs/" + log), name, most); });
    }
    for (const auto& file : study::files(options.data, "kernel-tuner-hub/convolution")) {
      const std::string device = file.filename().string().substr(0, file.filename().string().find('.'));
      add("kernel_tuner_convolution_" + device, [&] {
        Class one;
        one.push_back(measured(data::read_table(file.string(), {.device = device}).table));
        return one;
      });
    }

    const auto plain = [](const std::vector<const Measured*>& tasks) { return std::get<0>(described(tasks).parts); };
    for (const auto& [name, tasks] : classes) {
      for (const Recipe& recipe : recipes) {
        // Products speak of split factors, which these have none of.
        if (recipe.products && name.starts_with("kernel_tuner")) continue;
        for (std::uint64_t seed = 0; seed < options.seeds; ++seed) {
          for (const std::size_t n : {64U, 128U, 256U, 512U}) {
            if (n > tasks->front().space.size() * 6 / 10) continue;
            for (const bool together : {false, true}) {
              if (together && tasks->size() < 2) continue;
              study::add(recipe.name + "@" + std::to_string(n), name + (together ? "_pooled" : "_within"), seed,
                         [=, tasks = tasks](benchmark::State& state) {
                           Verdicts verdicts;
                           const auto judge = [&](auto featurizer) {
                             if (together)
                               pooled(*tasks, recipe, n, seed, featurizer, verdicts);
                             else
                               within(*tasks, recipe, n, seed, featurizer, verdicts);
                           };
                           if (recipe.products)
                             judge(described);
                           else
                             judge(plain);
                           verdicts.report(state);
                         });
            }
          }
          if (tasks->size() < 4) continue;
          study::add(recipe.name, name + "_across", seed, [=, tasks = tasks](benchmark::State& state) {
            Verdicts verdicts;
            if (recipe.products)
              across(*tasks, recipe, seed, described, verdicts);
            else
              across(*tasks, recipe, seed, plain, verdicts);
            verdicts.report(state);
          });
        }
      }
    }
  });
}
