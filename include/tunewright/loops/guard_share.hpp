// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// The share of a nest's iterations in which guards hold.
namespace tunewright::loops {

/// A fraction of `whole_share`: integers, so that the result does not depend on compiler, options or order of
/// additions.
using Share = std::int64_t;
inline constexpr Share whole_share = std::int64_t{1} << 20;

/// `share` of `count`, or of another share, rounded down.
[[nodiscard]] constexpr std::int64_t part(std::int64_t count, Share share) noexcept {
  return count / whole_share * share + count % whole_share * share / whole_share;
}

namespace detail {

/// Guards as sums of digits: variables, and quotients and remainders of fused variables.
class DigitSums {
 public:
  DigitSums(const LoopNest& nest, std::span<const Guard> guards);

  [[nodiscard]] Share share() const;

 private:
  struct Sum {
    const Guard* guard = nullptr;
    std::vector<std::int64_t> coefficients;  // by digit
  };

  [[nodiscard]] std::size_t digit(program::IndexExpr expression);

  /// The share for all guards that are connected to the guard `first` by common digits, directly or indirectly.
  [[nodiscard]] Share share_of_connected(std::size_t first, std::vector<char>& counted) const;

  /// Number of points in the box of `used` digits at which all guards of `connected` hold.
  [[nodiscard]] std::int64_t holding(const std::vector<std::size_t>& connected,
                                     const std::vector<std::size_t>& used) const;

  std::vector<program::IndexExpr> digits_;
  std::vector<program::Range> ranges_;  // by digit
  std::vector<Sum> sums_;
};

}  // namespace detail

/// Share of the iterations of all loops in which all `guards` hold, by counting.
///
/// Exact, except for rounding down to 1 / `whole_share`, if fused variables occur only as digits, i.e. quotients and
/// remainders that vary independently. Guards with more than 2^16 values together are assumed to hold.
[[nodiscard]] inline Share share_where(const LoopNest& nest, std::span<const Guard> guards) {
  return guards.empty() ? whole_share : detail::DigitSums(nest, guards).share();
}

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops::detail {

TUNEWRIGHT_INLINE DigitSums::DigitSums(const LoopNest& nest, std::span<const Guard> guards) {
  for (const Guard& guard : guards) {
    Sum sum{&guard, std::vector<std::int64_t>(digits_.size())};
    for (program::IndexExpr::Term term : guard.value.terms()) {
      const std::int64_t coefficient = std::exchange(term.coefficient, 1);
      const std::size_t d = digit(program::IndexExpr::from_term(term));
      sum.coefficients.resize(digits_.size());
      sum.coefficients[d] = coefficient;
    }
    sums_.push_back(std::move(sum));
  }
  for (Sum& sum : sums_) sum.coefficients.resize(digits_.size());
  for (const program::IndexExpr& d : digits_) ranges_.push_back(d.range([&](Var var) { return nest.range_of(var); }));
}

TUNEWRIGHT_INLINE Share DigitSums::share() const {
  Share all = whole_share;
  std::vector<char> counted(sums_.size(), 0);
  for (std::size_t s = 0; s < sums_.size(); ++s) {
    if (counted[s] == 0) all = part(all, share_of_connected(s, counted));
  }
  return all;
}

TUNEWRIGHT_INLINE std::size_t DigitSums::digit(program::IndexExpr expression) {
  const auto found = std::find(digits_.begin(), digits_.end(), expression);
  if (found != digits_.end()) return static_cast<std::size_t>(found - digits_.begin());
  digits_.push_back(std::move(expression));
  return digits_.size() - 1;
}

TUNEWRIGHT_INLINE Share DigitSums::share_of_connected(std::size_t first, std::vector<char>& counted) const {
  std::vector<std::size_t> connected{first}, used;
  counted[first] = 1;
  for (std::size_t c = 0; c < connected.size(); ++c) {
    for (std::size_t d = 0; d < digits_.size(); ++d) {
      if (sums_[connected[c]].coefficients[d] == 0) continue;
      if (std::find(used.begin(), used.end(), d) != used.end()) continue;
      used.push_back(d);
      for (std::size_t s = 0; s < sums_.size(); ++s) {
        if (counted[s] != 0 || sums_[s].coefficients[d] == 0) continue;
        counted[s] = 1;
        connected.push_back(s);
      }
    }
  }
  constexpr std::int64_t most = std::int64_t{1} << 16;
  std::int64_t points = 1;
  for (const std::size_t d : used) {
    points *= ranges_[d].extent();
    if (points > most) return whole_share;
  }
  return whole_share * holding(connected, used) / points;
}

TUNEWRIGHT_INLINE std::int64_t DigitSums::holding(const std::vector<std::size_t>& connected,
                                                  const std::vector<std::size_t>& used) const {
  std::vector<std::int64_t> at, values;
  for (const std::size_t d : used) at.push_back(ranges_[d].min);
  for (const std::size_t s : connected) {
    values.push_back(sums_[s].guard->value.constant());
    for (const std::size_t d : used) values.back() += sums_[s].coefficients[d] * ranges_[d].min;
  }
  for (std::int64_t count = 0;;) {
    bool holds = true;
    for (std::size_t c = 0; c < connected.size(); ++c) {
      const Guard& guard = *sums_[connected[c]].guard;
      holds = holds && (!guard.below || values[c] >= 0) && (!guard.above || values[c] < guard.extent);
    }
    if (holds) ++count;
    std::size_t u = 0;
    for (; u < used.size(); ++u) {
      const bool wraps = at[u] == ranges_[used[u]].max;
      const std::int64_t step = wraps ? ranges_[used[u]].min - at[u] : 1;
      at[u] += step;
      for (std::size_t c = 0; c < connected.size(); ++c) values[c] += step * sums_[connected[c]].coefficients[used[u]];
      if (!wraps) break;
    }
    if (u == used.size()) return count;
  }
}

}  // namespace tunewright::loops::detail

#endif
