// SPDX-License-Identifier: Apache-2.0
//
// Lesson 8: a GPU kernel, step by step.
//
// Shows:  a matrix product for a GPU in four steps: one thread per element, one tile per thread, operands
//         through shared memory, virtual threads; the loop nest after each step; how a GPU program
//         is checked without a GPU, including races; its CUDA code; and its measurement where there is a GPU.
// Run:    build/release/examples/08_a_gpu_kernel
// Expect: the four versions with their times on an analytic V100, then the time on a device, or a message that there
//         is none. The program fails if a version computes a wrong result, or if a race is not detected.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/explain.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/loops/simt.hpp"
#include "tunewright/measurers/nvrtc.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/schedule.hpp"

using namespace tunewright;
using schedule::IterId;
using schedule::LoopKind;
using schedule::Schedule;
using schedule::ScheduleBuilder;
using schedule::Scope;
using schedule::TensorId;

namespace {

void show(const char* title, const std::string& text) { std::printf("-- %s\n%s\n", title, text.c_str()); }

// [snippet-begin thread_an_element]
/// One block of threads per tile of 8 x 32 elements, one thread per element.
void thread_an_element(ScheduleBuilder& s) {
  const TensorId c = s.stage("matmul");
  const auto i = s.split(c, 0, {8});
  const auto j = s.split(c, 1, {32});
  s.reorder(c, {i[0], j[0], i[1], j[1]});
  s.bind(c, s.fuse(c, {i[0], j[0]}), LoopKind::BlockX);
  s.bind(c, s.fuse(c, {i[1], j[1]}), LoopKind::ThreadX);
}
// [snippet-end thread_an_element]

struct Tiles {
  TensorId sums = 0;         ///< the accumulators of a thread, in its registers
  IterId k_outer = 0;        ///< loop over steps of 8 along the reduction
  std::int64_t threads = 0;  ///< threads per block
};

/// A thread computes 4 x 4 elements and uses each loaded value four times. With virtual threads, the columns
/// of a thread are two distant pairs, so that neighbouring threads read neighbouring words.
Tiles tile_a_thread(ScheduleBuilder& s, bool virtual_threads = false) {
  const TensorId c = s.stage("matmul");
  const TensorId sums = s.cache_write(c, Scope::Local);
  // Rows and columns: [block | virtual thread | thread | within a thread].
  const auto i = s.split(c, 0, {1, 8, 4});
  const auto j = virtual_threads ? s.split(c, 1, {2, 16, 2}) : s.split(c, 1, {1, 16, 4});
  s.reorder(c, {i[0], j[0], i[1], j[1], i[2], j[2], i[3], j[3]});
  s.bind(c, s.fuse(c, {i[0], j[0]}), LoopKind::BlockX);
  s.bind(c, s.fuse(c, {i[1], j[1]}), LoopKind::VirtualThread);
  const IterId thread = s.fuse(c, {i[2], j[2]});
  s.bind(c, thread, LoopKind::ThreadX);
  s.compute_at(sums, c, thread);
  const auto k = s.split(sums, 2, {8});
  s.reorder(sums, {k[0], k[1], 0, 1});
  s.unroll(sums, 0);
  s.unroll(sums, 1);
  return {sums, k[0], 8 * 16};
}

// [snippet-begin shared]
/// The threads of a block together fetch the operands for 8 steps of the reduction, two elements each at a time.
void through_shared_memory(ScheduleBuilder& s, const Tiles& tiles) {
  for (const TensorId operand : {s.stage("A"), s.stage("B")}) {
    const TensorId copy = s.cache_read(operand, tiles.sums, Scope::Shared);
    s.compute_at(copy, tiles.sums, tiles.k_outer);
    const auto parts = s.split(copy, s.fuse(copy, {0, 1}), {tiles.threads, 2});
    s.bind(copy, parts[1], LoopKind::ThreadX);
    s.vectorize(copy, parts[2]);
  }
}
// [snippet-end shared]

struct Version {
  const char* title;
  std::function<void(ScheduleBuilder&)> steps;
};

std::vector<Version> versions() {
  return {{"a thread an element", thread_an_element},
          {"a tile of 4 x 4 elements a thread", [](ScheduleBuilder& s) { tile_a_thread(s); }},
          {"operands through shared memory", [](ScheduleBuilder& s) { through_shared_memory(s, tile_a_thread(s)); }},
          {"virtual threads", [](ScheduleBuilder& s) { through_shared_memory(s, tile_a_thread(s, true)); }}};
}

Schedule scheduled(const Version& version, std::int64_t m, std::int64_t n, std::int64_t k) {
  ScheduleBuilder s(program::operators::matmul_graph({.m = m, .n = n, .k = k}));
  version.steps(s);
  return s.schedule();
}

/// Small integers, so that sums are exact in any order.
std::vector<std::vector<double>> arguments_of(const Schedule& schedule) {
  std::vector<std::vector<double>> arguments;
  for (program::TensorId id = 0; id < schedule.graph->size(); ++id) {
    std::size_t size = 1;
    for (const std::int64_t extent : schedule.graph->op(id).shape()) size *= static_cast<std::size_t>(extent);
    std::vector<double>& values = arguments.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>((7 * i + id) % 5) - 2;
  }
  return arguments;
}

/// Runs blocks, threads and barriers on this CPU as a device would.
// [snippet-begin simt]
std::vector<double> as_a_device_runs_it(const Schedule& schedule) {
  auto arguments = arguments_of(schedule);
  loops::run_simt(loops::to_device(loops::lower(schedule)), arguments);
  return arguments.back();
}
// [snippet-end simt]

std::vector<double> expected(const Schedule& schedule) {
  auto arguments = arguments_of(schedule);
  loops::interpret(loops::lower(Schedule{schedule.graph, {}}), arguments);
  return arguments.back();
}

/// Removes the barriers, which no schedule can do.
void drop_barriers(loops::Body& body) {
  std::erase_if(body, [](const loops::Node& node) { return std::holds_alternative<loops::Barrier>(node.content); });
  for (loops::Node& node : body) {
    if (auto* loop = std::get_if<loops::Loop>(&node.content)) drop_barriers(loop->body);
  }
}

}  // namespace

int main() {
  bool as_expected = true;
  const Target v100 = gpu_target("V100");
  const measurers::Simulated machine;
  double slowest = 0, fastest = 0;
  for (const Version& version : versions()) {
    // No tile divides 30 x 70: guards disable the excess threads.
    const Schedule odd = scheduled(version, 30, 70, 20);
    as_expected = as_expected && as_a_device_runs_it(odd) == expected(odd);
    const double microseconds = 1e6 * machine.latency(loops::lower(scheduled(version, 1024, 1024, 1024)), v100).count();
    if (slowest == 0) slowest = microseconds;
    fastest = microseconds;
    std::printf("%-36s %8.1f us on the simulated V100\n", version.title, microseconds);
  }
  std::printf("\n");

  // A raw nest has the bound loops; the device form adds barriers and moves virtual threads
  // inwards, each with its own copy of the sums.
  const Schedule last = scheduled(versions().back(), 64, 128, 32);
  show("the last version", explain(last));
  const loops::LoopNest device = loops::to_device(loops::lower(last));
  show("as a device runs it", loops::to_string(device));

  // A missing barrier is detected on any machine.
  // [snippet-begin race]
  loops::LoopNest hasty = device;
  drop_barriers(hasty.body);
  std::string race = "not noticed";
  try {
    auto arguments = arguments_of(last);
    loops::run_simt(hasty, arguments);
  } catch (const loops::InterpretError& error) {
    race = error.what();
  }
  // [snippet-end race]
  show("without its barriers", race);

  show("the CUDA it becomes", codegen::to_cuda(loops::lower(last)).source);

  // [snippet-begin measure]
  measurers::Nvrtc gpu;
  if (gpu.available()) {
    const Schedule large = scheduled(versions().back(), 1024, 1024, 1024);
    const Task task = program::make_task("matmul 1024", large.graph, gpu.target());
    const std::vector<loops::LoopNest> nests{loops::lower(large)};
    const Outcome outcome = gpu.measure(task, nests)[0];
    std::printf("%s: %.1f us\n", gpu.target().name.c_str(), 1e6 * cost_s(outcome));
    as_expected = as_expected && outcome.valid();
  } else {
    std::printf("nothing was measured: %s\n", gpu.why_unavailable().c_str());
  }
  // [snippet-end measure]

  as_expected = as_expected && race != "not noticed" && fastest < slowest / 4;
  std::printf("all versions compute the same, and the missing barrier was noticed: %s\n", as_expected ? "yes" : "no");
  return as_expected ? 0 : 1;
}
