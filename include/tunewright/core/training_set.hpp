// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// The training data of a shared cost model: features and costs of all measured candidates, by task.
///
///   y = (lowest cost of the task so far) / cost, in (0, 1];  0 for a failed candidate
///
/// A new best rescales the older labels of its task, so labels are computed on demand.
///
/// Paper:  Zheng et al., Ansor, OSDI 2020.
/// Shapes: N = candidates of all tasks, R = their rows, D = columns.
class TrainingSet {
 public:
  struct Data {
    FeatureBatch x;                    // (R, D) in N programs
    std::vector<float> y;              // [N]
    std::vector<std::uint32_t> group;  // [N], equal for candidates of one task, ascending
    std::vector<std::uint32_t> round;  // [N], in which it was chosen
    std::vector<float> predicted;      // [N], what the model said then; NaN if nothing
  };

  /// When and why candidates were chosen: one entry per candidate, or none if unknown.
  struct Choice {
    std::span<const std::uint32_t> round{};
    std::span<const float> predicted{};
  };

  TrainingSet();
  TrainingSet(const TrainingSet& other);
  TrainingSet(TrainingSet&& other) noexcept;
  TrainingSet& operator=(const TrainingSet& other);
  TrainingSet& operator=(TrainingSet&& other) noexcept;
  ~TrainingSet();

  /// Appends candidates of `task` with their costs in seconds, infinite if failed. Throws `std::invalid_argument` for
  /// other numbers of entries than of programs, and for costs that are not above 0.
  void add(std::uint64_t task, const FeatureBatch& x, std::span<const double> cost_s, const Choice& choice);
  void add(std::uint64_t task, const FeatureBatch& x, std::span<const double> cost_s) {
    add(task, x, cost_s, Choice{});
  }

  void forget(std::uint64_t task);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // N

  /// The group of `task` in the result of `assemble`; a new number if there is no candidate of it.
  [[nodiscard]] std::uint32_t group_of(std::uint64_t task) const {
    return static_cast<std::uint32_t>(find(parts_, task) - parts_.begin());
  }

  [[nodiscard]] Data assemble() const;

 private:
  struct Part {
    std::uint64_t task = 0;
    FeatureBatch x;
    std::vector<double> cost_s;
    std::vector<std::uint32_t> round;
    std::vector<float> predicted;
  };
  [[nodiscard]] static auto find(auto& parts, std::uint64_t task) -> decltype(parts.begin()) {
    return std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.task == task; });
  }

  std::vector<Part> parts_;  // in order of their first candidate
  std::size_t size_ = 0;
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/number_text.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE TrainingSet::TrainingSet() = default;
TUNEWRIGHT_INLINE TrainingSet::TrainingSet(const TrainingSet& other) = default;
TUNEWRIGHT_INLINE TrainingSet::TrainingSet(TrainingSet&& other) noexcept = default;
TUNEWRIGHT_INLINE TrainingSet& TrainingSet::operator=(const TrainingSet& other) = default;
TUNEWRIGHT_INLINE TrainingSet& TrainingSet::operator=(TrainingSet&& other) noexcept = default;
TUNEWRIGHT_INLINE TrainingSet::~TrainingSet() = default;

TUNEWRIGHT_INLINE void TrainingSet::add(std::uint64_t task, const FeatureBatch& x, std::span<const double> cost_s,
                                        const Choice& choice) {
  const auto fits = [&](std::size_t entries) { return entries == 0 || entries == cost_s.size(); };
  if (!fits(choice.round.size()) || !fits(choice.predicted.size())) {
    throw std::invalid_argument("TrainingSet::add: " + std::to_string(cost_s.size()) + " costs but " +
                                std::to_string(choice.round.size()) + " rounds and " +
                                std::to_string(choice.predicted.size()) + " predictions; give one a cost, or none");
  }
  if (x.programs() != cost_s.size()) {
    throw std::invalid_argument("TrainingSet::add: " + std::to_string(x.programs()) + " programs but " +
                                std::to_string(cost_s.size()) + " costs; give one cost a program");
  }
  for (std::size_t i = 0; i < cost_s.size(); ++i) {
    if (cost_s[i] > 0) continue;
    throw std::invalid_argument("TrainingSet::add: program " + std::to_string(i) + " costs " + number_text(cost_s[i]) +
                                " s; give positive costs, infinity for a failure");
  }
  auto found = find(parts_, task);
  if (found == parts_.end()) found = parts_.insert(found, Part{task, {}, {}, {}, {}});
  Part& part = *found;
  part.x.append(x);
  part.cost_s.insert(part.cost_s.end(), cost_s.begin(), cost_s.end());
  part.round.insert(part.round.end(), choice.round.begin(), choice.round.end());
  part.round.resize(part.cost_s.size());
  part.predicted.insert(part.predicted.end(), choice.predicted.begin(), choice.predicted.end());
  part.predicted.resize(part.cost_s.size(), std::numeric_limits<float>::quiet_NaN());
  size_ += cost_s.size();
}

TUNEWRIGHT_INLINE void TrainingSet::forget(std::uint64_t task) {
  const auto part = find(parts_, task);
  if (part == parts_.end()) return;
  size_ -= part->cost_s.size();
  parts_.erase(part);
}

TUNEWRIGHT_INLINE TrainingSet::Data TrainingSet::assemble() const {
  Data data;
  std::uint32_t group = 0;
  for (const Part& part : parts_) {
    data.x.append(part.x);
    double best = std::numeric_limits<double>::infinity();
    for (const double cost : part.cost_s) best = std::min(best, cost);
    for (const double cost : part.cost_s) {
      data.y.push_back(std::isfinite(cost) ? static_cast<float>(best / cost) : 0.0F);
    }
    data.group.insert(data.group.end(), part.cost_s.size(), group++);
    data.round.insert(data.round.end(), part.round.begin(), part.round.end());
    data.predicted.insert(data.predicted.end(), part.predicted.begin(), part.predicted.end());
  }
  return data;
}

}  // namespace tunewright

#endif
