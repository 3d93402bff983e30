// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/target.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace tunewright;

TEST_CASE("a target of other threads or instructions") {
  const Target host{.name = "mine", .threads = 4, .isa = Isa::Avx2};
  CHECK(host.with_threads(2).threads == 2);
  CHECK_THROWS_WITH_AS((void)host.with_threads(0), doctest::Contains("at least 1 thread, 0 were asked for"),
                       std::invalid_argument);
  CHECK(host.with_isa(Isa::Sse42).vector_bytes() == 16);
  CHECK_THROWS_WITH_AS((void)host.with_isa(Isa::Avx512),
                       doctest::Contains("'mine' has no avx512; ask for at most avx2"), std::invalid_argument);
  CHECK_THROWS_AS((void)host.with_isa(Isa::Neon), std::invalid_argument);
}

TEST_CASE("a vector register holds as many elements as fit") {
  const Target avx512{.isa = Isa::Avx512}, neon{.isa = Isa::Neon};
  CHECK(avx512.vector_lanes(1) == 64);
  CHECK(avx512.vector_lanes(sizeof(float)) == 16);
  CHECK(neon.vector_lanes(sizeof(double)) == 2);
}

TEST_CASE("compute capabilities are read from the architecture") {
  CHECK(Target::compute_capability("sm_70") == 70);
  CHECK(Target::compute_capability("sm_90a") == 90);
  CHECK(Target::compute_capability("sm_100") == 100);
  CHECK(Target::compute_capability("znver4") == 0);
  CHECK(Target::compute_capability("sm_") == 0);
  // What no device has is no small number by chance.
  CHECK(Target::compute_capability("sm_4294967376") > 9999);
}
