// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/cuda_compile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "support/workloads.hpp"
#include "tunewright/codegen/cuda.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

using namespace tunewright;
using codegen::CudaCompileOptions;
using codegen::DeviceCode;
using codegen::DeviceFormat;
using codegen::DeviceProgram;

namespace {

DeviceProgram doubling() {
  auto graph = std::make_shared<program::ComputeGraph>();
  program::operators::scale(*graph, graph->input("x", {512}), 2.0);
  schedule::ScheduleBuilder b(graph);
  const auto parts = b.split(1, 0, {128});
  b.bind(1, parts[0], schedule::LoopKind::BlockX);
  b.bind(1, parts[1], schedule::LoopKind::ThreadX);
  loops::LoopNest nest = loops::lower(b.schedule());
  nest.name = "twice";
  return codegen::to_cuda(nest);
}
DeviceProgram of_source(const std::string& source) {
  DeviceProgram program;
  program.source = source;
  program.launches.emplace_back().symbol = "k";
  return program;
}
DeviceCode compiled(DeviceProgram program, const CudaCompileOptions& options) {
  auto result = codegen::compile_cuda(std::move(program), options);
  if (const auto* failure = std::get_if<Failure>(&result)) FAIL(failure->detail);
  return std::get<DeviceCode>(std::move(result));
}
Target gpu(const std::string& architecture) {
  Target target;
  target.name = architecture;
  target.kind = DeviceKind::Gpu;
  target.architecture = architecture;
  target.multiprocessors = 40;
  target.warp_size = 32;
  target.max_vthread_extent = 8;
  target.max_threads_per_block = 1024;
  target.shared_memory_per_block_bytes = 48 * 1024;
  return target;
}
/// A random schedule with a tensor instruction of that family, "wmma" or "mma".
schedule::Schedule tensorized(const spaces::MultiLevelTiling& space, const Task& task, Rng& rng,
                              const std::string& family) {
  for (int draw = 0; draw < 100; ++draw) {
    const auto config = space.sample(task, rng);
    if (config && std::any_of(config->steps.begin(), config->steps.end(), [&](const schedule::Step& step) {
          const auto* by = std::get_if<schedule::Tensorize>(&step);
          return by != nullptr && by->intrinsic.starts_with(family + "_");
        }))
      return *config;
  }
  FAIL("no schedule with a tensor instruction was drawn");
  return {};
}

}  // namespace

TEST_CASE("the assembler's report tells registers, spills and shared memory") {
  const DeviceCode plain =
      compiled(of_source("extern \"C\" __global__ void k(float* x) {\n  __shared__ float s[96];\n  "
                         "s[threadIdx.x] = x[threadIdx.x];\n"
                         "  __syncthreads();\n  x[threadIdx.x] = s[95 - threadIdx.x];\n}\n"),
               {.architecture = "sm_80"});
  REQUIRE(plain.resources.size() == 1);
  CHECK(plain.resources[0].registers > 0);
  CHECK(plain.resources[0].registers <= 32);
  CHECK(plain.resources[0].static_shared_bytes == 96 * 4);
  CHECK(plain.resources[0].spill_store_bytes == 0);
  CHECK(plain.resources[0].stack_bytes == 0);
  CHECK(plain.log.empty());
  CHECK(std::string(plain.image->data(), 4) == "\177ELF");
  // 64 values alive at once do not fit into 24 registers.
  const DeviceCode spilling =
      compiled(of_source("extern \"C\" __global__ void k(float* x) {\n  float r[64];\n#pragma unroll\n  for "
                         "(int i = 0; i < 64; ++i) r[i] = "
                         "x[i * 7 + threadIdx.x];\n  __syncthreads();\n#pragma unroll\n  for (int i = 0; i < "
                         "64; ++i) x[i * 5 + threadIdx.x] = "
                         "r[63 - i] * r[i];\n}\n"),
               {.architecture = "sm_80", .flags = {"--maxrregcount=24"}});
  CHECK(spilling.resources[0].registers <= 24);
  CHECK(spilling.resources[0].spill_store_bytes > 0);
}

TEST_CASE("PTX is text for an architecture and newer ones") {
  const DeviceCode ptx = compiled(doubling(), {.architecture = "sm_75", .format = DeviceFormat::Ptx});
  const std::string text(ptx.image->data());
  CHECK(text.find(".target sm_75") != std::string::npos);
  CHECK(text.find(".entry twice_0_scale") != std::string::npos);
}

TEST_CASE("numbers are rounded to bfloat16 by an instruction where there is one") {
  auto graph = std::make_shared<program::ComputeGraph>();
  program::operators::cast(*graph, graph->input("x", {64}), program::ScalarType::BFloat16);
  schedule::ScheduleBuilder b(graph);
  b.bind(1, 0, schedule::LoopKind::ThreadX);
  const auto ptx = [&](const char* architecture) {
    const DeviceCode code = compiled(codegen::to_cuda(loops::lower(b.schedule())),
                                     {.architecture = architecture, .format = DeviceFormat::Ptx});
    return std::string(code.image->data());
  };
  const std::string instruction = "cvt.rn.bf16.f32";
  CHECK(ptx("sm_75").find(instruction) == std::string::npos);
  CHECK(ptx("sm_80").find(instruction) != std::string::npos);
  CHECK(ptx("sm_90a").find(instruction) != std::string::npos);
}

TEST_CASE("whole numbers and casts to 16 bits compile for three generations, without another rounding in between") {
  auto graph = std::make_shared<program::ComputeGraph>();
  using program::ScalarType;
  for (const ScalarType from : {ScalarType::Float64, ScalarType::Int32, ScalarType::Int64}) {
    const std::string name(program::name(from));
    const auto x = graph->input("x_" + name, {64}, from);
    const auto y = graph->input("y_" + name, {64}, from);
    graph->compute("z_" + name, {{"i", 64}},
                   [&](auto i) { return abs(x(i[0]) * y(i[0]) - x(i[0])) / y(i[0]) + -x(i[0]); });
    for (const ScalarType to : {ScalarType::Float16, ScalarType::BFloat16})
      graph->compute("cast", {{"i", 64}}, [&](auto i) { return cast(x(i[0]), to); });
    graph->reduce("sum", {{"i", 64}}, {{"k", 4}}, program::Combiner::Product, [&](auto i, auto) { return y(i[0]); });
  }
  schedule::ScheduleBuilder b(graph);
  for (program::TensorId id = 0; id < graph->size(); ++id)
    if (graph->op(id).role == program::Role::Computed) b.bind(id, 0, schedule::LoopKind::ThreadX);
  const DeviceProgram program = codegen::to_cuda(loops::lower(b.schedule()));
  CAPTURE(program.source);
  for (const char* architecture : {"sm_75", "sm_80", "sm_90a"})
    CHECK(compiled(program, {.architecture = architecture}).log.empty());
  const DeviceCode ptx = compiled(program, {.architecture = "sm_80", .format = DeviceFormat::Ptx});
  const std::string text(ptx.image->data());
  for (const char* conversion : {"cvt.rz.f32.f64", "cvt.rz.f32.s32", "cvt.rz.f32.s64"})
    CHECK(text.find(conversion) != std::string::npos);
  for (const char* conversion : {"cvt.rn.f32.f64", "cvt.rn.f32.s32", "cvt.rn.f32.s64"})
    CHECK(text.find(conversion) == std::string::npos);
}

TEST_CASE("programs that are refused are failures that say why; unknown architectures are misuse") {
  const auto refused = codegen::compile_cuda(of_source("extern \"C\" __global__ void k(float* x) { x[0] = y; }"), {});
  const auto* failure = std::get_if<Failure>(&refused);
  REQUIRE(failure != nullptr);
  CHECK(failure->fault == Fault::DeviceCompileError);
  CHECK(failure->detail.find("identifier \"y\" is undefined") != std::string::npos);

  // More static shared memory than a block can have: the assembler's to refuse.
  const auto large =
      codegen::compile_cuda(of_source("extern \"C\" __global__ void k(int* x) { __shared__ int s[20000]; "
                                      "s[x[0]] = 1; __syncthreads(); x[1] = s[x[2]]; }"),
                            {});
  REQUIRE(std::get_if<Failure>(&large) != nullptr);
  CHECK(std::get<Failure>(large).fault == Fault::DeviceCompileError);

  const std::vector<std::string> known = codegen::cuda_architectures();
  CHECK(std::find(known.begin(), known.end(), "sm_80") != known.end());
  for (const char* wrong : {"sm_20", "90", "", "a", "sm_"}) {
    CHECK_THROWS_WITH_AS(codegen::check_architecture(wrong), doctest::Contains(", sm_80, "), std::invalid_argument);
  }
  CHECK_NOTHROW(codegen::check_architecture("sm_90a"));
  CHECK_THROWS_AS(static_cast<void>(codegen::compile_cuda(doubling(), {.flags = {"--no-such-option"}})),
                  std::invalid_argument);
}

TEST_CASE("random GPU schedules compile for three generations without spilling what fits") {
  const spaces::MultiLevelTiling space;
  const char* const architectures[] = {"sm_75", "sm_80", "sm_90"};
  std::size_t turn = 0;
  for (const test::Workload& workload : test::workloads()) {
    Rng rng(11);
    const Task task = program::make_task(workload.name, workload.make(rng), gpu(architectures[turn++ % 3]));
    const auto config = space.sample(task, rng);
    REQUIRE(config);
    CAPTURE(workload.name);
    const DeviceCode code =
        compiled(codegen::to_cuda(loops::lower(*config)), {.architecture = task.target.architecture});
    CAPTURE(code.program.source);
    CHECK(code.log.empty());
    for (std::size_t k = 0; k < code.resources.size(); ++k) {
      CHECK(code.resources[k].registers > 0);
      CHECK(code.resources[k].static_shared_bytes <= code.program.launches[k].static_shared_bytes);
    }
  }
}

TEST_CASE("asynchronous copies compile from sm_80 on and are refused for older devices") {
  const spaces::MultiLevelTiling space;
  std::size_t compiled_ones = 0;
  for (const char* architecture : {"sm_80", "sm_90"}) {
    for (const test::Workload& workload : test::workloads()) {
      Rng rng(5);
      const Task task = program::make_task(workload.name, workload.make(rng), gpu(architecture));
      DeviceProgram found;
      for (int draw = 0; draw < 20 && found.min_compute_capability == 0; ++draw) {
        const auto config = space.sample(task, rng);
        REQUIRE(config);
        found = codegen::to_cuda(loops::lower(*config));
      }
      if (found.min_compute_capability == 0) continue;  // copies nothing, or has one tile
      CAPTURE(found.source);
      CHECK(compiled(found, {.architecture = architecture}).log.empty());
      const auto refused = codegen::compile_cuda(found, {.architecture = "sm_75"});
      REQUIRE(std::get_if<Failure>(&refused) != nullptr);
      CHECK(std::get<Failure>(refused).fault == Fault::DeviceCompileError);
      CHECK(std::get<Failure>(refused).detail.find("needs compute capability 8.0; sm_75 is older") !=
            std::string::npos);
      if (++compiled_ones % 4 == 0) break;  // four of each
    }
  }
  CHECK(compiled_ones == 8);
}

TEST_CASE("copies that run ahead of tensor instructions compile for three generations") {
  struct Case {
    const char* device;
    schedule::Pipelining pipelining;
    std::string family;
  };
  const spaces::MultiLevelTiling space;
  for (const Case& c : {Case{"T4", {2, false}, "wmma"}, Case{"A100", {2, true}, "mma"}, Case{"A100", {4, true}, "wmma"},
                        Case{"H100", {2, false}, "mma"}, Case{"H100", {3, true}, "mma"}}) {
    CAPTURE(c.device);
    CAPTURE(c.pipelining.depth);
    const Task task = program::make_task(
        "product",
        program::operators::matmul_graph({.m = 500, .n = 512, .k = 520, .type = program::ScalarType::Float16}),
        gpu_target(c.device));
    Rng rng(3);
    loops::LoopNest nest;
    bool found = false;
    for (int draw = 0; draw < 20 && !found; ++draw) {
      schedule::Schedule config = tensorized(space, task, rng, c.family);
      for (schedule::Step& step : config.steps) {
        auto* pipeline = std::get_if<schedule::Pipeline>(&step);
        if (pipeline == nullptr) continue;
        const auto at = std::find(pipeline->choices.begin(), pipeline->choices.end(), c.pipelining);
        REQUIRE(at != pipeline->choices.end());
        pipeline->selected = static_cast<std::uint32_t>(at - pipeline->choices.begin());
      }
      nest = loops::lower(config);
      found = loops::exceeded_limit(nest, task.target).empty() &&
              std::any_of(nest.buffers.begin(), nest.buffers.end(),
                          [&](const loops::Buffer& b) { return b.stages == c.pipelining.depth; });
    }
    REQUIRE(found);
    const DeviceCode code = compiled(codegen::to_cuda(nest), {.architecture = task.target.architecture});
    CAPTURE(code.program.source);
    CHECK(code.log.empty());
    CHECK((code.program.source.find("cp.async") != std::string::npos) == c.pipelining.asynchronous);
    CHECK(code.program.source.find("\"" + c.family + (c.family == "mma" ? ".sync" : ".mma.sync")) != std::string::npos);
  }
}

TEST_CASE("kernels of tensor instructions compile for the generations that have them") {
  namespace ops = program::operators;
  using program::ScalarType;
  struct Case {
    const char* device;
    ScalarType type;
    bool transposed;
    const char* instruction;
    unsigned since;  // compute capability, times ten
  };
  const spaces::MultiLevelTiling space;
  for (const Case& c :
       {Case{"T4", ScalarType::Float16, false, "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 ", 70},
        Case{"T4", ScalarType::Int8, true, "wmma.mma.sync.aligned.col.col.m16n16k16.s32.s8.s8.s32 ", 72},
        Case{"A100", ScalarType::BFloat16, false, "wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32 ", 80},
        Case{"A100", ScalarType::UInt8, false, "wmma.mma.sync.aligned.row.row.m16n16k16.s32.u8.u8.s32 ", 72},
        Case{"H100", ScalarType::Float16, true, "wmma.mma.sync.aligned.col.col.m16n16k16.f32.f32 ", 70},
        Case{"T4", ScalarType::Float16, true, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 ", 75},
        Case{"T4", ScalarType::Int8, false, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 ", 75},
        Case{"A100", ScalarType::Float16, false, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ", 75},
        Case{"A100", ScalarType::BFloat16, true, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ", 80},
        Case{"H100", ScalarType::UInt8, true, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 ", 75}}) {
    const Task task = program::make_task(
        "product",
        ops::matmul_graph(
            {.m = 500, .n = 512, .k = 130, .transpose_a = c.transposed, .transpose_b = c.transposed, .type = c.type}),
        gpu_target(c.device));
    Rng rng(3);
    const std::string family = std::string(c.instruction).starts_with("wmma") ? "wmma" : "mma";
    const DeviceCode code = compiled(codegen::to_cuda(loops::lower(tensorized(space, task, rng, family))),
                                     {.architecture = task.target.architecture});
    CAPTURE(code.program.source);
    CHECK(code.log.empty());
    CHECK(code.program.source.find(c.instruction) != std::string::npos);
    const bool copies = code.program.source.find("cp.async") != std::string::npos;
    CHECK(code.program.min_compute_capability == (copies ? 80 : c.since));
    CHECK(code.resources.at(0).static_shared_bytes <= code.program.launches[0].static_shared_bytes);
  }
}

TEST_CASE("products by warp groups compile for sm_90a, without spills, and are refused for anything else") {
  using program::ScalarType;
  struct Case {
    ScalarType type;
    bool transposed;
    std::string instruction;
  };
  const spaces::MultiLevelTiling space;
  for (const Case& c :
       {Case{ScalarType::Float16, false, "wgmma_fp16_n64"}, Case{ScalarType::Float16, true, "wgmma_fp16_n256"},
        Case{ScalarType::BFloat16, false, "wgmma_bf16_n128"}, Case{ScalarType::Int8, false, "wgmma_int8_n128"},
        Case{ScalarType::UInt8, true, "wgmma_int8_n64"}}) {
    const Task task = program::make_task(
        "product",
        program::operators::matmul_graph(
            {.m = 2000, .n = 2048, .k = 250, .transpose_a = c.transposed, .transpose_b = c.transposed, .type = c.type}),
        gpu_target("H100"));
    Rng rng(3);
    loops::LoopNest nest;
    const auto is_wanted = [&](const schedule::Step& step) {
      const auto* by = std::get_if<schedule::Tensorize>(&step);
      return by != nullptr && by->intrinsic == c.instruction;
    };
    for (int draw = 0; draw < 200 && nest.buffers.empty(); ++draw) {
      const auto config = space.sample(task, rng);
      if (config && std::any_of(config->steps.begin(), config->steps.end(), is_wanted)) nest = loops::lower(*config);
    }
    REQUIRE_FALSE(nest.buffers.empty());
    const DeviceCode code = compiled(codegen::to_cuda(nest), {.architecture = task.target.architecture});
    CAPTURE(code.program.source);
    CHECK(code.log.empty());
    CHECK(code.resources.at(0).registers > 0);
    CHECK(code.resources.at(0).spill_store_bytes == 0);
    for (const char* other : {"sm_90", "sm_100a"}) {
      const auto refused = codegen::compile_cuda(code.program, {.architecture = other});
      REQUIRE(std::get_if<Failure>(&refused) != nullptr);
      CHECK(std::get<Failure>(refused).fault == Fault::DeviceCompileError);
      CHECK(std::get<Failure>(refused).detail.find("multiplies by warp groups, for which there is code for sm_90a "
                                                   "alone, not for " +
                                                   std::string(other)) != std::string::npos);
    }
  }
}
