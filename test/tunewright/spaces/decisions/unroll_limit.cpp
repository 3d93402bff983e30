// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/decisions/unroll_limit.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/schedule_summarizer.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::spaces;
using schedule::LoopKind;
using schedule::Split;
using schedule::UnrollLimit;

namespace {

/// The limit that stays of `limit` for a product of 64 x 64 x 96 on a machine with eight lanes: i0 j0 k (4 terms a
/// step) i1 j1, of which i1 has four rows that are unrolled, and j1 16 columns in two vectors.
std::int64_t lowered(std::int64_t limit, std::int64_t terms, const Target& target) {
  const std::vector<std::int64_t> choices{0, 16, 64, 512};
  std::uint32_t selected = 0;
  while (choices[selected] != limit) ++selected;
  const schedule::Schedule candidate{
      program::operators::matmul_graph({.m = 64, .n = 64, .k = 96}),
      {Split{2, 0, {4}, 64, 64, LoopKind::Unrolled}, Split{2, 1, {16}, 64, 64, LoopKind::Vectorized},
       Split{2, 2, {terms}, 96, 0, LoopKind::Serial}, schedule::Reorder{2, {3, 5, 7, 8, 4, 6}},
       schedule::Annotate{2, 4, LoopKind::Unrolled}, schedule::Annotate{2, 6, LoopKind::Vectorized},
       UnrollLimit{2, choices, selected}}};
  loops::ScheduleSummarizer summarizer;
  const loops::NestSummary* summary = summarizer.summary(candidate);
  REQUIRE(summary != nullptr);
  std::vector<schedule::Step> steps = candidate.steps;
  decisions::lower_unroll_limits(steps, *summary, target);
  const auto& left = std::get<UnrollLimit>(steps.back());
  return left.choices[left.selected];
}

}  // namespace

TEST_CASE("of limits that unroll the same loops, the lowest stays") {
  Target avx2;
  avx2.isa = Isa::Avx2;
  // A step of 4 terms is 4 * 4 * 2 = 32 vectors, the whole sum 24 times as many.
  CHECK(lowered(0, 4, avx2) == 0);
  CHECK(lowered(16, 4, avx2) == 0);
  CHECK(lowered(64, 4, avx2) == 64);
  CHECK(lowered(512, 4, avx2) == 64);
  // One of 2 is 16, and of 96, all terms, 768.
  CHECK(lowered(16, 2, avx2) == 16);
  CHECK(lowered(512, 2, avx2) == 16);
  CHECK(lowered(512, 96, avx2) == 0);
  // With 16 lanes all is half as much: a step of 4 is 16, the whole sum of 96 is 384.
  Target avx512 = avx2;
  avx512.isa = Isa::Avx512;
  CHECK(lowered(16, 4, avx512) == 16);
  CHECK(lowered(512, 96, avx512) == 512);
  Target gpu = avx2;
  gpu.kind = DeviceKind::Gpu;
  CHECK(lowered(16, 4, gpu) == 16);
}
