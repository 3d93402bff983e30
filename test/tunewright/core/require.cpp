// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/require.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace tunewright;

TEST_CASE("an option out of range is told with policy, option, value and range") {
  CHECK_NOTHROW(require(true, "Policy", "share", 2, "a share, 0 to 1"));
  CHECK_THROWS_WITH_AS(require(false, "Policy", "share", 2.5, "a share, 0 to 1"),
                       "Policy: share is 2.5; give a share, 0 to 1", std::invalid_argument);
}

TEST_CASE("options are checked of policies that offer it, and of no others") {
  struct Checked {
    double share = 0;
    void check_options() const { require(share <= 1, "Checked", "share", share, "a share, 0 to 1"); }
  };
  class Unchecked {
    void check_options() const { throw std::invalid_argument("not for others"); }
  };
  CHECK_NOTHROW(check_options_of(Checked{}));
  CHECK_THROWS_WITH_AS(check_options_of(Checked{.share = 2}), "Checked: share is 2; give a share, 0 to 1",
                       std::invalid_argument);
  CHECK_NOTHROW(check_options_of(Unchecked{}));
  CHECK_NOTHROW(check_options_of(7));
}
