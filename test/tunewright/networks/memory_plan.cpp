// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/memory_plan.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "support/evaluated.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using networks::Lifetime;

namespace {

/// Whether two pieces that live at a step share a byte.
bool overlaps(const std::vector<Lifetime>& pieces, const networks::MemoryPlan& plan) {
  for (std::size_t a = 0; a < pieces.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const bool together = pieces[a].first <= pieces[b].last && pieces[b].first <= pieces[a].last;
      const bool meet =
          plan.offsets[a] < plan.offsets[b] + pieces[b].bytes && plan.offsets[b] < plan.offsets[a] + pieces[a].bytes;
      if (together && meet) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a chain of layers needs two tensors at a time") {
  // Piece i is written at step i and read at step i + 1.
  const std::vector<Lifetime> chain{{128, 0, 1}, {256, 1, 2}, {64, 2, 3}, {192, 3, 4}};
  const networks::MemoryPlan plan = networks::plan_memory(chain);
  // By size: 256 at 0; 192 does not live with it: 0; 128 lives with the first: 256; 64 lives with both others: behind.
  CHECK(plan.offsets == std::vector<std::size_t>{256, 0, 256, 0});
  CHECK(plan.bytes == 384);
  CHECK(networks::least_memory(chain) == 384);
}

TEST_CASE("a piece goes into the smallest gap that holds it") {
  // Four pieces of 512, 384, 256 and 192 bytes lie in that order; the first and the third end, and what comes then fits
  // into both gaps.
  const std::vector<Lifetime> pieces{{512, 0, 0}, {384, 0, 2}, {256, 0, 0}, {192, 0, 2}, {128, 1, 2}};
  const networks::MemoryPlan plan = networks::plan_memory(pieces);
  CHECK(plan.offsets == std::vector<std::size_t>{0, 512, 896, 1152, 896});
  CHECK(plan.bytes == 1344);
}

TEST_CASE("pieces that live together never overlap, whatever their sizes and times") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    std::vector<Lifetime> pieces;
    for (std::size_t p = 0; p < 1 + seed % 40; ++p) {
      const std::size_t first = rng.below(30);
      pieces.push_back({rng.below(1000), first, first + rng.below(8)});
    }
    const networks::MemoryPlan plan = networks::plan_memory(pieces);
    REQUIRE(plan.offsets.size() == pieces.size());
    CHECK_FALSE(overlaps(pieces, plan));
    CHECK(plan.bytes >= networks::least_memory(pieces));
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      CHECK(plan.offsets[p] % 64 == 0);
      CHECK(plan.offsets[p] + pieces[p].bytes <= plan.bytes);
    }
  }
}

TEST_CASE("no pieces need no memory") {
  CHECK(networks::plan_memory({}).bytes == 0);
  CHECK(networks::least_memory({}) == 0);
}

TEST_CASE("lifetimes and alignments that make no sense are refused") {
  const std::vector<Lifetime> backwards{{1, 0, 0}, {1, 3, 2}};
  CHECK_REFUSES("piece 1 lives from step 3 to step 2", (void)networks::plan_memory(backwards));
  CHECK_REFUSES("piece 1", (void)networks::least_memory(backwards));
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  CHECK_REFUSES("piece 0 has 18446744073709551615 bytes",
                (void)networks::plan_memory(std::vector<Lifetime>{{most, 0, 0}}));
  CHECK_REFUSES("piece 1 has 9223372036854775808 bytes",
                (void)networks::plan_memory(std::vector<Lifetime>{{most / 2 + 1, 0, 0}, {most / 2 + 1, 0, 0}}));
  CHECK_REFUSES("alignment is 48", (void)networks::plan_memory({}, 48));
}
