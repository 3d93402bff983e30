// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/stream_bandwidth.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

using namespace tunewright;
namespace stream = measurers::stream;

TEST_CASE("every form moves what it says, by every instruction set") {
  const Target host = host_target();
  const stream::Array a(192), b(192), c(192);
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa > host.isa) continue;
    for (const stream::Form form : stream::writing_forms) {
      std::fill_n(a.data(), 192, 2.0F);
      std::fill_n(b.data(), 192, 5.0F);
      std::fill_n(c.data(), 192, 0.0F);
      stream::run(isa, form, a.data(), b.data(), c.data(), 128);
      const float expected = stream::has_two_inputs(form) ? 17.0F : 2.0F;
      CHECK(std::all_of(c.data(), c.data() + 128, [&](float value) { return value == expected; }));
      CHECK(std::all_of(c.data() + 128, c.data() + 192, [](float value) { return value == 0; }));
    }
  }
}

TEST_CASE("sums read every element once and leave a vector of sums") {
  const Target host = host_target();
  stream::Array a(1024 + 64);
  std::fill_n(a.data() + 1024, 64, 1000.0F);
  for (int i = 0; i < 1024; ++i) a.data()[i] = static_cast<float>(i);
  for (const Isa isa : {Isa::Sse42, Isa::Avx2, Isa::Avx512}) {
    if (isa > host.isa) continue;
    for (const stream::Form form : stream::reading_forms) {
      stream::Array sums(stream::most_sums);
      std::fill_n(sums.data(), stream::most_sums, 0.0F);
      stream::run(isa, form, a.data(), a.data(), sums.data(), 1024);
      CHECK(std::accumulate(sums.data(), sums.data() + stream::most_sums, 0.0F) == 1023 * 1024 / 2);
    }
  }
}

TEST_CASE("a bandwidth is faster than a disk and slower than the clock") {
  const Target host = host_target().with_threads(1);
  const measurers::PeakOptions brief{.seconds_per_repeat = 0.002, .repeats = 3};
  const double cached = measurers::stream_bytes_per_second(host, 16 << 10, brief);
  CHECK(cached > 1e9);
  CHECK(cached < 4 * 64 * 8e9);  // four vectors a cycle of under 8 GHz
  const double read = measurers::stream_bytes_per_second(host, 16 << 10, brief, measurers::Traffic::Reads);
  CHECK(read > 1e9);
  CHECK(read < 4 * 64 * 8e9);
}

TEST_CASE("what has no bandwidth is refused") {
  const Target host = host_target().with_threads(1);
  CHECK_THROWS_AS(static_cast<void>(measurers::stream_bytes_per_second(host, 4095)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(measurers::stream_bytes_per_second(host, 1 << 20, {.repeats = 0})),
                  std::invalid_argument);
  Target gpu;
  gpu.kind = DeviceKind::Gpu;
  CHECK_THROWS_AS(static_cast<void>(measurers::stream_bytes_per_second(gpu, 1 << 20)), std::invalid_argument);
}
