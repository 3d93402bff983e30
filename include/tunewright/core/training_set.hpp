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

namespace tunewright {

/// Everything a shared cost model may learn from: features and costs of all measured candidates, by task.
///
///   y = (lowest cost of the task so far) / cost, in (0, 1];  0 for a failed candidate
///
/// A new best rescales the older labels of its task, so labels are computed when asked for.
///
/// Paper:  Zheng et al., Ansor, OSDI 2020.
/// Shapes: N = candidates of all tasks, R = their rows, D = columns.
class TrainingSet {
 public:
  struct Data {
    FeatureBatch x;                    // (R, D) in N programs
    std::vector<float> y;              // [N]
    std::vector<std::uint32_t> group;  // [N], equal for candidates of one task, ascending
  };

  /// Appends candidates of `task` with their seconds, infinite if failed.
  void add(std::uint64_t task, const FeatureBatch& x, std::span<const double> cost_s) {
    if (x.programs() != cost_s.size()) {
      throw std::invalid_argument("TrainingSet::add: " + std::to_string(x.programs()) + " programs but " +
                                  std::to_string(cost_s.size()) + " costs; give one cost a program");
    }
    auto found = find(task);
    if (found == parts_.end()) found = parts_.insert(found, Part{task, {}, {}});
    Part& part = *found;
    part.x.append(x);
    part.cost_s.insert(part.cost_s.end(), cost_s.begin(), cost_s.end());
    size_ += cost_s.size();
  }

  void forget(std::uint64_t task) {
    const auto part = find(task);
    if (part == parts_.end()) return;
    size_ -= part->cost_s.size();
    parts_.erase(part);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // N

  [[nodiscard]] Data assemble() const {
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
    }
    return data;
  }

 private:
  struct Part {
    std::uint64_t task = 0;
    FeatureBatch x;
    std::vector<double> cost_s;
  };
  [[nodiscard]] std::vector<Part>::iterator find(std::uint64_t task) {
    return std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.task == task; });
  }

  std::vector<Part> parts_;  // in order of their first candidate
  std::size_t size_ = 0;
};

}  // namespace tunewright
