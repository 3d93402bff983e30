// SPDX-License-Identifier: Apache-2.0
#include "../../bench/measured_bandwidth.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>

#include "tunewright/core/host_target.hpp"

using namespace tunewright;

TEST_CASE("too few bytes a thread have no bandwidth, and the measurer refuses no others") {
  const Target target = host_target().with_threads(1);
  constexpr std::uint64_t least = measurers::stream::least_bytes_per_thread;
  for (const measurers::Traffic traffic : {measurers::Traffic::Reads, measurers::Traffic::ReadsAndWrites}) {
    CHECK_FALSE(bench::bandwidth_of(target, least - 1, traffic));
    CHECK_FALSE(bench::bandwidth_of(target, 0, traffic));
    CHECK_FALSE(bench::bandwidth_of(target.with_threads(3), 3 * least - 1, traffic));
    CHECK(bench::bandwidth_of(target, least, traffic).value_or(0) > 0);
  }
  CHECK_THROWS_AS(static_cast<void>(measurers::stream_bytes_per_second(target, least - 1)), std::invalid_argument);
}
