// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"

/// Memory accesses of the 32 threads of a warp.
namespace tunewright::measurers::simulated {

inline constexpr std::int64_t warp_size = 32;

/// One dimension of the threads around an access; threads of a block are numbered along x first.
struct ThreadLoop {
  std::optional<loops::Var> var{};  ///< the loop bound to it; none: all of its threads do the same
  std::int64_t extent = 1;          ///< of the block
};

/// Addresses of the 4-byte words that the first warp of a block accesses if each of its first `active` threads reads
/// `elements` consecutive elements, with all other loops in their first iteration; threads beyond the end of a loop
/// read nothing. Distinct and ascending.
[[nodiscard]] inline std::vector<std::int64_t> words_of_warp(const loops::LoopNest& nest, const Access& a,
                                                             const std::array<ThreadLoop, 3>& threads,
                                                             std::int64_t active, std::int64_t elements) {
  const loops::Buffer& buffer = nest.buffers[a.buffer];
  const auto bytes = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
  const program::IndexExpr offset = loops::flatten(buffer, a.physical);
  std::vector<std::int64_t> words;
  for (std::int64_t thread = 0; thread < active; ++thread) {
    std::array<std::int64_t, 3> index{};
    std::int64_t rest = thread;
    bool reads = true;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      index[i] = rest % threads[i].extent;
      rest /= threads[i].extent;
      reads = reads && (!threads[i].var || index[i] < nest.variables[*threads[i].var].extent);
    }
    if (!reads) continue;
    const std::int64_t first = bytes * offset.evaluate([&](loops::Var var) {
      for (std::size_t i = 0; i < threads.size(); ++i) {
        if (threads[i].var == var) return index[i];
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
