// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/core/bounded_product.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/program/range.hpp"
#include "tunewright/schedule/step.hpp"

/// Possible sizes of the parts of a tile, and moves of factors between parts.
namespace tunewright::spaces::decisions {

/// Share of idle iterations among `ceil(extent / factor) * factor`.
[[nodiscard]] inline double waste(std::int64_t extent, std::int64_t factor) {
  const std::int64_t padded = program::ceil_div(extent, factor) * factor;
  return static_cast<double>(padded - extent) / static_cast<double>(padded);
}

/// Product of two sizes of parts, at most 2^40, which no program reaches: files may name sizes of up to 2^31.
[[nodiscard]] constexpr std::int64_t tile_product(std::int64_t a, std::int64_t b) noexcept {
  return bounded_product(a, b, std::int64_t{1} << 40);
}

/// Divisors of `extent` up to `cap`, ascending; of extents beyond 2^40, which only files name, not all.
[[nodiscard]] inline std::vector<std::int64_t> divisors_up_to(std::int64_t extent, std::int64_t cap) {
  std::vector<std::int64_t> small;
  std::vector<std::int64_t> large;
  constexpr std::int64_t most = std::int64_t{1} << 20;
  for (std::int64_t d = 1; d <= most && d <= extent / d; ++d) {
    if (extent % d != 0) continue;
    if (d <= cap) small.push_back(d);
    if (d != extent / d && extent / d <= cap) large.push_back(extent / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// Share of idle iterations up to which a size that does not divide an extent is tried: more hardly ever win.
inline constexpr double max_waste = 0.125;

/// Candidate sizes of one part of a tile: divisors of `extent` up to `cap`; if there are few, or `imperfect` is set,
/// also sizes up to 64 that leave at most an eighth of the iterations idle.
[[nodiscard]] inline std::vector<std::int64_t> tile_sizes(std::int64_t extent, std::int64_t cap,
                                                          bool imperfect = false) {
  constexpr std::size_t few_divisors = 3;  // primes have two
  std::vector<std::int64_t> sizes = divisors_up_to(extent, cap);
  if (!imperfect && (sizes.size() >= few_divisors || extent <= 4)) return sizes;
  for (std::int64_t size = 2; size <= std::min<std::int64_t>({extent, cap, 64}); ++size) {
    if (extent % size != 0 && waste(extent, size) <= max_waste) sizes.push_back(size);
  }
  return sizes;
}

[[nodiscard]] inline std::int64_t pick(const std::vector<std::int64_t>& values, Rng& rng) {
  return values[static_cast<std::size_t>(rng.below(values.size()))];
}

/// Draws one of `sizes` with probability proportional to its value: larger innermost parts amortise more, and a uniform
/// choice among divisors would mostly be small.
[[nodiscard]] inline std::int64_t pick_large(const std::vector<std::int64_t>& sizes, Rng& rng) {
  std::uint64_t total = 0;
  for (const std::int64_t size : sizes) total += static_cast<std::uint64_t>(size);
  std::uint64_t draw = rng.below(total);
  for (const std::int64_t size : sizes) {
    if (draw < static_cast<std::uint64_t>(size)) return size;
    draw -= static_cast<std::uint64_t>(size);
  }
  return sizes.back();
}

/// Whether the decision of a split is open.
[[nodiscard]] inline bool is_open_split(const schedule::Split& split) {
  return split.max_innermost >= 0 && !split.factors.empty();
}

[[nodiscard]] inline std::int64_t product_of(const std::vector<std::int64_t>& factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) product *= factor;
  return product;
}

/// Whether the parts of the split, with an integer outermost part, multiply to its extent.
[[nodiscard]] inline bool divides(const schedule::Split& split) {
  return split.extent % product_of(split.factors) == 0;
}

/// Reduces parts that exceed the extent, the innermost first: parts that were drawn in another order may exceed it by
/// more than rounding up does, and lowering would shrink their loops.
inline void trim(schedule::Split& split) {
  std::int64_t rest = std::max<std::int64_t>(split.extent, 1);
  for (std::size_t part = split.factors.size(); part-- > 0;) {
    split.factors[part] = std::min(split.factors[part], rest);
    rest = program::ceil_div(rest, split.factors[part]);
  }
}

/// Moves a factor from one part of a dividing split to the next part in a random order; the innermost part stays within
/// its cap (Ansor's tile-size mutation, OSDI 2020, section 5.1).
inline void move_factor(schedule::Split& split, Rng& rng) {
  std::vector<std::int64_t> lengths{split.extent / product_of(split.factors)};
  lengths.insert(lengths.end(), split.factors.begin(), split.factors.end());
  std::vector<std::size_t> places = positions(lengths.size());
  rng.shuffle(std::span(places));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t from = places[i];
    const std::size_t to = places[(i + 1) % places.size()];
    const bool capped = to + 1 == lengths.size() && split.max_innermost > 0;
    std::vector<std::int64_t> divisors =
        divisors_up_to(lengths[from], capped ? split.max_innermost / lengths[to] : lengths[from]);
    std::erase(divisors, 1);
    if (divisors.empty()) continue;
    const std::int64_t moved = pick(divisors, rng);
    lengths[from] /= moved;
    lengths[to] *= moved;
    split.factors.assign(lengths.begin() + 1, lengths.end());
    break;
  }
}

/// Redraws an index in [0, count) to a different value; false if there is none.
inline bool redraw(std::uint32_t& selected, std::size_t count, Rng& rng) {
  if (count < 2) return false;
  const auto other = static_cast<std::uint32_t>(rng.below(count - 1));
  selected = other < selected ? other : other + 1;
  return true;
}

/// Registers of each thread in a block of `threads` threads of a GPU. Limits that the target does not state default to
/// those of recent devices.
[[nodiscard]] inline std::int64_t registers_of_thread(const Target& target, std::int64_t threads) {
  const std::int64_t a_block = target.registers_per_block == 0 ? 65536 : target.registers_per_block;
  return std::min<std::int64_t>(target.thread_registers_limit(), a_block / threads);
}

/// Draws the parts of one reduction axis that are in shared memory together; `depth` is what the other axes leave.
inline void draw_reduction(schedule::Split& axis, std::int64_t& depth, Rng& rng) {
  std::int64_t rest = std::max<std::int64_t>(axis.extent, 1);
  for (std::size_t part = axis.factors.size(); part-- > 0;) {
    const bool capped = part + 1 == axis.factors.size() && axis.max_innermost > 0;
    depth = std::max<std::int64_t>(depth, 1);
    axis.factors[part] = pick(tile_sizes(rest, capped ? std::min(depth, axis.max_innermost) : depth), rng);
    rest = program::ceil_div(rest, axis.factors[part]);
    depth /= axis.factors[part];
  }
}

}  // namespace tunewright::spaces::decisions
