// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/baseline.hpp"

#include <doctest/doctest.h>

using namespace tunewright;

namespace {

/// A machine that becomes slower with every measurement.
struct Tiring {
  double seconds = 1;
  Outcome measure_kernel(const Task&, const codegen::Kernel&) {
    Outcome outcome;
    Timing timing;
    timing.median = Seconds(seconds);
    if (seconds > 0) {
      outcome.result = timing;
    } else {
      outcome.result = Failure{};
    }
    seconds += 0.25;
    return outcome;
  }
};

}  // namespace

TEST_CASE("drift is last over first") {
  Tiring machine;
  measurers::Baseline baseline{.kernel = {}};
  CHECK(!baseline.drift());
  CHECK(baseline.measure(machine, {}).valid());
  CHECK(!baseline.drift());
  static_cast<void>(baseline.measure(machine, {}));
  CHECK(baseline.drift() == doctest::Approx(0.25));
  static_cast<void>(baseline.measure(machine, {}));
  CHECK(baseline.drift() == doctest::Approx(0.5));
  machine.seconds = -1;
  static_cast<void>(baseline.measure(machine, {}));
  CHECK(!baseline.drift());
}
