// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/table.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "support/small_table.hpp"

using namespace tunewright;
using doctest::Contains;

TEST_CASE("a table whose columns do not belong together is refused wherever its rows are read") {
  Table table = small_table();
  CHECK_NOTHROW(check(table));
  CHECK_NOTHROW(check(Table{}));
  table.choices.pop_back();
  const auto short_of_one = Contains("21 choices for 11 outcomes of 2 parameters");
  CHECK_THROWS_WITH_AS(check(table), short_of_one, std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)knobs_of(table), short_of_one, std::invalid_argument);
  CHECK_THROWS_WITH_AS((void)records_of(table, task_of(table)), short_of_one, std::invalid_argument);
  table.choices.push_back(4);
  CHECK_THROWS_WITH_AS(check(table), Contains("row 10 has choice 4 of parameter 'b', which has 4 values"),
                       std::invalid_argument);
}

TEST_CASE("a row that a table does not have is no record") {
  const Table table = small_table();
  CHECK_THROWS_WITH_AS((void)record_of(table, 11, task_of(table)), Contains("row 11 of 11"), std::out_of_range);
}
