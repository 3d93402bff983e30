// SPDX-License-Identifier: Apache-2.0
//
// Lesson 2: what a schedule is.
//
// Shows:  a matrix product scheduled by hand, primitive by primitive; schedules as data; the errors of illegal
//         steps; tiles that do not divide the extents; and a search space, which is a schedule with open choices.
// Run:    build/release/examples/02_what_is_a_schedule
// Expect: the loop nest after each step. Nothing is compiled or timed, so every run prints the same. The
//         program fails if a schedule changes the result.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/loops/explain.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/scheduled.hpp"

using namespace tunewright;
using schedule::Schedule;
using schedule::ScheduleBuilder;

namespace {

void show(const char* title, const std::string& text) { std::printf("-- %s\n%s\n", title, text.c_str()); }

/// The result of a schedule, computed statement by statement. A and B are small integers, so that sums are exact
/// in any order.
std::vector<double> result_of(const Schedule& schedule) {
  const loops::LoopNest nest = loops::lower(schedule);
  std::vector<std::vector<double>> arguments;
  for (program::TensorId id = 0; id < schedule.graph->size(); ++id) {
    std::size_t size = 1;
    for (const std::int64_t extent : schedule.graph->op(id).shape()) size *= static_cast<std::size_t>(extent);
    std::vector<double>& values = arguments.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>((7 * i + id) % 5) - 2;
  }
  loops::interpret(nest, arguments);
  return arguments.back();
}

// [snippet-begin by_hand]
/// A register tile of 4 x 16 sums, accumulated in a local buffer and copied out once.
Schedule by_hand(std::shared_ptr<const program::ComputeGraph> graph) {
  ScheduleBuilder s(std::move(graph));
  const auto c = s.stage("matmul");
  const auto sums = s.cache_write(c);  // the sums; `c` now only copies them
  const auto i = s.split(c, 0, {4});   // splits axis 0, the rows, into [i.0 | 4]
  const auto j = s.split(c, 1, {16});  // splits axis 1, the columns, into [j.0 | 16]
  s.reorder(c, {i[0], j[0], i[1], j[1]});
  s.compute_at(sums, c, j[0]);  // one tile of sums for each tile of the result
  s.reorder(sums, {2, 0, 1});   // axis 2, the reduction, outermost: all sums of the tile advance together
  s.parallel(c, i[0]);
  s.vectorize(c, j[1]);
  s.unroll(sums, 0);
  s.vectorize(sums, 1);
  return s.schedule();
}
// [snippet-end by_hand]

// [snippet-begin space]
/// The same schedule with open tile sizes: at most 8 rows and 64 columns, and no more than the registers can
/// hold.
const auto with_choices = [](ScheduleBuilder& s) {
  const auto c = s.stage("matmul");
  const auto sums = s.cache_write(c);
  const auto i = s.choose_tile(c, 0, 1, 8, schedule::LoopKind::Unrolled);
  const auto j = s.choose_tile(c, 1, 1, 64, schedule::LoopKind::Vectorized);
  s.reorder(c, {i[0], j[0], i[1], j[1]});
  s.compute_at(sums, c, j[0]);
  s.reorder(sums, {2, 0, 1});
  s.parallel(c, i[0]);
  s.vectorize(c, j[1]);
  s.unroll(sums, 0);
  s.vectorize(sums, 1);
};
// [snippet-end space]

/// The choices of a configuration as text.
std::string choices(const Schedule& schedule) {
  std::string text;
  for (const schedule::Step& step : schedule.steps) {
    const auto* split = std::get_if<schedule::Split>(&step);
    if (split != nullptr) text += (text.empty() ? "" : " x ") + std::to_string(split->factors.back());
  }
  return text;
}

}  // namespace

int main() {
  // WHAT to compute: an expression over named axes.
  const auto graph = program::operators::matmul_graph({.m = 32, .n = 64, .k = 48});

  // HOW to compute it: a graph and a list of steps. Without steps, a schedule is plain loops.
  const Schedule plain{graph, {}};
  show("no steps", explain(plain));

  // [snippet-begin tiles]
  ScheduleBuilder tiles(graph);
  const auto c = tiles.stage("matmul");
  const auto i = tiles.split(c, 0, {4});
  const auto j = tiles.split(c, 1, {16});
  tiles.reorder(c, {i[0], j[0], 2, i[1], j[1]});
  // [snippet-end tiles]
  show("split and reordered: tiles of 4 x 16", explain(tiles.schedule()));

  // An illegal step throws where it is called, with a fault that identifies the error.
  // [snippet-begin error]
  schedule::ScheduleFault fault{};
  try {
    ScheduleBuilder late = tiles;
    late.cache_write(c);
  } catch (const schedule::ScheduleError& error) {
    fault = error.fault();
    show("a step that comes too late", error.what());
  }
  // [snippet-end error]

  const Schedule tuned = by_hand(graph);
  show("a register tile, parallel and vectorized", explain(tuned));

  // Journals store the list of steps, mutations change it, and other tasks can reuse it.
  const std::string text = schedule::to_json(tuned.steps);
  show("its steps", text);
  const Schedule again{graph, schedule::steps_from_json(text)};

  // Tiles need not divide the extents. `if` marks guards that are required; `where` marks guards that only save
  // work, because the tile has room for the excess. Guards are hoisted, so that full tiles run without them.
  const auto odd_graph = program::operators::matmul_graph({.m = 30, .n = 64, .k = 48});
  const Schedule odd = by_hand(odd_graph);
  show("30 rows in tiles of 4", explain(odd));
  show("as it is compiled", loops::to_string(loops::partition(loops::lower(odd))));

  // [snippet-begin search]
  const auto space = spaces::scheduled(with_choices);
  const Task task = program::make_task("matmul 32x64x48", graph, Target{.isa = Isa::Avx2});
  Rng rng(1);
  std::string drawn;
  for (int n = 0; n < 4; ++n) {
    const auto config = space.sample(task, rng);
    const auto neighbour = space.mutate(task, *config, rng);
    drawn += choices(*config) + (neighbour ? ", a neighbour: " + choices(*neighbour) : std::string()) + "\n";
  }
  // [snippet-end search]
  show("tiles drawn from a space", drawn);

  const auto drawn_config = space.sample(task, rng);
  const bool same = result_of(plain) == result_of(tiles.schedule()) && result_of(plain) == result_of(tuned) &&
                    result_of(plain) == result_of(*drawn_config) &&
                    result_of(Schedule{odd_graph, {}}) == result_of(odd) && again == tuned &&
                    fault == schedule::ScheduleFault::AlreadyScheduled;
  std::printf("all schedules compute the same: %s\n", same ? "yes" : "no");
  return same ? 0 : 1;
}
