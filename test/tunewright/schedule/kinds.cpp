// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/kinds.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

using namespace tunewright::schedule;

TEST_CASE("block and thread indices have three dimensions each") {
  constexpr std::array blocks{LoopKind::BlockX, LoopKind::BlockY, LoopKind::BlockZ};
  constexpr std::array threads{LoopKind::ThreadX, LoopKind::ThreadY, LoopKind::ThreadZ};
  for (std::size_t d = 0; d < 3; ++d) {
    CHECK(is_block_index(blocks[d]));
    CHECK_FALSE(is_thread_index(blocks[d]));
    CHECK(is_thread_index(threads[d]));
    CHECK_FALSE(is_block_index(threads[d]));
    CHECK(dimension_of_index(blocks[d]) == d);
    CHECK(dimension_of_index(threads[d]) == d);
    CHECK((is_hardware_index(blocks[d]) && is_hardware_index(threads[d])));
  }
  for (const LoopKind other :
       {LoopKind::Serial, LoopKind::Parallel, LoopKind::Vectorized, LoopKind::Unrolled, LoopKind::VirtualThread})
    CHECK_FALSE(is_hardware_index(other));
}
