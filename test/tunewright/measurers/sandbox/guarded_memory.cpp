// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/guarded_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

using namespace tunewright::measurers::sandbox;

namespace {

std::size_t registered() {
  return static_cast<std::size_t>(std::count_if(guarded_regions().begin(), guarded_regions().end(),
                                                [](const GuardedRegion& region) { return region.reserve_begin != 0; }));
}

}  // namespace

TEST_CASE("data are aligned, end near a page's end and may be written whole") {
  for (const std::size_t bytes : {1U, 4U, 63U, 64U, 65U, 4000U, 4096U, 4097U, 3U << 20}) {
    const GuardedBuffer buffer("data", bytes);
    CHECK(buffer.bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(buffer.data()) + bytes;
    CHECK((4096 - end % 4096) % 4096 < 64);
    std::fill_n(buffer.data(), bytes, '\x7f');
    CHECK(!buffer.damage());
  }
}

TEST_CASE("red zones tell how far off a write was") {
  const GuardedBuffer buffer("data", 100);
  buffer.data()[100] = 1;
  CHECK(buffer.damage() == 100);
  buffer.data()[-7] = 1;  // what lies before is looked at first
  CHECK(buffer.damage() == -7);
}

TEST_CASE("poison fills odd sizes too") {
  const GuardedBuffer buffer("data", 7);
  buffer.poison(GuardedBuffer::unwritten);
  CHECK(std::all_of(buffer.data(), buffer.data() + 7, [](char c) { return c == '\xff'; }));
  CHECK(!buffer.damage());
}

TEST_CASE("addresses are known while a buffer lives, also when it moves") {
  const std::size_t before = registered();
  {
    GuardedBuffer buffer("name", 64);
    const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
    GuardedBuffer moved = std::move(buffer);
    std::vector<GuardedBuffer> many;
    many.push_back(std::move(moved));
    CHECK(registered() == before + 1);
    CHECK(std::any_of(guarded_regions().begin(), guarded_regions().end(), [&](const GuardedRegion& region) {
      return region.covers(address + 4096) && region.data_begin == address && std::string_view(region.name) == "name";
    }));
  }
  CHECK(registered() == before);
}
