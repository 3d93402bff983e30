// SPDX-License-Identifier: Apache-2.0
#include "tunewright/samplers/concept.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace tunewright;

TEST_CASE("a selection that breaks the contract is named") {
  using Chosen = std::array<std::size_t, 2>;
  CHECK_NOTHROW(samplers::check_selection(Chosen{2, 0}, 3, 2));
  CHECK_THROWS_WITH_AS(samplers::check_selection(Chosen{2, 0}, 3, 1), doctest::Contains("at most 1"), std::logic_error);
  CHECK_THROWS_WITH_AS(samplers::check_selection(Chosen{0, 3}, 3, 2), doctest::Contains("out of range"),
                       std::logic_error);
  CHECK_THROWS_WITH_AS(samplers::check_selection(Chosen{1, 1}, 3, 2), doctest::Contains("twice"), std::logic_error);
  using None = std::array<std::size_t, 0>;
  CHECK_THROWS_WITH_AS(samplers::check_selection(None{}, 3, 2), doctest::Contains("chose none of 3 candidates"),
                       std::logic_error);
  CHECK_NOTHROW(samplers::check_selection(None{}, 0, 2));
  CHECK_NOTHROW(samplers::check_selection(None{}, 3, 0));
}
