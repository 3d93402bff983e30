// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"

/// How the 32 threads of a warp meet memory.
namespace tunewright::measurers::simulated {

inline constexpr std::int64_t warp_size = 32;

/// A loop bound to threads; their number in a block runs over the x dimension first.
struct ThreadLoop {
  loops::Var var = 0;
  std::int64_t extent = 1;
};

/// Addresses of the 4-byte words that the first warp of a block reaches when each of its `active` threads reads
/// `elements` elements in a row, all other loops in their first iteration. Distinct and ascending.
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

/// Steps that shared memory takes for distinct words: 32 banks give one word each in a step.
[[nodiscard]] inline std::int64_t bank_steps(const std::vector<std::int64_t>& words) {
  constexpr std::int64_t banks = 32;
  std::array<std::int64_t, banks> in_bank{};
  for (const std::int64_t word : words) ++in_bank[static_cast<std::size_t>(program::floor_mod(word, banks))];
  return *std::max_element(in_bank.begin(), in_bank.end());
}

/// Sectors of 32 bytes that ascending words lie in: what a warp moves from or to global memory.
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
