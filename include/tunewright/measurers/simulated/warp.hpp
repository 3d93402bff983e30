// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"

/// Memory accesses of the 32 threads of a warp.
namespace tunewright::measurers::simulated {

inline constexpr std::int64_t warp_size = 32;

/// A loop bound to threads; threads of a block are numbered along x first.
struct ThreadLoop {
  loops::Var var = 0;
  std::int64_t extent = 1;
};

/// Addresses of the 4-byte words that the first warp of a block accesses if each of its `active` threads reads
/// `elements` consecutive elements, with all other loops in their first iteration. Distinct and ascending.
[[nodiscard]] inline std::vector<std::int64_t> words_of_warp(const loops::LoopNest& nest, const Access& a,
                                                             const std::array<ThreadLoop, 3>& threads,
                                                             std::int64_t active, std::int64_t elements) {
  const loops::Buffer& buffer = nest.buffers[a.buffer];
  const auto bytes = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
  const program::IndexExpr offset = loops::flatten(buffer, a.physical);
  std::vector<std::int64_t> words;
  for (std::int64_t thread = 0; thread < active; ++thread) {
    const std::int64_t first = bytes * offset.evaluate([&](loops::Var var) {
      std::int64_t rest = thread;
      for (const ThreadLoop& loop : threads) {
        if (loop.extent > 1 && loop.var == var) return rest % loop.extent;
        rest /= loop.extent;
      }
      return std::int64_t{0};
    });
    const std::int64_t last = first + elements * bytes - 1;
    for (std::int64_t word = program::floor_div(first, 4); word <= program::floor_div(last, 4); ++word)
      words.push_back(word);
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

/// Steps that shared memory needs for distinct words: each of 32 banks serves one word per step.
[[nodiscard]] inline std::int64_t bank_steps(const std::vector<std::int64_t>& words) {
  constexpr std::int64_t banks = 32;
  std::array<std::int64_t, banks> in_bank{};
  for (const std::int64_t word : words) ++in_bank[static_cast<std::size_t>(program::floor_mod(word, banks))];
  return *std::max_element(in_bank.begin(), in_bank.end());
}

/// Sectors of 32 bytes that contain the ascending words: what a warp transfers from or to global memory.
[[nodiscard]] inline std::int64_t sectors(const std::vector<std::int64_t>& words) {
  std::int64_t count = 0, last = 0;
  for (const std::int64_t word : words) {
    const std::int64_t sector = program::floor_div(word, 8);
    if (count == 0 || sector != last) ++count;
    last = sector;
  }
  return count;
}

}  // namespace tunewright::measurers::simulated
