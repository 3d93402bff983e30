// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/protocol.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <type_traits>

#include "tunewright/core/task.hpp"

using tunewright::measurers::Protocol;
using tunewright::measurers::validate;

static_assert(std::is_aggregate_v<Protocol> && std::is_trivially_copyable_v<Protocol>);

TEST_CASE("the defaults can be followed, and so can extremes") {
  CHECK_NOTHROW(validate({}));
  CHECK_NOTHROW(validate({.far_slower_factor = std::numeric_limits<double>::infinity()}));
  CHECK_NOTHROW(validate({.repeats_max = 256, .wanted_spread = 0, .noisy_spread = 0, .nearly_best_factor = 1}));
  CHECK_NOTHROW(validate({.warmup_calls = 0, .min_repeat_seconds = 0, .repeats_min = 1, .repeats_max = 1}));
}

TEST_CASE("latencies with other evictions are not compared") {
  tunewright::Task task, other;
  other.workload_hash = 1;
  using tunewright::measurers::best_key;
  const Protocol warm, cold{.evict = tunewright::measurers::Evict::Constants};
  CHECK(best_key(task, warm) == best_key(task, {.repeats_min = 2}));
  CHECK(best_key(task, warm) != best_key(task, cold));
  CHECK(best_key(task, warm) != best_key(other, warm));
}

TEST_CASE("errors name the member and the value") {
  const auto refused = [](const Protocol& protocol, const char* member) {
    CHECK_THROWS_WITH_AS(validate(protocol), doctest::Contains(member), std::invalid_argument);
  };
  refused({.repeats_min = 0}, "repeats_min is 0");
  refused({.repeats_min = 20, .repeats_max = 10}, "repeats_max is 10");
  refused({.repeats_max = 257}, "repeats_max is 257");
  refused({.min_repeat_seconds = -1}, "min_repeat_seconds is -1");
  refused({.min_repeat_seconds = std::numeric_limits<double>::quiet_NaN()}, "min_repeat_seconds");
  refused({.min_repeat_seconds = std::numeric_limits<double>::infinity()}, "min_repeat_seconds is inf");
  refused({.budget_seconds = 0}, "budget_seconds");
  refused({.wanted_spread = -0.1}, "wanted_spread");
  refused({.wanted_spread = 0.1, .noisy_spread = 0.05}, "noisy_spread");
  refused({.far_slower_factor = 1}, "far_slower_factor");
  refused({.partial_call_seconds = 0}, "partial_call_seconds");
  refused({.nearly_best_factor = 0.9}, "nearly_best_factor");
  refused({.cooldown_seconds = -1}, "cooldown_seconds");
  refused({.cooldown_seconds = std::numeric_limits<double>::infinity()}, "cooldown_seconds is inf");
  refused({.run_timeout_seconds = 0}, "run_timeout_seconds");
  refused({.compile_timeout_seconds = 0}, "compile_timeout_seconds");
}
