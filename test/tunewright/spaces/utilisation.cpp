// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/utilisation.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/reduce.hpp"

namespace {

using namespace tunewright;
using schedule::LoopKind;

/// relu of `results` elements in blocks of `threads`.
loops::LoopNest in_blocks(std::int64_t results, std::int64_t threads) {
  auto g = std::make_shared<program::ComputeGraph>();
  program::operators::relu(*g, g->input("x", {results}));
  schedule::ScheduleBuilder s(g);
  const auto parts = s.split(1, 0, {threads});
  s.bind(1, parts[0], LoopKind::BlockX);
  s.bind(1, parts[1], LoopKind::ThreadX);
  return loops::lower(s.schedule());
}

TEST_CASE("share of a GPU that is busy: lanes of warps, times multiprocessors with a block") {
  const Target v100 = gpu_target("V100");  // 80 multiprocessors
  CHECK(spaces::utilisation(in_blocks(1 << 20, 256), v100) == 1.0);
  CHECK(spaces::utilisation(in_blocks(48 << 10, 48), v100) == 0.75);   // 48 of 64 lanes
  CHECK(spaces::utilisation(in_blocks(20 << 10, 1024), v100) == 0.5);  // 20 blocks, 40 would do
  CHECK(spaces::utilisation(in_blocks(40 << 10, 1024), v100) == 1.0);
  CHECK(spaces::utilisation(in_blocks(100, 100), v100) == doctest::Approx(2.0 / 3));  // of three blocks of a warp
  CHECK(spaces::utilisation(in_blocks(20, 20), v100) == 1.0);                         // there is no more to do
}

TEST_CASE("a single result has nothing to share out; CPUs go by their threads") {
  auto g = std::make_shared<program::ComputeGraph>();
  program::operators::sum(*g, g->input("x", {9}));
  const loops::LoopNest nest = loops::lower(schedule::Schedule{g, {}});
  CHECK(spaces::utilisation(nest, gpu_target("H100")) == 1.0);
  Target cpu;
  cpu.threads = 4;
  auto h = std::make_shared<program::ComputeGraph>();
  program::operators::relu(*h, h->input("x", {6}));
  schedule::ScheduleBuilder s(h);
  s.parallel(1, 0);
  CHECK(spaces::utilisation(loops::lower(s.schedule()), cpu) == 0.75);  // two rounds, the second half empty
}

}  // namespace
