// SPDX-License-Identifier: Apache-2.0
// What the manual shows for programs of this library: an operator of one's own, and a featurizer of its loop nests.
#include <doctest/doctest.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

using namespace tunewright;

namespace {

// [snippet-begin operator]
/// The squared distance of each row of `a` from each row of `b`, where row and column of the result are at most `band`
/// apart; elsewhere -1.
program::Tensor banded_distances(program::ComputeGraph& graph, const program::Tensor& a, const program::Tensor& b,
                                 std::int64_t band) {
  using namespace program;
  const std::vector<Axis> pairs{{"i", a.shape[0]}, {"j", b.shape[0]}};
  // With a reduction: `i` are the axes of the result, `r` those that are summed over.
  const Tensor distance = graph.reduce("distance", pairs, {{"k", a.shape[1]}}, Combiner::Sum, [&](auto i, auto r) {
    const Expr difference = a(i[0], r[0]) - b(i[1], r[0]);
    return difference * difference;
  });
  // Without: indices are sums of axes, and `index_value` makes a number of one.
  return graph.compute("banded", pairs, [&](auto i) {
    const Expr apart = abs(index_value(i[0] - i[1]));
    return select(apart <= index_value(band), distance(i[0], i[1]), Expr(-1.0));
  });
}
// [snippet-end operator]

// [snippet-begin featurizer]
/// One row a program: log2 of the iterations of its serial, parallel, vectorized and unrolled loops, and the number of
/// its statements.
struct LoopKinds {
  static constexpr bool one_row = true;

  template <SearchSpace S>
    requires std::convertible_to<const program_t<S>&, const loops::LoopNest&>
  FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(5);
    for (const config_t<S>& config : configs) {
      try {
        const loops::LoopNest nest = space.lower(task, config);
        add(nest, nest.body, batch.append_row());
      } catch (const std::exception&) {  // a schedule that does not lower has no row
      }
      batch.close_program();
    }
    return batch;  // (N, 5)
  }
  FeatureSchema schema() const {
    return {"loop_kinds",
            1,
            {{"serial", "log2", "Iterations of serial loops."},
             {"parallel", "log2", "Iterations of parallel loops."},
             {"vectorized", "log2", "Iterations of vectorized loops."},
             {"unrolled", "log2", "Iterations of unrolled loops."},
             {"statements", "count", "Statements."}}};
  }

 private:
  static void add(const loops::LoopNest& nest, const loops::Body& body, std::span<float> row) {
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        const auto kind = static_cast<std::size_t>(loop->kind);  // those of CPUs come first
        if (kind < 4) row[kind] += std::log2(static_cast<float>(loops::checked_extent(nest, *loop)));
        add(nest, loop->body, row);
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        add(nest, branch->then, row);
        add(nest, branch->otherwise, row);
      } else if (std::holds_alternative<loops::Statement>(node.content)) {
        row[4] += 1;
      }
    }
  }
};
// [snippet-end featurizer]

// [snippet-begin variant]
/// `DraftAndTrees` on other features: its own model reads only rows that end with the draft's score.
struct OnLoopKinds : recipes::DraftAndTrees<spaces::MultiLevelTiling, measurers::Simulated> {
  using featurizer = LoopKinds;
  using model = models::Gbdt;
};
// [snippet-end variant]
static_assert(FeaturizerFor<LoopKinds, spaces::MultiLevelTiling> && OneRowFeaturizer<LoopKinds>);

}  // namespace

TEST_CASE("the manual's operator and featurizer of loop nests") {
  // [snippet-begin task]
  const auto graph = std::make_shared<program::ComputeGraph>();
  const program::Tensor a = graph->input("a", {37, 20});
  const program::Tensor b = graph->constant("b", {50, 20});  // the same in every run: kernels may ask for it repacked
  const program::Tensor near = banded_distances(*graph, a, b, 5);
  program::operators::map(*graph, near, "leaky", [](const program::Expr& v) { return select(v < 0.0, v * 0.1, v); });
  const Task task = program::make_task("banded distances", graph, Target{.name = "any", .isa = Isa::Avx2});
  // [snippet-end task]

  CHECK(task.flops > 37 * 50 * 20 * 3.0);

  // [snippet-begin check]
  // By hand: what the reference evaluator makes of the graph, which is what every kernel is compared with.
  const reference::Tensors values = reference::evaluate(*graph, reference::random_inputs(*graph, Rng(1)));
  const auto expected = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < 20; ++k)
      sum += std::pow(values[a.id].get(20 * i + k) - values[b.id].get(20 * j + k), 2);
    return i + 5 < j || j + 5 < i ? -0.1 : sum;
  };
  const reference::Array& result = values[graph->outputs().front()];
  // [snippet-end check]
  for (std::size_t i = 0; i < 37; ++i) {
    for (std::size_t j = 0; j < 50; ++j) CHECK(result.get(50 * i + j) == doctest::Approx(expected(i, j)));
  }

  const spaces::MultiLevelTiling space;
  const LoopKinds featurizer;
  Rng rng(1);
  std::vector<schedule::Schedule> configs{{graph, {}}};  // plain loops
  for (int n = 0; n < 3; ++n) {
    const auto drawn = space.sample(task, rng);
    REQUIRE(drawn);
    configs.push_back(*drawn);
  }
  const FeatureBatch x = featurizer.extract(space, task, std::span<const schedule::Schedule>(configs));
  CHECK(x.programs() == 4);
  CHECK(x.rows() == 4);
  CHECK(x.columns() == width_of(featurizer.schema()));
  CHECK(x.row(0)[1] == 0);
  CHECK(x.row(0)[4] == 4);  // the sums' zeros and terms, the band, the activation
  for (std::size_t p = 1; p < 4; ++p) CHECK(x.row(p)[2] > 0);
}

TEST_CASE("the manual's variant of a recipe searches on the manual's features") {
  const auto graph = std::make_shared<program::ComputeGraph>();
  banded_distances(*graph, graph->input("a", {37, 20}), graph->constant("b", {50, 20}), 5);
  const Task task = program::make_task("banded distances", graph, Target{.name = "any", .isa = Isa::Avx2});
  Tuner<OnLoopKinds> tuner{{.seed = 7}};
  const auto run = tuner.run(task, {.trials = 24, .batch = 8});
  CHECK(run.best() != nullptr);
  CHECK(tuner.parts().model.trained());
}
