// SPDX-License-Identifier: Apache-2.0
#include "tunewright/schedule/apply.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
#include "support/schedule_faults.hpp"
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::schedule;
using Iters = std::vector<IterId>;

/// Tensors: A 0, B 1 (a constant), C 2 = A B, D 3 = relu(C).
State matmul_relu() {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto a = g->input("A", {12, 7});
  const auto b = g->constant("B", {7, 10});
  program::operators::relu(*g, program::operators::matmul(*g, a, b));
  return initial_state(std::move(g));
}

State after(std::vector<Step> steps) {
  State state = matmul_relu();
  for (const Step& step : steps) schedule::apply(state, step);
  return state;
}

std::string fault(std::vector<Step> steps) {
  return test::fault_of([&] { after(std::move(steps)); });
}

std::vector<std::int64_t> factors(const State& state, std::size_t step) {
  const auto found = state.factors_of_step(step);
  return {found.begin(), found.end()};
}

Location at(TensorId stage, IterId iter) { return {Location::Kind::At, stage, iter}; }
constexpr Location inlined{Location::Kind::Inline, 0, 0};
constexpr Location root{Location::Kind::Root, 0, 0};

TEST_CASE("split") {
  const State state = after({Split{2, 1, {5}}});
  CHECK(state.stages[2].order == Iters{0, 3, 4, 2});
  CHECK(iterator_name(state.stages[2], 4) == "j.1");
  CHECK(factors(state, 0) == std::vector<std::int64_t>{5});
  CHECK(fault({Split{7, 0, {2}}}) == "unknown_stage");
  CHECK(fault({Split{0, 0, {2}}}) == "unknown_stage");
  CHECK(fault({Split{2, 8, {2}}}) == "unknown_iterator");
  CHECK(fault({Split{2, 1, {2}}, Split{2, 1, {2}}}) == "unknown_iterator");
  CHECK(fault({Split{2, 1, {-3}}}) == "bad_factor");
}

TEST_CASE("follow_split takes the leading factors and the product of the rest") {
  const std::vector<std::int64_t> source{2, 3, 4};
  CHECK(factors(after({Split{2, 1, source}, FollowSplit{3, 1, 0, 1}}), 1) == std::vector<std::int64_t>{24});
  CHECK(factors(after({Split{2, 1, source}, FollowSplit{3, 1, 0, 2}}), 1) == std::vector<std::int64_t>{2, 12});
  const State state = after({Split{2, 1, source}, FollowSplit{3, 1, 0, 3}});
  CHECK(factors(state, 1) == source);
  CHECK(state.stages[3].order == Iters{0, 2, 3, 4, 5});
  CHECK(fault({Split{2, 1, source}, FollowSplit{3, 1, 0, 4}}) == "bad_factor");
  CHECK(fault({Split{2, 1, source}, FollowSplit{3, 1, 0, 0}}) == "bad_factor");
  CHECK(fault({Split{2, 1, source}, FollowSplit{3, 1, 1, 1}}) == "bad_factor");               // itself
  CHECK(fault({Annotate{2, 0, LoopKind::Serial}, FollowSplit{3, 1, 0, 1}}) == "bad_factor");  // not a split
}

TEST_CASE("follow_fused_split takes the product of one level of several splits") {
  // 2 x 3 threads copy together; the third factor of j has no counterpart in i.
  const std::vector<Step> tiles{Split{2, 0, {5, 2}}, Split{2, 1, {7, 3, 4}}};
  const auto with = [&](Step step) {
    std::vector<Step> steps = tiles;
    steps.push_back(std::move(step));
    return steps;
  };
  CHECK(factors(after(with(FollowFusedSplit{3, 1, {0, 1}, 1})), 2) == std::vector<std::int64_t>{6});
  CHECK(factors(after(with(FollowFusedSplit{3, 1, {0, 1}, 0})), 2) == std::vector<std::int64_t>{35});
  const State state = after(with(FollowFusedSplit{3, 1, {1}, 2}));
  CHECK(factors(state, 2) == std::vector<std::int64_t>{4});
  CHECK(state.stages[3].order == Iters{0, 2, 3});
  CHECK(fault(with(FollowFusedSplit{3, 1, {0, 1}, 2})) == "bad_factor");  // i has two factors
  CHECK(fault(with(FollowFusedSplit{3, 1, {}, 0})) == "bad_factor");
  CHECK(fault(with(FollowFusedSplit{3, 1, {2}, 0})) == "bad_factor");  // itself
  CHECK(fault(with(FollowFusedSplit{3, 4, {0}, 0})) == "unknown_iterator");
  CHECK(fault(with(FollowFusedSplit{9, 0, {0}, 0})) == "unknown_stage");
  CHECK(fault({Annotate{2, 0, LoopKind::Serial}, FollowFusedSplit{3, 1, {0}, 0}}) == "bad_factor");
  CHECK(fault({Split{2, 0, {1 << 20}}, Split{2, 1, {1 << 20}}, FollowFusedSplit{3, 1, {0, 1}, 0}}) ==
        "bad_factor");  // 2^40 threads
}

TEST_CASE("fuse") {
  const State state = after({Fuse{2, {0, 1}, 2, false}});
  CHECK(state.stages[2].order == Iters{3, 2});
  CHECK(iterator_name(state.stages[2], 3) == "i@j");
  CHECK(fault({Fuse{2, {0, 1}, 0, true}}) == "bad_choice");
  CHECK(fault({Fuse{2, {0, 1}, 3, true}}) == "bad_choice");
  CHECK(fault({Fuse{2, {}, 0, true}}) == "bad_choice");
  CHECK(fault({Fuse{2, {1, 0}, 2, false}}) == "not_adjacent");
  CHECK(fault({Fuse{2, {0, 2}, 2, false}}) == "not_adjacent");
  CHECK(fault({Fuse{2, {1, 1}, 2, false}}) == "not_adjacent");
  CHECK(fault({Fuse{2, {1, 2}, 2, false}}) == "mixed_kinds");
  CHECK(fault({Fuse{2, {5}, 1, false}}) == "unknown_iterator");
}

/// Splits reduction k of stage 2 by 7, which is its extent, and fuses the parts, `times` times; `loop` is the last one.
std::vector<Step> split_and_fused(std::size_t times, IterId& loop) {
  std::vector<Step> steps;
  loop = 2;
  for (IterId next = 3; times-- > 0; next += 3) {
    steps.emplace_back(Split{2, loop, {7}});
    steps.emplace_back(Fuse{2, {next, next + 1}, 2, false});
    loop = next + 2;
  }
  return steps;
}

TEST_CASE("loops that are split and fused again and again are refused before their names fill the memory") {
  IterId loop = 0;
  const State state = after(split_and_fused(8, loop));  // each time doubles the parts of the name: 2^8
  CHECK(state.stages[2].iterators[loop].origins == 256);
  CHECK(iterator_name(state.stages[2], loop).starts_with("k.0@k.1.0@"));
  CHECK(fault(split_and_fused(9, loop)) == "unsupported");

  std::vector<Step> steps = split_and_fused(8, loop);
  steps.emplace_back(Rfactor{2, loop});
  CHECK(after(steps).stages[2].op->axes.size() == 3);
  const std::vector<Step> again = steps;
  steps.insert(steps.end(), again.begin(), again.end());  // 256 parts, each of 256
  CHECK(fault(steps) == "unsupported");
}

TEST_CASE("steps make at most 1024 iterators of a stage, and at most 1024 stages") {
  const Split most{2, 2, std::vector<std::int64_t>(1020, 1)};  // 1021 parts beside i, j and k
  CHECK(after({most}).stages[2].iterators.size() == 1024);
  CHECK(fault({most, Fuse{2, {0}, 1, false}}) == "unsupported");
  CHECK(fault({Split{2, 2, std::vector<std::int64_t>(1021, 1)}}) == "unsupported");
  std::vector<Step> steps(1024, CacheWrite{2, Scope::Local});
  CHECK(after(steps).stages.size() == 4 + 1024);
  steps.emplace_back(CacheWrite{2, Scope::Local});
  CHECK(fault(steps) == "unsupported");
}

TEST_CASE("numbers stay the same whatever is decided") {
  // The number of fused loops and the factors are decisions; what comes after must not notice.
  for (const std::uint32_t count : {1U, 2U}) {
    for (const std::int64_t factor : {1, 2, 12}) {
      const State state =
          after({Split{2, 0, {factor}}, Reorder{2, {3, 1, 4}}, Fuse{2, {3, 1}, count, true}, Split{2, 2, {2}}});
      CHECK(state.stages[2].iterators.size() == 8);
      CHECK(state.stages[2].order == (count == 2 ? Iters{5, 4, 6, 7} : Iters{5, 1, 4, 6, 7}));
    }
  }
}

TEST_CASE("reorder permutes the places of the named loops and leaves others alone") {
  CHECK(after({Reorder{2, {2, 0}}}).stages[2].order == Iters{2, 1, 0});
  CHECK(after({Reorder{2, {}}}).stages[2].order == Iters{0, 1, 2});
  CHECK(fault({Reorder{2, {0, 0}}}) == "bad_order");
  CHECK(fault({Reorder{2, {0, 3}}}) == "unknown_iterator");
}

TEST_CASE("annotate") {
  CHECK(after({Annotate{2, 1, LoopKind::Vectorized}}).stages[2].iterators[1].annotation == LoopKind::Vectorized);
  CHECK(after({Annotate{2, 2, LoopKind::Unrolled}}).stages[2].iterators[2].annotation == LoopKind::Unrolled);
  CHECK(fault({Annotate{2, 2, LoopKind::Parallel}}) == "bad_annotation");
  CHECK(fault({Annotate{2, 2, LoopKind::BlockX}}) == "bad_annotation");
  CHECK(fault({Annotate{2, 4, LoopKind::Parallel}}) == "unknown_iterator");
}

TEST_CASE("unroll_limit") {
  CHECK(after({UnrollLimit{2, {0, 16, 64}, 2}}).stages[2].unroll_limit == 64);
  CHECK(fault({UnrollLimit{2, {0, 16}, 2}}) == "bad_choice");
  CHECK(fault({UnrollLimit{2, {}, 0}}) == "bad_choice");
  CHECK(fault({UnrollLimit{2, {-1}, 0}}) == "bad_choice");
}

TEST_CASE("compute_location") {
  CHECK(after({ComputeLocation{2, {root, at(3, 1)}, 1}}).stages[2].location == at(3, 1));
  CHECK(fault({ComputeLocation{2, {root}, 1}}) == "bad_choice");
  CHECK(fault({ComputeLocation{2, {inlined}, 0}}) == "not_inlineable");
  CHECK(fault({ComputeLocation{3, {inlined}, 0}}) == "bad_location");   // an output
  CHECK(fault({ComputeLocation{3, {at(2, 0)}, 0}}) == "bad_location");  // an output
  CHECK(fault({ComputeLocation{2, {at(2, 0)}, 0}}) == "bad_location");  // itself
  CHECK(fault({ComputeLocation{2, {at(3, 5)}, 0}}) == "unknown_iterator");
  CHECK(fault({ComputeLocation{2, {at(0, 0)}, 0}}) == "unknown_stage");  // inputs have no loops
  CHECK(fault({CacheWrite{3, Scope::Local}, ComputeLocation{2, {at(4, 0)}, 0}, ComputeLocation{4, {at(2, 0)}, 0}}) ==
        "bad_location");  // one inside the other and back
}

TEST_CASE("cache_write moves the computation to a new stage in front") {
  const State state = after({CacheWrite{2, Scope::Local}});
  REQUIRE(state.stages.size() == 5);
  CHECK(state.order == std::vector<TensorId>{0, 1, 4, 2, 3});
  CHECK(state.stages[4].op->name == "matmul.local");
  CHECK(state.stages[4].op->has_reduction());
  CHECK(state.stages[4].scope == Scope::Local);
  CHECK_FALSE(state.stages[2].op->has_reduction());
  CHECK(state.stages[2].op->body->tensor == 4);
  CHECK(state.stages[2].order == Iters{0, 1});
  CHECK(fault({Split{2, 0, {2}}, CacheWrite{2, Scope::Local}}) == "already_scheduled");
  CHECK(fault({ComputeLocation{2, {at(3, 0)}, 0}, CacheWrite{2, Scope::Local}}) == "already_scheduled");
  // The new loops would be without what was said of the old ones.
  CHECK(fault({Annotate{2, 0, LoopKind::Parallel}, CacheWrite{2, Scope::Local}}) == "already_scheduled");
  CHECK(fault({Reorder{2, {1, 0}}, CacheWrite{2, Scope::Local}}) == "already_scheduled");
  CHECK(fault({Annotate{2, 0, LoopKind::Vectorized}, PermuteAxes{2, {1, 0}}}) == "already_scheduled");
}

TEST_CASE("cache_read puts a copy between a tensor and one reader") {
  const State state = after({CacheRead{0, 2, Scope::Local}});
  CHECK(state.order == std::vector<TensorId>{0, 1, 4, 2, 3});
  CHECK(state.stages[4].op->name == "A.local");
  CHECK(state.stages[4].op->shape() == std::vector<std::int64_t>{12, 7});
  const auto reads = program::reads_of(*state.stages[2].op);
  REQUIRE(reads.size() == 2);
  CHECK(reads[0].tensor == 4);
  CHECK(reads[1].tensor == 1);
  CHECK(fault({CacheRead{0, 3, Scope::Local}}) == "unknown_stage");  // D does not read A
  CHECK(fault({CacheRead{9, 2, Scope::Local}}) == "unknown_stage");
  CHECK(fault({CacheRead{0, 1, Scope::Local}}) == "unknown_stage");  // B reads nothing
}

TEST_CASE("rfactor") {
  // k = 7 in 3 parts of 3: two of the nine iterations are idle.
  const State state = after({Split{2, 2, {3}}, Rfactor{2, 4}});
  const Operator& partial = *state.stages[4].op;
  CHECK(partial.name == "matmul.rf");
  CHECK(partial.shape() == std::vector<std::int64_t>{12, 10, 3});  // i, j, k.1
  REQUIRE(partial.axes.size() == 4);
  CHECK(partial.axes[3].extent == 3);  // k.0
  CHECK(partial.combiner == program::Combiner::Sum);
  CHECK(partial.body->op == program::Op::Select);  // k < 7
  const Operator& rest = *state.stages[2].op;
  REQUIRE(rest.axes.size() == 3);
  CHECK(rest.axes[2].extent == 3);
  CHECK(rest.axes[2].kind == AxisKind::Reduction);
  CHECK(state.stages[2].order == Iters{0, 1, 2});
  CHECK(state.order == std::vector<TensorId>{0, 1, 4, 2, 3});

  const State whole = after({Rfactor{2, 2}});  // nothing is left to reduce over
  CHECK(whole.stages[4].op->combiner == program::Combiner::None);
  CHECK(whole.stages[4].op->body->op == program::Op::Multiply);

  CHECK(fault({Rfactor{2, 0}}) == "not_reduction");
  CHECK(fault({Rfactor{2, 6}}) == "unknown_iterator");
  CHECK(fault({Rfactor{3, 0}}) == "not_reduction");
  CHECK(fault({Split{2, 0, {2}}, Rfactor{2, 2}}) == "already_scheduled");
  // Both stages have new loops, which would know nothing of these.
  CHECK(fault({Annotate{2, 0, LoopKind::Parallel}, Rfactor{2, 2}}) == "already_scheduled");
  CHECK(fault({Reorder{2, {1, 0}}, Rfactor{2, 2}}) == "already_scheduled");
}

TEST_CASE("permute_axes") {
  // C.local 4 = A B, and C is a copy of it.
  const State state = after({CacheWrite{2, Scope::Local}, PermuteAxes{4, {1, 0}}});
  const Operator& sum = *state.stages[4].op;
  CHECK(sum.shape() == std::vector<std::int64_t>{10, 12});
  CHECK(sum.axes[0].name == "j");
  CHECK(sum.axes[2].kind == AxisKind::Reduction);
  const auto variables = [](const program::ExprNode& load) {
    std::vector<program::Var> all;
    for (const program::IndexExpr& index : load.indices) all.push_back(index.as_variable().value());
    return all;
  };
  const program::ExprNode& product = *sum.body;
  CHECK(variables(*product.args[0]) == std::vector<program::Var>{1, 2});  // A[i, k]
  CHECK(variables(*product.args[1]) == std::vector<program::Var>{2, 0});  // B[k, j]
  CHECK(variables(*state.stages[2].op->body) == std::vector<program::Var>{1, 0});
  CHECK(state.stages[4].order == Iters{0, 1, 2});
  CHECK(state.stages[2].op->shape() == std::vector<std::int64_t>{12, 10});

  // The reader of a temporary of the program follows, too, and keeps its loops.
  const State read = after({Split{3, 1, {5}}, PermuteAxes{2, {1, 0}}});
  CHECK(read.stages[2].op->shape() == std::vector<std::int64_t>{10, 12});
  CHECK(read.stages[3].order == Iters{0, 2, 3});

  CHECK(fault({PermuteAxes{0, {1, 0}}}) == "unknown_stage");  // an input
  CHECK(fault({PermuteAxes{3, {1, 0}}}) == "bad_order");      // the output
  CHECK(fault({PermuteAxes{2, {1}}}) == "bad_order");
  CHECK(fault({PermuteAxes{2, {1, 1}}}) == "bad_order");
  CHECK(fault({PermuteAxes{2, {0, 1, 2}}}) == "bad_order");  // the reduction stays last
  CHECK(fault({Split{2, 0, {2}}, PermuteAxes{2, {1, 0}}}) == "already_scheduled");
  CHECK(fault({Pack{2, 3}, PermuteAxes{2, {1, 0}}}) == "already_scheduled");
  CHECK(fault({TransformLayout{2, {{1, 0}}, {0}, 0, 0}, PermuteAxes{2, {1, 0}}}) == "already_scheduled");
  CHECK(fault({CacheWrite{2, Scope::Local}, CacheRead{0, 4, Scope::Local}, CacheRead{1, 4, Scope::Local},
               Pad{4, {16, 1, 1}}, PermuteAxes{4, {1, 0}}}) == "already_scheduled");
  CHECK(fault({CacheRead{0, 2, Scope::Local}, ComputeLocation{4, {at(2, 0)}, 0}, PermuteAxes{2, {1, 0}}}) ==
        "already_scheduled");
}

TEST_CASE("merge_axes") {
  auto g = std::make_shared<program::ComputeGraph>();
  program::operators::relu(*g, g->input("A", {3, 4}));
  const auto after_of = [&](std::vector<Step> steps) {
    State state = initial_state(g);
    for (const Step& step : steps) schedule::apply(state, step);
    return state;
  };
  const State state = after_of({MergeAxes{}, Split{1, 0, {5}}});
  CHECK(state.stages[0].op->shape() == std::vector<std::int64_t>{12});
  CHECK(state.graph->op(1).shape() == std::vector<std::int64_t>{12});
  CHECK(state.stages[1].order == Iters{1, 2});
  CHECK(iterator_name(state.stages[1], 1) == "i0@i1.0");
  CHECK(test::fault_of([&] { after_of({Split{1, 0, {2}}, MergeAxes{}}); }) == "already_scheduled");
  CHECK(test::fault_of([&] { after_of({MergeAxes{}, MergeAxes{}}); }) == "already_scheduled");
  CHECK(fault({MergeAxes{}}) == "unsupported");  // a product

  // The only row of y is above those of x: once its axis is left out, numbers are compared.
  auto above = std::make_shared<program::ComputeGraph>();
  const program::Tensor x = above->input("x", {4, 4, 5});
  above->compute("y", {{"i", 1}, {"j", 4}, {"k", 5}}, [&](auto i) {
    return program::select(program::in_bounds(2 * i[0] - 1, 4), x(2 * i[0] - 1, i[1], i[2]), 0.0);
  });
  CHECK(schedule::replay({above, {MergeAxes{}}}).stages[1].op->shape() == std::vector<std::int64_t>{20});
}

TEST_CASE("arrange") {
  const TransformLayout transposed{2, {{0, 1}, {1, 0}}, {0, 4}, 1, 1};
  CHECK(after({transposed}).layouts == std::vector<TransformLayout>{transposed});
  CHECK(fault({TransformLayout{0, {{0, 1}}, {0}, 0, 0}}) == "unknown_stage");  // an input
  CHECK(fault({TransformLayout{2, {{0, 1}}, {0}, 1, 0}}) == "bad_choice");
  CHECK(fault({TransformLayout{2, {{0, 1}}, {0}, 0, 1}}) == "bad_choice");
  CHECK(fault({TransformLayout{2, {{0, 1}}, {-4}, 0, 0}}) == "bad_choice");
  CHECK(fault({TransformLayout{2, {{0, 1}}, {std::int64_t{1} << 40}, 0, 0}}) == "bad_choice");
  CHECK(fault({TransformLayout{2, {{0}}, {0}, 0, 0}}) == "bad_order");
  CHECK(fault({TransformLayout{2, {{0, 0}}, {0}, 0, 0}}) == "bad_order");
  CHECK(fault({TransformLayout{2, {{0, 2}}, {0}, 0, 0}}) == "bad_order");
}

TEST_CASE("pipeline") {
  const Pipeline ahead{2, 2, {{1, false}, {4, true}}, 1};
  CHECK(after({ahead}).pipelines == std::vector<Pipeline>{ahead});
  CHECK(fault({Pipeline{0, 0, {{2, false}}, 0}}) == "unknown_stage");  // an input
  CHECK(fault({Pipeline{2, 9, {{2, false}}, 0}}) == "unknown_iterator");
  CHECK(fault({Pipeline{2, 2, {{2, false}}, 1}}) == "bad_choice");
  CHECK(fault({Pipeline{2, 2, {}, 0}}) == "bad_choice");
  CHECK(fault({Pipeline{2, 2, {{0, false}}, 0}}) == "bad_choice");
  CHECK(fault({Pipeline{2, 2, {{max_pipeline_depth + 1, false}}, 0}}) == "bad_choice");
  CHECK(fault({Pipeline{2, 2, {{1, true}}, 0}}) == "bad_choice");  // nothing runs ahead
}

TEST_CASE("pack and tensorize") {
  CHECK(after({Pack{1, 2}}).packs == std::vector<Pack>{{1, 2}});
  CHECK(fault({Pack{0, 2}}) == "not_packable");  // an input
  CHECK(fault({Pack{1, 0}}) == "unknown_stage");
  CHECK(fault({Pack{9, 2}}) == "unknown_stage");
  CHECK(fault({Tensorize{2, 0, "amx"}}) == "unsupported");
  CHECK(fault({Tensorize{2, 9, "amx"}}) == "unknown_iterator");
}

}  // namespace

TEST_CASE("padding: axes in multiples, operands with zeros beyond what they had") {
  // [12, 10] results of 7 terms in 16ths: 16 x 16 of 16 terms.
  const CacheWrite sums{2, Scope::Accumulator};
  State state = after({sums, CacheRead{0, 4, Scope::Shared}, CacheRead{1, 4, Scope::Shared}, Pad{4, {16, 16, 16}}});
  CHECK(state.stages[4].op->axes[0].extent == 16);
  CHECK(state.stages[4].op->axes[2].extent == 16);
  CHECK(state.stages[5].op->shape() == std::vector<std::int64_t>{16, 16});
  CHECK(state.stages[6].op->shape() == std::vector<std::int64_t>{16, 16});
  CHECK(state.stages[5].op->body->op == program::Op::Select);
  CHECK(state.stages[2].op->shape() == std::vector<std::int64_t>{12, 10});  // its reader is as it was
  // What multiples divide stays.
  state = after({sums, CacheRead{0, 4, Scope::Shared}, CacheRead{1, 4, Scope::Shared}, Pad{4, {4, 5, 7}}});
  CHECK(state.stages[5].op->body->op == program::Op::Load);

  // Terms of an operand that is longer than the sum are zeros where the sum is padded.
  auto longer = std::make_shared<program::ComputeGraph>();
  const program::Tensor a = longer->input("a", {4, 32}), b = longer->input("b", {24, 8});
  longer->reduce("c", {{"i", 4}, {"j", 8}}, {{"k", 24}}, program::Combiner::Sum,
                 [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  ScheduleBuilder s(longer);
  const TensorId c = s.cache_write(2, Scope::Accumulator);
  const TensorId left = s.cache_read(0, c, Scope::Shared), right = s.cache_read(1, c, Scope::Shared);
  s.pad(c, {4, 8, 16});
  const Stage& cached = s.state().stages[left];
  CHECK(cached.op->shape() == std::vector<std::int64_t>{4, 32});
  CHECK(cached.op->body->op == program::Op::Select);
  CHECK(s.state().stages[right].op->shape() == std::vector<std::int64_t>{32, 8});
  CHECK(fault({sums, Pad{4, {16, 16, 16}}}) == "unknown_stage");  // operands are inputs: nothing to make larger
  CHECK(fault({sums, CacheRead{0, 4, Scope::Shared}, CacheRead{1, 4, Scope::Shared}, Pad{4, {16, 16}}}) ==
        "bad_factor");
  CHECK(fault({sums, CacheRead{0, 4, Scope::Shared}, CacheRead{1, 4, Scope::Shared}, Pad{4, {16, 0, 16}}}) ==
        "bad_factor");
  CHECK(fault({sums, CacheRead{0, 4, Scope::Shared}, CacheRead{1, 4, Scope::Shared}, Split{4, 0, {4}},
               Pad{4, {16, 16, 16}}}) == "already_scheduled");
  CHECK(fault({sums, CacheRead{0, 4, Scope::Shared}, CacheRead{1, 4, Scope::Shared}, Split{5, 0, {4}},
               Pad{4, {16, 16, 16}}}) == "already_scheduled");
  CHECK(fault({Pad{3, {16, 16}}}) == "unsupported");  // no sum of products, and an output
}

TEST_CASE("padding along which an operand is read backwards is refused") {
  // Rows 5 - i for i < 6 become those for i < 8, down to row -2; the other operand is read forwards.
  auto graph = std::make_shared<program::ComputeGraph>();
  const program::Tensor a = graph->input("A", {6, 8}), b = graph->input("B", {8, 5});
  const program::Tensor y = graph->reduce("y", {{"i", 6}, {"j", 5}}, {{"k", 8}}, program::Combiner::Sum,
                                          [&](auto i, auto k) { return a(IndexExpr(5) - i[0], k[0]) * b(k[0], i[1]); });
  program::operators::relu(*graph, y);
  const auto padded = [&](std::vector<std::int64_t> multiples) {
    ScheduleBuilder s(graph);
    s.cache_read(a.id, y.id, Scope::Local);
    const TensorId right = s.cache_read(b.id, y.id, Scope::Local);
    s.pad(y.id, std::move(multiples));
    return s.state().stages[right].op->shape();
  };
  CHECK(test::fault_of([&] { padded({4, 4, 4}); }) == "unsupported");
  const std::string said = test::refusal<ScheduleError>([&] { padded({4, 4, 4}); });
  CHECK_MESSAGE(said.find("'y' would read 'A.local' at index -2 of dimension 0") != std::string::npos, said);
  CHECK(padded({6, 4, 4}) == std::vector<std::int64_t>{8, 8});  // no row is added
}

TEST_CASE("padding again and again is refused before expressions get too deep") {
  // An odd extent is padded to twos, an even one to the least number that does not divide it: rows grow by few a step.
  std::vector<Step> steps{CacheWrite{2, Scope::Accumulator}, CacheRead{0, 4, Scope::Shared},
                          CacheRead{1, 4, Scope::Shared}};
  std::int64_t rows = 12;
  const auto grow = [&](std::size_t times) {
    for (std::size_t n = 0; n < times; ++n) {
      std::int64_t multiple = 2;
      while (rows % multiple == 0) ++multiple;
      rows = (rows / multiple + 1) * multiple;
      steps.push_back(Pad{4, {multiple, 1, 1}});
    }
  };
  grow(100);
  CHECK(fault(steps) == "nothing was thrown");
  grow(2000);
  CHECK(fault(steps) == "unsupported");
}
