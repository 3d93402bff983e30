// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/search_curve.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "support/temporary_folder.hpp"

using namespace tunewright;

TEST_CASE("a search that does not reach a latency has spent all of its seconds on it") {
  const support::TemporaryFolder folder;
  const std::string file = folder.file("curve"), copy = folder.file("copy");
  std::ofstream(file) << "1 9\n2.5 5\n7 5\n8 3\n10 3\n";
  const study::SearchCurve curve(file);
  CHECK(curve.elapsed_s() == 10);
  const auto at_once = curve.spent_on(9), later = curve.spent_on(4), never = curve.spent_on(2.9);
  CHECK(at_once.reached);
  CHECK(at_once.seconds == 1);
  CHECK(later.reached);
  CHECK(later.seconds == 8);
  CHECK(!never.reached);
  CHECK(never.seconds == 10);
  curve.save(copy);
  CHECK(study::SearchCurve(copy).spent_on(5).seconds == 2.5);
  CHECK(!study::SearchCurve().spent_on(1).reached);
}
