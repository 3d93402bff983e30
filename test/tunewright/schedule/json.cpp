// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/json.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/schedule_faults.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::schedule;

TEST_CASE("every step survives the round trip") {
  const std::vector<Step> steps{
      Split{2, 1, {4, 16}, 128, 64, LoopKind::Vectorized},
      FollowSplit{3, 1, 0, 2},
      Fuse{2, {3, 4, 5}, 2, true},
      Reorder{2, {5, 1, 0}},
      Annotate{2, 5, LoopKind::VirtualThread},
      UnrollLimit{2, {0, 16, 512}, 1},
      ComputeLocation{2, {{Location::Kind::Root, 0, 0}, {Location::Kind::Inline, 0, 0}, {Location::Kind::At, 3, 7}}, 2},
      CacheWrite{2, Scope::Accumulator},
      CacheRead{0, 2, Scope::Shared},
      Rfactor{2, 4},
      Pack{1, 2},
      Tensorize{2, 6, "avx512_bf16"},
      FollowFusedSplit{5, 1, {0, 1}, 1},
      TransformLayout{5, {{0, 1}, {1, 0}}, {0, 4}, 1, 0},
      Pipeline{5, 6, {{1, false}, {3, true}}, 1},
      Pad{5, {16, 16, 1}},
      PermuteAxes{5, {1, 0}},
      MergeAxes{}};
  REQUIRE(steps.size() == std::variant_size_v<Step>);
  CHECK(steps_from_json(to_json(steps)) == steps);
  const auto written = [&steps](std::size_t step) { return to_json({steps[step]}); };
  CHECK(written(0) == R"([["split",2,1,[4,16],128,64,"vectorized"]])");
  CHECK(written(2) == R"([["fuse",2,[3,4,5],2,true]])");
  CHECK(written(6) == R"([["compute_location",2,["root","inline",[3,7]],2]])");
  CHECK(written(8) == R"([["cache_read",0,2,"shared"]])");
  CHECK(written(12) == R"([["follow_fused_split",5,1,[0,1],1]])");
  CHECK(written(13) == R"([["arrange",5,[[0,1],[1,0]],[0,4],1,0]])");
  CHECK(written(14) == R"([["pipeline",5,6,[[1,false],[3,true]],1]])");
  CHECK(written(15) == R"([["pad",5,[16,16,1]]])");
  CHECK(written(16) == R"([["permute_axes",5,[1,0]]])");
  CHECK(to_json({steps[3], steps[9]}) == R"([["reorder",2,[5,1,0]],["rfactor",2,4]])");
  CHECK(to_json({}) == "[]");
  CHECK(steps_from_json(" [ ]\n").empty());
  CHECK(steps_from_json(R"([ [ "rfactor" , 2 , 4 ] ])") == std::vector<Step>{Rfactor{2, 4}});
}

TEST_CASE("every loop kind and scope survives") {
  for (std::size_t k = 0; k < loop_kind_names.size(); ++k) {
    const std::vector<Step> steps{Annotate{1, 2, static_cast<LoopKind>(k)}};
    CHECK(steps_from_json(to_json(steps)) == steps);
  }
  for (std::size_t s = 0; s < scope_names.size(); ++s) {
    const std::vector<Step> steps{CacheWrite{1, static_cast<Scope>(s)}};
    CHECK(steps_from_json(to_json(steps)) == steps);
  }
}

TEST_CASE("anything else is refused by name") {
  const auto fault = [](const char* text) { return test::fault_of([&] { (void)steps_from_json(text); }); };
  CHECK(fault(R"([["skew",0,0]])") == "unsupported");
  for (const char* text : {
           "",
           R"([["rfactor",1,2])",      // the text ends
           R"([["rfactor",1,2]] [])",  // or goes on
           R"(null)",
           R"({})",
           R"(7)",
           R"([7])",
           R"([[]])",
           R"([[3,0]])",
           R"([["rfactor",1]])",             // a field is missing
           R"([["rfactor",1,2,3]])",         // one too many
           R"([["rfactor","1",2]])",         // no number
           R"([["rfactor",-1,2]])",          // negative
           R"([["rfactor",1.5,2]])",         // no integer
           R"([["rfactor",4294967296,2]])",  // beyond 32 bits
           R"([["unroll_limit",0,[18446744073709551615],0]])",
           R"([["reorder",1,2]])",  // no array
           R"([["fuse",1,[0,1],2,1]])",
           R"([["annotate",1,0,"vectorised"]])",
           R"([["annotate",1,0,2]])",
           R"([["follow_fused_split",1,0,3,1]])",
           R"([["follow_fused_split",1,0,[-3],1]])",
           R"([["cache_write",1,"parallel"]])",
           R"([["tensorize",1,0,5]])",
           R"([["compute_location",1,["inlined"],0]])",
           R"([["compute_location",1,[[3]],0]])",
           R"([["compute_location",1,[7],0]])",
           R"([["pipeline",1,0,[2],0]])",
           R"([["pipeline",1,0,[[2]],0]])",
           R"([["pipeline",1,0,[[2,1]],0]])",
           R"([["pipeline",1,0,[[-2,true]],0]])",
           R"([["pipeline",1,0,[[2,true,3]],0]])",
       }) {
    CHECK_MESSAGE(fault(text) == "malformed", text);
  }
}

}  // namespace
