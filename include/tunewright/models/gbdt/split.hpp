// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"
#include "tunewright/models/gbdt/objective.hpp"

namespace tunewright::models::gbdt {

/// Sum of gradients (upper half, signed) and of hessians (lower half, below 2^31), both counted in quanta.
///
/// Integer sums do not depend on the order: any number of threads may fill histograms in any order and subtract them,
/// with the same bits. One 64-bit addition adds both.
using PackedSum = std::int64_t;

[[nodiscard]] inline std::int32_t gradient_quanta(PackedSum sum) noexcept {
  return static_cast<std::int32_t>(sum >> 32);
}
[[nodiscard]] inline std::int32_t hessian_quanta(PackedSum sum) noexcept {
  return static_cast<std::int32_t>(sum & 0x7fffffff);
}

/// The value of one quantum: powers of two, so that round numbers stay exact.
struct Quanta {
  double gradient = 1;
  double hessian = 1;
};

/// Packs the slopes of programs for their rows; those of program p are `offsets[p]` to `offsets[p + 1]`. A program
/// without rows, which is in no sum, gets 0. The quanta are the smallest with which no sum over any rows can overflow:
/// about 2^-30 of the sum of all magnitudes, far below the noise of a measurement.
Quanta pack_slopes(std::span<const Slope> slopes, std::span<const std::uint32_t> offsets, std::span<PackedSum> out);

/// Minimum requirements of a split.
struct SplitRules {
  float lambda = 1;            ///< added to every sum of hessians
  float gamma = 0;             ///< least gain; gains up to 1e-6 are never enough
  float min_child_weight = 0;  ///< least sum of hessians on either side; never below one quantum
};

/// A split `bin <= id | bin > id` of the column of `id`. Without a split, `gain` is minus infinity.
struct Split {
  float gain = -std::numeric_limits<float>::infinity();  ///< in quanta, the parent's share not yet taken off
  std::uint32_t id = 0;                                  ///< bin over all columns
  PackedSum left = 0;
};

/// Finds the best split of a node. An object is scratch space of one thread.
///
///   gain = G_l^2 / (H_l + lambda) + G_r^2 / (H_r + lambda) - G^2 / (H + lambda)
///
/// (XGBoost, KDD 2016, eq. 7 without its factor 1/2, as in its code.) Equal gains go to the first column, then to the
/// lowest bin.
///
/// A large node has a histogram over all bins. A small one touches few of them, so its rows are scanned instead: the
/// cost is proportional to its rows, which makes deep trees on a thousand programs cheap.
class SplitFinder {
 public:
  explicit SplitFinder(const BinnedRows& data);

  [[nodiscard]] std::uint32_t column_of(std::uint32_t id) const noexcept { return column_of_[id]; }

  void set_rules(const SplitRules& rules, const Quanta& quanta);

  /// Columns that splits may use, one byte each [F]; null: all. Must outlive the use.
  void set_allowed(const std::uint8_t* allowed) { allowed_ = allowed; }

  /// Adds rows to a histogram [B] (with `Sign` = -1, subtracts them), without their common bins.
  template <int Sign>
  void add_rows(std::span<const std::uint32_t> rows, const PackedSum* packed, PackedSum* histogram) const {
    visit_rows(rows, packed, [histogram](auto id, PackedSum value) { histogram[id] += Sign * value; });
  }

  /// Best split among columns [first, last) from the histogram and the sum of the node. Fills in the common bins.
  Split scan_histogram(PackedSum* histogram, PackedSum total, std::size_t first, std::size_t last);

  /// Best split of a node with few rows, among all columns.
  Split scan_rows(std::span<const std::uint32_t> rows, const PackedSum* packed, PackedSum total);

 private:
  template <class Visit>
  void visit_rows(std::span<const std::uint32_t> rows, const PackedSum* packed, Visit visit) const {
    const auto visit_lists = [&](const auto* lists) {
      const std::size_t* offsets = data_->list_offsets.data();
      constexpr std::size_t ahead = 4;  // rows; long enough to hide a miss of the second-level cache
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i + ahead < rows.size()) {
          const auto* next = reinterpret_cast<const char*>(lists + offsets[rows[i + ahead]]);
          __builtin_prefetch(next);
          __builtin_prefetch(next + 64);
        }
        const PackedSum value = packed[rows[i]];
        if (value == 0) continue;
        const auto* end = lists + offsets[rows[i] + 1];
        for (const auto* id = lists + offsets[rows[i]]; id != end; ++id) visit(*id, value);
      }
    };
    data_->long_lists.empty() ? visit_lists(data_->lists.data()) : visit_lists(data_->long_lists.data());
  }

  // Ids of set marks in ascending order; clears the marks. Returns how many.
  std::size_t list_touched();

  void consider(std::uint32_t id, PackedSum left, PackedSum total, bool worth);

  // Four candidates at once: gains dominate the cost of small nodes, and compilers do not vectorize this at -O2.
  Split best_of_considered(PackedSum total);

  const BinnedRows* data_;
  std::vector<std::uint32_t> column_of_;   // [B]
  const std::uint8_t* allowed_ = nullptr;  // [F]
  float lambda_ = 1;
  std::int32_t least_hessian_ = 1;
  std::vector<PackedSum> sums_;     // [B] candidates of the node: what would go left
  std::vector<std::uint32_t> ids_;  // [B]
  std::size_t count_ = 0;
  std::vector<PackedSum> sparse_;      // [B] all zero between calls
  std::vector<std::uint8_t> touched_;  // [B] all zero between calls
  std::vector<std::uint32_t> touched_ids_;
};

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE Quanta pack_slopes(std::span<const Slope> slopes, std::span<const std::uint32_t> offsets,
                                     std::span<PackedSum> out) {
  double gradients = 0, hessians = 0;
  for (std::size_t p = 0; p < slopes.size(); ++p) {
    const double rows = offsets[p + 1] - offsets[p];
    gradients += rows * std::abs(static_cast<double>(slopes[p].gradient));
    hessians += rows * static_cast<double>(slopes[p].hessian);
  }
  const auto quantum = [](double sum) {
    return sum > 0 ? std::exp2(std::max(std::ceil(std::log2(sum)) - 30, -900.0)) : 1.0;
  };
  const Quanta quanta{quantum(gradients), quantum(hessians)};
  const double per_gradient = 1 / quanta.gradient, per_hessian = 1 / quanta.hessian;
  for (std::size_t p = 0; p < slopes.size(); ++p) {
    if (offsets[p] == offsets[p + 1]) {  // its slope may exceed the range, which is that of the others
      out[p] = 0;
      continue;
    }
    const auto gradient =
        static_cast<PackedSum>(std::nearbyint(static_cast<double>(slopes[p].gradient) * per_gradient));
    auto hessian = static_cast<PackedSum>(static_cast<double>(slopes[p].hessian) * per_hessian + 0.5);
    if (slopes[p].hessian > 0) hessian = std::max<PackedSum>(hessian, 1);
    out[p] = gradient * (PackedSum{1} << 32) + hessian;
  }
  return quanta;
}

TUNEWRIGHT_INLINE SplitFinder::SplitFinder(const BinnedRows& data) : data_(&data), column_of_(data.bins) {
  for (std::size_t f = 0; f < data.columns.size(); ++f) {
    std::fill_n(column_of_.begin() + data.columns[f].first_bin, data.columns[f].bins, static_cast<std::uint32_t>(f));
  }
  sums_.resize(data.bins + 4);
  ids_.resize(data.bins + 4);
}

TUNEWRIGHT_INLINE void SplitFinder::set_rules(const SplitRules& rules, const Quanta& quanta) {
  // Beyond 1e18 quanta lambda dominates, and larger values would overflow the products.
  lambda_ = static_cast<float>(std::min(static_cast<double>(rules.lambda) / quanta.hessian, 1e18));
  const double least = std::ceil(static_cast<double>(rules.min_child_weight) / quanta.hessian);
  least_hessian_ = least >= 0x7fffffff ? 0x7fffffff : std::max(static_cast<std::int32_t>(least), 1);
}

TUNEWRIGHT_INLINE Split SplitFinder::scan_histogram(PackedSum* histogram, PackedSum total, std::size_t first,
                                                    std::size_t last) {
  count_ = 0;
  for (std::size_t f = first; f < last; ++f) {
    if (allowed_ != nullptr && allowed_[f] == 0) continue;
    const Column& column = data_->columns[f];
    histogram[column.common_bin] = 0;
    PackedSum listed = 0;
    for (std::uint32_t id = column.first_bin; id < column.first_bin + column.bins; ++id) listed += histogram[id];
    histogram[column.common_bin] = total - listed;
    PackedSum left = 0;
    for (std::uint32_t id = column.first_bin; id + 1 < column.first_bin + column.bins; ++id) {
      left += histogram[id];
      consider(id, left, total, histogram[id] != 0);
    }
  }
  return best_of_considered(total);
}

TUNEWRIGHT_INLINE Split SplitFinder::scan_rows(std::span<const std::uint32_t> rows, const PackedSum* packed,
                                               PackedSum total) {
  if (sparse_.empty()) {
    sparse_.resize(data_->bins);
    touched_.resize(data_->bins + 32);
    touched_ids_.resize(data_->bins + 1);
  }
  visit_rows(rows, packed, [sums = sparse_.data(), touched = touched_.data()](auto id, PackedSum value) {
    sums[id] += value;
    touched[id] = 1;
  });
  const std::size_t listed = list_touched();
  touched_ids_[listed] = 0xffffffffU;
  count_ = 0;
  for (std::size_t i = 0; i < listed;) {
    const std::size_t f = column_of_[touched_ids_[i]];
    const Column& column = data_->columns[f];
    const std::uint32_t end = column.first_bin + column.bins;
    if (allowed_ != nullptr && allowed_[f] == 0) {
      for (; touched_ids_[i] < end; ++i) sparse_[touched_ids_[i]] = 0;
      continue;
    }
    std::size_t last = i;
    PackedSum common = total;
    for (; touched_ids_[last] < end; ++last) common -= sparse_[touched_ids_[last]];
    PackedSum left = 0;
    const auto take = [&](std::uint32_t id) {
      left += std::exchange(sparse_[id], 0);
      consider(id, left, total, true);
    };
    for (; touched_ids_[i] < column.common_bin; ++i) take(touched_ids_[i]);
    left += common;
    consider(column.common_bin, left, total, common != 0);
    for (; i < last; ++i) take(touched_ids_[i]);
  }
  return best_of_considered(total);
}

TUNEWRIGHT_INLINE std::size_t SplitFinder::list_touched() {
  std::size_t count = 0;
  for (std::size_t base = 0; base < data_->bins; base += 32) {
    std::uint64_t words[4];
    std::memcpy(words, touched_.data() + base, 32);
    if ((words[0] | words[1] | words[2] | words[3]) == 0) continue;
    std::memset(touched_.data() + base, 0, 32);
    for (std::size_t w = 0; w < 4; ++w) {
      for (std::uint64_t word = words[w]; word != 0;) {
        const auto zeros = static_cast<std::size_t>(
            std::endian::native == std::endian::little ? std::countr_zero(word) : std::countl_zero(word));
        touched_ids_[count++] = static_cast<std::uint32_t>(base + w * 8 + zeros / 8);
        word &= std::endian::native == std::endian::little ? word - 1 : ~(std::uint64_t{1} << (63 - zeros));
      }
    }
  }
  return count;
}

TUNEWRIGHT_INLINE void SplitFinder::consider(std::uint32_t id, PackedSum left, PackedSum total, bool worth) {
  const std::int32_t hessian = hessian_quanta(left);
  sums_[count_] = left;
  ids_[count_] = id;
  count_ += static_cast<std::size_t>(worth & (hessian >= least_hessian_) &
                                     (hessian_quanta(total) - hessian >= least_hessian_));
}

TUNEWRIGHT_INLINE Split SplitFinder::best_of_considered(PackedSum total) {
  using Float4 = float __attribute__((vector_size(16)));
  using Int4 = std::int32_t __attribute__((vector_size(16)));
  if (count_ == 0) return {};
  for (std::size_t pad = count_; pad % 4 != 0; ++pad) sums_[pad] = sums_[count_ - 1];
  const std::int32_t gradient = gradient_quanta(total), hessian = hessian_quanta(total);
  const Float4 lambda{lambda_, lambda_, lambda_, lambda_};
  Float4 best{-1, -1, -1, -1};
  Int4 best_at{};
  Int4 at{0, 1, 2, 3};
  for (std::size_t i = 0; i < count_; i += 4, at += 4) {
    Int4 low, high;
    std::memcpy(&low, &sums_[i], 16);
    std::memcpy(&high, &sums_[i + 2], 16);
    constexpr bool little = std::endian::native == std::endian::little;
    const Int4 evens = __builtin_shufflevector(low, high, 0, 2, 4, 6),
               odds = __builtin_shufflevector(low, high, 1, 3, 5, 7);
    const Int4 g = little ? odds : evens, h = little ? evens : odds;
    const Float4 g_left = __builtin_convertvector(g, Float4), g_right = __builtin_convertvector(gradient - g, Float4);
    const Float4 h_left = __builtin_convertvector(h, Float4) + lambda;
    const Float4 h_right = __builtin_convertvector(hessian - h, Float4) + lambda;
    const Float4 gain = (g_left * g_left * h_right + g_right * g_right * h_left) / (h_left * h_right);
    const Int4 better = gain > best;
    best = better ? gain : best;
    best_at = better ? at : best_at;
  }
  Split split;
  std::size_t found = 0;
  for (int lane = 0; lane < 4; ++lane) {
    const auto index = static_cast<std::size_t>(best_at[lane]);
    if (best[lane] > split.gain || (best[lane] == split.gain && index < found)) {
      split.gain = best[lane];
      found = index;
    }
  }
  split.id = ids_[std::min(found, count_ - 1)];
  split.left = sums_[found];
  return split;
}

}  // namespace tunewright::models::gbdt

#endif
