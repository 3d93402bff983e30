// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "tunewright/core/hash.hpp"

namespace tunewright {

/// Counter-based generator: the n-th number is a pure function of (key, n). Deriving keys gives independent streams, so
/// a search gives the same history at any number of threads.
///
///   output(n) = mix64(key + n * golden)            (SplitMix64, Steele et al., OOPSLA 2014)
///
/// Models `std::uniform_random_bit_generator`. The distributions are members because those of the standard library
/// differ between implementations. Determinism: bit-identical everywhere. Cost: one multiply-mix per number.
class Rng {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Rng(std::uint64_t seed = 0) noexcept : key_(mix64(seed + 0x9e3779b97f4a7c15ULL)) {}

  /// Independent generator for `stream`; does not advance this one. Streams are keyed by their purpose, e.g.
  /// `rng.split(task).split(round).split(slot)`.
  [[nodiscard]] constexpr Rng split(std::uint64_t stream) const noexcept {
    return Rng(mix64(key_ ^ mix64(stream + 0xd1b54a32d192ed03ULL)));
  }

  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return std::numeric_limits<result_type>::max(); }
  constexpr result_type operator()() noexcept { return mix64(key_ + ++counter_ * 0x9e3779b97f4a7c15ULL); }

  /// Uniform in [0, 1).
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// Uniform in [0, n); `n` must be positive. Unbiased (Lemire's multiply-and-reject).
  constexpr std::uint64_t below(std::uint64_t n) noexcept {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>((*this)()) * n;
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>((*this)()) * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  /// Standard normal (Box-Muller, one value per call).
  double normal() noexcept {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

  /// Fisher-Yates.
  template <class T>
  constexpr void shuffle(std::span<T> values) noexcept {
    for (std::size_t last = values.size(); last > 1; --last) {
      using std::swap;
      swap(values[last - 1], values[static_cast<std::size_t>(below(last))]);
    }
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace tunewright
