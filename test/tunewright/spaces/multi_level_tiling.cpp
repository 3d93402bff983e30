// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/multi_level_tiling.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/attention.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/pool.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/utilisation.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using spaces::MultiLevelTiling;

template <class Fill>
Task task_of(const Fill& fill, unsigned threads = 2) {
  auto g = std::make_shared<program::ComputeGraph>();
  fill(*g);
  Target target;
  target.isa = Isa::Avx2;
  target.threads = threads;
  return program::make_task("test", std::move(g), target);
}

/// An operand whose last axis no other one can be merged with.
program::Tensor with_bias(program::ComputeGraph& g, const std::vector<std::int64_t>& extents) {
  return ops::bias_add(g, g.input("x", extents), g.constant("bias", {extents.back()}));
}

Task matmul(std::int64_t m = 64, std::int64_t n = 64, std::int64_t k = 32) {
  return task_of([=](auto& g) {
    const auto a = g.input("A", {m, k});
    const auto b = g.constant("B", {k, n});
    ops::matmul(g, a, b);
  });
}

/// How many steps of kind `S` a sketch has.
template <class S>
std::ptrdiff_t count(const schedule::Schedule& sketch) {
  return std::count_if(sketch.steps.begin(), sketch.steps.end(),
                       [](const schedule::Step& step) { return std::holds_alternative<S>(step); });
}
template <class S>
std::vector<std::ptrdiff_t> counts(const std::vector<schedule::Schedule>& sketches) {
  std::vector<std::ptrdiff_t> all;
  for (const auto& sketch : sketches) all.push_back(count<S>(sketch));
  std::sort(all.begin(), all.end());
  return all;
}
using Counts = std::vector<std::ptrdiff_t>;

TEST_CASE("tiles of a 1x1 convolution cross the ends of rows, those of windows do not") {
  const MultiLevelTiling space;
  const auto task = [](std::int64_t kernel) {
    return task_of([=](auto& g) {
      const auto x = g.input("x", {1, 14, 14, 32});
      ops::relu(g, ops::conv2d(g, x, g.constant("k", {kernel, kernel, 32, 64}), {.padding = kernel / 2}));
    });
  };
  for (const schedule::Schedule& sketch : space.sketches(task(1))) {
    CHECK(std::holds_alternative<schedule::MergeAxes>(sketch.steps.front()));
    const schedule::State state = schedule::replay(sketch);
    CHECK(state.graph->op(3).shape() == std::vector<std::int64_t>{196, 64});
  }
  for (const schedule::Schedule& sketch : space.sketches(task(3))) CHECK(count<schedule::MergeAxes>(sketch) == 0);
  // Packed weights, text and text back: what a journal holds is what ran.
  Rng rng(3);
  const Task pixels = task(1);
  const auto drawn = space.sample(pixels, rng);
  REQUIRE(drawn.has_value());
  const auto decoded = space.decode(pixels, space.encode(*drawn));
  REQUIRE(decoded.has_value());
  CHECK(decoded->steps == drawn->steps);
}

TEST_CASE("matmul: written directly, or accumulated in a tile that is copied out at one of two depths") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(matmul());
  CHECK(sketches.size() == 3);
  CHECK(counts<schedule::CacheWrite>(sketches) == Counts{0, 1, 1});
  CHECK(counts<schedule::FollowSplit>(sketches) == Counts{0, 2, 2});
  CHECK(counts<schedule::Pack>(sketches) == Counts{1, 1, 1});  // B is a constant
  CHECK(counts<schedule::Rfactor>(sketches) == Counts{0, 0, 0});
}

struct ProductOf {
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, constant_b = false;
};
using Orders = std::vector<std::vector<schedule::IterId>>;
/// Orders of axes in the sketches of a task.
Orders orders_in_sketches(const Task& task) {
  const MultiLevelTiling space;
  Orders all;
  for (const schedule::Schedule& sketch : space.sketches(task)) {
    for (const schedule::Step& step : sketch.steps)
      if (const auto* permuted = std::get_if<schedule::PermuteAxes>(&step)) all.push_back(permuted->axes);
  }
  return all;
}
/// Orders of axes in the sketches of a product of inputs, with AVX2: vectors have eight lanes.
Orders permuted_axes(const ProductOf& p, bool with_relu = false) {
  const Task task = task_of([&](auto& g) {
    const auto a = p.transpose_a ? g.input("A", {p.k, p.m}) : g.input("A", {p.m, p.k});
    const std::vector<std::int64_t> shape = p.transpose_b ? std::vector{p.n, p.k} : std::vector{p.k, p.n};
    const auto b = p.constant_b ? g.constant("B", shape) : g.input("B", shape);
    const auto c = ops::matmul(g, a, b, {.transpose_a = p.transpose_a, .transpose_b = p.transpose_b});
    if (with_relu) ops::relu(g, c);
  });
  return orders_in_sketches(task);
}

TEST_CASE("products have another axis in vectors where that transposes fewer elements or fills the lanes") {
  const Orders rows_last{{1, 0}, {1, 0}}, none;  // fused at one of two depths
  // A B^T: 512 * 64 elements of B, or 16 * 64 of A and half of 16 * 512 sums.
  CHECK(permuted_axes({.m = 16, .n = 512, .k = 64, .transpose_b = true}) == rows_last);
  CHECK(permuted_axes({.m = 16, .n = 512, .k = 64, .transpose_b = true}, true) == rows_last);
  // 128 * 64 of B, or 128 * 64 of A and half of 128 * 128 sums.
  CHECK(permuted_axes({.m = 128, .n = 128, .k = 64, .transpose_b = true}) == none);
  CHECK(permuted_axes({.m = 16, .n = 512, .k = 64, .transpose_b = true, .constant_b = true}) == none);
  CHECK(permuted_axes({.m = 7, .n = 512, .k = 64, .transpose_b = true}) == none);  // no vector of rows
  // A^T B^T: 256 * 32 elements of B or 64 * 256 sums, which count half; 256 * 31 or as many sums.
  CHECK(permuted_axes({.m = 64, .n = 256, .k = 32, .transpose_a = true, .transpose_b = true}) == rows_last);
  CHECK(permuted_axes({.m = 64, .n = 256, .k = 31, .transpose_a = true, .transpose_b = true}) == none);
  // A^T B: nothing is transposed, but 10 columns are 16 lanes.
  CHECK(permuted_axes({.m = 64, .n = 10, .k = 64, .transpose_a = true}) == rows_last);
  CHECK(permuted_axes({.m = 64, .n = 15, .k = 64, .transpose_a = true}) == none);
  CHECK(permuted_axes({.m = 64, .n = 10, .k = 64}) == none);
  // Weights of a convolution are packed ahead of time; of 7 columns, 1 of 8 lanes is idle, of 8 none, but with stride 2
  // every vector is two loads.
  const auto of_image = [](std::int64_t width, std::int64_t stride = 1) {
    const Task task = task_of([&](auto& g) {
      const auto x = g.input("x", {1, 8, 9, width});
      ops::conv2d(g, x, g.constant("w", {32, 8, 3, 3}), {.stride = stride, .layout = ops::Layout::ChannelsFirst});
    });
    const Orders orders = orders_in_sketches(task);
    return std::set(orders.begin(), orders.end());
  };
  const std::set<std::vector<schedule::IterId>> channels_last{{0, 2, 3, 1}};
  CHECK(of_image(9) == channels_last);
  CHECK(of_image(10).empty());
  CHECK(of_image(17, 2) == channels_last);
}

TEST_CASE("a product whose rows are in vectors is fused with what reads it point by point") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    const auto c = ops::batch_matmul(g, g.input("A", {3, 16, 64}), g.input("B", {3, 512, 64}), {.transpose_b = true});
    ops::relu(g, c);
  });
  std::size_t transposed = 0;
  for (const schedule::Schedule& sketch : space.sketches(task)) {
    if (count<schedule::PermuteAxes>(sketch) == 0) continue;
    ++transposed;
    CHECK(count<schedule::CacheWrite>(sketch) == 1);
    const schedule::State state = schedule::replay(sketch);
    const schedule::Stage &product = state.stages[2], &relu = state.stages[3], &sums = state.stages[4];
    CHECK(sums.op->shape() == std::vector<std::int64_t>{3, 512, 16});
    CHECK(product.location.kind == schedule::Location::Kind::Inline);
    CHECK(sums.location.stage == 3);
    // Tiles of 8 rows by 8 columns, of which the columns are in vectors.
    const schedule::Iterator& inner = relu.iterators[relu.order.back()];
    CHECK(inner.annotation == schedule::LoopKind::Vectorized);
    CHECK(schedule::iterator_name(relu, relu.order.back()).starts_with("i2"));
    CHECK(schedule::iterator_name(relu, relu.order[relu.order.size() - 2]).starts_with("i1"));
  }
  CHECK(transposed == 2);
}

TEST_CASE("matmul + relu: always fused with its reader") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    const auto a = g.input("A", {64, 32});
    const auto b = g.constant("B", {32, 64});
    ops::relu(g, ops::matmul(g, a, b));
  });
  const auto& sketches = space.sketches(task);
  CHECK(sketches.size() == 2);
  CHECK(counts<schedule::CacheWrite>(sketches) == Counts{0, 0});
  CHECK(counts<schedule::FollowSplit>(sketches) == Counts{2, 2});
  CHECK(counts<schedule::Pack>(sketches) == Counts{1, 1});
}

TEST_CASE("inputs may be copied to where tiles read them; along the vectors the copy is packed") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    const auto a = g.input("A", {64, 32});
    const auto b = g.input("B", {32, 64});
    ops::relu(g, ops::matmul(g, a, b));
  });
  const auto& sketches = space.sketches(task);
  CHECK(sketches.size() == 2);
  CHECK(counts<schedule::CacheRead>(sketches) == Counts{2, 2});
  CHECK(counts<schedule::Pack>(sketches) == Counts{1, 1});  // that of B
}

TEST_CASE("an operand that is stored transposed may be copied in panels along the vectors, too") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    const auto a = g.input("A", {24, 64});
    const auto b = g.input("B", {64, 24});
    ops::relu(g, ops::matmul(g, a, b, {.transpose_a = true, .transpose_b = true}));
  });
  const auto& sketches = space.sketches(task);
  CHECK(counts<schedule::CacheRead>(sketches) == Counts{2, 2});
  CHECK(counts<schedule::Pack>(sketches) == Counts{2, 2});  // both: A has its rows last

  // Where the copy is made, what the product reads of it is one vector, and so is what the copy stores.
  Rng rng(1);
  std::size_t copied = 0;
  for (int draw = 0; draw < 64; ++draw) {
    const auto config = space.sample(task, rng);
    REQUIRE(config);
    const loops::LoopNest nest = space.lower(task, *config);
    const auto copy = std::find_if(nest.buffers.begin(), nest.buffers.end(), [](const loops::Buffer& buffer) {
      return buffer.role == loops::BufferRole::Temporary && buffer.name.find("B") == 0;
    });
    if (copy == nest.buffers.end()) continue;
    ++copied;
    REQUIRE_FALSE(copy->packing.empty());
    CHECK(copy->packing.back().dimension == 0);  // n, which B has first
  }
  CHECK(copied > 8);
}

TEST_CASE("the left operand of A^T B may be copied in panels of a register tile's rows") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    const auto a = g.input("A", {48, 60});
    const auto b = g.input("B", {48, 64});
    ops::relu(g, ops::matmul(g, a, b, {.transpose_a = true}));
  });
  Rng rng(1);
  std::size_t copied = 0;
  std::set<std::ptrdiff_t> parallel_nests;
  for (int draw = 0; draw < 64; ++draw) {
    const auto config = space.sample(task, rng);
    REQUIRE(config);
    const loops::LoopNest nest = space.lower(task, *config);
    const auto copy = std::find_if(nest.buffers.begin(), nest.buffers.end(), [](const loops::Buffer& buffer) {
      return buffer.role == loops::BufferRole::Temporary && buffer.name.find("A") == 0;
    });
    if (copy == nest.buffers.end()) continue;
    ++copied;
    REQUIRE_FALSE(copy->packing.empty());
    const bool has_rows = std::any_of(config->steps.begin(), config->steps.end(), [](const schedule::Step& step) {
      const auto* split = std::get_if<schedule::Split>(&step);
      return split != nullptr && split->inner == schedule::LoopKind::Unrolled && split->factors.back() > 1;
    });
    CHECK(copy->packing.back().dimension == (has_rows ? 1 : 0));  // m, which A has last
    parallel_nests.insert(std::count_if(nest.body.begin(), nest.body.end(), [](const loops::Node& node) {
      const auto* loop = std::get_if<loops::Loop>(&node.content);
      return loop != nullptr && loop->kind == loops::LoopKind::Parallel;
    }));
  }
  CHECK(copied > 8);
  CHECK(parallel_nests.count(1) == 1);  // copied in the tile, by each thread
  CHECK(parallel_nests.count(2) == 1);  // copied once, by all threads
}

TEST_CASE("sizes that no program has, as a journal may name them, are refused or mutated like others") {
  const MultiLevelTiling space;
  Task task = task_of([](auto& g) { ops::matmul(g, g.input("A", {64, 64}), g.input("B", {64, 64})); });
  const auto split = [](std::string_view iter, std::string_view factor, std::string_view extent) {
    return "[\"split\",2," + std::string(iter) + ",[" + std::string(factor) + "]," + std::string(extent) +
           ",64,\"unrolled\"]";
  };
  constexpr std::string_view most_factor = "2147483648", most_extent = "9007199254740992";
  const std::string chain = split("0", most_factor, "64") + "," + split("3", most_factor, "64") + "," +
                            split("5", most_factor, "64") + "," + split("1", most_factor, "64");
  for (const std::string& steps : {chain, split("0", "8", most_extent)}) {
    const auto config = space.decode(task, "[" + steps + "]");
    REQUIRE(config);
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Rng rng(seed);
      if (const auto changed = space.mutate(task, *config, rng)) CHECK_NOTHROW((void)space.lower(task, *changed));
    }
  }
  CHECK_FALSE(space.decode(task, "[" + split("0", "8", "9223372036854775807") + "]"));
}

TEST_CASE("a sum over rows may read several vectors of each") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) { ops::sum(g, g.input("x", {64, 96}), {0}); });
  Rng rng(1);
  std::int64_t widest = 0;
  for (int draw = 0; draw < 32; ++draw) {
    const auto config = space.sample(task, rng);
    REQUIRE(config);
    for (const schedule::Step& step : config->steps) {
      if (const auto* split = std::get_if<schedule::Split>(&step)) widest = std::max(widest, split->factors.back());
    }
  }
  CHECK(widest >= 16);
  CHECK(widest <= 64);
}

TEST_CASE("copying across rows goes by tiles of squares, in blocks of tiles") {
  const MultiLevelTiling space;
  struct Sizes {
    std::vector<std::int64_t> in_tile;
    std::set<std::int64_t> tiles_in_block;
  };
  const auto sizes_of = [&](std::int64_t rows, std::int64_t columns) {
    const Task task = task_of([&](auto& g) {
      const auto x = g.input("x", {columns, rows});
      g.compute("y", {{"i", rows}, {"j", columns}}, [&](auto i) { return x(i[1], i[0]); });
    });
    Rng rng(1);
    Sizes sizes;
    for (int draw = 0; draw < 64; ++draw) {
      const auto config = space.sample(task, rng);
      REQUIRE(config);
      sizes.in_tile.clear();
      for (const schedule::Step& step : config->steps) {
        const auto* split = std::get_if<schedule::Split>(&step);
        if (split == nullptr) continue;
        if (split->max_innermost < 0)
          sizes.in_tile.push_back(split->factors.back());
        else
          sizes.tiles_in_block.insert(split->factors.back());
      }
    }
    return sizes;
  };
  // Eight lanes; rows of y that begin with a cache line are written by lines of 16.
  const Sizes by_lines = sizes_of(96, 64);
  CHECK(by_lines.in_tile == std::vector<std::int64_t>{16, 8});
  CHECK(by_lines.tiles_in_block == std::set<std::int64_t>{1, 2, 3, 4, 6, 12});  // divisors of 12 and of 4
  CHECK(sizes_of(64, 60).in_tile == std::vector<std::int64_t>{8, 8});
}

TEST_CASE("conv2d: as matmul, over four spatial axes") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    const auto x = g.input("x", {1, 16, 16, 8});
    const auto w = g.constant("w", {3, 3, 8, 16});
    ops::conv2d(g, x, w);
  });
  const auto& sketches = space.sketches(task);
  CHECK(sketches.size() == 3);
  CHECK(counts<schedule::FollowSplit>(sketches) == Counts{0, 4, 4});
}

TEST_CASE("padding: stored, or left out of what it does not change") {
  const auto inlined = [](program::ScalarType type, const auto& stage_after_padding, program::TensorId padded = 1) {
    const MultiLevelTiling space;
    const Task task = task_of([&](auto& g) {
      const auto x = g.input("x", {1, 16, 16, 8}, type);
      stage_after_padding(g, x);
    });
    Counts all;
    for (const schedule::Schedule& sketch : space.sketches(task)) {
      all.push_back(std::count_if(sketch.steps.begin(), sketch.steps.end(), [&](const schedule::Step& step) {
        const auto* location = std::get_if<schedule::ComputeLocation>(&step);
        return location != nullptr && location->stage == padded && location->choices.size() == 1 &&
               location->choices[0].kind == schedule::Location::Kind::Inline;
      }));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto convolution = [](auto& g, const auto& x) {
    ops::conv2d(g, x, g.constant("w", {3, 3, 8, 16}, x.type), {.padding = 1});
  };
  CHECK(inlined(program::ScalarType::Float32, convolution, 2) == Counts{0, 0, 0, 1, 1, 1});
  CHECK(inlined(program::ScalarType::BFloat16, convolution, 2) == Counts{0, 0, 0, 1, 1, 1});  // sums of casts
  CHECK(inlined(program::ScalarType::Int32, convolution, 2) == Counts{0, 0, 0, 1, 1, 1});
  const auto product_of_three = [](auto& g, const auto& x) {
    const auto padded = ops::pad(g, x, {.before = {0, 1, 1, 0}, .after = {0, 1, 1, 0}, .name = "padded"});
    const auto w = g.constant("w", {3, 3, 8, 16}), scale = g.constant("scale", {8});
    g.reduce("scaled", {{"n", 1}, {"h", 16}, {"w", 16}, {"c", 16}}, {{"rh", 3}, {"rw", 3}, {"ri", 8}},
             program::Combiner::Sum, [&](auto i, auto r) {
               return padded(i[0], i[1] + r[0], i[2] + r[1], r[2]) * scale(r[2]) * w(r[0], r[1], r[2], i[3]);
             });
  };
  CHECK(inlined(program::ScalarType::Float32, product_of_three) == Counts{0, 0, 0, 1, 1, 1});
  const auto largest = [](auto& g, const auto& x) { ops::max_pool2d(g, x, {.kernel = 3, .padding = 1}); };
  CHECK(inlined(program::ScalarType::Float32, largest) == Counts{0, 1});
  CHECK(inlined(program::ScalarType::Int8, largest) == Counts{0, 1});
  const auto largest_above_zero = [](auto& g, const auto& x) {
    const auto padded = ops::pad(g, x, {.before = {0, 1, 1, 0}, .after = {0, 1, 1, 0}, .name = "padded"});
    ops::max_pool2d(g, padded, {.kernel = 3});
  };
  CHECK(inlined(program::ScalarType::Float32, largest_above_zero) == Counts{0});
}

/// The stages that are computed in a loop of the last one.
std::size_t in_rows_of_the_last(const schedule::Schedule& sketch) {
  const schedule::State state = schedule::replay(sketch);
  const program::TensorId last = state.order.back();
  return static_cast<std::size_t>(std::count_if(state.order.begin(), state.order.end(), [&](program::TensorId id) {
    const schedule::Location& at = state.stages[id].location;
    return at.kind == schedule::Location::Kind::At && at.stage == last;
  }));
}

TEST_CASE("softmax over many rows: a row at a time in one thread, the exponential stored or repeated") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) { ops::softmax(g, g.input("x", {512, 128})); });
  const auto& sketches = space.sketches(task);
  REQUIRE(sketches.size() == 2);
  CHECK(counts<schedule::Rfactor>(sketches) == Counts{2, 2});
  std::vector<std::size_t> inside;
  for (const auto& sketch : sketches) inside.push_back(in_rows_of_the_last(sketch));
  std::sort(inside.begin(), inside.end());
  CHECK(inside == std::vector<std::size_t>{4, 5});  // two reductions in two stages each, and the exponential
}

TEST_CASE("softmax over few rows: by rows, or each reduction plain or factored, where threads may share it") {
  const MultiLevelTiling space;
  const auto rfactors = [&](std::int64_t rows) {
    return counts<schedule::Rfactor>(
        space.sketches(task_of([=](auto& g) { ops::softmax(g, g.input("x", {rows, 128})); })));
  };
  CHECK(rfactors(16) == Counts{2, 2});  // eight for each of the two threads
  CHECK(rfactors(15).size() > 8);
}

TEST_CASE("layer_norm over many rows has one sketch: all of it a row at a time, in vectors") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    ops::layer_norm(g, g.input("x", {4, 7, 509}), g.constant("gamma", {509}), g.constant("beta", {509}));
  });
  const auto& sketches = space.sketches(task);
  REQUIRE(sketches.size() == 1);
  CHECK(in_rows_of_the_last(sketches[0]) == 4);
  Rng rng(5);
  const auto drawn = space.sample(task, rng);
  REQUIRE(drawn.has_value());
  const loops::LoopNest nest = space.lower(task, *drawn);
  REQUIRE(nest.body.size() == 1);  // one loop over rows
  const auto* rows = std::get_if<loops::Loop>(&nest.body[0].content);
  REQUIRE(rows != nullptr);
  CHECK(rows->kind == loops::LoopKind::Parallel);
  CHECK(nest.variables[rows->var].extent == 28);
}

TEST_CASE("what reads a normalised row goes with it") {
  const MultiLevelTiling space;
  const auto relu_of = [&](const auto& rows) {
    return space.sketches(task_of([&](auto& g) { ops::relu(g, rows(g, g.input("x", {512, 128}))); }));
  };
  const auto& normalised = relu_of([](auto& g, const program::Tensor& x) {
    return ops::layer_norm(g, x, g.constant("gamma", {128}), g.constant("beta", {128}));
  });
  REQUIRE(normalised.size() == 1);
  CHECK(in_rows_of_the_last(normalised[0]) == 4);
  const auto& probabilities = relu_of([](auto& g, const program::Tensor& x) { return ops::softmax(g, x); });
  CHECK(std::all_of(probabilities.begin(), probabilities.end(),
                    [](const auto& sketch) { return in_rows_of_the_last(sketch) >= 4; }));
}

/// Whether the output of a sketch has a loop of this kind.
bool has_loop(const schedule::Schedule& sketch, schedule::LoopKind kind) {
  const auto output = static_cast<program::TensorId>(sketch.graph->size() - 1);
  return std::any_of(sketch.steps.begin(), sketch.steps.end(), [&](const schedule::Step& step) {
    const auto* annotated = std::get_if<schedule::Annotate>(&step);
    return annotated != nullptr && annotated->stage == output && annotated->kind == kind;
  });
}

TEST_CASE("an elementwise stage of several broadcast operands is part of its reader, which has vectors and threads") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of([](auto& g) {
    const auto channels = [&](const char* name) { return g.constant(name, {64}); };
    ops::relu(g, ops::batch_norm(g, g.input("x", {28, 28, 64}),
                                 {channels("gamma"), channels("beta"), channels("mean"), channels("variance")}));
  }));
  REQUIRE(sketches.size() == 1);
  CHECK(has_loop(sketches[0], schedule::LoopKind::Parallel));
  CHECK(has_loop(sketches[0], schedule::LoopKind::Vectorized));
}

TEST_CASE("the reader of a product whose terms are factored has vectors and threads") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(
      task_of([](auto& g) { ops::relu(g, ops::matmul(g, g.input("A", {8, 4096}), g.input("B", {4096, 4}))); }));
  std::size_t factored = 0;
  for (const schedule::Schedule& sketch : sketches) {
    if (count<schedule::Rfactor>(sketch) == 0) continue;
    ++factored;
    CHECK(has_loop(sketch, schedule::LoopKind::Parallel));
    CHECK(has_loop(sketch, schedule::LoopKind::Vectorized));
  }
  CHECK(factored >= 2);  // of lanes, and of threads and lanes
}

TEST_CASE("an operand without axes is read where it is") {
  const MultiLevelTiling space;
  const auto& sketches = space.sketches(task_of([](auto& g) {
    const auto factor = g.input("factor", {}), a = g.input("A", {32, 32}), b = g.input("B", {32, 32});
    g.reduce("scaled", {{"i", 32}, {"j", 32}}, {{"k", 32}}, program::Combiner::Sum,
             [&](auto i, auto r) { return factor() * a(i[0], r[0]) * b(r[0], i[1]); });
  }));
  CHECK(
      sketches.size() ==
      space.sketches(task_of([](auto& g) { ops::matmul(g, g.input("A", {32, 32}), g.input("B", {32, 32})); })).size());
}

TEST_CASE("a sum over rows that exceed the second cache may go in streams, and keeps its simple sketch") {
  const MultiLevelTiling space;
  const auto splits = [&](std::int64_t rows, int axis) {
    return counts<schedule::Split>(
        space.sketches(task_of([=](auto& g) { ops::sum(g, g.input("x", {rows, 256}), {axis}); })));
  };
  CHECK(splits(1024, 0) == Counts{1});        // 1 MiB, the second cache of the target
  CHECK(splits(1025, 0) == Counts{1, 2, 4});  // columns, then also terms, then those that threads share and their total
  CHECK(splits(7, 0) == Counts{1});
}

TEST_CASE("threads may share the terms of a vector's product with large data, and of sums with few rows") {
  const MultiLevelTiling space;
  const auto shared = [&](const Task& task) {
    const Counts all = counts<schedule::Rfactor>(space.sketches(task));
    return std::count(all.begin(), all.end(), 1);
  };
  const auto product = [](std::int64_t m, std::int64_t k, std::int64_t n, unsigned threads = 2, bool constant = false,
                          bool relu = false) {
    return task_of(
        [=](auto& g) {
          const auto a = g.input("A", {m, k});
          const auto c = ops::matmul(g, a, constant ? g.constant("B", {k, n}) : g.input("B", {k, n}));
          if (relu) ops::relu(g, c);
        },
        threads);
  };
  CHECK(shared(product(1, 1025, 256)) == 1);
  CHECK(shared(product(1, 1024, 256)) == 0);           // 1 MiB, the second cache of the target
  CHECK(shared(product(2, 1025, 256)) == 0);           // two rows
  CHECK(shared(product(1, 1025, 256, 1)) == 0);        // nobody to share with
  CHECK(shared(product(1, 1025, 256, 2, true)) == 0);  // packed ahead of time
  CHECK(shared(product(1, 1025, 256, 2, false, true)) == 1);
  CHECK(shared(product(1, 128, 8192)) == 1);  // results of 32 KiB, the first cache
  CHECK(shared(product(1, 128, 8200)) == 0);
  CHECK(shared(product(1, 127, 8192)) == 0);  // less than 64 terms a thread
  const auto sum = [](std::vector<std::int64_t> extents, int axis) {
    return task_of([=](auto& g) { ops::sum(g, with_bias(g, extents), {axis}); });
  };
  CHECK(shared(sum({1025, 256}, 0)) == 1);
  CHECK(shared(sum({1, 1025, 256}, 1)) == 1);
  CHECK(shared(sum({2, 1025, 256}, 1)) == 0);  // a row for each thread

  for (const schedule::Schedule& sketch : space.sketches(product(1, 1025, 256))) {
    if (count<schedule::Rfactor>(sketch) == 0) continue;
    const std::string text = loops::to_string(loops::lower(sketch));
    INFO(text);
    CHECK(text.find("matmul.rf: float32[1, 256, 2] packed [2, 1, 256]") != std::string::npos);
  }
}

TEST_CASE("streams go on through the short rows of an output that follow each other in memory") {
  const MultiLevelTiling space;
  const auto fuses = [&](std::vector<std::int64_t> extents, int axis) {
    return counts<schedule::Fuse>(
        space.sketches(task_of([&](auto& g) { ops::sum(g, with_bias(g, extents), {axis}); })));
  };
  const Counts as_axes{1, 1}, as_one_axis{1, 2};  // loops that run in parallel, then also columns
  CHECK(fuses({1025, 6, 64}, 0) == as_one_axis);
  CHECK(fuses({6, 1025, 64}, 1) == as_axes);  // the terms lie between
  CHECK(fuses({1025, 6, 60}, 0) == as_axes);  // vectors would cross the ends of rows
  CHECK(fuses({65, 4, 1024}, 0) == as_axes);  // a row is a page
  CHECK(fuses({1025, 6, 1016}, 0) == as_one_axis);
}

TEST_CASE(
    "where columns do not fill vectors, lanes may have terms of the sum, in the tile of the output or of its reader") {
  const MultiLevelTiling space;
  const auto lanes = [&](std::int64_t n, std::int64_t k, bool relu = false) {
    const Task task = task_of([=](auto& g) {
      const auto c = ops::matmul(g, g.input("A", {64, k}), g.input("B", {k, n}));
      if (relu) ops::relu(g, c);
    });
    return counts<schedule::Rfactor>(space.sketches(task));
  };
  CHECK(lanes(10, 100) == Counts{0, 0, 0, 1, 1});  // 2 vectors of 8: six lanes idle
  CHECK(lanes(10, 100, true) == Counts{0, 0, 1, 1});
  CHECK(lanes(12, 100) == Counts{0, 0, 0});  // a quarter idle
  CHECK(lanes(17, 100) == Counts{0, 0, 0});  // two vectors full
  CHECK(lanes(10, 31) == Counts{0, 0, 0});   // less than four vectors of terms
  CHECK(lanes(1, 100) == Counts{0, 0, 0, 1, 1});
}

TEST_CASE("lanes may have terms where few rows use columns whose terms are contiguous, in batches as well") {
  const MultiLevelTiling space;
  const auto in_lanes = [&](std::vector<std::int64_t> a, std::vector<std::int64_t> b, bool transposed) {
    const Task task = task_of([&](auto& g) {
      const auto x = g.input("A", a), y = g.input("B", b);
      if (a.size() == 2)
        ops::matmul(g, x, y, {.transpose_b = transposed});
      else
        ops::batch_matmul(g, x, y, {.transpose_b = transposed});
    });
    const auto& sketches = space.sketches(task);
    return std::any_of(sketches.begin(), sketches.end(), [](const auto& s) { return count<schedule::Rfactor>(s) > 0; });
  };
  CHECK(in_lanes({1, 64}, {512, 64}, true));
  CHECK(in_lanes({16, 64}, {512, 64}, true));
  CHECK(!in_lanes({17, 64}, {512, 64}, true));
  CHECK(!in_lanes({16, 64}, {64, 512}, false));
  CHECK(in_lanes({40, 4, 64}, {40, 128, 64}, true));  // each batch has columns of its own
  CHECK(!in_lanes({40, 17, 64}, {40, 128, 64}, true));
}

TEST_CASE("heads of attention lie side by side, and their terms are contiguous all the same") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) {
    ops::attention_scores(g, g.input("q", {1, 1, 128}), {2, 64, 0}, g.input("k", {1, 50, 128}), {2, 64, 0});
  });
  CHECK(counts<schedule::Rfactor>(space.sketches(task)).back() == 1);
}

TEST_CASE("lanes of terms read the operand of the columns from a copy, or in place if its terms are contiguous") {
  const MultiLevelTiling space;
  const auto copies = [&](std::int64_t n, bool transposed, bool constant = false) {
    const Task task = task_of([=](auto& g) {
      const std::vector<std::int64_t> shape =
          transposed ? std::vector{n, std::int64_t{100}} : std::vector{std::int64_t{100}, n};
      const auto b = constant ? g.constant("B", shape) : g.input("B", shape);
      ops::matmul(g, g.input("A", {64, 100}), b, {.transpose_b = transposed});
    });
    Counts found;
    for (const schedule::Schedule& sketch : space.sketches(task)) {
      if (count<schedule::Rfactor>(sketch) > 0) found.push_back(count<schedule::CacheRead>(sketch));
    }
    return found;
  };
  CHECK(copies(10, false) == Counts{1, 1});
  CHECK(copies(10, true) == Counts{1, 1});
  CHECK(copies(1, false) == Counts{0, 0});
  CHECK(copies(10, false, true) == Counts{0, 0});  // packed ahead of time
}

TEST_CASE("a full reduction: plain, factored over lanes, or over threads and lanes") {
  const MultiLevelTiling space;
  const Task task = task_of([](auto& g) { ops::sum(g, g.input("x", {64, 64}), {0, 1}); });
  const auto& sketches = space.sketches(task);
  CHECK(sketches.size() == 3);
  CHECK(counts<schedule::Rfactor>(sketches) == Counts{0, 1, 2});
}

TEST_CASE("sums in lanes need no more terms than threads, and columns of one element are none") {
  const MultiLevelTiling space;
  const auto rfactors = [&](unsigned threads, std::int64_t rows, std::int64_t terms) {
    return counts<schedule::Rfactor>(
        space.sketches(task_of([=](auto& g) { ops::sum(g, g.input("x", {rows, terms}), {1}); }, threads)));
  };
  CHECK(rfactors(64, 100000, 64) == Counts{0, 1});
  CHECK(rfactors(64, 100000, 7) == Counts{0});
  CHECK(rfactors(64, 8, 64) == Counts{0, 1});  // a term for each thread is nothing to share
  CHECK(rfactors(64, 8, 65) == Counts{0, 1, 2});
  const auto& one_column = space.sketches(task_of([](auto& g) { ops::sum(g, with_bias(g, {300, 1}), {0}); }));
  CHECK(std::any_of(one_column.begin(), one_column.end(),
                    [](const auto& sketch) { return count<schedule::Rfactor>(sketch) > 0; }));
}

TEST_CASE("of reduction axes that lie apart in memory, the last one alone is factored") {
  const MultiLevelTiling space;
  const auto fuses = [&](std::vector<int> over) {
    const auto& sketches = space.sketches(task_of([&](auto& g) { ops::sum(g, with_bias(g, {40, 50, 60}), over); }));
    std::ptrdiff_t most = 0;
    for (const schedule::Schedule& sketch : sketches) {
      if (count<schedule::Rfactor>(sketch) == 0) continue;
      const auto first = std::find_if(sketch.steps.begin(), sketch.steps.end(),
                                      [](const auto& step) { return std::holds_alternative<schedule::Rfactor>(step); });
      most = std::max(most, std::count_if(sketch.steps.begin(), first, [](const auto& step) {
                        return std::holds_alternative<schedule::Fuse>(step);
                      }));
    }
    return most;
  };
  CHECK(fuses({1, 2}) == 1);
  CHECK(fuses({0, 2}) == 0);
  CHECK(fuses({2}) == 0);
}

TEST_CASE("a reduction that reads every second element is vectorised like one that reads all") {
  const MultiLevelTiling space;
  const auto lanes = [&](std::int64_t stride) {
    const auto& sketches = space.sketches(task_of([&](auto& g) {
      ops::max_pool2d(g, g.input("x", {1, 8, 33, 33}),
                      {.kernel = 3, .stride = stride, .layout = ops::Layout::ChannelsFirst});
    }));
    return counts<schedule::Rfactor>(sketches).back();
  };
  CHECK(lanes(1) == 0);
  CHECK(lanes(2) == 0);
  CHECK(lanes(3) == 1);  // the window goes through the lanes instead
}

TEST_CASE("samples and mutations replay, lower and can be named again") {
  const MultiLevelTiling space;
  const Task task = matmul(53, 96, 31);
  Rng rng(3);
  std::size_t mutated = 0;
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < 20; ++i) {
    auto config = space.sample(task, rng);
    REQUIRE(config.has_value());
    CHECK(space.feasible(task, *config));
    CHECK(space.why_infeasible(task, *config).empty());
    if (const auto changed = space.mutate(task, *config, rng); changed && space.feasible(task, *changed)) {
      CHECK(changed->steps != config->steps);
      config = changed;
      ++mutated;
    }
    const std::string text = space.encode(*config);
    CHECK(text.find('\n') == std::string::npos);
    const auto again = space.decode(task, text);
    REQUIRE(again.has_value());
    CHECK(space.key(*again) == space.key(*config));
    CHECK(again->steps == config->steps);
    keys.push_back(space.key(*config));
  }
  CHECK(mutated > 10);
  std::sort(keys.begin(), keys.end());
  CHECK(std::unique(keys.begin(), keys.end()) - keys.begin() >= 18);
}

TEST_CASE("equal generators, equal samples; copies of a space share sketches") {
  const MultiLevelTiling space, other;
  const MultiLevelTiling copy = space;
  const Task task = matmul();
  Rng a(7), b(7);
  CHECK(space.key(*space.sample(task, a)) == other.key(*other.sample(task, b)));
  CHECK(&space.sketches(task) == &copy.sketches(task));
}

TEST_CASE("text that does not belong to the task is no configuration") {
  const MultiLevelTiling space;
  const Task task = matmul();
  CHECK_FALSE(space.decode(task, "").has_value());
  CHECK_FALSE(space.decode(task, "[").has_value());
  CHECK_FALSE(space.decode(task, "{}").has_value());
  CHECK_FALSE(space.decode(task, R"([["split",9,0,[2],0,-1,"serial"]])").has_value());
  CHECK(space.decode(task, "[]").has_value());  // the program as it is
}

TEST_CASE("beyond the limits of the target: a reason instead of an exception") {
  const MultiLevelTiling space;
  const Task task = matmul();
  schedule::Schedule config{task.graph, {schedule::Annotate{2, 0, schedule::LoopKind::Vectorized}}};
  CHECK_FALSE(space.feasible(task, config));
  CHECK(space.why_infeasible(task, config) == "vectorized loop is not innermost");
  config.steps = {schedule::Split{2, 0, {0}, 64, -1, schedule::LoopKind::Serial}};
  CHECK(space.why_infeasible(task, config) == "bad_factor");
}

TEST_CASE("mutations leave no more threads idle than the least utilisation, or than before") {
  const MultiLevelTiling space;
  MultiLevelTiling any = space;
  any.min_utilisation = 0;
  const Task task = matmul(128, 128, 32);
  int idle = 0, from_idle = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const auto used = [&](const schedule::Schedule& s) {
      return spaces::utilisation(space.lower(task, s), task.target);
    };
    std::optional<schedule::Schedule> good = space.sample(task, rng), bad = any.sample(task, rng);
    REQUIRE(used(*good) >= 0.8);
    for (int i = 0; i < 12; ++i) {
      if (auto changed = space.mutate(task, *good, rng); changed && space.feasible(task, *changed)) {
        CHECK(used(*changed) >= 0.8);
        good = std::move(changed);
      }
      if (auto changed = any.mutate(task, *bad, rng); changed && any.feasible(task, *changed)) {
        idle += used(*changed) < 0.8 ? 1 : 0;
        if (used(*changed) < 0.8) {
          const auto next = space.mutate(task, *changed, rng);
          from_idle += next ? 1 : 0;
          if (next) CHECK(used(*next) >= std::min(0.8, used(*changed)));
        }
        bad = std::move(changed);
      }
    }
  }
  CHECK(idle > 20);       // where any is allowed, it comes about
  CHECK(from_idle > 10);  // and is left
}

TEST_CASE("options of drawing out of range are refused") {
  Rng rng(1);
  MultiLevelTiling space;
  const schedule::Schedule drawn = *space.sample(matmul(), rng);
  space.max_tries = 0;
  CHECK_THROWS_WITH_AS((void)space.sample(matmul(), rng), doctest::Contains("max_tries is 0"), std::invalid_argument);
  for (const double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    space = MultiLevelTiling{};
    space.min_utilisation = share;
    CHECK_THROWS_WITH_AS((void)space.sample(matmul(), rng), doctest::Contains("min_utilisation is"),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS((void)space.mutate(matmul(), drawn, rng), doctest::Contains("min_utilisation is"),
                         std::invalid_argument);
  }
}

TEST_CASE("a task without a program, a space without a sketch") {
  const MultiLevelTiling space;
  Task empty = matmul();
  empty.graph = nullptr;
  Rng rng(1);
  CHECK_THROWS_WITH_AS((void)space.sample(empty, rng), doctest::Contains("has no program to schedule"),
                       std::invalid_argument);
  CHECK_THROWS_AS((void)space.decode(empty, "[]"), std::invalid_argument);
  struct Nothing {
    std::vector<schedule::Schedule> sketches(const Task&) const { return {}; }
  };
  const spaces::SketchSpace<Nothing> barren;
  CHECK_THROWS_WITH_AS((void)barren.sample(matmul(), rng), doctest::Contains("is empty"), std::invalid_argument);
}

TEST_CASE("a sum that is read for other rows as well is not computed row by row") {
  // t has the sums of all rows, and each row of the result reads all of t.
  const Task task = task_of([](auto& g) {
    const auto x = g.input("x", {256, 256});
    const auto sums = ops::sum(g, x, {1});
    const auto t = ops::relu(g, sums);
    g.compute("out", {{"i", 256}, {"j", 256}}, [&](auto i) { return x(i[0], i[1]) * sums(i[0]) + t(i[1]); });
  });
  const MultiLevelTiling space;
  for (const schedule::Schedule& sketch : space.sketches(task)) {
    for (const schedule::Step& step : sketch.steps) {
      const auto* location = std::get_if<schedule::ComputeLocation>(&step);
      if (location == nullptr || location->stage != 1) continue;
      const bool at_root = std::any_of(location->choices.begin(), location->choices.end(), [](const auto& choice) {
        return choice.kind == schedule::Location::Kind::Root;
      });
      CHECK(at_root);
    }
  }
}

TEST_CASE("operators that are read twice again and again have sketches at once, and are not all inlined") {
  const auto sampled = [](int levels, const auto& next) {
    const Task task = task_of([&](auto& g) {
      program::Tensor x = g.input("x", {64});
      for (int n = 0; n < levels; ++n) x = next(g, x);
    });
    Rng rng(1);
    return MultiLevelTiling{}.sample(task, rng).has_value();
  };
  CHECK(sampled(30, [](auto& g, const auto& x) { return ops::add(g, x, ops::relu(g, x)); }));
  CHECK(sampled(13, [](auto& g, const auto& x) { return ops::multiply(g, x, x); }));
}

TEST_CASE("a chain of costly operators has as many sketches as the last of them give choices") {
  const auto sketches_of_chain = [](int operators) {
    auto graph = std::make_shared<program::ComputeGraph>();
    program::Tensor x = graph->input("x", {64});
    for (int n = 0; n < operators; ++n) {
      x = graph->compute("tanh", {{"i", 64}}, [&](auto i) { return program::tanh(x(i[0])); });
    }
    return MultiLevelTiling{}.sketches(program::make_task("chain", graph, Target{})).size();
  };
  CHECK(sketches_of_chain(4) == 8);  // three may be inlined, the last has no reader
  CHECK(sketches_of_chain(9) == 256);
  CHECK(sketches_of_chain(40) == 256);
}

}  // namespace

namespace {

/// Convolutions with padding, one behind the other.
Task padded_convolutions(int number) {
  return task_of([=](auto& g) {
    program::Tensor x = g.input("x", {1, 8, 8, 8});
    for (int n = 0; n < number; ++n) x = ops::conv2d(g, x, g.constant("k", {3, 3, 8, 8}), {.padding = 1});
  });
}

}  // namespace

TEST_CASE("a program of one or two convolutions has all combinations of their sketches") {
  const MultiLevelTiling space;
  CHECK(space.sketches(padded_convolutions(1)).size() == 6);
  CHECK(space.sketches(padded_convolutions(2)).size() == 36);
}

TEST_CASE("of a program with too many sketches some are drawn, in which every alternative occurs") {
  const Task task = padded_convolutions(5);  // 6^5 sketches
  const MultiLevelTiling space;
  const std::vector<schedule::Schedule>& sketches = space.sketches(task);
  CHECK(sketches.size() == 512);
  CHECK(sketches == MultiLevelTiling{}.sketches(task));
  std::set<std::uint64_t> hashes;
  for (const schedule::Schedule& sketch : sketches) hashes.insert(schedule::stable_hash(sketch.steps));
  CHECK(hashes.size() == sketches.size());
  // Each padding is inlined in half of them, and each convolution written through a tile in about two thirds.
  for (program::TensorId id = 0; id < task.graph->size(); ++id) {
    if (task.graph->op(id).role != program::Role::Computed) continue;
    const bool is_padding = !task.graph->op(id).has_reduction();
    std::size_t with = 0;
    for (const schedule::Schedule& sketch : sketches) {
      with += std::any_of(sketch.steps.begin(), sketch.steps.end(), [&](const schedule::Step& step) {
        if (is_padding) {
          const auto* location = std::get_if<schedule::ComputeLocation>(&step);
          return location != nullptr && location->stage == id &&
                 location->choices[0].kind == schedule::Location::Kind::Inline;
        }
        const auto* cache = std::get_if<schedule::CacheWrite>(&step);
        return cache != nullptr && cache->stage == id;
      });
    }
    CAPTURE(id);
    const double share = static_cast<double>(with) / static_cast<double>(sketches.size());
    CHECK(share > (is_padding ? 0.4 : 0.2));
    CHECK(share < (is_padding ? 0.6 : 0.8));
  }
  Rng rng(1);
  CHECK(space.sample(task, rng).has_value());
}

TEST_CASE("a program whose sketches nobody could list is searched") {
  const MultiLevelTiling space;
  CHECK(space.sketches(padded_convolutions(10)).size() == 512);  // of 6^10
}
