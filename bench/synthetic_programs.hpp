// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"

namespace tunewright::bench {

/// Programs with the statistics of a tuning session, made up: tiled loop nests of a few tasks, described
/// statement by statement in 164 columns of which many are constant or mostly zero, with a throughput that
/// depends on caches, vectors, unrolling and balance in ways that interact, and some noise. Not meant to
/// resemble any machine; it only has to be as hard to learn and as irregular to train on as the real thing.
struct SyntheticPrograms {
  FeatureBatch x{164};
  std::vector<float> y;              ///< [P] throughput / best of task; 3 in 100 failed
  std::vector<std::uint32_t> group;  ///< [P] task
};

namespace synthetic_detail {

inline float log_scale(double value) { return static_cast<float>(std::log2(1.0 + value)); }

/// An extent as tensor programs have them: a product of small primes between 8 and about 1000.
inline double extent(Rng& rng) {
  const double wanted = std::exp2(3 + 7 * rng.uniform());
  double size = 1;
  while (size < wanted) size *= std::array{2.0, 2.0, 2.0, 3.0, 7.0}[rng.below(5)];
  return size;
}

/// Tile sizes of one loop, outermost first: every prime factor goes to a level of its own choice.
inline std::array<double, 4> tile(double size, Rng& rng) {
  std::array<double, 4> sizes{1, 1, 1, 1};
  for (const double prime : {2.0, 3.0, 7.0}) {
    for (; std::fmod(size, prime) == 0; size /= prime) {
      double& level = sizes[rng.below(4)];
      if (&level != &sizes[3] || level * prime <= 64) {
        level *= prime;
      } else {
        sizes[0] *= prime;
      }
    }
  }
  return sizes;
}

}  // namespace synthetic_detail

/// `programs` programs of `tasks` tasks in turn; every program has 2 to 6 statements, or one with
/// `single_statement`.
[[nodiscard]] inline SyntheticPrograms make_synthetic(std::size_t programs, std::size_t tasks, std::uint64_t seed,
                                                      bool single_statement = false) {
  using synthetic_detail::log_scale;
  SyntheticPrograms out;
  const Rng root(seed);
  std::vector<double> throughput(programs);
  for (std::size_t p = 0; p < programs; ++p) {
    const std::size_t task = p % tasks;
    Rng shape = root.split(1).split(task);
    std::array<double, 3> extents{};
    for (double& size : extents) size = synthetic_detail::extent(shape);
    const std::size_t buffers = 2 + static_cast<std::size_t>(shape.below(3));
    const std::size_t statements = single_statement ? 1 : 2 + static_cast<std::size_t>(shape.below(4));

    Rng rng = root.split(2).split(p);
    std::array<std::array<double, 4>, 3> tiles{};
    for (std::size_t axis = 0; axis < 3; ++axis) tiles[axis] = synthetic_detail::tile(extents[axis], rng);
    const double unroll = std::array{0.0, 16.0, 64.0, 512.0}[rng.below(4)];
    const bool parallel = rng.below(8) != 0, vectorize = rng.below(6) != 0;
    const std::size_t fused_at = static_cast<std::size_t>(rng.below(4));

    double work = 1, cost = 0;
    for (const double size : extents) work *= size;
    for (std::size_t s = 0; s < statements; ++s) {
      const std::span<float> row = out.x.append_row();
      const bool main = s == 0;
      const double share = main ? 1.0 : std::exp2(-3.0 - static_cast<double>(s));
      const bool inlined = !main && ((fused_at >> (s % 2)) & 1U) != 0;
      const double inner = tiles[0][3] * (main ? tiles[1][3] : 1.0), middle = inner * tiles[0][2] * tiles[2][3];
      // arithmetic counts
      row[0] = main ? log_scale(work) : 0.0F;
      row[1] = main ? log_scale(work) : log_scale(work * share);
      row[5] = main ? 0.0F : log_scale(static_cast<double>(s));
      // annotations: vectorised, unrolled, parallel loops as length, product and one-hot position
      if (vectorize) {
        row[16] = log_scale(tiles[1][3]);
        row[17] = 1;
        row[18 + (main ? 0 : 1 + s % 4)] = 1;
      } else {
        row[24] = 1;
      }
      row[27] = unroll > 0 ? log_scale(inner) : 0.0F;
      row[28] = unroll > 0 ? 1.0F : 0.0F;
      if (parallel && !inlined) {
        row[38] = log_scale(tiles[0][0] * tiles[1][0]);
        row[39] = 1;
        row[40 + s % 3] = 1;
      }
      // buffers: bytes, unique bytes, lines, reuse, strides at several levels
      double traffic = 0;
      for (std::size_t b = 0; b < (main ? buffers : 2); ++b) {
        const std::size_t at = 57 + 18 * b;
        const std::size_t axis = b % 3, other = (b + 1) % 3;
        const double bytes = work * 4 * share, unique = extents[axis] * extents[other] * 4;
        const double footprint = tiles[axis][3] * tiles[other][3] * (inlined ? 1.0 : tiles[axis][2]) * 4;
        const double stride = other == 1 ? 1.0 : extents[other] / tiles[other][0];
        row[at] = b == 0 ? 1.0F : 0.0F;
        row[at + 1] = b == 0 ? 0.0F : 1.0F;
        row[at + 3] = log_scale(bytes);
        row[at + 4] = log_scale(unique);
        row[at + 5] = log_scale(bytes / 64 * std::min(stride, 16.0));
        row[at + 6] = log_scale(unique / 64);
        row[at + 7] = stride == 1 ? 1.0F : 0.0F;
        row[at + 9] = log_scale(middle);
        row[at + 10] = log_scale(footprint * tiles[2][2]);
        row[at + 11] = log_scale(tiles[other][2] * tiles[axis][1]);
        row[at + 12] = log_scale(bytes / (1 + tiles[axis][2] * tiles[other][1]));
        row[at + 13] = log_scale(unique / (1 + tiles[other][2]));
        row[at + 14] = log_scale(footprint);
        row[at + 15] = log_scale(footprint / 64);
        row[at + 16] = log_scale(stride);
        const double cache = footprint < 32768 ? 1.0 : footprint < (1 << 20) ? 3.0 : 9.0;
        traffic += bytes * cache * std::min(stride, 8.0) / (1 + inner) / (1 + 0.2 * middle);
      }
      // arithmetic intensity at ten points, allocation, position in the nest
      for (std::size_t point = 0; point < 10; ++point) {
        const double level = static_cast<double>(point) / 9;
        row[147 + point] = log_scale(work * share / (1 + traffic) * (level * inner + (1 - level) * middle) / 1024);
      }
      row[157] = log_scale(work * 4 * share);
      row[160] = log_scale(tiles[0][0] * tiles[1][0] * tiles[2][0]);
      row[161] = log_scale(tiles[0][0]);
      row[162] = static_cast<float>(4 + 4 * static_cast<int>(main) + static_cast<int>(fused_at));
      row[163] = log_scale(unroll);

      const double lanes = vectorize ? std::min(8.0, std::max(1.0, tiles[1][3])) : 1.0;
      const double registers = inner / lanes;
      const double spill = registers > 24 ? 1 + 0.15 * (registers - 24) : registers < 4 ? 2.0 : 1.0;
      const double branches = unroll == 0 ? 1.5 : unroll > 64 && middle > 4096 ? 1.8 : 1.0;
      const double chunks = tiles[0][0] * tiles[1][0];
      const double cores =
          parallel ? std::min(8.0, chunks) / (1 + 0.5 * (std::ceil(chunks / 8) * 8 / chunks - 1)) : 1.0;
      const double compute = work * share / lanes * spill * branches;
      cost += (inlined ? 0.4 : 1.0) * std::max(compute, 0.02 * traffic) / cores + 200 * static_cast<double>(parallel);
    }
    out.x.close_program();
    throughput[p] = rng.below(100) < 3 ? 0.0 : work / cost * std::exp(0.03 * rng.normal());
    out.group.push_back(static_cast<std::uint32_t>(task));
  }
  std::vector<double> best(tasks, 0.0);
  for (std::size_t p = 0; p < programs; ++p) best[p % tasks] = std::max(best[p % tasks], throughput[p]);
  for (std::size_t p = 0; p < programs; ++p) {
    out.y.push_back(best[p % tasks] > 0 ? static_cast<float>(throughput[p] / best[p % tasks]) : 0.0F);
  }
  return out;
}

}  // namespace tunewright::bench
