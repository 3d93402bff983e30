// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Counts of rejections by reason. A class of its own, so that its operations are compiled once, not in every template
/// of a search.
class ReasonCounts : public std::map<std::string, std::size_t> {
 public:
  using std::map<std::string, std::size_t>::map;
  ReasonCounts();
  ReasonCounts(const ReasonCounts& other);
  ReasonCounts(ReasonCounts&& other) noexcept;
  ReasonCounts& operator=(const ReasonCounts& other);
  ReasonCounts& operator=(ReasonCounts&& other) noexcept;
  ~ReasonCounts();

  std::size_t& operator[](const std::string& reason);
};

void count_reason(ReasonCounts& counts, std::string_view reason);
void add_counts(ReasonCounts& to, const ReasonCounts& more);

/// Counts that several threads can increase.
class SharedReasonCounts {
 public:
  /// `counts` must outlive this.
  explicit SharedReasonCounts(ReasonCounts& counts) noexcept : counts_(counts) {}
  void add(const ReasonCounts& more);

 private:
  ReasonCounts& counts_;
  std::mutex adding_;
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE ReasonCounts::ReasonCounts() = default;
TUNEWRIGHT_INLINE ReasonCounts::ReasonCounts(const ReasonCounts& other) = default;
TUNEWRIGHT_INLINE ReasonCounts::ReasonCounts(ReasonCounts&& other) noexcept = default;
TUNEWRIGHT_INLINE ReasonCounts& ReasonCounts::operator=(const ReasonCounts& other) = default;
TUNEWRIGHT_INLINE ReasonCounts& ReasonCounts::operator=(ReasonCounts&& other) noexcept = default;
TUNEWRIGHT_INLINE ReasonCounts::~ReasonCounts() = default;

TUNEWRIGHT_INLINE std::size_t& ReasonCounts::operator[](const std::string& reason) {
  return std::map<std::string, std::size_t>::operator[](reason);
}

TUNEWRIGHT_INLINE void count_reason(ReasonCounts& counts, std::string_view reason) { ++counts[std::string(reason)]; }

TUNEWRIGHT_INLINE void add_counts(ReasonCounts& to, const ReasonCounts& more) {
  for (const auto& [reason, count] : more) to[reason] += count;
}

TUNEWRIGHT_INLINE void SharedReasonCounts::add(const ReasonCounts& more) {
  const std::lock_guard lock(adding_);
  add_counts(counts_, more);
}

}  // namespace tunewright

#endif
