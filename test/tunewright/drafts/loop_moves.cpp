// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/loop_moves.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace tunewright::drafts;

TEST_CASE("moves of loops are told by depth and axis, several of one loop too") {
  LoopMoves moves;
  moves.clear(3);
  moves.add(0, 2, 8);
  moves.add(1, 0, 1);
  moves.add(1, 1, -4);
  moves.add(1, 2, 16);
  CHECK(moves.step(0, 2) == 8);
  CHECK(moves.step(0, 0) == 0);
  CHECK(moves.step(1, 0) == 1);
  CHECK(moves.step(1, 1) == -4);
  CHECK(moves.step(1, 2) == 16);
  CHECK(moves.step(2, 0) == 0);
  std::vector<std::uint32_t> axes;
  moves.for_each(1, [&](const LoopMoves::Move& move) { axes.push_back(move.axis); });
  CHECK(axes.size() == 3);
  // The next statement stands in two of the loops.
  moves.clear(2);
  moves.add(1, 1, 2);
  CHECK(moves.step(0, 2) == 0);
  CHECK(moves.step(1, 0) == 0);
  CHECK(moves.step(1, 1) == 2);
}
