// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/step.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>

namespace {

using namespace tunewright::schedule;

TEST_CASE("every primitive has a tag of its own and names all its fields") {
  const std::vector<std::pair<Step, std::size_t>> fields{{Split{}, 6},
                                                         {FollowSplit{}, 4},
                                                         {Fuse{}, 4},
                                                         {Reorder{}, 2},
                                                         {Annotate{}, 3},
                                                         {UnrollLimit{}, 3},
                                                         {ComputeLocation{}, 3},
                                                         {CacheWrite{}, 2},
                                                         {CacheRead{}, 3},
                                                         {Rfactor{}, 2},
                                                         {Pack{}, 2},
                                                         {Tensorize{}, 3},
                                                         {FollowFusedSplit{}, 4},
                                                         {TransformLayout{}, 5},
                                                         {Pipeline{}, 4},
                                                         {Pad{}, 2},
                                                         {PermuteAxes{}, 2},
                                                         {MergeAxes{}, 0}};
  CHECK(fields.size() == std::variant_size_v<Step>);
  std::set<std::string> tags;
  for (auto [step, count] : fields) {
    describe(step, [&](std::string_view tag, auto&... field) {
      tags.emplace(tag);
      CHECK_MESSAGE(sizeof...(field) == count, tag);
    });
  }
  CHECK(tags.size() == std::variant_size_v<Step>);
}

TEST_CASE("names of kinds, scopes and faults") {
  CHECK(name(LoopKind::Serial) == "serial");
  CHECK(name(LoopKind::VirtualThread) == "vthread");
  CHECK(name(Scope::Global) == "global");
  CHECK(name(Scope::Accumulator) == "accumulator");
  CHECK(name(ScheduleFault::UnknownStage) == "unknown_stage");
  CHECK(name(ScheduleFault::NotPackable) == "not_packable");
  CHECK(name(ScheduleFault::Malformed) == "malformed");
  const ScheduleError error(ScheduleFault::BadFactor, "a factor of 0");
  CHECK(error.fault() == ScheduleFault::BadFactor);
  CHECK(std::string(error.what()) == "bad_factor: a factor of 0");
}

}  // namespace
