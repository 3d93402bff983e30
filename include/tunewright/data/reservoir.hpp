// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"

namespace tunewright::data {

/// Reads any amount in bounded memory: it keeps a uniform sample of at most `capacity` records per task.
///
///   data::Reservoir<Record> sample(1000, Rng(7));
///   importer.each([&](const Record& r) { if (Record* place = sample.offer(r.task)) *place = r; });
///   for (Record& r : sample.release()) ...
///
/// The decision does not need the record, so a record that is not kept need not be copied or described.
///
/// Paper:       Vitter, Random sampling with a reservoir, 1985 (algorithm R).
/// Determinism: the sample of a task depends on the generator and on the order of that task's records, not on how tasks
///              are interleaved.
template <class T>
class Reservoir {
 public:
  /// Throws `std::invalid_argument` for a capacity of 0.
  Reservoir(std::size_t capacity, const Rng& rng) : capacity_(capacity), rng_(rng) {
    if (capacity == 0)
      throw std::invalid_argument("Reservoir: 0 records a task keep nothing; give a capacity of at least 1");
  }

  /// The place for the next record of `task`, or null if it is not kept.
  [[nodiscard]] T* offer(std::uint64_t task) {
    auto [place, is_new] = tasks_.try_emplace(task, Kept{{}, 0, rng_.split(task)});
    Kept& kept = place->second;
    ++kept.seen;
    if (kept.values.size() < capacity_) return &kept.values.emplace_back();
    const std::uint64_t at = kept.rng.below(kept.seen);
    return at < capacity_ ? &kept.values[static_cast<std::size_t>(at)] : nullptr;
  }

  [[nodiscard]] std::size_t tasks() const noexcept { return tasks_.size(); }
  /// Records of `task` offered so far.
  [[nodiscard]] std::uint64_t seen(std::uint64_t task) const {
    const auto found = tasks_.find(task);
    return found == tasks_.end() ? 0 : found->second.seen;
  }
  /// All kept records, by ascending task number; the reservoir is then empty.
  [[nodiscard]] std::vector<T> release() {
    std::vector<T> all;
    for (auto& [task, kept] : tasks_)
      for (T& value : kept.values) all.push_back(std::move(value));
    tasks_.clear();
    return all;
  }

 private:
  struct Kept {
    std::vector<T> values;
    std::uint64_t seen = 0;
    Rng rng;
  };
  std::size_t capacity_;
  Rng rng_;
  std::map<std::uint64_t, Kept> tasks_;
};

}  // namespace tunewright::data
