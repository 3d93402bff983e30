// SPDX-License-Identifier: Apache-2.0
//
// Lesson 4: from programs to numbers, and a model that ranks programs without running them.
//
// Shows:  how `features::PerStatement` describes a program, and how a cost model learns from it.
// Run:    build/release/examples/04_features_and_first_model
// Expect: the loop nest of one random matmul schedule and some of its features; then the pairwise accuracy of the
//         model, which grows with the number of training programs from 0.5, which is chance. The program fails if the
//         trained model is not clearly better than chance.
//
// The programs are not run. A toy machine, defined below, computes their times, so that every run prints the same.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/core/training_set.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/stats/ranking.hpp"

using namespace tunewright;

// [snippet-begin toy_machine]
/// A machine that takes a cycle per statement and per loaded operand, gathers vectors lane by lane, spends
/// two cycles on every iteration of a serial loop, and has two cores with a start-up time.
class ToyMachine {
 public:
  [[nodiscard]] double seconds(const loops::LoopNest& nest) const { return cycles(nest, nest.body, nullptr) * 1e-9; }

 private:
  static constexpr double cores = 2, start_cycles = 20000, iteration_cycles = 2, lanes = 8;

  static double cycles(const loops::LoopNest& nest, const loops::Body& body, const loops::Loop* vector) {
    double sum = 0;
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        const auto extent = static_cast<double>(nest.variables[loop->var].extent);
        const bool vectorized = loop->kind == loops::LoopKind::Vectorized;
        const double inside = cycles(nest, loop->body, vectorized ? loop : vector);
        switch (loop->kind) {
          case loops::LoopKind::Vectorized: sum += std::ceil(extent / lanes) * inside; break;
          case loops::LoopKind::Parallel: sum += start_cycles + std::ceil(extent / cores) * inside; break;
          case loops::LoopKind::Unrolled: sum += extent * inside; break;
          default: sum += extent * (inside + iteration_cycles);
        }
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        sum += 1 + cycles(nest, branch->then, vector);
      } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
        sum += 1;
        if (statement->kind == loops::Statement::Kind::Initialise) continue;
        program::visit(statement->op->body, [&](const program::ExprNode& e) {
          if (e.op != program::Op::Load) return;
          const auto stride = vector == nullptr ? 0 : loops::load_offset(nest, *statement, e).coefficient(vector->var);
          sum += stride == 0 || stride == 1 ? 1 : lanes;
        });
      }
    }
    return sum;
  }
};
// [snippet-end toy_machine]

int main() {
  const Task task =
      program::make_task("matmul 128x128x128", program::operators::matmul_graph({128, 128, 128}), Target{});
  const spaces::MultiLevelTiling space;

  // Distinct random schedules and their times on the toy machine.
  constexpr std::size_t programs = 400;
  std::vector<schedule::Schedule> configs;
  std::vector<double> seconds;
  std::set<std::uint64_t> seen;
  for (Rng rng(4); configs.size() < programs;) {
    const auto config = space.sample(task, rng);
    if (!config || !seen.insert(space.key(*config)).second) continue;
    configs.push_back(*config);
    seconds.push_back(ToyMachine().seconds(space.lower(task, *config)));
  }

  // [snippet-begin extract]
  const features::PerStatement featurizer;
  const FeatureBatch x = featurizer.extract(space, task, std::span<const schedule::Schedule>(configs));  // (R, 164)
  // [snippet-end extract]

  std::printf("%s\n", loops::to_string(space.lower(task, configs[0])).c_str());
  std::printf("described by %zu rows of %zu numbers; the first row says\n", x.program(0).size() / x.columns(),
              x.columns());
  const FeatureSchema& schema = featurizer.schema();
  for (const char* name : {"float_mul", "vec_len", "parallel_prod", "buffer0_bytes", "buffer0_unique_bytes",
                           "buffer0_lines", "buffer0_stride", "arith_intensity_10"}) {
    for (std::size_t c = 0; c < schema.columns.size(); ++c) {
      if (schema.columns[c].name != name) continue;
      std::printf("  %-22s %7.3f %s\n", name, static_cast<double>(x.row(0)[c]), schema.columns[c].unit.c_str());
    }
  }

  // The last programs are held out to evaluate the model.
  constexpr std::size_t judged = 200;
  const auto part = [&](std::size_t first, std::size_t count) {
    TrainingSet set;
    FeatureBatch rows(x.columns());
    for (std::size_t p = first; p < first + count; ++p) rows.append_program(x.program(p));
    set.add(0, rows, std::span(seconds).subspan(first, count));
    return set.assemble();  // y = seconds of the best / seconds
  };
  const TrainingSet::Data test = part(programs - judged, judged);

  std::printf("\nprograms seen   pairs ranked right   best of the 10 ranked first\n");
  double accuracy = 0;
  for (const std::size_t known : {0U, 25U, 50U, 100U, 200U}) {
    // [snippet-begin fit]
    const TrainingSet::Data train = part(0, known);
    models::Gbdt model{.objective = models::gbdt::Objective::RankPairwise};
    model.fit(train.x, train.y, train.group);
    std::vector<float> score(judged);
    model.predict(test.x, score);
    // [snippet-end fit]
    accuracy = stats::pairwise_accuracy(score, test.y);
    std::printf("%13zu %20.2f %28.2f\n", known, accuracy, stats::top_k_score(score, test.y, 10));
  }
  return accuracy > 0.75 ? 0 : 1;
}
