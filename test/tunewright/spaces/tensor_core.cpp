// SPDX-License-Identifier: Apache-2.0
// Sketches with tensor instructions of GPUs: which products get them, in which way, and what may be chosen.
#include "tunewright/spaces/tiling/tensor_core.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"
#include "tunewright/spaces/decisions/warp_tile.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using program::ScalarType;
using spaces::decisions::WarpTile;
using spaces::tiling::gpu::all_mma_axes;
using Graph = std::shared_ptr<const program::ComputeGraph>;

Graph product(std::int64_t m, std::int64_t n, std::int64_t k, ScalarType type) {
  return ops::matmul_graph({.m = m, .n = n, .k = k, .type = type});
}
/// The sketch with a tensor instruction, or null.
const schedule::Schedule* tensorized(const Graph& graph, const char* device) {
  static const spaces::MultiLevelTiling space;
  const auto& all = space.sketches(program::make_task("test", graph, gpu_target(device)));
  const auto found = std::find_if(all.begin(), all.end(), [](const schedule::Schedule& sketch) {
    return std::any_of(sketch.steps.begin(), sketch.steps.end(),
                       [](const auto& step) { return std::holds_alternative<schedule::Tensorize>(step); });
  });
  return found == all.end() ? nullptr : &*found;
}
template <class S>
std::ptrdiff_t count(const schedule::Schedule& sketch) {
  return std::count_if(sketch.steps.begin(), sketch.steps.end(),
                       [](const auto& step) { return std::holds_alternative<S>(step); });
}

}  // namespace

TEST_CASE("products of types that a device's units multiply get a sketch for each instruction, beside the other") {
  const spaces::MultiLevelTiling space;
  const auto names = [&](const Graph& graph, const char* device) {
    std::vector<std::string> found;
    for (const schedule::Schedule& sketch : space.sketches(program::make_task("t", graph, gpu_target(device)))) {
      std::string name = "none";
      for (const schedule::Step& step : sketch.steps) {
        if (const auto* by = std::get_if<schedule::Tensorize>(&step)) name = by->intrinsic;
      }
      found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    // Without tensor units there may be several, which split the reduction or not.
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names(product(512, 512, 512, ScalarType::Float16), "A100") == Names{"mma_fp16", "none", "wmma_fp16"});
  CHECK(names(product(512, 512, 512, ScalarType::Float16), "V100") == Names{"none", "wmma_fp16"});
  CHECK(names(product(512, 512, 512, ScalarType::Float16), "H100") ==
        Names{"mma_fp16", "none", "wgmma_fp16_n128", "wgmma_fp16_n256", "wgmma_fp16_n64", "wmma_fp16"});
  // A quarter of the work at least: 20 of 64 rows with 96 columns of 128 are less.
  CHECK(names(product(20, 96, 512, ScalarType::BFloat16), "H200") == Names{"mma_bf16", "none", "wmma_bf16"});
  CHECK(names(product(40, 96, 512, ScalarType::BFloat16), "H200") ==
        Names{"mma_bf16", "none", "wgmma_bf16_n128", "wgmma_bf16_n64", "wmma_bf16"});
  CHECK(names(product(512, 512, 512, ScalarType::Int8), "T4") == Names{"mma_int8", "none", "wmma_int8"});
  // wmma multiplies no bytes with a sign by others.
  auto mixed = std::make_shared<program::ComputeGraph>();
  ops::matmul(*mixed, mixed->input("A", {64, 64}, ScalarType::UInt8), mixed->input("B", {64, 64}, ScalarType::Int8));
  CHECK(names(mixed, "A100") == Names{"mma_int8", "none"});
  CHECK(tensorized(product(512, 512, 512, ScalarType::Float16), "V100") != nullptr);
  CHECK(tensorized(product(512, 512, 512, ScalarType::Int8), "T4") != nullptr);
  CHECK(tensorized(product(512, 512, 512, ScalarType::BFloat16), "Orin") != nullptr);
  CHECK(tensorized(product(512, 512, 512, ScalarType::Int8), "V100") == nullptr);
  CHECK(tensorized(product(512, 512, 512, ScalarType::BFloat16), "T4") == nullptr);
  CHECK(tensorized(product(512, 512, 512, ScalarType::Float32), "H100") == nullptr);
  CHECK(tensorized(product(512, 512, 512, ScalarType::Float16), "K80") == nullptr);
  // A single row would leave 15 of 16 idle.
  CHECK(tensorized(product(1, 512, 512, ScalarType::Float16), "H100") == nullptr);
}

TEST_CASE("only what 16 does not divide is padded; what reads the sums takes them from fragments") {
  const schedule::Schedule* whole = tensorized(product(512, 512, 512, ScalarType::Float16), "A100");
  const schedule::Schedule* odd = tensorized(product(500, 512, 512, ScalarType::Float16), "A100");
  REQUIRE(whole != nullptr);
  REQUIRE(odd != nullptr);
  CHECK(count<schedule::Pad>(*whole) == 0);
  CHECK(count<schedule::Pad>(*odd) == 1);
  auto g = std::make_shared<program::ComputeGraph>();
  const auto y =
      ops::matmul(*g, g->input("A", {64, 64}, ScalarType::Float16), g->input("B", {64, 64}, ScalarType::Float16));
  ops::cast(*g, ops::relu(*g, y), ScalarType::Float16);
  const schedule::Schedule* fused = tensorized(g, "A100");
  REQUIRE(fused != nullptr);
  const loops::LoopNest nest = loops::lower(*fused);
  CHECK(nest.body.size() == 1);  // one kernel
}

TEST_CASE("rows and columns of a convolution: the image axis that fills instructions best, and its channels") {
  const auto conv = [](std::int64_t images, std::int64_t size) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {images, size, size, 64}, ScalarType::Float16);
    ops::conv2d(*g, x, g->constant("w", {3, 3, 64, 32}, ScalarType::Float16), {});
    return g;
  };
  const Target device = gpu_target("A100");
  // Axes n, h, w, c | rh, rw, rc. A 3 x 3 window leaves 14 of 16 rows, columns and channels as they were.
  const auto few = all_mma_axes(conv(1, 16)->op(2), device);
  REQUIRE(few.size() == 2);
  for (const auto& each : few) {
    CHECK(each.row == 2);
    CHECK(each.column == 3);
    CHECK(each.depth == 6);
    CHECK(each.a == 0);
    CHECK(each.b == 1);
  }
  CHECK(all_mma_axes(conv(32, 16)->op(2), device).at(0).row == 0);  // 32 images fill them
  CHECK(all_mma_axes(conv(1, 5)->op(2), device).empty());           // 3 of 16
}

TEST_CASE("rows of core matrices follow one another: not those of a convolution that steps over some") {
  const auto conv = [](std::int64_t stride) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {1, 16, 130, 64}, ScalarType::Float16);
    ops::conv2d(*g, x, g->constant("w", {3, 3, 64, 64}, ScalarType::Float16), {.stride = stride});
    return g;
  };
  const auto by_warp_groups = [&](std::int64_t stride) {
    const auto products = all_mma_axes(conv(stride)->op(2), gpu_target("H100"));
    return std::count_if(products.begin(), products.end(),
                         [](const auto& product) { return product.intrinsic->by_warp_group(); });
  };
  CHECK(by_warp_groups(1) == 3);
  CHECK(by_warp_groups(2) == 0);
}

TEST_CASE("candidates of warp groups have registers for their sums: half the columns, a thread") {
  using spaces::decisions::max_fragments;
  using spaces::decisions::max_warps;
  const Target device = gpu_target("H100");
  const auto& narrow = *schedule::find_intrinsic("wgmma_fp16_n64");
  const auto& wide = *schedule::find_intrinsic("wgmma_fp16_n256");
  CHECK(max_warps(narrow, device) == 4);         // of 16 warps
  CHECK(max_warps(wide, device) == 2);           // 65536 / (3 * 128) is 170, five eighths of which are no 128
  CHECK(max_fragments(narrow, device, 1) == 4);  // five eighths of 255 are 159
  CHECK(max_fragments(narrow, device, 4) == 2);  // five eighths of 128 are 80
  CHECK(max_fragments(wide, device, 2) == 1);
}

TEST_CASE("the instruction of a tile is its stage's, if that is one of GPUs") {
  const auto instruction = [](const char* name, schedule::TensorId stage) {
    std::vector<schedule::Step> steps{schedule::Tensorize{.stage = stage, .iter = 0, .intrinsic = name}};
    return spaces::decisions::warp_tile_of(steps, 1).intrinsic->name;
  };
  CHECK(instruction("wgmma_fp16_n128", 1) == "wgmma_fp16_n128");
  for (const char* other : {"avx512_vnni", "no_instruction"}) CHECK(instruction(other, 1) == "wmma_fp16");
  CHECK(instruction("wgmma_fp16_n128", 2) == "wmma_fp16");
}

TEST_CASE("candidates keep to the warps and registers of the target, and mutate") {
  const spaces::MultiLevelTiling space;
  const Graph graph = product(1024, 768, 512, ScalarType::Float16);
  const Task task = program::make_task("test", graph, gpu_target("A100"));
  Rng rng(5);
  std::size_t changed = 0, seen = 0;
  for (int draw = 0; draw < 60; ++draw) {
    auto config = space.sample(task, rng);
    REQUIRE(config);
    if (count<schedule::Tensorize>(*config) == 0) continue;
    ++seen;
    const auto stage =
        std::get<schedule::Tensorize>(*std::find_if(config->steps.begin(), config->steps.end(), [](const auto& step) {
          return std::holds_alternative<schedule::Tensorize>(step);
        })).stage;
    const WarpTile tile = spaces::decisions::warp_tile_of(config->steps, stage);
    REQUIRE(tile.axes.size() == 2);
    CHECK(tile.reductions.size() == 1);
    CHECK(spaces::decisions::fits(tile, task.target));
    CHECK(tile.product(spaces::decisions::Warps) <= 16);
    // 255 registers a thread, five eighths of them for sums, eight a fragment: 19.
    CHECK(tile.product(spaces::decisions::Fragments) <= 19);
    if (auto mutant = space.mutate(task, *config, rng)) {
      ++changed;
      CHECK(space.key(*mutant) != space.key(*config));
      const WarpTile changed_tile = spaces::decisions::warp_tile_of(mutant->steps, stage);
      REQUIRE(changed_tile.axes.size() == 2);
      CHECK(spaces::decisions::fits(changed_tile, task.target));
    }
    const auto again = space.decode(task, space.encode(*config));
    REQUIRE(again.has_value());
    CHECK(again->steps == config->steps);
  }
  CHECK(seen > 15);
  CHECK(changed > seen / 2);
}

TEST_CASE("draws for tensor units favour many fragments, near to a square, wide copies and rows apart") {
  const spaces::MultiLevelTiling space;
  const Graph graph = product(4096, 4096, 4096, ScalarType::Float16);
  const Task task = program::make_task("test", graph, gpu_target("A100"));
  Rng rng(11);
  int seen = 0, large = 0, wide = 0, apart = 0, copies = 0;
  for (int draw = 0; draw < 400; ++draw) {
    auto config = space.sample(task, rng);
    REQUIRE(config);
    const auto by = std::find_if(config->steps.begin(), config->steps.end(),
                                 [](const auto& step) { return std::holds_alternative<schedule::Tensorize>(step); });
    if (by == config->steps.end()) continue;
    ++seen;
    using spaces::decisions::Fragments;
    const WarpTile tile = spaces::decisions::warp_tile_of(config->steps, std::get<schedule::Tensorize>(*by).stage);
    large +=
        tile.product(Fragments) >= 8 && tile.axes[0]->factors[Fragments] > 1 && tile.axes[1]->factors[Fragments] > 1;
    for (const schedule::Step& step : config->steps) {
      const auto* split = std::get_if<schedule::Split>(&step);
      const bool vector = split != nullptr && split->inner == schedule::LoopKind::Vectorized;
      if (vector && spaces::decisions::is_open_split(*split)) {
        ++copies;
        wide += split->factors[0] == 8;
      }
      const auto* layout = std::get_if<schedule::TransformLayout>(&step);
      if (layout != nullptr) apart += layout->padding == 1;
    }
  }
  REQUIRE(seen > 200);
  REQUIRE(copies == 2 * seen);
  // Three quarters have 8 fragments or 16, and of these about four in five several rows and columns; of widths 1, 2, 4
  // and 8 the last is drawn 8 times of 15; rows are apart in three quarters and half of the rest.
  CHECK(large > seen / 3);
  CHECK(wide > copies * 0.46);
  CHECK(wide < copies * 0.62);
  CHECK(apart > copies * 0.8);
  CHECK(apart < copies);
}
