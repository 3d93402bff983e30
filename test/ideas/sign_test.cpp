// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "ideas/paired_seeds.hpp"

namespace {

using namespace tunewright::test;

TEST_CASE("the sign test counts heads of a fair coin") {
  CHECK(sign_test(0, 5) == doctest::Approx(1));
  CHECK(sign_test(5, 5) == doctest::Approx(1.0 / 32));
  CHECK(sign_test(3, 4) == doctest::Approx(5.0 / 16));  // 4 + 1 of 16
  CHECK(sign_test(15, 20) == doctest::Approx(0.020695).epsilon(1e-4));
  CHECK(sign_test(16, 20) == doctest::Approx(0.005909).epsilon(1e-4));
}

TEST_CASE("seeds that do not differ count for nobody") {
  const PairedSeeds draw{{1, 2, 3}, {1, 2, 3}};
  CHECK(draw.chance() == doctest::Approx(1));
  CHECK_FALSE(draw.idea_is_better());
  const PairedSeeds seven{{2, 2, 2, 2, 2, 2, 2, 1}, {1, 1, 1, 1, 1, 1, 1, 1}};
  CHECK(seven.wins() == 7);
  CHECK(seven.losses() == 0);
  CHECK(seven.chance() == doctest::Approx(1.0 / 128));
  CHECK(seven.idea_is_better());
  CHECK(seven.gain().value == doctest::Approx(7.0 / 8));
}

TEST_CASE("what should be small is compared by its negative") {
  const auto runs = on_seeds(3, [](auto seed) { return double(seed); }, [](auto seed) { return double(seed) + 1; });
  const auto number = [](double result) { return result; };
  CHECK(runs.more(number).wins() == 0);
  CHECK(runs.less(number).wins() == 3);
}

}  // namespace
