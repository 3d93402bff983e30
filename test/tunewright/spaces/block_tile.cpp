// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/decisions/block_tile.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/spaces/decisions.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::spaces::decisions;
using Sizes = std::vector<std::int64_t>;

/// The open decisions of a matrix product tiled for a GPU: [i, j, k] of stage 4, its reader, one fetch.
std::vector<Step> open_steps(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {Split{4, 0, {1, 1, 1, 1}, m, 64, LoopKind::Serial}, Split{4, 1, {1, 1, 1, 1}, n, 64, LoopKind::Serial},
          Split{4, 2, {1, 1}, k, 64, LoopKind::Serial},       schedule::FollowSplit{2, 0, 0, 3},
          Split{5, 1, {1}, k, 4, LoopKind::Vectorized},       schedule::UnrollLimit{4, {0, 16, 64, 512, 1024}, 0},
          Split{6, 3, {1}, 100, 1024, LoopKind::ThreadX}};
}
Split& axis(std::vector<Step>& steps, std::size_t place) { return std::get<Split>(steps[place]); }

TEST_CASE("sums a thread may keep: three quarters of its share of 65,536 registers, at most 255") {
  const Target v100 = gpu_target("V100");
  CHECK(max_accumulators(v100, 1024) == 48);
  CHECK(max_accumulators(v100, 512) == 96);
  CHECK(max_accumulators(v100, 32) == 191);
  CHECK(max_accumulators(Target{}, 512) == 96);
}

TEST_CASE("threads and vectors: what a split for them may be") {
  const Target v100 = gpu_target("V100");
  const auto threads = [&](std::int64_t extent, std::int64_t cap) {
    return single_choices(Split{0, 0, {1}, extent, cap, LoopKind::ThreadX}, v100);
  };
  CHECK(threads(4096, 1024) == Sizes{32, 64, 128, 256, 512, 1024});
  CHECK(threads(100, 1024) == Sizes{32, 64, 100});
  CHECK(threads(20, 1024) == Sizes{20});
  CHECK(threads(1, 1024) == Sizes{1});
  const auto vectors = [&](std::int64_t extent, std::int64_t cap) {
    return single_choices(Split{0, 0, {1}, extent, cap, LoopKind::Vectorized}, v100);
  };
  CHECK(vectors(64, 4) == Sizes{1, 2, 4});
  CHECK(vectors(3, 4) == Sizes{1, 2});
}

TEST_CASE("depth of shared memory: rows and columns of a tile, four bytes each, in 48 KiB") {
  std::vector<Step> steps = open_steps(1024, 1024, 1024);
  axis(steps, 0).factors = {1, 8, 2, 4};  // 64 rows
  axis(steps, 1).factors = {2, 4, 1, 4};  // 32 columns
  CHECK(max_depth(block_tile_of(steps, 4), gpu_target("V100")) == 49152 / (4 * (64 + 32)));
}

TEST_CASE("parts that together reach past the extent are trimmed from the outside") {
  Split split{0, 0, {1, 19, 1, 4}, 67, 64, LoopKind::Serial};
  trim(split);
  CHECK(split.factors == Sizes{1, 17, 1, 4});  // 67 elements are 17 parts of 4
  Split fitting{0, 0, {2, 8, 1, 4}, 64, 64, LoopKind::Serial};
  trim(fitting);
  CHECK(fitting.factors == Sizes{2, 8, 1, 4});
}

void check_domains(std::vector<Step>& steps, const Target& target) {
  const BlockTile tile = block_tile_of(steps, 4);
  REQUIRE(tile.axes.size() == 2);
  CHECK(tile.product(Threads) >= 32);
  CHECK(tile.product(Threads) <= 1024);
  CHECK(tile.product(VirtualThreads) <= 8);
  CHECK(tile.accumulators() <= max_accumulators(target, tile.product(Threads)));
  for (const std::size_t place : {0U, 1U, 2U}) {
    Split& split = axis(steps, place);
    CHECK(split.factors.back() <= 64);
    const Sizes before = split.factors;
    for (const std::int64_t factor : before) CHECK(factor >= 1);
    trim(split);
    CHECK(split.factors == before);  // no part reaches past the extent
  }
  const std::int64_t width = axis(steps, 4).factors[0];
  CHECK((width == 1 || width == 2 || width == 4));
  const std::int64_t threads = axis(steps, 6).factors[0];
  CHECK((threads == 32 || threads == 64 || threads == 100));
}

TEST_CASE("draws and mutations keep to threads, virtual threads and registers, whatever the extents") {
  const Target target = gpu_target("V100");
  std::size_t whole_warps = 0, draws = 0, mutated = 0, tried = 0;
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1024, 1024, 1024}, {1021, 997, 1013}, {49, 512, 4608}, {7, 3000, 11}, {12544, 64, 147}}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Rng rng(seed);
      std::vector<Step> steps = open_steps(m, n, k);
      draw_all(steps, target, rng);
      check_domains(steps, target);
      ++draws;
      whole_warps += block_tile_of(steps, 4).product(Threads) % 32 == 0;
      for (int i = 0; i < 10; ++i) {
        const std::vector<Step> before = steps;
        ++tried;
        if (!mutate_one(steps, target, rng)) continue;
        ++mutated;
        CHECK(steps != before);
        check_domains(steps, target);
      }
    }
  }
  CHECK(10 * mutated > 9 * tried);
  CHECK(2 * whole_warps > draws);
}

TEST_CASE("sizes change nine times as often as unroll limits") {
  const Target target = gpu_target("V100");
  Rng rng(1);
  std::vector<Step> steps = open_steps(1024, 1024, 1024);
  draw_all(steps, target, rng);
  int limits = 0, changes = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<Step> changed = steps;
    if (!mutate_one(changed, target, rng)) continue;
    ++changes;
    limits += !(changed[5] == steps[5]);
  }
  CHECK(changes > 1900);
  CHECK(limits > 140);  // 200 expected, standard deviation 13
  CHECK(limits < 260);
}

TEST_CASE("equal generators draw equal tiles; a tensor smaller than a warp gets what there is") {
  const Target target = gpu_target("H100");
  Rng one(5), two(5);
  std::vector<Step> a = open_steps(96, 128, 64), b = a;
  draw_all(a, target, one);
  draw_all(b, target, two);
  CHECK(a == b);
  std::vector<Step> small = open_steps(3, 5, 2);
  draw_all(small, target, one);
  CHECK(block_tile_of(small, 4).product(Threads) <= 15);
}

}  // namespace
