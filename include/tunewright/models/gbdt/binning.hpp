// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::models::gbdt {

/// A column's values in at most 256 bins: bin(v) = number of thresholds below v, so `v > thresholds[b]` means that v is
/// beyond bin b. R = rows.
struct ColumnBins {
  std::vector<float> thresholds;  ///< ascending, one less than bins; empty for a constant column
  [[nodiscard]] std::size_t bins() const noexcept { return thresholds.size() + 1; }
};

/// Turns columns of floats into bins. An object is scratch space of one thread, for one column after another.
///
/// A column with at most `max_bins` distinct values gets one bin per value, without loss; most feature columns are like
/// that. Others are cut into bins with about equally many rows, with a frequent value alone in its bin. A threshold is
/// half-way between the values of neighbouring bins: new values between them go to the nearer one.
///
/// Cost: distinct values by hashing, one probe per row; otherwise a radix sort of at most `sorted_rows` rows and eight
///       comparisons per row.
/// Determinism: a function of the column and `max_bins`.
class ColumnBinner {
 public:
  static constexpr std::size_t most_bins = 256;
  /// Quantiles of longer columns are those of evenly spaced rows: with 32,768 of them the relative error of a bin's
  /// share of the rows is about 1/11 (standard deviation), too small to move a split.
  static constexpr std::size_t sorted_rows = 32768;

  /// Writes the bin of every value and returns the thresholds. No value may be NaN.
  ColumnBins cut(std::span<const float> values, std::size_t max_bins, std::span<std::uint8_t> bins);

 private:
  static constexpr std::size_t slots = 1024;
  static constexpr std::uint16_t empty = 0xffff;

  // Unsigned integers with the order of the floats they represent.
  static std::uint32_t to_key(float value) noexcept;
  static float to_float(std::uint32_t key) noexcept {
    return std::bit_cast<float>((key & 0x80000000U) != 0 ? key & 0x7fffffffU : ~key);
  }
  static float between(float low, float high) noexcept;

  std::size_t slot_of(std::uint32_t key) const noexcept;

  bool collect_distinct(std::span<const float> values, std::size_t max_bins);

  ColumnBins cut_by_value(std::span<const float> values, std::span<std::uint8_t> bins);

  ColumnBins cut_by_quantile(std::span<const float> values, std::size_t max_bins, std::span<std::uint8_t> bins);

  // Least significant digit first, 11 bits per pass.
  void sort_keys();

  std::array<std::uint16_t, slots> table_{};  // number of a distinct key, by hash
  std::array<std::uint8_t, most_bins> bin_of_{};
  std::vector<std::uint32_t> distinct_;
  std::vector<std::uint16_t> order_;
  std::vector<std::uint32_t> keys_, buffer_;
};

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE ColumnBins ColumnBinner::cut(std::span<const float> values, std::size_t max_bins,
                                               std::span<std::uint8_t> bins) {
  if (collect_distinct(values, max_bins)) return cut_by_value(values, bins);
  return cut_by_quantile(values, max_bins, bins);
}

TUNEWRIGHT_INLINE std::uint32_t ColumnBinner::to_key(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);  // -0 becomes +0
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

TUNEWRIGHT_INLINE float ColumnBinner::between(float low, float high) noexcept {
  const float middle = low + (high - low) * 0.5F;
  return middle >= low && middle < high ? middle : low;  // neighbours, overflow and infinities
}

TUNEWRIGHT_INLINE std::size_t ColumnBinner::slot_of(std::uint32_t key) const noexcept {
  std::size_t slot = (key * 0x9e3779b1U) >> 22;
  while (table_[slot] != empty && distinct_[table_[slot]] != key) slot = (slot + 1) % slots;
  return slot;
}

TUNEWRIGHT_INLINE bool ColumnBinner::collect_distinct(std::span<const float> values, std::size_t max_bins) {
  distinct_.clear();
  table_.fill(empty);
  std::optional<std::uint32_t> last;
  for (const float value : values) {
    const std::uint32_t key = to_key(value);
    if (last == key) continue;
    last = key;
    const std::size_t slot = slot_of(key);
    if (table_[slot] != empty) continue;
    if (distinct_.size() == max_bins) return false;
    table_[slot] = static_cast<std::uint16_t>(distinct_.size());
    distinct_.push_back(key);
  }
  return true;
}

TUNEWRIGHT_INLINE ColumnBins ColumnBinner::cut_by_value(std::span<const float> values, std::span<std::uint8_t> bins) {
  order_.resize(distinct_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint16_t>(i);
  std::sort(order_.begin(), order_.end(), [this](auto a, auto b) { return distinct_[a] < distinct_[b]; });
  ColumnBins column;
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    bin_of_[order_[rank]] = static_cast<std::uint8_t>(rank);
    if (rank > 0) {
      column.thresholds.push_back(between(to_float(distinct_[order_[rank - 1]]), to_float(distinct_[order_[rank]])));
    }
  }
  if (column.thresholds.empty()) {
    std::fill(bins.begin(), bins.end(), std::uint8_t{0});
    return column;
  }
  for (std::size_t row = 0; row < values.size(); ++row) bins[row] = bin_of_[table_[slot_of(to_key(values[row]))]];
  return column;
}

TUNEWRIGHT_INLINE ColumnBins ColumnBinner::cut_by_quantile(std::span<const float> values, std::size_t max_bins,
                                                           std::span<std::uint8_t> bins) {
  const std::size_t wanted = std::min(values.size(), sorted_rows);
  keys_.resize(wanted);
  for (std::size_t i = 0; i < wanted; ++i) keys_[i] = to_key(values[i * values.size() / wanted]);
  sort_keys();

  ColumnBins column;
  std::size_t bins_left = max_bins, rows_left = wanted, filled = 0;
  for (std::size_t begin = 0; begin < wanted && bins_left > 1;) {
    std::size_t end = begin + 1;
    while (end < wanted && keys_[end] == keys_[begin]) ++end;
    filled += end - begin;
    std::size_t next_end = end;  // of the run after this one, looked at only as far as it matters
    while (next_end < wanted && keys_[next_end] == keys_[end] && (next_end - end) * bins_left < rows_left) ++next_end;
    const bool next_is_heavy = (next_end - end) * bins_left >= rows_left;
    if (end < wanted && (filled * bins_left >= rows_left || next_is_heavy)) {
      column.thresholds.push_back(between(to_float(keys_[begin]), to_float(keys_[end])));
      rows_left -= filled;
      filled = 0;
      --bins_left;
    }
    begin = end;
  }

  // Comparisons with a table padded to 255 need no branch, so several rows are in flight at once.
  std::array<float, most_bins> table;
  table.fill(std::numeric_limits<float>::infinity());
  std::copy(column.thresholds.begin(), column.thresholds.end(), table.begin());
  for (std::size_t row = 0; row < values.size(); ++row) {
    std::size_t bin = 0;
    for (std::size_t step = most_bins / 2; step > 0; step /= 2) bin += table[bin + step - 1] < values[row] ? step : 0;
    bins[row] = static_cast<std::uint8_t>(bin);
  }
  return column;
}

TUNEWRIGHT_INLINE void ColumnBinner::sort_keys() {
  constexpr std::size_t digits = 2048;
  buffer_.resize(keys_.size());
  std::array<std::array<std::uint32_t, digits>, 3> counts{};
  for (const std::uint32_t key : keys_) {
    ++counts[0][key % digits];
    ++counts[1][(key >> 11) % digits];
    ++counts[2][key >> 22];
  }
  for (std::size_t pass = 0; pass < 3; ++pass) {
    std::uint32_t position = 0;
    for (std::uint32_t& count : counts[pass]) position += std::exchange(count, position);
    for (const std::uint32_t key : keys_) buffer_[counts[pass][(key >> (11 * pass)) % digits]++] = key;
    keys_.swap(buffer_);
  }
}

}  // namespace tunewright::models::gbdt

#endif
