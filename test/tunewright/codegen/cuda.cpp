// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/cuda.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/gpu_schedules.hpp"
#include "support/host_cuda.hpp"
#include "support/workloads.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using codegen::DeviceProgram;
using loops::LoopNest;
using program::ComputeGraph;
using program::IndexExpr;
using program::ScalarType;
using schedule::LoopKind;
using schedule::ScheduleBuilder;

namespace {

using Graph = std::shared_ptr<const ComputeGraph>;
using Numbers = std::vector<std::vector<double>>;

/// Every stage on its own: spatial loops fused, `threads` of them a block, and `lanes` elements a thread.
LoopNest simple(const Graph& graph, std::int64_t threads = 8, std::int64_t lanes = 1,
                const std::string& name = "kernel") {
  ScheduleBuilder b(graph);
  for (program::TensorId id = 0; id < graph->size(); ++id) {
    const program::Operator& op = graph->op(id);
    if (op.role != program::Role::Computed) continue;
    std::vector<schedule::IterId> spatial(op.rank());
    for (schedule::IterId a = 0; a < spatial.size(); ++a) spatial[a] = a;
    const schedule::IterId all = spatial.size() == 1 ? spatial[0] : b.fuse(id, spatial);
    const auto parts = b.split(id, all, {threads, lanes});
    b.bind(id, parts[0], LoopKind::BlockX);
    b.bind(id, parts[1], LoopKind::ThreadX);
    if (lanes > 1) b.vectorize(id, parts[2]);
  }
  LoopNest nest = loops::lower(b.schedule());
  nest.name = name;
  return nest;
}
Graph doubling(std::vector<std::int64_t> shape, const std::string& input = "x") {
  auto graph = std::make_shared<ComputeGraph>();
  const auto x = graph->input(input, shape);
  program::operators::scale(*graph, x, 2.0);
  return graph;
}
/// Numbers that any type holds, the same for the same nest.
Numbers sample(const LoopNest& nest) {
  Numbers arguments;
  std::uint64_t state = 12345;
  for (const loops::BufferId id : nest.arguments) {
    const loops::Buffer& buffer = nest.buffers[id];
    std::vector<double>& values = arguments.emplace_back(static_cast<std::size_t>(buffer.elements()));
    for (double& v : values) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto number = static_cast<double>((state >> 33) % 41);
      v = buffer.type == ScalarType::UInt8 || buffer.type == ScalarType::Bool ? static_cast<double>((state >> 33) % 2)
          : program::is_float(buffer.type)                                    ? (number - 20) / 8
                                                                              : number - 20;
    }
  }
  return arguments;
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Programs that are compiled together and compared with what the interpreter makes of unscheduled loops.
struct Comparison {
  void add(const Graph& graph, const LoopNest& nest) {
    entries.push_back({loops::lower(schedule::Schedule{graph, {}}), codegen::to_cuda(nest)});
    host.add(entries.back().program);
  }
  /// Largest error of all; names programs above `tolerance`.
  void check(double tolerance) {
    host.build();
    for (const Entry& entry : entries) {
      Numbers got = sample(entry.plain);
      Numbers want = got;
      loops::interpret(entry.plain, want);
      host.run(entry.program, got);
      const double error = test::largest_error(got, want);
      CAPTURE(entry.program.source);
      CHECK(error <= tolerance);
    }
  }
  struct Entry {
    LoopNest plain;
    DeviceProgram program;
  };
  test::HostCuda host;
  std::vector<Entry> entries;
};

Target paper_gpu() {
  Target target;
  target.name = "paper GPU";
  target.kind = DeviceKind::Gpu;
  target.architecture = "sm_80";
  target.multiprocessors = 8;
  target.warp_size = 32;
  target.max_vthread_extent = 8;
  target.max_threads_per_block = 256;
  target.shared_memory_per_block_bytes = 48 * 1024;
  return target;
}

}  // namespace

TEST_CASE("an elementwise kernel reads like one written by hand") {
  const DeviceProgram program = codegen::to_cuda(simple(doubling({512}), 128));
  CHECK(program.source ==
        "extern \"C\" __global__ void __launch_bounds__(128) kernel_0_scale(const float* __restrict__ x, "
        "float* "
        "__restrict__ scale) {\n"
        "  const int i0_0 = (int)blockIdx.x;  // below 4\n"
        "  const int i0_1 = (int)threadIdx.x;  // below 128\n"
        "  scale[i0_0 * 128 + i0_1] = x[i0_0 * 128 + i0_1] * 2.0f;\n"
        "}\n\n");
  REQUIRE(program.launches.size() == 1);
  CHECK(program.launches[0].symbol == "kernel_0_scale");
  CHECK(program.launches[0].grid == std::array<std::int64_t, 3>{4, 1, 1});
  CHECK(program.launches[0].block == std::array<std::int64_t, 3>{128, 1, 1});
  CHECK(program.launches[0].shared_bytes() == 0);
  CHECK(program.launches[0].arguments == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("aligned neighbours move as vectors; a guard for the last of them has its own way") {
  const std::string whole = codegen::to_cuda(simple(doubling({4096}), 128, 4)).source;
  CHECK(contains(whole, "const float4 x_lanes = *reinterpret_cast<const float4*>(&x[i0_0 * 512 + i0_1 * 4]);"));
  CHECK(contains(whole, "scale_lanes.w = x_lanes.w * 2.0f;"));
  CHECK_FALSE(contains(whole, "if ("));
  // 510 elements end within a vector: that one goes element by element.
  const std::string rest = codegen::to_cuda(simple(doubling({510}), 32, 4)).source;
  CHECK(contains(rest, "+ 3 < 510) {"));
  CHECK(contains(rest, "float4"));
  CHECK(contains(rest, "} else {"));
  // Rows of 33 elements start anywhere.
  ScheduleBuilder b(doubling({8, 33}));
  const auto parts = b.split(1, 1, {4});
  b.bind(1, 0, LoopKind::BlockX);
  b.bind(1, parts[0], LoopKind::ThreadX);
  b.vectorize(1, parts[1]);
  CHECK_FALSE(contains(codegen::to_cuda(loops::lower(b.schedule())).source, "float4"));
}

TEST_CASE("padded rows move as vectors under one condition, and a guard is asked for once") {
  auto graph = std::make_shared<ComputeGraph>();
  const auto x = graph->input("x", {6, 16});
  program::operators::pad(*graph, x, {.before = {1, 0}, .after = {1, 0}});
  ScheduleBuilder b(graph);
  const auto parts = b.split(1, b.fuse(1, {0, 1}), {24, 4});  // 96 of 128 elements a block
  b.bind(1, parts[0], LoopKind::BlockX);
  b.bind(1, parts[1], LoopKind::ThreadX);
  b.vectorize(1, parts[2]);
  Comparison comparison;
  comparison.add(graph, loops::lower(b.schedule()));
  const std::string& source = comparison.entries[0].program.source;
  // 128 elements end where a vector ends, so there is no other way to go.
  CHECK(contains(source, "i0_i1_0 * 96 + i0_i1_1 * 4 < 128"));
  CHECK_FALSE(contains(source, "else"));
  CHECK(contains(source, "const bool inside = "));
  CHECK(contains(source, "if (inside) x_lanes = *reinterpret_cast<const float4*>(&x["));
  CHECK(contains(source, "pad_lanes.w = inside ? x_lanes.w : 0.0f;"));
  comparison.check(0);
}

TEST_CASE("names are identifiers that collide with nothing") {
  auto graph = std::make_shared<ComputeGraph>();
  const auto x = graph->input("float", {64});
  const auto y = graph->input("max", {64});
  const auto z = graph->compute("2 sums.of~it", {{"for", 64}}, [&](auto i) { return max(x(i[0]), y(i[0])); });
  graph->compute("max", {{"for", 64}}, [&](auto i) { return tanh(z(i[0])); });
  Comparison comparison;
  comparison.add(graph, simple(graph, 8, 1, "collisions"));
  const DeviceProgram& program = comparison.entries[0].program;
  CHECK(
      contains(program.source,
               "const float* __restrict__ float_, const float* __restrict__ max_, float* __restrict__ x2_sums_of_it"));
  CHECK(contains(program.source, "for_0_1 = (int)blockIdx.x"));  // the second kernel's loop
  for (const std::string own : {"copy_async", "to_half", "floor_div", "element", "part", "Vector",
                                "wait_for_products_but_1", "wrapping_abs", "INFINITY", "protected", "linux"})
    CHECK(codegen::cuda::identifier(own) == own + "_");
  // Two kernels and the memory between them.
  REQUIRE(program.launches.size() == 2);
  REQUIRE(program.buffers.size() == 4);
  CHECK(program.buffers[3].layout.role == loops::BufferRole::Temporary);
  CHECK(program.buffers[3].bytes() == 64 * 4);
  CHECK(program.launches[0].arguments == std::vector<std::uint32_t>{0, 1, 3});
  CHECK(program.launches[1].arguments == std::vector<std::uint32_t>{2, 3});
  comparison.check(1e-6);
}

TEST_CASE("a register tile is unrolled, shared memory is filled with vectors between barriers") {
  const auto graph = program::operators::matmul_graph({.m = 64, .n = 64, .k = 32});
  ScheduleBuilder b(graph);
  const auto local = test::register_tiles_of_threads(b, "matmul", 8);
  const auto k = b.split(local, 2, {8});
  b.reorder(local, {k[0], k[1], 0, 1});
  for (const char* operand : {"A", "B"}) {
    const auto shared = b.cache_read(b.stage(operand), local, schedule::Scope::Shared);
    b.compute_at(shared, local, k[0]);
    const auto parts = b.split(shared, b.fuse(shared, {0, 1}), {64, 4});
    b.bind(shared, parts[1], LoopKind::ThreadX);
    b.vectorize(shared, parts[2]);
  }
  LoopNest nest = loops::lower(b.schedule());
  nest.name = "tiled";
  Comparison comparison;
  comparison.add(graph, nest);
  const DeviceProgram& program = comparison.entries[0].program;
  CHECK(contains(program.source, "__shared__ __align__(16) float A_shared[256];"));
  CHECK(contains(program.source, "float matmul_local[16];"));
  CHECK(contains(program.source, "= *reinterpret_cast<const float4*>(&A["));
  CHECK(contains(program.source, "*reinterpret_cast<float4*>(&A_shared["));
  CHECK(contains(program.source,
                 "  #pragma unroll\n        for (int j = 0; j < 4; ++j) {\n          matmul_local[i * 4 + j] += "));
  CHECK(program.launches[0].static_shared_bytes == 2 * 256 * 4);
  CHECK(program.launches[0].dynamic_shared_bytes == 0);

  // The same with little static memory allowed.
  nest.name = "dynamic";
  codegen::CudaOptions options;
  options.max_static_shared_bytes = 1024;
  const DeviceProgram dynamic = codegen::to_cuda(nest, options);
  CHECK(contains(dynamic.source, "extern __shared__ __align__(128) unsigned char shared_memory[];"));
  CHECK(contains(dynamic.source, "reinterpret_cast<float*>(shared_memory + 1024);"));
  CHECK(dynamic.launches[0].static_shared_bytes == 0);
  CHECK(dynamic.launches[0].dynamic_shared_bytes == 2048);
  comparison.entries.push_back({comparison.entries[0].plain, dynamic});
  comparison.host.add(dynamic);
  comparison.check(1e-5);
}

TEST_CASE("what combinations of threads need counts against the 48 KiB that may be static") {
  const auto sum = [](std::int64_t columns) {
    auto graph = std::make_shared<ComputeGraph>();
    const auto x = graph->input("x", {1, columns});
    graph->reduce("y", {{"i", 1}}, {{"k", columns}}, program::Combiner::Sum,
                  [&](auto i, auto r) { return x(i[0], r[0]); });
    ScheduleBuilder b(graph);
    const auto k = b.split(1, 1, {6, 8});  // two indices of 48 threads: an element of 4 bytes each
    b.bind(1, k[1], LoopKind::ThreadY);
    b.bind(1, k[2], LoopKind::ThreadX);
    b.bind(1, 0, LoopKind::BlockX);
    const program::TensorId shared = b.cache_read(b.stage("x"), 1, schedule::Scope::Shared);
    b.compute_at(shared, 1, 0);
    return codegen::to_cuda(loops::lower(b.schedule())).launches.at(0);
  };
  constexpr std::int64_t all = 48 * 1024, combined = 48 * 4;
  const codegen::DeviceLaunch fits = sum((all - combined) / 4), beyond = sum(all / 4);
  CHECK(fits.static_shared_bytes == all);
  CHECK(fits.dynamic_shared_bytes == 0);
  CHECK(beyond.static_shared_bytes == combined);
  CHECK(beyond.dynamic_shared_bytes == all);
}

TEST_CASE("copies that run ahead: through registers, and asynchronously in pieces of 4 to 16 bytes") {
  using schedule::Pipelining;
  Comparison comparison;
  const auto add = [&](const Graph& graph, const char* stage, const std::vector<test::Tile>& spatial,
                       const std::vector<test::Tile>& reduction, const std::vector<std::string_view>& operands,
                       std::int64_t vector, Pipelining how, const std::string& name) {
    ScheduleBuilder s = test::tiled_on_gpu(graph, stage, spatial, reduction, operands, vector);
    const schedule::TensorId tiled = s.stage(std::string(stage) + ".local");
    s.pipeline(tiled, s.state().stages[s.stage(std::string(operands[0]) + ".shared")].location.iter, how);
    if (operands[0] == "conv2d_pad") s.compute_inline(s.stage("conv2d_pad"));
    LoopNest nest = loops::lower(s.schedule());
    nest.name = name;
    comparison.add(graph, nest);
    return comparison.entries.back().program;
  };
  const auto matmul = [](std::int64_t k, ScalarType type) {
    auto g = std::make_shared<ComputeGraph>();
    const auto a = g->input("A", {13, k}, type);
    const auto b = g->input("B", {k, 12}, type);
    program::operators::matmul(*g, a, b);
    return std::shared_ptr<const ComputeGraph>(std::move(g));
  };
  const std::vector<test::Tile> tile{{2, 4, 1, 2}, {1, 4, 1, 1}};
  const auto product = [&](std::int64_t k, std::int64_t vector, Pipelining how, const std::string& name,
                           ScalarType type = ScalarType::Float32) {
    return add(matmul(k, type), "matmul", tile, {{2, 2}}, {"A", "B"}, vector, how, name).source;
  };
  const std::string twice = product(20, 4, {2, false}, "twice");
  CHECK(contains(twice, "__shared__ __align__(16) float A_shared[104];"));  // 2 tiles of 13 x 4
  CHECK(contains(twice, "float A_shared_next["));
  CHECK(contains(twice, "if (k_0 + 1 < 5) {"));
  CHECK_FALSE(contains(twice, "cp.async"));
  const std::string thrice = product(20, 4, {3, true}, "thrice");
  CHECK(contains(thrice, "copy_async_if<16>(wanted"));
  CHECK(contains(thrice, "wait_for_copies<1>();\n    __syncthreads();\n"));
  CHECK(contains(thrice, "cp.async.cg.shared.global [%0], [%1], 16, %2;"));
  CHECK(contains(product(18, 2, {2, true}, "pairs"), "copy_async_if<8>(wanted"));
  CHECK(contains(product(17, 1, {4, true}, "single"), "copy_async<4>(&(A_shared + "));
  CHECK(contains(product(20, 4, {2, true}, "halves", ScalarType::Float16), "copy_async_if<8>(wanted"));
  // Two bytes are less than one instruction copies.
  const std::string narrow = product(17, 1, {2, true}, "narrow", ScalarType::Float16);
  CHECK(contains(narrow, "wait_for_copies<0>"));
  CHECK_FALSE(contains(narrow, "copy_async<2>"));
  for (const Pipelining how : {Pipelining{2, false}, {3, true}}) {
    const std::string name = how.asynchronous ? "padded_async" : "padded";
    const std::string source =
        add(program::operators::conv2d_graph(
                {.batch = 1, .height = 5, .width = 6, .in_channels = 4, .out_channels = 8, .kernel = 3, .padding = 1}),
            "conv2d", {{1, 1, 1, 1}, {1, 2, 1, 1}, {2, 1, 1, 3}, {1, 4, 1, 1}}, {{1, 1}, {1, 1}, {1, 2}},
            {"conv2d_pad", "weight"}, 1, how, name)
            .source;
    CHECK(contains(source, " ? 4 : 0);") == how.asynchronous);  // zeros where there is padding
  }
  CHECK(comparison.entries[0].program.min_compute_capability == 0);
  CHECK(comparison.entries[1].program.min_compute_capability == 80);
  comparison.check(2e-3);
}

TEST_CASE("sums of a thread leave in vectors where they have neighbours") {
  // [block | virtual thread | thread | inner | innermost]; columns of a thread: `inner` times `innermost` in a row.
  const auto tiled = [](std::int64_t m, std::int64_t n, const test::Tile& columns) {
    const auto graph = program::operators::matmul_graph({.m = m, .n = n, .k = 8});
    const ScheduleBuilder s = test::tiled_on_gpu(graph, "matmul", {{1, 4, 1, 2}, columns}, {{1, 4}}, {"A", "B"});
    return std::pair<Graph, LoopNest>(graph, loops::lower(s.schedule()));
  };
  Comparison comparison;
  const auto source = [&](std::int64_t m, std::int64_t n, const test::Tile& columns, const char* name) {
    auto [graph, nest] = tiled(m, n, columns);
    nest.name = name;
    comparison.add(graph, nest);
    return comparison.entries.back().program.source;
  };
  const std::string four = source(16, 64, {2, 4, 1, 4}, "four");
  CHECK(contains(four, "matmul_lanes.w = matmul_local["));
  CHECK(contains(four, "*reinterpret_cast<float4*>(&(matmul + "));
  CHECK_FALSE(contains(four, " (matmul + "));  // no element on its own
  // Eight in a row are two vectors, six are three pairs.
  CHECK(contains(source(16, 64, {1, 4, 2, 4}, "eight"), "j_3_1 < 8; j_3_1 += 4)"));
  CHECK(contains(source(16, 24, {1, 4, 3, 2}, "six"), "*reinterpret_cast<float2*>(&(matmul + "));
  // Rows of 63 columns begin anywhere.
  CHECK_FALSE(contains(source(16, 63, {2, 4, 1, 4}, "odd"), "reinterpret_cast"));
  // What is beyond the last row, or in whole vectors beyond the last column, has a guard for each vector.
  CHECK(contains(source(15, 64, {2, 4, 1, 4}, "rows"), "*reinterpret_cast<float4*>(&(matmul + "));
  const std::string columns = source(16, 60, {2, 4, 1, 4}, "columns");
  CHECK(contains(columns, "*reinterpret_cast<float4*>(&(matmul + "));
  CHECK_FALSE(contains(columns, " (matmul + "));
  comparison.check(1e-5);
}

TEST_CASE("terms of sums in registers are written out together, as many as are worth the code") {
  const auto source = [](std::int64_t terms, std::int64_t columns) {
    const auto graph = program::operators::matmul_graph({.m = 16, .n = 4 * columns, .k = 4 * terms});
    const ScheduleBuilder s =
        test::tiled_on_gpu(graph, "matmul", {{1, 4, 1, 4}, {1, 4, 1, columns}}, {{1, terms}}, {"A", "B"});
    return codegen::to_cuda(loops::lower(s.schedule())).source;
  };
  const auto loop = [](std::int64_t terms) {
    return "    for (int k_2 = 0; k_2 < " + std::to_string(terms) + "; ++k_2) {";
  };
  CHECK(contains(source(8, 4), "#pragma unroll\n" + loop(8)));    // 8 x 16 products
  CHECK(contains(source(64, 4), "#pragma unroll\n" + loop(64)));  // 1024
  CHECK(contains(source(128, 4), "#pragma unroll 64\n" + loop(128)));
  CHECK(contains(source(18, 16), "#pragma unroll 9\n" + loop(18)));  // no more than 16 of 64 each: 9 divide 18
  // No number up to 64 divides 67.
  CHECK(contains(source(67, 4), "__syncthreads();\n" + loop(67)));
}

TEST_CASE("what is a number once loops are written out is an offset of its own") {
  const auto graph = program::operators::matmul_graph({.m = 16, .n = 32, .k = 16});
  const ScheduleBuilder s = test::tiled_on_gpu(graph, "matmul", {{1, 4, 1, 4}, {2, 4, 1, 4}}, {{1, 4}}, {"A", "B"});
  Comparison comparison;
  comparison.add(graph, loops::lower(s.schedule()));
  const std::string& source = comparison.entries[0].program.source;
  // Rows of four terms of A, rows of 32 columns of B; four rows a thread.
  CHECK(contains(source, ")[k_2 + i_4 * 4] * (B_shared + (i_2_j_2 % 4) * 4)[i_1_j_1 * 16 + k_2 * 32 + j_4];"));
  // A loop that stays one is no number, and registers have no address.
  CHECK(contains(source, "for (int k_0 = 0;"));
  CHECK_FALSE(contains(source, ")[k_0"));
  CHECK(contains(source, "matmul_local[i_1_j_1 * 16 + i_4 * 4 + j_4] += "));
  comparison.check(1e-5);
}

TEST_CASE("short copies to shared memory are written out, long ones are not") {
  const auto source = [](std::int64_t terms) {
    const auto graph = program::operators::matmul_graph({.m = 32, .n = 32, .k = 4 * terms});
    const ScheduleBuilder s =
        test::tiled_on_gpu(graph, "matmul", {{1, 8, 1, 4}, {1, 4, 1, 8}}, {{1, terms}}, {"A", "B"});
    return codegen::to_cuda(loops::lower(s.schedule())).source;
  };
  // 32 x 32 elements by 32 threads, and twice as many.
  CHECK(contains(source(32), "#pragma unroll\n    for (int d0_d1_0_0 = 0; d0_d1_0_0 < 32;"));
  CHECK(contains(source(64), "for (int d0_d1_0_0 = 0; d0_d1_0_0 < 64;"));
  CHECK_FALSE(contains(source(64), "#pragma unroll\n    for (int d0_d1_0_0"));
}

TEST_CASE("a guard is written without divisions, and once") {
  auto graph = std::make_shared<ComputeGraph>();
  const auto x = graph->input("x", {3, 7, 4});
  program::operators::scale(*graph, x, 2.0);
  Comparison comparison;
  comparison.add(graph, simple(graph, 32, 1, "few"));
  // 84 elements by 96 threads: that the first index is below 3 says that the number of the element is below 84.
  const std::string& source = comparison.entries[0].program.source;
  CHECK(contains(source, "if (i0_i1_i2_0 * 32 + i0_i1_i2_1 < 84) {"));
  comparison.check(0);
}

TEST_CASE("asynchronous copies are asked for under predicates, not in branches") {
  Comparison comparison;
  const auto add = [&](const Graph& graph, const char* stage, const std::vector<test::Tile>& spatial,
                       const std::vector<test::Tile>& reduction, const std::vector<std::string_view>& operands,
                       std::int64_t vector, const std::string& name) {
    ScheduleBuilder s = test::tiled_on_gpu(graph, stage, spatial, reduction, operands, vector);
    const schedule::TensorId tiled = s.stage(std::string(stage) + ".local");
    s.pipeline(tiled, s.state().stages[s.stage(std::string(operands[0]) + ".shared")].location.iter, {2, true});
    if (operands[0] == "conv2d_pad") s.compute_inline(s.stage("conv2d_pad"));
    LoopNest nest = loops::lower(s.schedule());
    nest.name = name;
    comparison.add(graph, nest);
    return comparison.entries.back().program.source;
  };
  const auto matmul = program::operators::matmul_graph({.m = 13, .n = 12, .k = 20});
  // 13 x 4 elements of A are 13 vectors, for 16 threads.
  const std::string product =
      add(matmul, "matmul", {{2, 4, 1, 2}, {1, 4, 1, 1}}, {{2, 2}}, {"A", "B"}, 4, "predicated");
  CHECK(contains(product, "const bool wanted_2 = k_0 + 1 < 5;"));
  CHECK(contains(product, "const bool wanted_3 = wanted_2 && "));
  CHECK(contains(product, "copy_async_if<16>(wanted_3, &A_shared["));
  CHECK_FALSE(contains(product, "copy_async<16>(&A_shared["));
  CHECK(contains(product, "@p cp.async.cg.shared.global [%0], [%1], 16, %2;"));
  const std::string loop = product.substr(product.find("for (int k_0"));
  CHECK_FALSE(contains(loop.substr(0, loop.find("commit_copies")), "if ("));
  const std::string convolution =
      add(program::operators::conv2d_graph(
              {.height = 5, .width = 6, .in_channels = 4, .out_channels = 8, .kernel = 3, .padding = 1}),
          "conv2d", {{1, 1, 1, 1}, {1, 2, 1, 1}, {2, 1, 1, 3}, {1, 4, 1, 1}}, {{1, 1}, {1, 1}, {1, 4}},
          {"conv2d_pad", "weight"}, 4, "predicated_padding");
  // Padding: no bytes are copied, from an address that there is.
  CHECK(contains(convolution, "&data[inside"));
  CHECK(contains(convolution, " : 0], inside"));
  comparison.check(2e-3);
}

TEST_CASE("conditions that read memory are asked only where copies are wanted") {
  // The last tile asks for one beyond the end, and 16 threads copy 13 rows: the mask has none there.
  const auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("x", {13, 20}), mask = graph->input("mask", {13, 20});
  const auto masked = graph->compute("masked", {{"i", 13}, {"k", 20}}, [&](auto i) {
    return program::select(program::Expr(0.0) < mask(i[0], i[1]), x(i[0], i[1]), program::Expr(0.0));
  });
  program::operators::matmul(*graph, masked, graph->input("B", {20, 12}));
  ScheduleBuilder s = test::tiled_on_gpu(graph, "matmul", {{2, 4, 1, 2}, {1, 4, 1, 1}}, {{2, 2}}, {"masked", "B"}, 1);
  const schedule::TensorId tiled = s.stage("matmul.local");
  s.pipeline(tiled, s.state().stages[s.stage("masked.shared")].location.iter, {2, true});
  s.compute_inline(s.stage("masked"));
  Comparison comparison;
  comparison.add(graph, loops::lower(s.schedule()));
  const std::string& source = comparison.entries.back().program.source;
  const std::size_t condition = source.find("const bool inside");
  REQUIRE(condition != std::string::npos);
  const std::size_t tile = source.find("for (int k_0");
  REQUIRE(tile < source.rfind("const bool inside"));
  CHECK(contains(source.substr(tile, source.rfind("const bool inside") - tile), "if (k_0 + 1 < 5"));
  comparison.check(1e-4);
}

TEST_CASE("what is read at several places of a body is read in vectors only where it always is") {
  using program::Expr;
  Comparison comparison;
  const auto add = [&](const auto& body) {
    const auto graph = std::make_shared<program::ComputeGraph>();
    const auto x = graph->input("x", {8, 16});
    const std::string name = "body" + std::to_string(comparison.entries.size());
    graph->compute(name, {{"i", 8}, {"j", 16}}, [&](auto i) {
      const Expr one_of_few = program::index_value(i[0]) < program::index_value(program::IndexExpr(3));
      return body(one_of_few, x(i[0], i[1]));
    });
    ScheduleBuilder b(graph);
    const auto j = b.split(1, 1, {4});
    b.bind(1, 0, LoopKind::BlockX);
    b.bind(1, j[0], LoopKind::ThreadX);
    b.vectorize(1, j[1]);
    loops::LoopNest nest = loops::lower(b.schedule());
    nest.name = name;
    comparison.add(graph, nest);
    return comparison.entries.back().program.source;
  };
  const std::string both = add([](const Expr& few, const Expr& v) { return select(few, v, v * 2.0); });
  CHECK_FALSE(contains(both, "x_lanes"));
  CHECK(contains(add([](const Expr& few, const Expr& v) { return select(few, v, 0.0) + v; }), "float4 x_lanes = "));
  add([](const Expr& few, const Expr& v) { return select(few && v < Expr(0.2), v, v + 1.0); });
  add([](const Expr& few, const Expr& v) { return select(few, v, 0.0) + select(Expr(0.5) < v, v, 0.0); });
  comparison.check(0);
}

TEST_CASE("a copy whose condition reads what it copies asks for each element") {
  const auto graph = std::make_shared<program::ComputeGraph>();
  const auto x = graph->input("x", {16, 32});
  const auto masked = graph->compute("masked", {{"i", 16}, {"k", 32}}, [&](auto i) {
    const program::Expr v = x(i[0], i[1]);
    return program::select(program::Expr(0.5) < v, v, program::Expr(0.0));
  });
  program::operators::matmul(*graph, masked, graph->input("B", {32, 16}));
  ScheduleBuilder s(graph);
  const auto local = test::register_tiles_of_threads(s, "matmul", 4);
  const auto k = s.split(local, 2, {8});
  s.reorder(local, {k[0], k[1], 0, 1});
  const auto shared = s.cache_write(s.stage("masked"), schedule::Scope::Shared);
  s.compute_inline(s.stage("masked"));
  s.compute_at(shared, local, k[0]);
  const auto parts = s.split(shared, s.fuse(shared, {0, 1}), {16, 4});
  s.bind(shared, parts[1], LoopKind::ThreadX);
  s.vectorize(shared, parts[2]);
  s.pipeline(local, k[0], {2, true});
  Comparison comparison;
  comparison.add(graph, loops::lower(s.schedule()));
  CHECK_FALSE(contains(comparison.entries.back().program.source, "copy_async<16>(&"));
  comparison.check(1e-4);
}

TEST_CASE("a loop that selects registers is unrolled around a long one that does not") {
  const auto graph = program::operators::matmul_graph({.m = 64, .n = 64, .k = 512});
  ScheduleBuilder b(graph);
  const auto c = b.stage("matmul");
  const auto local = b.cache_write(c);
  const auto i = b.split(c, 0, {4});
  const auto j = b.split(c, 1, {2});
  b.reorder(c, {i[0], j[0], i[1], j[1]});
  b.bind(c, i[0], LoopKind::BlockX);
  b.bind(c, j[0], LoopKind::ThreadX);
  b.compute_at(local, c, j[0]);
  b.reorder(local, {0, 2, 1});
  codegen::CudaOptions options;
  // Four times two sums to start and two to add to; the 512 steps between stay a loop.
  options.max_register_statements = 16;
  const std::string tile = "float matmul_local[8];\n";
  CHECK(contains(codegen::to_cuda(loops::lower(b.schedule()), options).source,
                 tile + "  #pragma unroll\n  for (int i = 0; i < 4; ++i) {"));
  options.max_register_statements = 15;
  CHECK(
      contains(codegen::to_cuda(loops::lower(b.schedule()), options).source, tile + "  for (int i = 0; i < 4; ++i) {"));
}

TEST_CASE("indices are 64 bits wide only where they must be") {
  CHECK(contains(codegen::to_cuda(simple(doubling({1 << 30}), 256)).source, "scale[i0_0 * 256 + i0_1] ="));
  const std::string wide = codegen::to_cuda(simple(doubling({std::int64_t{1} << 33}), 256)).source;
  CHECK(contains(wide, "scale[(long long)i0_0 * 256LL + (long long)i0_1] ="));
}

TEST_CASE("all operations of all types compute what the interpreter does") {
  Comparison comparison;
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64, ScalarType::Float16, ScalarType::BFloat16,
                                ScalarType::Int32, ScalarType::Int64, ScalarType::Int8, ScalarType::UInt8}) {
    auto graph = std::make_shared<ComputeGraph>();
    const auto x = graph->input("x", {40}, type);
    const auto y = graph->input("y", {40}, type);
    const auto whole = [&](auto i) { return cast(index_value(i[0]), type); };
    const auto add = [&](const std::string& name, const auto& body) { graph->compute(name, {{"i", 40}}, body); };
    add("sum", [&](auto i) { return x(i[0]) + y(i[0]) * x(i[0]) - (y(i[0]) - x(i[0])); });
    add("shared", [&](auto i) {
      const program::Expr both = x(i[0]) + y(i[0]);
      return both * both - both;
    });
    add("quotient", [&](auto i) { return whole(i) / (abs(x(i[0])) + program::constant(1, type)); });
    add("extremes", [&](auto i) { return min(max(x(i[0]), y(i[0])), program::constant(1, type)); });
    add("chosen", [&](auto i) {
      return select(
          x(i[0]) < y(i[0]) || equal(x(i[0]), y(i[0])), x(i[0]),
          logical_not(x(i[0]) <= y(i[0])) && y(i[0]) < x(i[0]) ? select(x(i[0]) < y(i[0]), y(i[0]), x(i[0])) : y(i[0]));
    });
    // Each element from its mirror image and from the left, beyond which there is nothing.
    add("placed", [&](auto i) {
      const auto range = [](program::Var) { return program::Range{0, 39}; };
      const IndexExpr half = IndexExpr::quotient(i[0] - IndexExpr(3), 2, range);
      return select(program::in_bounds(half, 40), x(half), program::constant(2, type)) + y(IndexExpr(39) - i[0]);
    });
    if (program::is_float(type)) {
      add("functions", [&](auto i) {
        return exp(x(i[0])) + log(abs(y(i[0])) + 1.0) * sqrt(abs(x(i[0]))) - tanh(x(i[0])) * erf(y(i[0])) + -(-x(i[0]));
      });
      add("truncated", [&](auto i) { return cast(cast(x(i[0]) * 3.0, ScalarType::Int32), type); });
      add("bytes", [&](auto i) { return cast(x(i[0]) * 100.0, ScalarType::Int8); });
    } else {
      // Up to 20, so that the exponential is within 32 bits: conversions of the host do not saturate.
      add("exponential", [&](auto i) { return exp(x(i[0])) * 2; });
      add("logarithm", [&](auto i) { return log(x(i[0])); });
      add("functions", [&](auto i) { return sqrt(x(i[0])) + tanh(y(i[0])) - erf(x(i[0])) + abs(y(i[0])); });
    }
    graph->reduce("total", {{"i", 4}}, {{"k", 10}}, program::Combiner::Max,
                  [&](auto i, auto r) { return x(10 * i[0] + r[0]); });
    comparison.add(graph, simple(graph, 4, 1, "scalar_" + std::string(name(type))));
    comparison.add(graph, simple(graph, 4, 4, "vector_" + std::string(name(type))));
  }
  auto graph = std::make_shared<ComputeGraph>();
  const auto x = graph->input("x", {40}, ScalarType::Bool);
  const auto y = graph->input("y", {40}, ScalarType::Bool);
  const auto add = [&](const std::string& name, const auto& body) { graph->compute(name, {{"i", 40}}, body); };
  add("counted", [&](auto i) { return cast(x(i[0]) + y(i[0]), ScalarType::Int32); });
  add("either", [&](auto i) { return equal(x(i[0]) + y(i[0]), program::constant(1, ScalarType::Bool)); });
  add("differing",
      [&](auto i) { return cast(x(i[0]) - y(i[0]), ScalarType::Int32) + cast(-x(i[0]), ScalarType::Int32); });
  add("functions",
      [&](auto i) { return cast(log(x(i[0])), ScalarType::Int32) + cast(exp(y(i[0])), ScalarType::Int32); });
  for (const program::Combiner combiner : {program::Combiner::Max, program::Combiner::Min})
    graph->reduce("total", {{"i", 20}}, {{"k", 2}}, combiner, [&](auto i, auto r) { return x(2 * i[0] + r[0]); });
  comparison.add(graph, simple(graph, 4, 1, "scalar_bool"));
  comparison.check(1e-6);
}

TEST_CASE("integers of 32 and 64 bits wrap around in every operation") {
  const auto graph_of = [](ScalarType type) {
    auto graph = std::make_shared<ComputeGraph>();
    const auto x = graph->input("x", {4}, type);
    const auto y = graph->input("y", {4}, type);
    const auto add = [&](const std::string& name, const auto& body) {
      graph->compute(name, {{"i", 4}}, [&](auto i) { return body(x(i[0]), y(i[0])); });
    };
    using program::Expr;
    add("sum", [](const Expr& a, const Expr& b) { return a + b; });
    add("difference", [](const Expr& a, const Expr& b) { return a - b; });
    add("product", [](const Expr& a, const Expr& b) { return a * b; });
    add("negated", [](const Expr& a, const Expr&) { return -a; });
    add("magnitude", [](const Expr& a, const Expr&) { return abs(a); });
    add("quotient", [](const Expr& a, const Expr& b) { return a / b; });
    add("by_minus_one", [&](const Expr& a, const Expr&) { return a / program::constant(-1, type); });
    add("nested", [](const Expr& a, const Expr& b) { return a * b + (a - b) * 2; });
    add("compared", [](const Expr& a, const Expr& b) { return max(a + b, a - b); });
    add("shared", [](const Expr& a, const Expr& b) {
      const Expr sum = a + b;
      return sum - -sum;
    });
    return std::shared_ptr<const ComputeGraph>(graph);
  };
  struct Case {
    ScalarType type;
    Numbers arguments;  // the inputs, then the outputs
  };
  constexpr double least = -0x1p31, greatest = 0x1p31 - 1;
  const std::vector<Case> cases{{ScalarType::Int32,
                                 {{greatest, least, 65537, 0x1p30},
                                  {1, -1, 65537, 2},
                                  {least, greatest, 131074, 0x1p30 + 2},
                                  {greatest - 1, least + 1, 0, 0x1p30 - 2},
                                  {greatest, least, 131073, least},
                                  {-greatest, least, -65537, -0x1p30},
                                  {greatest, least, 65537, 0x1p30},
                                  {greatest, least, 1, 0x1p29},
                                  {-greatest, least, -65537, -0x1p30},
                                  {greatest - 4, least + 2, 131073, -4},
                                  {greatest - 1, greatest, 131074, 0x1p30 + 2},
                                  {0, -2, 262148, least + 4}}},
                                // Outputs as the nearest doubles.
                                {ScalarType::Int64,
                                 {{-0x1p63, 0x1p62, 0x1p62, 0x1p33},
                                  {-1, 0x1p62, 2, 0x1p31},
                                  {0x1p63, -0x1p63, 0x1p62, 0x1.4p33},
                                  {-0x1p63, 0, 0x1p62, 0x1.8p32},
                                  {-0x1p63, 0, -0x1p63, 0},
                                  {-0x1p63, -0x1p62, -0x1p62, -0x1p33},
                                  {-0x1p63, 0x1p62, 0x1p62, 0x1p33},
                                  {-0x1p63, 1, 0x1p61, 4},
                                  {-0x1p63, -0x1p62, -0x1p62, -0x1p33},
                                  {-0x1p63, 0, -4, 0x1.8p33},
                                  {0x1p63, 0, 0x1p62, 0x1.4p33},
                                  {-2, 0, -0x1p63, 0x1.4p34}}}};
  test::HostCuda host;
  std::vector<DeviceProgram> programs;
  for (const Case& c : cases) {
    programs.push_back(
        codegen::to_cuda(simple(graph_of(c.type), 4, 1, "wrapping_" + std::string(program::name(c.type)))));
    host.add(programs.back());
  }
  CHECK(contains(programs[0].source, "= (int)((unsigned)x["));
  CHECK(contains(programs[0].source, "] * y["));
  CHECK(contains(programs[0].source, " * 2);"));  // without a conversion of each part
  CHECK(contains(programs[0].source, "= (int)-(unsigned)x["));
  CHECK(contains(programs[1].source, "= (long long)((unsigned long long)x["));
  host.build();
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const Numbers& want = cases[c].arguments;
    Numbers got = want;
    for (std::size_t output = 2; output < got.size(); ++output) got[output].assign(4, 7);
    host.run(programs[c], got);
    CAPTURE(programs[c].source);
    for (std::size_t output = 2; output < got.size(); ++output) {
      CAPTURE(programs[c].buffers[output].layout.name);
      CHECK(got[output] == want[output]);
    }
  }
}

TEST_CASE("functions of integers are converted like casts from double") {
  const auto source = [](ScalarType type) {
    auto graph = std::make_shared<ComputeGraph>();
    const auto x = graph->input("x", {8}, type);
    graph->compute("y", {{"i", 8}}, [&](auto i) { return exp(x(i[0])); });
    return codegen::to_cuda(simple(graph)).source;
  };
  CHECK(contains(source(ScalarType::Int8), "= (signed char)max(-128, min(127, (int)zero_if_nan(exp((double)(x["));
  CHECK(contains(source(ScalarType::UInt8), "= (unsigned char)max(0, min(255, (int)zero_if_nan(exp((double)(x["));
  CHECK(contains(source(ScalarType::Int32), "= (int)zero_if_nan(exp((double)(x["));
  CHECK(contains(source(ScalarType::Int64), "= (long long)zero_if_nan(exp((double)(x["));
}

TEST_CASE("whole numbers that cannot overflow are computed as they are") {
  const auto source = [](const auto& body) {
    auto graph = std::make_shared<ComputeGraph>();
    const auto x = graph->input("x", {40}, ScalarType::Int8);
    graph->compute("y", {{"i", 40}}, [&](auto i) { return body(x(i[0]), index_value(i[0])); });
    return codegen::to_cuda(simple(graph)).source;
  };
  using program::Expr;
  const auto wide = [](const Expr& e) { return cast(e, ScalarType::Int32); };
  CHECK(contains(source([&](const Expr& x, const Expr&) { return wide(x) * wide(x) + 7; }), "] + 7;"));
  CHECK_FALSE(contains(source([&](const Expr& x, const Expr&) { return wide(x) * wide(x) + 7; }), "unsigned"));
  CHECK_FALSE(contains(source([](const Expr&, const Expr& i) { return min(i * i, i + 3) - i; }), "unsigned"));
  // 39^2 < 2^11: times 2^50 it is below 2^61, times 2^52 it may not be.
  CHECK_FALSE(contains(source([](const Expr&, const Expr& i) { return i * i * 0x1p50; }), "unsigned"));
  CHECK(contains(source([](const Expr&, const Expr& i) { return i * i * 0x1p52; }), "(unsigned long long)"));
  // 128^4 is 2^28; the product of all is not.
  const auto fourth = [&](const Expr& x) { return wide(x) * wide(x) * (wide(x) * wide(x)); };
  CHECK_FALSE(contains(source([&](const Expr& x, const Expr&) { return fourth(x); }), "unsigned"));
  CHECK(contains(source([&](const Expr& x, const Expr&) { return fourth(x) * wide(x); }), "(int)((unsigned)"));
}

TEST_CASE("sums and products of integers wrap around, in a thread and across threads") {
  auto graph = std::make_shared<ComputeGraph>();
  const auto x = graph->input("x", {2, 3}, ScalarType::Int32);
  for (const auto& [combiner, name] : {std::pair{program::Combiner::Sum, "sum"}, {program::Combiner::Product, "all"}})
    graph->reduce(name, {{"i", 2}}, {{"k", 3}}, combiner, [&](auto i, auto r) { return x(i[0], r[0]); });
  graph->reduce("squares", {{"i", 2}}, {{"k", 3}}, program::Combiner::Sum,
                [&](auto i, auto r) { return x(i[0], r[0]) * x(i[0], r[0]); });
  const DeviceProgram serial = codegen::to_cuda(simple(graph, 2, 1, "serial"));
  CHECK(contains(serial.source, "] += (unsigned)x["));
  CHECK(contains(serial.source, "] *= (unsigned)x["));
  // The 32 threads of a warp, and 48 of a block, have two terms each.
  const auto across = [](std::int64_t terms, std::vector<std::int64_t> parts, const std::string& name) {
    auto g = std::make_shared<ComputeGraph>();
    const auto v = g->input("v", {1, terms}, ScalarType::Int32);
    g->reduce("y", {{"i", 1}}, {{"k", terms}}, program::Combiner::Sum, [&](auto i, auto r) { return v(i[0], r[0]); });
    ScheduleBuilder b(g);
    const auto k = b.split(1, 1, parts);
    b.bind(1, k.back(), LoopKind::ThreadX);
    if (k.size() == 3) b.bind(1, k[1], LoopKind::ThreadY);
    b.bind(1, 0, LoopKind::BlockX);
    LoopNest nest = loops::lower(b.schedule());
    nest.name = name;
    return codegen::to_cuda(nest);
  };
  const DeviceProgram warp = across(64, {32}, "warp_of_threads"), block = across(96, {6, 8}, "block_of_threads");
  CHECK(contains(warp.source, "+= (unsigned)__shfl_xor_sync("));
  CHECK(contains(block.source, "group[member] += (unsigned)group[member + distance];"));
  test::HostCuda host;
  for (const DeviceProgram* each : {&serial, &warp, &block}) host.add(*each);
  host.build();
  Numbers rows{{0x1p30, 0x1p30, 3, 65537, 65537, 1}, {0, 0}, {0, 0}, {0, 0}};
  host.run(serial, rows);
  CHECK(rows[1] == std::vector<double>{-0x1p31 + 3, 131075});
  CHECK(rows[2] == std::vector<double>{0, 131073});
  CHECK(rows[3] == std::vector<double>{9, 262147});
  Numbers lanes{std::vector<double>(64, 0x1p26 + 1), {0}};
  host.run(warp, lanes);
  CHECK(lanes[1][0] == 64);
  Numbers threads{std::vector<double>(96, 44739243), {0}};  // 96 times this is 2^32 + 32
  host.run(block, threads);
  CHECK(threads[1][0] == 32);
}

TEST_CASE("casts to 16 bits round once, ties to even") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t count = 12;
  auto graph = std::make_shared<ComputeGraph>();
  const auto d = graph->input("d", {count}, ScalarType::Float64);
  const auto n = graph->input("n", {count}, ScalarType::Int32);
  const auto l = graph->input("l", {count}, ScalarType::Int64);
  const auto one = graph->input("one", {count}, ScalarType::Int64);
  const auto add = [&](const std::string& name, const auto& body) {
    graph->compute(name, {{"i", count}}, [&](auto i) { return body(i[0]); });
  };
  for (const ScalarType to : {ScalarType::Float16, ScalarType::BFloat16}) {
    add("of_double", [&](auto i) { return cast(d(i), to); });
    add("of_int", [&](auto i) { return cast(n(i), to); });
    // A double does not hold all of the sums.
    add("of_long", [&](auto i) { return cast(l(i) + one(i), to); });
    add("of_constant", [&](auto) { return cast(program::constant(1 + 0x1p-11 + 0x1p-40, ScalarType::Float64), to); });
  }
  const DeviceProgram program = codegen::to_cuda(simple(graph, 4, 1, "rounded_once"));
  test::HostCuda host(75);  // without an instruction for bfloat16
  host.add(program);
  host.build();
  const double between = 1 + 0x1p-11;  // of float16
  Numbers got{{between + 0x1p-40, between + 0x1p-10 - 0x1p-40, between, 65519.999999, 65520, -1 - 0x1p-8 - 0x1p-40,
               0x1p-25, 0x1p-25 + 0x1p-70, nan, -infinite, 1e300, -1e-300},
              {0x1p30 + 0x1p22 + 1, 0x1p30 + 0x1p22, -0x1p30 - 0x1p22 - 1, 65519, 65520, 257, 2049, 2051, 0x1p31 - 1,
               -0x1p31, 0, -1},
              {0x1p60 + 0x1p52, 0x1p60 + 0x1p52, -0x1p60 - 0x1p52, 65518, 2048, 2050, 0x1p53, -0x1p63, 0, 0, 0, 0},
              {1, 0, -1, 1, 1, 1, 1, 0, 0, 1, -1, 2}};
  for (int output = 0; output < 8; ++output) got.emplace_back(static_cast<std::size_t>(count), 7.0);
  host.run(program, got);
  const auto check = [&](std::size_t argument, const std::vector<double>& want) {
    CAPTURE(argument);
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      if (std::isnan(want[i]))
        CHECK(std::isnan(got[argument][i]));
      else
        CHECK(got[argument][i] == want[i]);
    }
  };
  check(4, {1 + 0x1p-10, 1 + 0x1p-10, 1, 65504, infinite, -1 - 0x1p-8, 0, 0x1p-24, nan, -infinite, infinite, 0});
  check(5, {infinite, infinite, -infinite, 65504, infinite, 257, 2048, 2052, infinite, -infinite, 0, -1});
  check(6, {infinite, infinite, -infinite, 65504, 2048, 2052, infinite, -infinite, 0, 1, -1, 2});
  check(7, std::vector<double>(static_cast<std::size_t>(count), 1 + 0x1p-10));
  check(8, {1, 1, 1, 65536, 65536, -1 - 0x1p-7, 0x1p-25, 0x1p-25, nan, -infinite, infinite, 0});
  check(9, {0x1p30 + 0x1p23, 0x1p30, -0x1p30 - 0x1p23, 65536, 65536, 256, 2048, 2048, 0x1p31, -0x1p31, 0, -1});
  check(10, {0x1p60 + 0x1p53, 0x1p60, -0x1p60 - 0x1p53, 65536, 2048, 2048, 0x1p53, -0x1p63, 0, 1, -1, 2});
  check(11, std::vector<double>(static_cast<std::size_t>(count), 1.0));
}

TEST_CASE("random GPU schedules of every operator compute what unscheduled loops do") {
  const spaces::MultiLevelTiling space;
  Comparison comparison;
  for (const test::Workload& workload : test::workloads()) {
    Rng rng(7);
    const Task task = program::make_task(workload.name, workload.make(rng), paper_gpu());
    for (int s = 0; s < 2; ++s) {
      const auto config = space.sample(task, rng);
      REQUIRE(config);
      LoopNest nest = loops::lower(*config);
      nest.name = workload.name + "_" + std::to_string(s);
      comparison.add(task.graph, nest);
    }
  }
  comparison.check(2e-5);
}

TEST_CASE("what is no GPU program is refused by name") {
  LoopNest parallel = simple(doubling({64}));
  std::get<loops::Loop>(parallel.body.front().content).kind = LoopKind::Parallel;
  CHECK_THROWS_WITH_AS(static_cast<void>(codegen::to_cuda(parallel)), doctest::Contains("i0.0"),
                       loops::DeviceFormError);
  LoopNest raw = simple(doubling({64}));
  auto& outer = std::get<loops::Loop>(raw.body.front().content);
  outer.kind = LoopKind::Serial;
  CHECK_THROWS_WITH_AS(static_cast<void>(codegen::device_form_to_cuda(raw)),
                       doctest::Contains("loops::to_device first"), loops::DeviceFormError);
}
