// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Feature rows of candidates by key, so that each candidate is featurized once. Not thread-safe.
class DescribedRows {
 public:
  DescribedRows();
  DescribedRows(const DescribedRows& other);
  DescribedRows(DescribedRows&& other) noexcept;
  DescribedRows& operator=(const DescribedRows& other);
  DescribedRows& operator=(DescribedRows&& other) noexcept;
  ~DescribedRows();

  /// Adds one program per key. A known key keeps its rows.
  void add(std::span<const std::uint64_t> keys, const FeatureBatch& x);
  /// The same, unless all rows would take more than 64 MiB.
  void add_if_room(std::span<const std::uint64_t> keys, const FeatureBatch& x);

  [[nodiscard]] bool contains(std::uint64_t key) const;

  /// The rows of known candidates, one program per key in this order.
  [[nodiscard]] FeatureBatch gather(std::span<const std::uint64_t> keys) const;

  /// Removes candidates; memory is reused once all are removed.
  void forget(std::span<const std::uint64_t> keys);
  void clear();

 private:
  FeatureBatch rows_;
  std::unordered_map<std::uint64_t, std::size_t> place_;  // of a candidate's program in rows_
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE DescribedRows::DescribedRows() = default;
TUNEWRIGHT_INLINE DescribedRows::DescribedRows(const DescribedRows& other) = default;
TUNEWRIGHT_INLINE DescribedRows::DescribedRows(DescribedRows&& other) noexcept = default;
TUNEWRIGHT_INLINE DescribedRows& DescribedRows::operator=(const DescribedRows& other) = default;
TUNEWRIGHT_INLINE DescribedRows& DescribedRows::operator=(DescribedRows&& other) noexcept = default;
TUNEWRIGHT_INLINE DescribedRows::~DescribedRows() = default;

TUNEWRIGHT_INLINE void DescribedRows::add(std::span<const std::uint64_t> keys, const FeatureBatch& x) {
  const std::size_t first = rows_.programs();
  rows_.append(x);
  for (std::size_t i = 0; i < keys.size(); ++i) place_.try_emplace(keys[i], first + i);
}

TUNEWRIGHT_INLINE void DescribedRows::add_if_room(std::span<const std::uint64_t> keys, const FeatureBatch& x) {
  constexpr std::size_t most_values = std::size_t{16} << 20;
  if (rows_.values().size() + x.values().size() <= most_values) add(keys, x);
}

TUNEWRIGHT_INLINE bool DescribedRows::contains(std::uint64_t key) const { return place_.count(key) != 0; }

TUNEWRIGHT_INLINE FeatureBatch DescribedRows::gather(std::span<const std::uint64_t> keys) const {
  FeatureBatch x(rows_.columns());
  for (const std::uint64_t key : keys) x.append_program(rows_.program(place_.at(key)));
  return x;
}

TUNEWRIGHT_INLINE void DescribedRows::forget(std::span<const std::uint64_t> keys) {
  for (const std::uint64_t key : keys) place_.erase(key);
  if (place_.empty()) rows_.clear();
}

TUNEWRIGHT_INLINE void DescribedRows::clear() {
  place_.clear();
  rows_.clear();
}

}  // namespace tunewright

#endif
