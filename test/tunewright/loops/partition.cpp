// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/partition.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "support/interpreted.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using schedule::ScheduleBuilder;
using test::interpreted;

/// Guards of the statements below, on the side of each branch that `main_side` names.
std::size_t guards(const loops::Body& body, bool main_side) {
  std::size_t count = 0;
  for (const loops::Node& node : body) {
    if (const auto* s = std::get_if<loops::Statement>(&node.content)) count += s->guards.size();
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) count += guards(loop->body, main_side);
    if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      count += guards(main_side ? branch->then : branch->otherwise, main_side);
    }
  }
  return count;
}

TEST_CASE("a tile that does not divide: the main body is free of guards, the boundary is not") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 3, .n = 10, .k = 2}));
  const auto j = s.split(2, 1, {4});  // 10 as 3 x 4
  s.reorder(2, {0, j[0], 2, j[1]});
  s.vectorize(2, j[1]);
  const loops::LoopNest plain = loops::lower(s.schedule());
  const loops::LoopNest hoisted = loops::partition(plain);
  CHECK(guards(plain.body, true) == 2);  // of the identity and of the update
  CHECK(guards(hoisted.body, true) == 0);
  CHECK(guards(hoisted.body, false) == 2);
  CHECK(loops::to_string(hoisted) ==
        "kernel(A: float32[3, 2], B: float32[2, 10], out matmul: float32[3, 10])\n"
        "  for i in 0..3:\n"
        "    for j.0 in 0..3:\n"
        "      if 4*j.0 + 3 < 10:\n"
        "        for j.1 in 0..4 vectorized:\n"
        "          matmul[i, 4*j.0 + j.1] = 0\n"
        "        for k in 0..2 reduction:\n"
        "          for j.1 in 0..4 vectorized:\n"
        "            matmul[i, 4*j.0 + j.1] += A[i, k] * B[k, 4*j.0 + j.1]\n"
        "      else:\n"
        "        for j.1 in 0..4 vectorized:\n"
        "          matmul[i, 4*j.0 + j.1] = 0  if 4*j.0 + j.1 < 10\n"
        "        for k in 0..2 reduction:\n"
        "          for j.1 in 0..4 vectorized:\n"
        "            matmul[i, 4*j.0 + j.1] += A[i, k] * B[k, 4*j.0 + j.1]  if 4*j.0 + j.1 < 10\n");
  CHECK(interpreted(hoisted) == interpreted(plain));
}

TEST_CASE("guards of several axes become one branch") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 7, .n = 10, .k = 2}));
  const auto i = s.split(2, 0, {3});
  const auto j = s.split(2, 1, {4});
  s.reorder(2, {i[0], j[0], 2, i[1], j[1]});
  s.unroll(2, i[1]);
  s.vectorize(2, j[1]);
  const loops::LoopNest hoisted = loops::partition(loops::lower(s.schedule()));
  CHECK(guards(hoisted.body, true) == 0);
  CHECK(guards(hoisted.body, false) == 4);
  CHECK(interpreted(hoisted) ==
        interpreted(
            loops::lower(ScheduleBuilder(program::operators::matmul_graph({.m = 7, .n = 10, .k = 2})).schedule())));
}

TEST_CASE("a nest without guards stays as it is") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 8, .n = 8, .k = 2}));
  s.split(2, 1, {4});
  const loops::LoopNest plain = loops::lower(s.schedule());
  CHECK(loops::to_string(loops::partition(plain)) == loops::to_string(plain));
}

TEST_CASE("where a condition could never hold, guards are hoisted less far") {
  ScheduleBuilder s(program::operators::matmul_graph({.m = 8, .n = 3, .k = 2}));
  const auto i = s.split(2, 0, {4});
  const auto ii = s.split(2, i[1], {3});  // 4 as 2 x 3: two of six idle
  s.reorder(2, {i[0], 1, 2, ii[0], ii[1]});
  s.unroll(2, ii[0]);
  s.unroll(2, ii[1]);
  const loops::LoopNest hoisted = loops::partition(loops::lower(s.schedule()));
  // Over both inner loops the worst case is 5 < 4; over the last one it holds for the first of two parts.
  CHECK(loops::to_string(hoisted).find("3*i.1.0 + 2 < 4") != std::string::npos);
  CHECK(guards(hoisted.body, true) == 0);
  CHECK(interpreted(hoisted) == interpreted(loops::lower(s.schedule())));
}

}  // namespace
