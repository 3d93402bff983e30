// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/nvrtc/device_facts.hpp"

#include <doctest/doctest.h>

namespace {

using namespace tunewright;
using measurers::nvrtc::DeviceFacts;
using measurers::nvrtc::fp32_lanes;

TEST_CASE("float32 lanes of a multiprocessor, by compute capability") {
  CHECK(fp32_lanes(3, 7) == 192);
  CHECK(fp32_lanes(5, 2) == 128);
  CHECK(fp32_lanes(6, 0) == 64);
  CHECK(fp32_lanes(6, 1) == 128);
  CHECK(fp32_lanes(7, 0) == 64);
  CHECK(fp32_lanes(7, 5) == 64);
  CHECK(fp32_lanes(8, 0) == 64);
  CHECK(fp32_lanes(8, 6) == 128);
  CHECK(fp32_lanes(9, 0) == 128);
  CHECK(fp32_lanes(12, 0) == 128);
}

TEST_CASE("the peak of a K80's die follows from its lanes and its clock") {
  DeviceFacts facts;
  facts.major = 3;
  facts.minor = 7;
  facts.multiprocessors = 13;
  facts.clock_khz = 875000;
  // Two operations a cycle of 13 * 192 lanes.
  CHECK(measurers::nvrtc::target_of(facts).peak_fp32_gflops == doctest::Approx(4368));
}

}  // namespace
