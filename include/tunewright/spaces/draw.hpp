// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/parallel.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::spaces {

/// Up to `n` random configurations with distinct keys, none of them in `exclude`. Fewer if five consecutive waves of
/// draws give nothing new.
///
/// Determinism: draw i uses `rng.split(i)`, so the result is the same at any number of threads.
template <SearchSpace S>
[[nodiscard]] std::vector<config_t<S>> draw(const S& space, const Task& task, std::size_t n, const KeySet& exclude,
                                            unsigned threads, const Rng& rng) {
  constexpr unsigned max_barren_waves = 5;  // as in Ansor's initial sampling
  constexpr std::size_t min_wave = 16;      // the last configurations of a small space need several tries each
  std::vector<config_t<S>> drawn;
  KeySet seen;
  std::uint64_t draws = 0;
  for (unsigned barren = 0; drawn.size() < n && barren < max_barren_waves;) {
    std::vector<std::optional<config_t<S>>> wave(std::max(n - drawn.size(), min_wave));
    std::vector<std::uint64_t> keys(wave.size());
    parallel_parts(threads, wave.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        Rng own = rng.split(draws + i);
        wave[i] = space.sample(task, own);
        if (wave[i]) keys[i] = space.key(*wave[i]);
      }
    });
    draws += wave.size();
    ++barren;
    for (std::size_t i = 0; i < wave.size() && drawn.size() < n; ++i) {
      if (!wave[i] || exclude.count(keys[i]) != 0 || !seen.insert(keys[i]).second) continue;
      drawn.push_back(*std::move(wave[i]));
      barren = 0;
    }
  }
  return drawn;
}

}  // namespace tunewright::spaces
