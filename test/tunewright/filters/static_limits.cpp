// SPDX-License-Identifier: Apache-2.0
#include "tunewright/filters/static_limits.hpp"

#include <doctest/doctest.h>

#include "support/toy_space.hpp"
#include "tunewright/filters/none.hpp"

using namespace tunewright;

namespace {

struct Silent : toy::Space {
  void why_infeasible() const {}  // hides the reasons
};

const std::vector<toy::Tiles> pool{{1, 1, 1, 1}, {7, 7, 0, 0}, {6, 6, 0, 0}, {7, 6, 0, 0}};

}  // namespace

TEST_CASE("what exceeds a static limit goes, counted by the reason the space gives") {
  const Kept kept = filters::StaticLimits{}.keep(toy::Space{}, toy::task(), pool);
  CHECK(kept.indices == std::vector<std::size_t>{0, 2});
  CHECK(kept.rejected == ReasonCounts{{"tile too large", 2}});
}

TEST_CASE("a space without reasons is counted as infeasible") {
  CHECK(filters::StaticLimits{}.keep(Silent{}, toy::task(), pool).rejected == ReasonCounts{{"infeasible", 2}});
}

TEST_CASE("no filter keeps everything") {
  const Kept kept = filters::None{}.keep(toy::Space{}, toy::task(), pool);
  CHECK(kept.indices == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(kept.rejected.empty());
}
