// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/course.hpp"

#include <doctest/doctest.h>

namespace {

using namespace tunewright;

TEST_CASE("a course keeps the trials that were faster than all before") {
  study::Course course;
  CHECK(course.best_s() == study::Course::infinity);
  course.add(study::Course::infinity, 1);
  course.add(5, 2);
  course.add(6, 3);
  course.add(4, 4);
  CHECK(course.trials == 4);
  CHECK(course.failed == 1);
  CHECK(course.elapsed_s == 4);
  REQUIRE(course.improvements.size() == 2);
  CHECK(course.improvements[1] == study::Improvement{4, 4, 4});
  CHECK(course.best_after(1) == study::Course::infinity);
  CHECK(course.best_after(3) == 5);
  CHECK(course.best_after(100) == 4);
  CHECK(course.best_at(1.5) == study::Course::infinity);
  CHECK(course.best_at(3.9) == 5);
  CHECK(course.best_at(4) == 4);
  CHECK(course.reaching(5)->trial == 2);
  CHECK(course.reaching(4.5)->trial == 4);
  CHECK_FALSE(course.reaching(3.9));
}

}  // namespace
