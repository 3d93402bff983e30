// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "tunewright/core/task.hpp"
#include "tunewright/measurers/reference_data.hpp"

namespace tunewright::measurers {

/// Keeps the data of tasks, because a session of many tasks returns to each of them. `Data` is `TaskData` in this
/// process or `SharedTask` for workers.
template <class Data>
class TaskCache {
 public:
  /// The data of `task` with `options`, computed if they are not cached. The least recently used data are evicted while
  /// the total exceeds `limit_bytes`; the last requested data always stay.
  [[nodiscard]] std::shared_ptr<const Data> data_of(const Task& task, const ReferenceData& options,
                                                    std::size_t limit_bytes) {
    const std::uint64_t key = data_key(task, options);
    auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
    if (known == entries_.end()) {
      entries_.push_front({key, std::make_shared<const Data>(make_task_data(task, options))});
      known = entries_.begin();
    }
    entries_.splice(entries_.begin(), entries_, known);
    std::size_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.data->bytes();
    while (entries_.size() > 1 && bytes > limit_bytes) {
      bytes -= entries_.back().data->bytes();
      entries_.pop_back();
    }
    return entries_.front().data;
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::uint64_t key;
    std::shared_ptr<const Data> data;
  };
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tunewright::measurers
