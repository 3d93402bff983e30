// SPDX-License-Identifier: Apache-2.0
// Products by warp groups, run on the host: their inline PTX is interpreted as the instruction set has it.
#include "tunewright/codegen/cuda/warp_group_helpers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/cuda_comparison.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;
using test::Comparison;
using Graph = std::shared_ptr<const program::ComputeGraph>;

constexpr unsigned sm_90 = 90;

Graph product(std::array<std::int64_t, 3> m_n_k, ScalarType type, bool transpose_a = false, bool transpose_b = false) {
  return program::operators::matmul_graph({.m = m_n_k[0],
                                           .n = m_n_k[1],
                                           .k = m_n_k[2],
                                           .transpose_a = transpose_a,
                                           .transpose_b = transpose_b,
                                           .type = type});
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A product of 64 x 16 and 16 x 64 numbers that owes nothing to the code generator. Matrices lie in the canonical
/// layouts without swizzling of the PTX ISA, section 9.7.15.5.1.2.1.3, where eight numbers of 16 bits (T) are 16 bytes,
///
///   terms as neighbours   ((8,m),(T,2k)):((T,SBO),(1,LBO))
///   lines as neighbours   ((T,1,m),(8,k)):((1,T,SBO),(T,LBO)),
///
/// with 144 bytes as the leading (LBO) and 288 as the stride dimension byte offset (SBO), and descriptors of section
/// 9.7.15.5.1.2.2: their sixteenths, 9 and 18, from bits 16 and 32 on. Swizzled, rows of 64 numbers follow each other,
/// pieces of eight are exchanged by the number of the row, 1024 is the stride, and the number in bits 62 and 63 is 1; of rows of terms
/// the instruction takes the second quarter. Sums leave as CUTLASS has it (`CLayout_64xN`):
/// ((4,8,4),(2,2,N/8)):((128,1,16),(64,8,512)) of thread and register tell 64 * column + row.
codegen::DeviceProgram product_by_hand(bool a_by_lines, bool b_by_lines, bool swizzled) {
  const auto place = [&](bool by_lines) {
    if (swizzled) {
      return std::string(by_lines ? "term * 64 + (line / 8 ^ term % 8) * 8 + line % 8"
                                  : "line * 64 + (2 + term / 8 ^ line % 8) * 8 + term % 8");
    }
    return std::string(by_lines ? "line % 8 + line / 8 * 144 + term % 8 * 8 + term / 8 * 72"
                                : "line % 8 * 8 + line / 8 * 144 + term % 8 + term / 8 * 72");
  };
  const std::string steps = swizzled ? "1ull << 16 | 64ull << 32 | 1ull << 62" : "9ull << 16 | 18ull << 32";
  const auto second_quarter = [&](bool by_lines) { return std::string(swizzled && !by_lines ? " + 2" : ""); };
  using codegen::cuda::detail::numbered, codegen::cuda::detail::operands;
  codegen::DeviceProgram program;
  program.name = std::string("by_hand") + (a_by_lines ? "_a" : "") + (b_by_lines ? "_b" : "") + (swizzled ? "_s" : "");
  program.source =
      "void kernel(const unsigned short* a, const unsigned short* b, float* d) {\n"
      "  __shared__ __align__(1024) unsigned short x[4096], y[4096];\n"
      "  for (int i = threadIdx.x; i < 1024; i += 128) {\n"
      "    { const int line = i / 16, term = i % 16; x[" +
      place(a_by_lines) +
      "] = a[i]; }\n"
      "    { const int line = i % 64, term = i / 64; y[" +
      place(b_by_lines) +
      "] = b[i]; }\n"
      "  }\n"
      "  asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n"
      "  __syncthreads();\n"
      "  const unsigned long long steps = " +
      steps +
      ";\n"
      "  const unsigned long long first = (__cvta_generic_to_shared(x) >> 4)" +
      second_quarter(a_by_lines) +
      " | steps;\n"
      "  const unsigned long long second = (__cvta_generic_to_shared(y) >> 4)" +
      second_quarter(b_by_lines) +
      " | steps;\n"
      "  float sums[32] = {};\n"
      "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"
      "  asm volatile(\"{ .reg .pred p; setp.ne.b32 p, 1, 0; "
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " +
      numbered(0, 32) + ", %32, %33, p, 1, 1, " + (a_by_lines ? "1" : "0") + ", " + (b_by_lines ? "1" : "0") +
      "; }\" : " + operands("+f", "sums", 32) +
      " : \"l\"(first), \"l\"(second));\n"
      "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n"
      "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\" ::: \"memory\");\n"
      "  for (int i = 0; i < 32; ++i) {\n"
      "    const int t = threadIdx.x;\n"
      "    const int at = t % 4 * 128 + t / 4 % 8 + t / 32 * 16 + i % 2 * 64 + i / 2 % 2 * 8 + i / 4 * 512;\n"
      "    d[at % 64 * 64 + at / 64] = sums[i];\n"
      "  }\n"
      "}\n";
  const auto add = [&](std::vector<std::int64_t> shape, ScalarType type, loops::BufferRole role) {
    loops::Buffer layout;
    layout.type = type;
    layout.role = role;
    layout.shape = std::move(shape);
    program.buffers.push_back({std::move(layout)});
  };
  add({64, 16}, ScalarType::BFloat16, loops::BufferRole::Input);
  add({16, 64}, ScalarType::BFloat16, loops::BufferRole::Input);
  add({64, 64}, ScalarType::Float32, loops::BufferRole::Output);
  codegen::DeviceLaunch& launch = program.launches.emplace_back();
  launch.symbol = "kernel";
  launch.block = {128, 1, 1};
  launch.arguments = {0, 1, 2};
  program.multiplies_by_warp_groups = true;
  return program;
}

}  // namespace

TEST_CASE("instructions are interpreted as the manuals have them: layouts, descriptors and sums by hand") {
  test::HostCuda host(sm_90);
  std::vector<codegen::DeviceProgram> programs;
  for (const bool swizzled : {false, true}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) host.add(programs.emplace_back(product_by_hand(a, b, swizzled)));
    }
  }
  host.build();
  // No two rows of the first, or columns of the second, are the same.
  std::vector<std::vector<double>> arguments{std::vector<double>(1024), std::vector<double>(1024),
                                             std::vector<double>(4096)};
  for (std::size_t i = 0; i < 1024; ++i) {
    arguments[0][i] = static_cast<double>((7 * i + i / 16 * i % 13) % 17) - 8;
    arguments[1][i] = static_cast<double>((5 * i + i / 64 * i % 11) % 19) - 9;
  }
  std::vector<double> product(4096);
  for (std::size_t p = 0; p < product.size(); ++p) {
    for (std::size_t k = 0; k < 16; ++k) product[p] += arguments[0][p / 64 * 16 + k] * arguments[1][64 * k + p % 64];
  }
  for (const codegen::DeviceProgram& program : programs) {
    CAPTURE(program.name);
    auto got = arguments;
    host.run(program, got);
    CHECK(got[2] == product);
  }
}

TEST_CASE("a descriptor has 14 bits each of where a matrix begins and how far its parts are apart") {
  const std::string text = codegen::cuda::describe_matrix_helper().definition;
  CHECK(contains(text, "(place & 0x3ffff) >> 4)"));
  CHECK(contains(text, "((along_terms & 0x3ffff) >> 4) << 16"));
  CHECK(contains(text, "((along_lines & 0x3ffff) >> 4) << 32"));
}

TEST_CASE("products of odd shapes by every instruction, stored by rows and by columns") {
  struct Instruction {
    const char* name;
    ScalarType type;
    std::string begin, end;  // of its text, around numbers of registers
  };
  Comparison comparison(sm_90);
  for (const Instruction& i : {
           Instruction{"wgmma_fp16_n64", ScalarType::Float16, "m64n64k16.f32.f16.f16 {%0", "%33, adds, 1, 1, "},
           {"wgmma_fp16_n128", ScalarType::Float16, "m64n128k16.f32.f16.f16 {%0", "%65, adds, 1, 1, "},
           {"wgmma_fp16_n256", ScalarType::Float16, "m64n256k16.f32.f16.f16 {%0", "%129, adds, 1, 1, "},
           {"wgmma_bf16_n64", ScalarType::BFloat16, "m64n64k16.f32.bf16.bf16 {%0", "%33, adds, 1, 1, "},
           {"wgmma_bf16_n128", ScalarType::BFloat16, "m64n128k16.f32.bf16.bf16 {%0", "%65, adds, 1, 1, "},
           {"wgmma_bf16_n256", ScalarType::BFloat16, "m64n256k16.f32.bf16.bf16 {%0", "%129, adds, 1, 1, "},
           {"wgmma_int8_n64", ScalarType::Int8, "m64n64k32.s32.s8.s8 {%0", "%33, adds; }"},
           {"wgmma_int8_n128", ScalarType::UInt8, "m64n128k32.s32.u8.u8 {%0", "%65, adds; }"},
           {"wgmma_int8_n256", ScalarType::Int8, "m64n256k32.s32.s8.s8 {%0", "%129, adds; }"},
       }) {
    for (const auto& [a, b] :
         std::array<std::pair<bool, bool>, 4>{{{false, false}, {true, false}, {false, true}, {true, true}}}) {
      for (const bool swizzled : {false, true}) {
        const Graph graph = product({100, 75, program::size_in_bytes(i.type) == 1 ? 139 : 75}, i.type, a, b);
        const std::int64_t two = std::string(i.name).ends_with("n64") ? 2 : 1;
        // Rows of 128 bytes, whatever is in them, or rows with something behind them.
        const auto s = test::tensorized_matmul(graph, i.name, {{2, 1}, {1, two}, swizzled ? 4 : 2, swizzled ? 0 : 16});
        const codegen::DeviceProgram& program = comparison.add(graph, loops::lower(s.schedule()));
        CAPTURE(program.source);
        CHECK(contains(program.source, "describe_swizzled_matrix(&") == swizzled);
        CHECK(contains(program.source, "describe_matrix(&") != swizzled);
        CHECK(contains(program.source, "wgmma.mma_async.sync.aligned." + i.begin));
        const bool bytes = program::size_in_bytes(i.type) == 1;
        const std::string transposed = bytes ? "" : std::string(a ? "1" : "0") + ", " + (b ? "0" : "1") + "; }";
        CHECK(contains(program.source, i.end + transposed));
        CHECK(program.multiplies_by_warp_groups);
        CHECK(program.min_compute_capability == 90);
        CHECK(program.launches.at(0).block == std::array<std::int64_t, 3>{128, 2, 1});
      }
    }
  }
  comparison.check();
}

TEST_CASE("wrong texts are found: offsets, transposition, registers, fences and waits that are not there") {
  struct Mutant {
    std::string from, to;
  };
  const auto without = [](const std::string& text) { return Mutant{"asm volatile(\"" + text + "\"", "//"}; };
  const Graph graph = product({64, 128, 64}, ScalarType::Float16);
  const auto nest = [&](unsigned depth, bool asynchronous) {
    schedule::ScheduleBuilder s = test::tensorized_matmul(graph, "wgmma_fp16_n64", {{1, 1}, {1, 2}, 2});
    if (depth > 1)
      s.pipeline(s.stage("matmul.accumulator"), s.state().stages[s.stage("A.shared")].location.iter,
                 {depth, asynchronous});
    return loops::lower(s.schedule());
  };
  // Rows of terms of the first and of lines of the second factor are swizzled.
  const auto swizzled = [&] {
    return loops::lower(test::tensorized_matmul(graph, "wgmma_fp16_n64", {{1, 1}, {1, 2}, 4, 0}).schedule());
  };
  const std::string shows = "show_stores_to_tensor_units();\n";
  Comparison right(sm_90), wrong(sm_90);
  for (const bool asynchronous : {false, true}) right.add(graph, nest(2, asynchronous));
  right.add(graph, nest(1, false));
  right.add(graph, swizzled());
  right.check();
  for (const Mutant& mutant : {
           Mutant{"at ^ (at / 64 % 8 * 8)", "at"},
           Mutant{"at ^ (at / 64 % 8 * 8)", "at ^ (at / 64 % 4 * 8)"},
           Mutant{"int along_rows, int along_columns", "int along_columns, int along_rows"},
       })
    wrong.add_mutant(graph, swizzled(), mutant.from, mutant.to);
  for (const Mutant& mutant : {
           Mutant{"int along_terms, int along_lines", "int along_lines, int along_terms"},
           Mutant{"(place & 0x3ffff) >> 4", "(place & 0x3ffff) >> 5"},
           Mutant{"adds, 1, 1, 0, 1;", "adds, 1, 1, 0, 0;"},
           Mutant{"adds, 1, 1, 0, 1;", "adds, 1, 1, 1, 1;"},
           Mutant{"\"+f\"(sums[1]), \"+f\"(sums[2])", "\"+f\"(sums[2]), \"+f\"(sums[1])"},
           Mutant{"part / 2 % 2 * 8", "part / 2 % 2 * 4"},
           Mutant{"threadIdx.x / 32 * 16", "threadIdx.x / 32 * 8"},
           without("wgmma.fence.sync.aligned;"),
           without("wgmma.commit_group.sync.aligned;"),
           without("wgmma.wait_group.sync.aligned 0;"),
           Mutant{"wait_group.sync.aligned 0", "wait_group.sync.aligned 1"},
           without("fence.proxy.async.shared::cta;"),
           Mutant{shows + "    __syncthreads();", "__syncthreads();\n    " + shows},
       })
    wrong.add_mutant(graph, nest(1, false), mutant.from, mutant.to);
  // Behind the wait for copies nobody has shown them.
  const std::string waits = "wait_for_copies<0>();\n    ";
  wrong.add_mutant(graph, nest(2, true), shows, "\n");
  wrong.add_mutant(graph, nest(2, true), waits + shows, shows + waits);
  wrong.check_all_wrong();
}

TEST_CASE(
    "products run on while the next tile is waited for: once they have read a tile, another takes its "
    "place") {
  const Graph graph = product({128, 64, 128}, ScalarType::Float16);
  const auto nest = [&](unsigned depth, bool asynchronous) {
    schedule::ScheduleBuilder s = test::tensorized_matmul(graph, "wgmma_fp16_n64", {{2, 1}, {1, 1}, 2});
    s.pipeline(s.stage("matmul.accumulator"), s.state().stages[s.stage("A.shared")].location.iter,
               {depth, asynchronous});
    return loops::lower(s.schedule());
  };
  Comparison right(sm_90), wrong(sm_90);
  for (const unsigned depth : {2U, 3U, 4U}) {
    const std::string source = right.add(graph, nest(depth, true)).source;
    CAPTURE(source);
    // Nothing shows stores at the second barrier, since it is not for what has been stored.
    CHECK(contains(source, "    wait_for_products_but_1();\n    __syncthreads();\n    const bool wanted"));
    CHECK(contains(source, "  }\n  wait_for_products();\n"));
    const std::string shown = "show_stores_to_tensor_units();\n    __syncthreads();";
    CHECK(contains(source, shown));
    CHECK(source.find(shown) == source.rfind(shown));
  }
  CHECK(contains(right.add(graph, nest(2, false)).source, "wait_for_products_but_1();\n    __syncthreads();\n"));
  right.check();
  // Tiles of swizzled rows, each in its own part of the buffer.
  const Graph long_product = product({128, 64, 320}, ScalarType::Float16);
  const auto swizzled = [&](unsigned depth, bool asynchronous) {
    schedule::ScheduleBuilder s = test::tensorized_matmul(long_product, "wgmma_fp16_n64", {{2, 1}, {1, 1}, 4, 0});
    s.pipeline(s.stage("matmul.accumulator"), s.state().stages[s.stage("A.shared")].location.iter,
               {depth, asynchronous});
    return loops::lower(s.schedule());
  };
  Comparison of_lines(sm_90);
  for (const unsigned depth : {2U, 3U, 4U}) {
    const std::string source = of_lines.add(long_product, swizzled(depth, true)).source;
    CHECK(contains(source, "describe_swizzled_matrix(&"));
    CHECK(contains(source, "copy_async_if<16, true>(wanted"));
    CHECK(contains(source, "__align__(1024)"));
  }
  of_lines.add(long_product, swizzled(2, false));
  of_lines.check();
  CHECK_FALSE(contains(right.entries.front().program.source, "copy_async_if<16, true>(wanted"));
  const std::string but_one = "wgmma.wait_group.sync.aligned 1;";
  wrong.add_mutant(graph, nest(2, true), but_one, "wgmma.wait_group.sync.aligned 2;");
  wrong.add_mutant(graph, nest(2, false), but_one, "wgmma.wait_group.sync.aligned 2;");
  wrong.add_mutant(graph, nest(2, false), "but_1();\n    __syncthreads();", "but_1();");
  wrong.add_mutant(graph, nest(2, true), "  wait_for_products();\n", "\n");
  wrong.add_mutant(graph, nest(3, true), "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;");
  wrong.check_all_wrong();
}

TEST_CASE("random schedules of products, batches and convolutions of odd shapes with what follows them") {
  const auto workload = [](std::size_t number, ScalarType type, Rng& rng) {
    const auto dim = [&](std::int64_t least) { return least + static_cast<std::int64_t>(rng.below(8)); };
    const std::int64_t m = dim(50), n = dim(57), k = dim(25);
    return test::product_and_what_follows(number, m, n, k, type);
  };
  const spaces::MultiLevelTiling space;
  Comparison comparison(sm_90);
  std::size_t ahead = 0, swizzled = 0;
  Rng rng(20);
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8}) {
    for (std::size_t number = 0; number < 3; ++number) {
      const Graph graph = workload(number, type, rng);
      const Task task = program::make_task("product", graph, gpu_target("H100"));
      std::size_t found = 0;
      for (int draw = 0; found < 2 && draw < 400; ++draw) {
        const auto config = space.sample(task, rng);
        REQUIRE(config);
        const loops::LoopNest nest = loops::lower(*config);
        const codegen::DeviceProgram program = codegen::to_cuda(nest);
        if (!program.multiplies_by_warp_groups) continue;
        ++found;
        ahead += contains(program.source, "wait_for_copies");
        swizzled += contains(program.source, "describe_swizzled_matrix(&");
        comparison.add(graph, nest);
      }
      CAPTURE(number);
      CHECK(found == 2);
    }
  }
  CHECK(ahead >= 3);
  CHECK(swizzled >= 1);
  comparison.check();
}

TEST_CASE("windows of images in swizzled rows, whatever row they begin with") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1, 2, 66, 64}, ScalarType::Float16);
  program::operators::conv2d(*g, x, g->constant("w", {3, 3, 64, 64}, ScalarType::Float16), {.padding = 1});
  const Graph graph = g;
  const Task task = program::make_task("convolution", graph, gpu_target("H100"));
  spaces::MultiLevelTiling space;
  space.min_utilisation = 0;  // of a device for which this is little work
  Comparison comparison(sm_90);
  Rng rng(4);
  std::size_t found = 0;
  for (int draw = 0; found < 3 && draw < 4000; ++draw) {
    const auto config = space.sample(task, rng);
    REQUIRE(config);
    const loops::LoopNest nest = loops::lower(*config);
    const bool swizzled = std::any_of(nest.buffers.begin(), nest.buffers.end(),
                                      [&](const loops::Buffer& b) { return b.swizzled && !b.name.starts_with("w"); });
    if (!swizzled) continue;
    ++found;
    comparison.add(graph, nest);
  }
  CHECK(found == 3);
  comparison.check();
}
