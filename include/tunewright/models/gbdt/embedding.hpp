// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/models/gbdt/ensemble.hpp"

namespace tunewright::models::gbdt {

/// The target of the leaf at position `node` of all nodes: one column of `width`, with a sign.
struct LeafSlot {
  std::size_t column = 0;
  float sign = 1;

  static LeafSlot of(std::uint32_t node, std::size_t width) noexcept {
    const std::uint64_t hash = mix64(node + 0x9e3779b97f4a7c15ULL);
    return {static_cast<std::size_t>((hash >> 1) % width), (hash & 1U) != 0 ? 1.0F : -1.0F};
  }
};

/// Embeds programs by the leaves they reach, folded into `width` columns.
///
///   e(p)[c] = 1 / sqrt(2 T) sum over rows r of p, trees t with column(leaf_t(r)) = c of sign(leaf_t(r))
///   || e(p) - e(q) ||^2  ~  share of the T trees that send p and q to different leaves  (one row each)
///
/// The right side is the Hamming distance of one-hot leaves, which would need some thousand columns. Folding with
/// random signs (Weinberger et al., ICML 2009) preserves squared distances: exactly in the mean over foldings, with a
/// relative error of about sqrt(2 / width), 9 % with 256 columns. Programs of several rows compare how often they reach
/// each leaf.
///
/// x (R, D) of P programs; result [P, width], zeros for an untrained ensemble. O(R T depth).
[[nodiscard]] inline FeatureBatch embed_leaves(const Ensemble& ensemble, const FeatureBatch& x, std::size_t width,
                                               unsigned threads) {
  const std::size_t trees = ensemble.trees.size(), programs = x.programs();
  std::vector<float> values(programs * width, 0.0F);  // (P, width)
  if (trees != 0) {
    const float scale = 1.0F / std::sqrt(2.0F * static_cast<float>(trees));
    constexpr std::size_t chunk = 256;  // programs
    parallel_for((programs + chunk - 1) / chunk, threads, [&](std::size_t part) {
      const std::size_t begin = part * chunk, end = std::min(programs, begin + chunk);
      const auto offsets = x.offsets();
      std::vector<std::uint32_t> leaves((offsets[end] - offsets[begin]) * trees);
      ensemble.reach(x, offsets[begin], offsets[end], leaves);
      const std::uint32_t* leaf = leaves.data();
      for (std::size_t p = begin; p < end; ++p) {
        for (std::size_t i = 0; i < (offsets[p + 1] - offsets[p]) * trees; ++i) {
          const LeafSlot slot = LeafSlot::of(*leaf++, width);
          values[p * width + slot.column] += slot.sign;
        }
      }
      for (std::size_t i = begin * width; i < end * width; ++i) values[i] *= scale;
    });
  }
  FeatureBatch out(width);
  for (std::size_t p = 0; p < programs; ++p)
    out.append_program(std::span<const float>(values).subspan(p * width, width));
  return out;
}

}  // namespace tunewright::models::gbdt
