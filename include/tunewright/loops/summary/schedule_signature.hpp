// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::loops {

/// A list of at most `most` items; further ones are counted but not stored.
template <class T, std::uint32_t most>
struct BoundedList {
  std::uint32_t count = 0;
  std::array<T, most + 1> items;  // the last one receives items that do not fit

  void put(T item) noexcept { items[std::min(count++, most)] = item; }
  [[nodiscard]] bool holds_all() const noexcept { return count <= most; }
  [[nodiscard]] std::span<const T> all() const noexcept { return std::span(items).first(count); }
};

/// The content of a schedule, read in one walk over its steps: words that identify its structure, i.e. everything
/// except tile sizes, unroll limits, layouts and pipeline depths; and separately its tile sizes and unroll limits.
class ScheduleSignature {
  /// Calls `f` with the step's value. Faster than `std::visit`, which calls through a table and so prevents inlining.
  template <class F>
  [[gnu::always_inline]] static auto of_step(const schedule::Step& step, const F& f) {
    static_assert(std::variant_size_v<schedule::Step> == 18);
    switch (step.index()) {
      case 0: return f(*std::get_if<0>(&step));
      case 1: return f(*std::get_if<1>(&step));
      case 2: return f(*std::get_if<2>(&step));
      case 3: return f(*std::get_if<3>(&step));
      case 4: return f(*std::get_if<4>(&step));
      case 5: return f(*std::get_if<5>(&step));
      case 6: return f(*std::get_if<6>(&step));
      case 7: return f(*std::get_if<7>(&step));
      case 8: return f(*std::get_if<8>(&step));
      case 9: return f(*std::get_if<9>(&step));
      case 10: return f(*std::get_if<10>(&step));
      case 11: return f(*std::get_if<11>(&step));
      case 12: return f(*std::get_if<12>(&step));
      case 13: return f(*std::get_if<13>(&step));
      case 14: return f(*std::get_if<14>(&step));
      case 15: return f(*std::get_if<15>(&step));
      case 16: return f(*std::get_if<16>(&step));
      default: return f(std::get<17>(step));
    }
  }

 public:
  static constexpr std::uint32_t most = 1024;
  struct Words : BoundedList<std::uint64_t, most> {
    using BoundedList::put;
    void put(std::uint32_t low, std::uint32_t high) noexcept { put(low | std::uint64_t{high} << 32); }
    /// The first word of a step. False if stage or choice do not fit a word.
    [[nodiscard]] bool put_step(std::uint32_t kind, std::uint32_t stage, std::uint64_t choice = 0,
                                std::uint32_t iter = 0) noexcept;
    void put_all(std::span<const std::uint32_t> list) noexcept;
    [[nodiscard]] std::uint64_t hash() noexcept;
  };

  /// Reads a schedule. False if a step selects a choice that does not exist, splits an extent that no loop has, follows
  /// a step that is not an earlier split, or if something does not fit.
  [[nodiscard]] bool read(const schedule::Schedule& candidate);

  /// The words; they differ between structures and are equal for equal structures.
  [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_.all(); }
  [[nodiscard]] std::uint64_t hash() noexcept { return words_.hash(); }
  /// For all split steps, concatenated: the extents of all parts except the first.
  [[nodiscard]] std::span<const std::int64_t> factors() const noexcept { return factors_.all(); }
  /// Position of the first factor of a step.
  [[nodiscard]] std::uint32_t first_factor(std::size_t step) const noexcept {
    return step == 0 ? 0 : factors_end_[step - 1];
  }
  /// The unroll limits of all steps that select one.
  [[nodiscard]] std::span<const std::int64_t> unroll_limits() const noexcept { return limits_.all(); }

  /// Prefetches the lists of a schedule that will be read soon, which are scattered over memory.
  static void prefetch(const schedule::Schedule& candidate) noexcept;

 private:
  /// `kind` is the step's index in `schedule::Step`.
  template <class S>
  bool sign(const S& s, std::uint32_t kind) {
    using namespace schedule;
    const auto number = [](auto value) { return static_cast<std::uint32_t>(value); };
    if constexpr (std::is_same_v<S, Split>) {
      return schedule::detail::has_possible_domain(s) && words_.put_step(kind, s.stage, s.factors.size(), s.iter) &&
             put_factors(s.factors);
    } else if constexpr (std::is_same_v<S, FollowSplit>) {
      const bool fits = words_.put_step(kind, s.stage, s.parts, s.iter);
      words_.put(s.source);
      return fits && put_followed(s);
    } else if constexpr (std::is_same_v<S, FollowFusedSplit>) {
      const bool fits = words_.put_step(kind, s.stage, s.level, s.iter);
      words_.put(s.sources.size());
      words_.put_all(s.sources);
      return fits && put_followed(s);
    } else if constexpr (std::is_same_v<S, Fuse>) {
      if (s.count > s.iters.size()) return false;
      const bool fits = words_.put_step(kind, s.stage, 0, s.count);
      words_.put_all(std::span(s.iters).first(s.count));
      return fits;
    } else if constexpr (std::is_same_v<S, Reorder>) {
      const bool fits = words_.put_step(kind, s.stage, 0, number(s.order.size()));
      words_.put_all(s.order);
      return fits;
    } else if constexpr (std::is_same_v<S, Annotate>) {
      return words_.put_step(kind, s.stage, number(s.kind), s.iter);
    } else if constexpr (std::is_same_v<S, UnrollLimit>) {
      if (s.selected >= s.choices.size() || s.choices[s.selected] < 0) return false;
      if (s.choices[s.selected] > schedule::detail::max_split) return false;
      limits_.put(s.choices[s.selected]);
      return words_.put_step(kind, s.stage);
    } else if constexpr (std::is_same_v<S, ComputeLocation>) {
      if (s.selected >= s.choices.size()) return false;
      const Location& chosen = s.choices[s.selected];
      const bool fits = words_.put_step(kind, s.stage, number(chosen.kind), chosen.iter);
      words_.put(chosen.stage);
      return fits;
    } else if constexpr (std::is_same_v<S, CacheWrite>) {
      return words_.put_step(kind, s.stage, number(s.scope));
    } else if constexpr (std::is_same_v<S, CacheRead>) {
      return words_.put_step(kind, s.tensor, number(s.scope), s.consumer);
    } else if constexpr (std::is_same_v<S, Pack>) {
      return words_.put_step(kind, s.tensor, 0, s.consumer);
    } else if constexpr (std::is_same_v<S, Rfactor>) {
      const bool fits = words_.put_step(kind, s.stage, 0, s.iter);
      put_frozen_factors();
      return fits;
    } else if constexpr (std::is_same_v<S, Pipeline>) {
      return words_.put_step(kind, s.stage, 0, s.iter);
    } else if constexpr (std::is_same_v<S, Tensorize>) {
      const bool fits = words_.put_step(kind, s.stage, s.intrinsic.size(), s.iter);
      for (const char letter : s.intrinsic) words_.put(number(letter));
      return fits;
    } else if constexpr (std::is_same_v<S, Pad>) {
      const bool fits = words_.put_step(kind, s.stage, s.multiples.size());
      for (const std::int64_t multiple : s.multiples) words_.put(static_cast<std::uint64_t>(multiple));
      return fits;
    } else if constexpr (std::is_same_v<S, PermuteAxes>) {
      const bool fits = words_.put_step(kind, s.stage, s.axes.size());
      words_.put_all(s.axes);
      return fits;
    } else if constexpr (std::is_same_v<S, MergeAxes>) {
      return words_.put_step(kind, 0);
    } else {
      static_assert(std::is_same_v<S, TransformLayout>);
      return words_.put_step(kind, s.stage);
    }
  }

  /// Adds the factors so far to the structure, because operators are created from them.
  void put_frozen_factors();

  /// False for illegal factors: below 1, or with a product above 2^31.
  bool put_factors(std::span<const std::int64_t> factors);
  /// Puts the leading factors of an earlier step, one less than the number of parts, and the product of its other
  /// factors.
  bool put_followed(const schedule::FollowSplit& s);
  bool put_followed(const schedule::FollowFusedSplit& s);
  /// The factors of an earlier step; empty for any other step.
  [[nodiscard]] std::span<const std::int64_t> factors_of(std::uint32_t step) const noexcept;

  std::size_t step_ = 0;  // the current step
  Words words_;
  BoundedList<std::int64_t, most> factors_, limits_;
  std::uint32_t frozen_ = 0;                     // number of factors among the words
  std::array<std::uint32_t, most> factors_end_;  // by step
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/core/hash.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE bool ScheduleSignature::Words::put_step(std::uint32_t kind, std::uint32_t stage, std::uint64_t choice,
                                                          std::uint32_t iter) noexcept {
  put(kind | static_cast<std::uint32_t>(choice) << 8 | stage << 16, iter);
  return stage <= 0xffff && choice <= 0xff;
}

TUNEWRIGHT_INLINE void ScheduleSignature::Words::put_all(std::span<const std::uint32_t> list) noexcept {
  std::size_t i = 0;
  for (; i + 1 < list.size(); i += 2) put(list[i], list[i + 1]);
  if (i < list.size()) put(list[i], 0);
}

TUNEWRIGHT_INLINE std::uint64_t ScheduleSignature::Words::hash() noexcept {
  // Independent terms, which can be computed in parallel, unlike those of `StableHash`.
  std::uint64_t sum = count, key = 0;
  items[count] = 0;  // completes the last pair
  for (std::uint32_t i = 0; i < count; i += 2) {
    key += 0x9e3779b97f4a7c15ULL;
    sum += (items[i] + key) * (items[i + 1] ^ ~key);
  }
  return mix64(sum);
}

TUNEWRIGHT_INLINE bool ScheduleSignature::read(const schedule::Schedule& candidate) {
  words_.count = factors_.count = limits_.count = frozen_ = 0;
  if (candidate.steps.size() > most) return false;
  for (step_ = 0; step_ < candidate.steps.size(); ++step_) {
    const schedule::Step& step = candidate.steps[step_];
    const auto kind = static_cast<std::uint32_t>(step.index());
    if (!of_step(step, [&](const auto& s) { return sign(s, kind); })) return false;
    factors_end_[step_] = factors_.count;
  }
  return words_.holds_all() && factors_.holds_all();
}

TUNEWRIGHT_INLINE void ScheduleSignature::prefetch(const schedule::Schedule& candidate) noexcept {
  const auto list_of = [](const auto& s) -> const void* {
    using S = std::remove_cvref_t<decltype(s)>;
    if constexpr (std::is_same_v<S, schedule::Split>) return s.factors.data();
    if constexpr (std::is_same_v<S, schedule::Fuse>) return s.iters.data();
    if constexpr (std::is_same_v<S, schedule::Reorder>) return s.order.data();
    if constexpr (std::is_same_v<S, schedule::FollowFusedSplit>) return s.sources.data();
    if constexpr (requires { s.choices; }) return s.choices.data();
    return &s;
  };
  for (const schedule::Step& step : candidate.steps) __builtin_prefetch(of_step(step, list_of));
}

TUNEWRIGHT_INLINE void ScheduleSignature::put_frozen_factors() {
  if (!factors_.holds_all()) return;  // the schedule is rejected
  for (; frozen_ < factors_.count; ++frozen_) words_.put(static_cast<std::uint64_t>(factors_.items[frozen_]));
}

TUNEWRIGHT_INLINE bool ScheduleSignature::put_factors(std::span<const std::int64_t> factors) {
  std::int64_t inner = 1;
  for (const std::int64_t factor : factors) {
    if (factor < 1 || factor > schedule::detail::max_split) return false;
    inner *= factor;  // product of two numbers up to 2^31
    if (inner > schedule::detail::max_split) return false;
    factors_.put(factor);
  }
  return true;
}

TUNEWRIGHT_INLINE bool ScheduleSignature::put_followed(const schedule::FollowSplit& s) {
  const std::span<const std::int64_t> source = factors_of(s.source);
  if (s.parts < 1 || s.parts > source.size()) return false;
  for (std::size_t f = 0; f + 1 < s.parts; ++f) factors_.put(source[f]);
  std::int64_t rest = 1;
  for (std::size_t f = s.parts - 1; f < source.size(); ++f) rest *= source[f];
  factors_.put(rest);
  return true;
}

TUNEWRIGHT_INLINE bool ScheduleSignature::put_followed(const schedule::FollowFusedSplit& s) {
  std::int64_t product = 1;
  for (const std::uint32_t step : s.sources) {
    const std::span<const std::int64_t> source = factors_of(step);
    if (s.level >= source.size()) return false;
    product *= source[s.level];  // product of two numbers up to 2^31
    if (product > schedule::detail::max_split) return false;
  }
  factors_.put(product);
  return true;
}

TUNEWRIGHT_INLINE std::span<const std::int64_t> ScheduleSignature::factors_of(std::uint32_t step) const noexcept {
  if (step >= step_ || !factors_.holds_all()) return {};
  return factors().subspan(first_factor(step), factors_end_[step] - first_factor(step));
}

}  // namespace tunewright::loops

#endif
