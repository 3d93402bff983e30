// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/nvrtc.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;

/// What kernels of random schedules amount to. Kernels may use too much of something; they may not be wrong.
struct Tally {
  std::size_t right = 0, too_large = 0, wrong = 0;
  std::map<std::string, std::size_t> by_instruction;  ///< of the right ones

  void count(const Task& task, const std::vector<schedule::Schedule>& schedules, const std::vector<Outcome>& outcomes) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      std::string instruction = "no tensor instruction";
      for (const schedule::Step& step : schedules[i].steps) {
        if (const auto* by = std::get_if<schedule::Tensorize>(&step)) instruction = by->intrinsic;
      }
      if (outcomes[i].valid()) {
        ++right;
        ++by_instruction[instruction];
        continue;
      }
      const Failure& failure = *outcomes[i].failure();
      if (failure.fault == Fault::InvalidSchedule || failure.fault == Fault::CompileTimeout) {
        ++too_large;
        continue;
      }
      ++wrong;
      INFO(task.name << ", " << instruction << ": " << name(failure.fault) << ": " << failure.detail);
      CHECK(false);
    }
  }
};

std::vector<schedule::Schedule> drawn(const spaces::MultiLevelTiling& space, const Task& task, std::size_t count,
                                      Rng& rng) {
  std::vector<schedule::Schedule> schedules;
  for (std::size_t draw = 0; draw < 4 * count && schedules.size() < count; ++draw) {
    if (auto schedule = space.sample(task, rng)) schedules.push_back(std::move(*schedule));
  }
  return schedules;
}

void measure(measurers::Nvrtc& gpu, const Task& task, const std::vector<schedule::Schedule>& schedules, Tally& tally) {
  std::vector<loops::LoopNest> nests;
  for (const schedule::Schedule& each : schedules) nests.push_back(loops::lower(each));
  tally.count(task, schedules, gpu.measure(task, nests));
}

/// One repeat each: results are of interest here, not times.
measurers::Nvrtc quick_gpu() {
  measurers::Nvrtc gpu;
  gpu.protocol.repeats_min = gpu.protocol.repeats_max = 1;
  gpu.protocol.min_repeat_seconds = 0;
  return gpu;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("random schedules of every operator are right on a device") {
    measurers::Nvrtc gpu = quick_gpu();
    if (!gpu.available()) {
      MESSAGE("skipped: no device: " << gpu.why_unavailable());
      return;
    }
    const spaces::MultiLevelTiling space;
    const Target target = gpu.target();
    Tally tally;
    for (const test::Workload& workload : test::workloads()) {
      for (std::uint64_t seed = 0; seed < 2; ++seed) {
        Rng rng(seed);
        const Task task = program::make_task(workload.name, workload.make(rng), target);
        measure(gpu, task, drawn(space, task, 12, rng), tally);
      }
    }
    MESSAGE(tally.right << " right, " << tally.too_large << " too large, " << tally.wrong << " wrong");
    CHECK(tally.right > 400);
    CHECK(tally.wrong == 0);
  }

  TEST_CASE("products by each tensor instruction are right on a device") {
    measurers::Nvrtc gpu = quick_gpu();
    if (!gpu.available()) {
      MESSAGE("skipped: no device: " << gpu.why_unavailable());
      return;
    }
    using program::ScalarType;
    const spaces::MultiLevelTiling space;
    const Target target = gpu.target();
    Tally tally;
    for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8, ScalarType::UInt8}) {
      for (const bool transposed : {false, true}) {
        for (const auto& [m, n, k] : {std::array{256, 256, 128}, std::array{200, 264, 72}}) {
          const Task task = program::make_task(
              "product of " + std::string(program::name(type)),
              program::operators::matmul_graph(
                  {.m = m, .n = n, .k = k, .transpose_a = transposed, .transpose_b = transposed, .type = type}),
              target);
          Rng rng(1);
          measure(gpu, task, drawn(space, task, 24, rng), tally);
        }
      }
    }
    for (const auto& [instruction, count] : tally.by_instruction) MESSAGE(instruction << ": " << count << " right");
    MESSAGE(tally.too_large << " too large, " << tally.wrong << " wrong");
    CHECK(tally.wrong == 0);
    CHECK(tally.by_instruction.size() > (target.tensor_units == 0 ? 0U : 1U));
  }

  TEST_CASE("windows of images in swizzled rows are right on a device, whatever row they begin with") {
    measurers::Nvrtc gpu = quick_gpu();
    if (!gpu.available()) {
      MESSAGE("skipped: no device: " << gpu.why_unavailable());
      return;
    }
    if (!gpu.target().multiplies_by_warp_groups()) return;
    using program::ScalarType;
    spaces::MultiLevelTiling space;
    space.min_utilisation = 0;  // of a device for which this is little work
    Tally tally;
    for (const auto& [type, channels] : {std::pair(ScalarType::Float16, 64), std::pair(ScalarType::Int8, 128)}) {
      auto graph = std::make_shared<program::ComputeGraph>();
      const auto x = graph->input("x", {1, 13, 70, channels}, type);
      const auto w = graph->constant("w", {3, 3, channels, 128}, type);
      program::operators::conv2d(*graph, x, w, {.padding = 1});
      const Task task = program::make_task("convolution", graph, gpu.target());
      Rng rng(1);
      std::vector<schedule::Schedule> swizzled;
      for (int draw = 0; draw < 2000 && swizzled.size() < 12; ++draw) {
        std::optional<schedule::Schedule> each = space.sample(task, rng);
        if (!each) continue;
        const std::vector<loops::Buffer> buffers = loops::lower(*each).buffers;
        if (std::any_of(buffers.begin(), buffers.end(), [](const loops::Buffer& b) { return b.swizzled; }))
          swizzled.push_back(std::move(*each));
      }
      measure(gpu, task, swizzled, tally);
    }
    for (const auto& [instruction, count] : tally.by_instruction) MESSAGE(instruction << ": " << count << " right");
    CHECK(tally.right + tally.too_large == 24);
    CHECK(tally.wrong == 0);
  }
}
