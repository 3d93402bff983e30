// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "chosen_labels.hpp"
#include "recorded_files.hpp"
#include "recorded_programs.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/features/knobs.hpp"

/// The same tasks measured on two devices, and what a study of transfer deals out of them.
namespace tunewright::study {

/// Programs of both devices; groups are positions in `tasks`, the same task on both.
struct TwoDevices {
  std::vector<std::string> tasks;
  Programs source, target;
};

namespace two_devices_detail {

/// log2(1 + number) of the whole numbers in the text of a task, padded with zeros.
inline std::vector<float> sizes_of(const std::string& problem) {
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

using Tables = std::map<std::string, data::Table>;  // by task

/// The knobs of all tables, each on a scale that suits all of them.
inline features::Knobs knobs_of(const Tables& source, const Tables& target) {
  features::Knobs all;
  for (const Tables* tables : {&source, &target}) {
    for (const auto& [task, table] : *tables) {
      for (const Knob& knob : data::knobs_of(table)) {
        const auto known =
            std::find_if(all.knobs.begin(), all.knobs.end(), [&](const Knob& k) { return k.name == knob.name; });
        if (known == all.knobs.end())
          all.knobs.push_back(knob);
        else if (known->scale != KnobScale::Category && knob.scale == KnobScale::Log2)
          known->scale = KnobScale::Log2;
      }
    }
  }
  return all;
}

/// Knobs and sizes of every row.
inline void append(Programs& to, const data::Table& table, std::uint32_t group, const features::Knobs& featurizer) {
  std::vector<std::string> names;
  for (const data::Parameter& parameter : table.parameters) names.push_back(parameter.name);
  const std::vector<std::size_t> places = featurizer.places(names);
  const std::vector<float> sizes = sizes_of(table.problem);
  for (std::size_t i = 0; i < table.size(); ++i) {
    FeatureBatch knobs(featurizer.width());
    featurizer.describe(places, data::knob_values(table, i), knobs);
    std::vector<float> row(knobs.values().begin(), knobs.values().end());
    if (row.empty()) continue;
    row.insert(row.end(), sizes.begin(), sizes.end());
    if (to.x.columns() == 0) to.x = FeatureBatch(row.size());
    to.x.append_program(row);
    to.cost_s.push_back(table.cost_s(i));
    to.group.push_back(group);
  }
}

}  // namespace two_devices_detail

/// The tasks, a shape by a template each, that AutoTVM's logs below both folders have.
inline TwoDevices autotvm_on_two_devices(const std::filesystem::path& root, const std::string& source,
                                         const std::string& target) {
  using namespace two_devices_detail;
  const auto read = [&](const std::string& folder) {
    Tables tables;
    for (const auto& file : files(root, folder)) {
      data::Table table = data::read_autotvm_table(file.string(), {.device = folder}).table;
      tables.try_emplace(table.kernel + " " + table.problem, std::move(table));
    }
    return tables;
  };
  Tables from = read(source), to = read(target);
  std::erase_if(from, [&](const auto& one) { return !to.contains(one.first); });
  std::erase_if(to, [&](const auto& one) { return !from.contains(one.first); });
  if (from.empty()) throw std::runtime_error(source + " and " + target + " share no task");
  TwoDevices both;
  const features::Knobs featurizer = knobs_of(from, to);
  for (const auto& [task, table] : from) {
    const auto group = static_cast<std::uint32_t>(both.tasks.size());
    both.tasks.push_back(task);
    append(both.source, table, group, featurizer);
    append(both.target, to.at(task), group, featurizer);
  }
  return both;
}

/// A kernel of `kernel-tuner-hub`, one task. It is named for both devices, since each pair has models of its own.
inline TwoDevices kernel_on_two_devices(const std::filesystem::path& root, const std::string& kernel,
                                        const std::string& source, const std::string& target) {
  using namespace two_devices_detail;
  const auto read = [&](const std::string& device) {
    const auto path = root / "kernel-tuner-hub" / kernel / (device + ".json.gz");
    Tables tables;
    tables.emplace(kernel, data::read_table(path.string(), {.device = device}).table);
    return tables;
  };
  const Tables from = read(source), to = read(target);
  TwoDevices both;
  both.tasks.push_back(kernel + " " + source + " to " + target);
  const features::Knobs featurizer = knobs_of(from, to);
  append(both.source, from.at(kernel), 0, featurizer);
  append(both.target, to.at(kernel), 0, featurizer);
  return both;
}

/// The tasks that programs of two targets share.
inline TwoDevices programs_on_two_devices(const data::Dataset& all, const std::string& source,
                                          const std::string& target) {
  std::vector<std::set<std::uint32_t>> of_device(2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& device = all.targets[all.target[i]];
    if (device == source) of_device[0].insert(all.task[i]);
    if (device == target) of_device[1].insert(all.task[i]);
  }
  TwoDevices both;
  std::map<std::uint32_t, std::uint32_t> group;
  for (const std::uint32_t task : of_device[0]) {
    if (!of_device[1].contains(task)) continue;
    group.emplace(task, static_cast<std::uint32_t>(both.tasks.size()));
    both.tasks.push_back(all.tasks[task].name);
  }
  both.source.x = both.target.x = FeatureBatch(all.x.columns());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto known = group.find(all.task[i]);
    const std::string& device = all.targets[all.target[i]];
    if (known == group.end() || (device != source && device != target)) continue;
    Programs& side = device == source ? both.source : both.target;
    side.x.append_program(all.x.program(i));
    side.cost_s.push_back(all.cost_s[i]);
    side.group.push_back(known->second);
  }
  return both;
}

/// Programs with labels that know only how fast these are.
inline adaptations::LabelledPrograms learned(const Programs& all, const Indices& which) {
  Known known(all, which);
  return {std::move(known.x), std::move(known.y), std::move(known.group)};
}

/// Who meets whom on the target device.
enum class Tasks : std::uint8_t {
  Same,  ///< the tasks of the source, by programs that the source has not seen
  New    ///< other tasks
};

/// Labels of a task that are ever needed.
constexpr std::size_t most_labels = 512;

/// What a seed deals: what the source has measured, and the target's tasks, of which a quarter judges.
struct Dealt {
  adaptations::LabelledPrograms source;
  Programs target;                            ///< `pool` is in the order of measurement
  std::map<std::uint32_t, std::string> task;  ///< of the target's groups

  /// The first `n` labels of every task, or all there are.
  [[nodiscard]] adaptations::LabelledPrograms first(std::size_t n) const {
    std::map<std::uint32_t, std::size_t> taken;
    Indices which;
    for (const std::size_t i : target.pool)
      if (taken[target.group[i]]++ < n) which.push_back(i);
    return learned(target, which);
  }
};

/// At most `most_tasks` of each device and `records` of the source; of each target task a quarter judges, at most 300
/// programs. The source has none of the programs that judge.
inline Dealt deal(const TwoDevices& both, Tasks tasks, std::size_t most_tasks, std::size_t records,
                  std::uint64_t seed) {
  const Rng rng = Rng(seed).split(5);
  std::vector<std::size_t> order = positions(both.tasks.size());
  rng.split(1).shuffle(std::span(order));
  if (tasks == Tasks::New && order.size() < 2) throw std::invalid_argument("one task cannot be new to itself");
  const std::size_t half = order.size() / 2;
  std::set<std::uint32_t> of_source, of_target;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto task = static_cast<std::uint32_t>(order[i]);
    if ((tasks == Tasks::Same || i < half) && of_source.size() < most_tasks) of_source.insert(task);
    if ((tasks == Tasks::Same || i >= half) && of_target.size() < most_tasks) of_target.insert(task);
  }
  Dealt dealt;
  dealt.target.x = FeatureBatch(both.target.x.columns());
  std::map<std::uint32_t, Indices> members;
  for (std::size_t i = 0; i < both.target.group.size(); ++i)
    if (of_target.contains(both.target.group[i])) members[both.target.group[i]].push_back(i);
  const auto program = [](const Programs& all, std::size_t i) {
    const auto rows = all.x.program(i);
    return std::pair(all.group[i], std::vector<float>(rows.begin(), rows.end()));
  };
  std::set<std::pair<std::uint32_t, std::vector<float>>> judging;
  for (auto& [task, all] : members) {
    rng.split(2).split(task).shuffle(std::span(all));
    const std::size_t quarter = std::min<std::size_t>(all.size() / 4, 300);
    all.resize(std::min(all.size(), quarter + most_labels));
    dealt.task[task] = both.tasks[task];
    for (std::size_t i = 0; i < all.size(); ++i) {
      (i < quarter ? dealt.target.test : dealt.target.pool).push_back(dealt.target.group.size());
      dealt.target.x.append_program(both.target.x.program(all[i]));
      dealt.target.cost_s.push_back(both.target.cost_s[all[i]]);
      dealt.target.group.push_back(task);
      if (i < quarter) judging.insert(program(both.target, all[i]));
    }
  }
  Indices measured;
  for (std::size_t i = 0; i < both.source.group.size(); ++i)
    if (of_source.contains(both.source.group[i]) && !judging.contains(program(both.source, i))) measured.push_back(i);
  rng.split(3).shuffle(std::span(measured));
  measured.resize(std::min(measured.size(), records));
  dealt.source = learned(both.source, measured);
  return dealt;
}

}  // namespace tunewright::study
