// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/number_text.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "support/refusal.hpp"
#include "tunewright/core/require.hpp"

using namespace tunewright;

TEST_CASE("numbers are written as short as they can be read back") {
  CHECK(number_text(0) == "0");
  CHECK(number_text(-1) == "-1");
  CHECK(number_text(1.5) == "1.5");
  CHECK(number_text(1048577) == "1048577");
  CHECK(number_text(1e-9) == "1e-09");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(double{0.1F}) == "0.1");
  CHECK(number_text(1e300) == "1e+300");
  CHECK(number_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(number_text(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(number_text(std::numeric_limits<double>::quiet_NaN()).find("nan") != std::string::npos);
}

TEST_CASE("a refused option is named with its value, however small") {
  CHECK(test::refusal([] { require(false, "Policy", "share", -1e-9, "a share, 0 to 1"); }) ==
        "Policy: share is -1e-09; give a share, 0 to 1");
  CHECK(test::refusal([] { require(false, "Policy", "count", 0, "at least 1"); }) ==
        "Policy: count is 0; give at least 1");
}
