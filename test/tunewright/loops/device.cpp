// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/device.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using loops::LoopNest;
using schedule::LoopKind;
using schedule::ScheduleBuilder;

LoopNest device(const ScheduleBuilder& s) { return loops::to_device(loops::lower(s.schedule())); }

TEST_CASE("a tiled matrix product: copies once for all virtual threads, two barriers a step") {
  // A block of 2 x 2 threads computes 4 x 2: each thread a row of 1 for each of 2 virtual threads.
  const auto s = test::tiled_on_gpu(program::operators::matmul_graph({.m = 8, .n = 4, .k = 4}), "matmul",
                                    {{2, 2, 1, 1}, {1, 2, 1, 1}}, {{2, 1}}, {"A", "B"});
  const std::string expected =
      "kernel(A: float32[8, 4], B: float32[4, 4], out matmul: float32[8, 4])\n"
      "  for i.0@j.0 in 0..4 block_x:\n"
      "    for i.2@j.2 in 0..4 thread_x:\n"
      "      allocate matmul.local: float32[1, 1] local at [2*i.1@j.1 + 4*(i.0@j.0 div 2) + i.2@j.2 div 2, "
      "2*(i.0@j.0 mod 2) + i.2@j.2 mod 2] for each i.1@j.1\n"
      "      for i.1@j.1 in 0..2 unrolled:\n"
      "        matmul.local[0, 0] = 0\n"
      "      for k.0 in 0..2 reduction:\n"
      "        allocate A.shared: float32[4, 2] shared at [4*(i.0@j.0 div 2), 2*k.0]\n"
      "        allocate B.shared: float32[2, 2] shared at [2*k.0, 2*(i.0@j.0 mod 2)]\n"
      "        barrier\n"  // the step before may still read
      "        for d0@d1.0.0 in 0..2:\n"
      "          A.shared[2*d0@d1.0.0 + i.2@j.2 div 2, i.2@j.2 mod 2] = "
      "A[2*d0@d1.0.0 + 4*(i.0@j.0 div 2) + i.2@j.2 div 2, 2*k.0 + i.2@j.2 mod 2]\n"
      "        B.shared[i.2@j.2 div 2, i.2@j.2 mod 2] = "
      "B[2*k.0 + i.2@j.2 div 2, 2*(i.0@j.0 mod 2) + i.2@j.2 mod 2]\n"
      "        barrier\n"
      "        for k.1 in 0..2 reduction:\n"
      "          for i.1@j.1 in 0..2 unrolled:\n"
      "            matmul.local[0, 0] += A.shared[2*i.1@j.1 + i.2@j.2 div 2, k.1] * B.shared[k.1, i.2@j.2 "
      "mod 2]\n"
      "      for i.1@j.1 in 0..2 unrolled:\n"
      "        matmul[2*i.1@j.1 + 4*(i.0@j.0 div 2) + i.2@j.2 div 2, 2*(i.0@j.0 mod 2) + i.2@j.2 mod 2] = "
      "matmul.local[0, 0]\n";
  CHECK(loops::to_string(device(s)) == expected);
}

TEST_CASE("a reduction by threads: a share each, then combined") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 4, .n = 4, .k = 70}));
  const auto k = s.split(2, 2, {32});
  s.bind(2, k[1], LoopKind::ThreadX);
  s.bind(2, s.fuse(2, {0, 1}), LoopKind::BlockX);
  CHECK(loops::to_string(device(s)) ==
        "kernel(A: float32[4, 70], B: float32[70, 4], out matmul: float32[4, 4])\n"
        "  for i@j in 0..16 block_x:\n"
        "    for k.1 in 0..32 thread_x:\n"
        "      allocate matmul.partial: float32[1, 1] local at [i@j div 4, i@j mod 4]\n"
        "      matmul.partial[0, 0] = 0\n"
        "      for k.0 in 0..3 reduction:\n"
        "        matmul.partial[0, 0] += A[i@j div 4, 32*k.0 + k.1] * B[32*k.0 + k.1, i@j mod 4]  where "
        "32*k.0 + k.1 < 70\n"
        "      matmul[i@j div 4, i@j mod 4] = sum over thread_x of matmul.partial[0, 0]\n");
}

}  // namespace
