// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/peak.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "support/address_space.hpp"
#include "support/refusal.hpp"

using namespace tunewright;

TEST_CASE("wider instruction sets have a higher peak") {
  const measurers::PeakOptions brief{.seconds_per_repeat = 0.003, .repeats = 5};
  const Target host = host_target().with_threads(1);
  // Other programs may take the processor during a measurement, so the highest of some turns count.
  double sse = 0, avx2 = 0;
  const auto is_wider = [&] { return host.isa < Isa::Avx2 || avx2 > 1.5 * sse; };
  for (int turn = 0; turn == 0 || (turn < 20 && !is_wider()); ++turn) {
    sse = std::max(sse, measurers::peak_flops_per_second(host.with_isa(Isa::Sse42), brief));
    if (host.isa >= Isa::Avx2) avx2 = std::max(avx2, measurers::peak_flops_per_second(host.with_isa(Isa::Avx2), brief));
  }
  CHECK(sse > 1e9);
  CHECK(is_wider());              // four times on an idle machine: twice the width, two operations each
  CHECK(avx2 < 2 * 8 * 2 * 8e9);  // 2 units * 8 lanes * 2 operations at under 8 GHz
}

TEST_CASE("memory is slower than the clock and faster than a disk") {
  const double bytes = measurers::memory_read_bytes_per_second(host_target().with_threads(1),
                                                               {.seconds_per_repeat = 0.01, .repeats = 1});
  CHECK(bytes > 1e8);
  CHECK(bytes < 1e12);
}

TEST_CASE("threads that the system does not have are an error, which ends those that it has") {
  if (!support::limits_address_space) {
    MESSAGE("skipped: a sanitizer needs the address space");
    return;
  }
  const auto run = [] {
    ::alarm(60);  // ends threads that wait for the others
    std::atomic<int> calls{0};
    try {
      static_cast<void>(measurers::peak::together(1000, 1, {}, [&](unsigned) { ++calls; }));
    } catch (const std::system_error&) {
      return calls == 0 ? 0 : 1;
    }
    return 3;
  };
  CHECK(support::status_with_room_for(rlim_t{64} << 20, run) == 0);  // for the stacks of few threads
}

TEST_CASE("what cannot be measured is refused") {
  Target gpu;
  gpu.kind = DeviceKind::Gpu;
  CHECK_THROWS_AS(static_cast<void>(measurers::peak_flops_per_second(gpu)), std::invalid_argument);
  const auto refused = [](const measurers::PeakOptions& options) {
    return test::refusal([&] { static_cast<void>(measurers::peak_flops_per_second(host_target(), options)); });
  };
  CHECK(refused({.repeats = 0}) == "PeakOptions: repeats is 0; give at least 1");
  for (const double seconds : {0.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK(refused({.seconds_per_repeat = seconds}).find("seconds_per_repeat is ") != std::string::npos);
}
