// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/written_statements.hpp"

#include <doctest/doctest.h>

#include <cstdint>

#include "support/gpu_schedules.hpp"
#include "support/refusal.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::LoopKind;
using schedule::ScheduleBuilder;

std::int64_t written(const ScheduleBuilder& s) {
  const loops::LoopNest nest = loops::lower(s.schedule());
  return loops::written_statements(nest, nest.body.at(0));
}

TEST_CASE("loops come to the product of their extents, and to no more than is asked for") {
  const ScheduleBuilder s(program::operators::matmul_graph({.m = 3, .n = 5, .k = 7}));
  loops::LoopNest nest = loops::lower(s.schedule());
  // 3 x 5 start a sum, each adds 7 terms.
  CHECK(loops::statements_of(nest, nest.body, 1000) == 3 * 5 * (1 + 7));
  CHECK(loops::statements_of(nest, nest.body, 120) == 120);
  CHECK(loops::statements_of(nest, nest.body, 119) == 120);
  CHECK(loops::statements_of(nest, nest.body, 10) == 11);
  nest.variables[0].extent = 0;
  CHECK(test::refusal([&] { (void)loops::statements_of(nest, nest.body, 10); }) ==
        "loop variable 0 of 'kernel' is not declared with an extent of at least 1");
}

TEST_CASE("of a branch the longer side counts, and a tensor instruction is one statement") {
  const ScheduleBuilder s(program::operators::matmul_graph({.m = 3, .n = 5, .k = 7}));
  loops::LoopNest nest = loops::lower(s.schedule());
  loops::Branch branch;
  branch.otherwise = nest.body;
  branch.then = nest.body;
  branch.then.insert(branch.then.end(), nest.body.begin(), nest.body.end());
  nest.body = {branch};
  CHECK(loops::statements_of(nest, nest.body, 1000) == 2 * 3 * 5 * (1 + 7));
  loops::Loop whole = std::get<loops::Loop>(branch.otherwise.at(0).content);
  whole.intrinsic = schedule::find_intrinsic("wmma_fp16");
  CHECK(loops::statements_of(nest, whole, 1000) == 1);
}

TEST_CASE("the code of a kernel is what is written out: vectors, virtual threads, registers, small loops") {
  ScheduleBuilder s = test::tiled_on_gpu(program::operators::matmul_graph({.m = 64, .n = 2048, .k = 64}), "matmul",
                                         {{1, 8, 1, 1}, {2, 16, 1, 2}}, {{4, 4}}, {"A", "B"}, 4);
  // Two virtual threads of two columns start, add up and store sums; a vector of each operand is fetched in a loop.
  CHECK(written(s) == 2 * 2 + 1 + 1 + 2 * 2 + 2 * 2);
  // Four by four of the reduction, 32 statements with the columns, are no more than 64; nor are the two vectors of B.
  s.choose_unroll_limit(s.stage("matmul.local"), {64});
  CHECK(written(s) == 2 * 2 + 1 + 2 + 2 * 2 * 4 * 4 + 2 * 2);
}

TEST_CASE("fragments are filled, added to and stored by one instruction each") {
  const ScheduleBuilder s = test::tensorized_matmul(
      program::operators::matmul_graph({.m = 32, .n = 32, .k = 32, .type = program::ScalarType::Float16}), "wmma_fp16",
      {.fragments = {2, 2}});
  // Two by two of them; vectors of two operands, eight elements each, are fetched.
  CHECK(written(s) == 3 * 2 * 2 + 2 * 2);
}

TEST_CASE("a loop that selects registers is written out with all that stands in it") {
  const auto sums = [](std::int64_t rows, std::int64_t blocks_of_rows) {
    ScheduleBuilder s(program::operators::matmul_graph({.m = 64, .n = 64, .k = 512}));
    const auto c = s.stage("matmul");
    const auto local = s.cache_write(c);
    const auto i = s.split(c, 0, {blocks_of_rows, rows});
    s.reorder(c, {i[0], 1, i[1], i[2]});
    s.bind(c, i[0], LoopKind::BlockX);
    s.bind(c, 1, LoopKind::ThreadX);
    s.compute_at(local, c, i[1]);
    return s;
  };
  // Rows of an array are started, added to in a loop over 512 terms, and stored.
  CHECK(written(sums(4, 1)) == 4 + 4 + 4);
  // A loop around the array moves its window: its elements are the same registers each time.
  CHECK(written(sums(4, 2)) == 4 + 4 + 4);
  CHECK(written(sums(8, 2)) == 8 + 8 + 8);
}

}  // namespace
