// SPDX-License-Identifier: Apache-2.0
// What CUDA programs do by tensor units, run on the host: their inline PTX is interpreted as the instruction set has
// it.
#include "tunewright/codegen/cuda/fragment_emitter.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/cuda_comparison.hpp"
#include "support/tensor_schedules.hpp"
#include "tunewright/codegen/cuda.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
namespace ops = program::operators;
using codegen::DeviceProgram;
using loops::LoopNest;
using program::ScalarType;
using Graph = std::shared_ptr<const program::ComputeGraph>;
using test::Comparison;

Graph product(std::array<std::int64_t, 3> m_n_k, ScalarType type, bool transpose_a, bool transpose_b) {
  return ops::matmul_graph({.m = m_n_k[0],
                            .n = m_n_k[1],
                            .k = m_n_k[2],
                            .transpose_a = transpose_a,
                            .transpose_b = transpose_b,
                            .type = type});
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Instruction {
  const char* name;
  ScalarType type;
  const char* ptx;  ///< begin of what multiplies
};
constexpr Instruction wmma[] = {
    {"wmma_fp16", ScalarType::Float16, "wmma.mma.sync.aligned."},
    {"wmma_bf16", ScalarType::BFloat16, "wmma.mma.sync.aligned."},
    {"wmma_int8", ScalarType::Int8, "wmma.mma.sync.aligned."},
};
constexpr Instruction mma[] = {
    {"mma_fp16", ScalarType::Float16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "},
    {"mma_bf16", ScalarType::BFloat16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "},
    {"mma_int8", ScalarType::Int8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "},
    {"mma_int8", ScalarType::UInt8, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "},
};

}  // namespace

TEST_CASE("products of odd shapes by every instruction, stored by rows and by columns") {
  Comparison comparison(80);
  const auto add_all = [&](const auto& instructions) {
    for (const Instruction& i : instructions) {
      for (const auto& [a, b] : std::array<std::pair<bool, bool>, 3>{{{false, false}, {true, false}, {false, true}}}) {
        const Graph graph = product({40, 19, 75}, i.type, a, b);
        const auto s = test::tensorized_matmul(graph, i.name, {{2, 1}, {1, 2}, 1});
        CHECK(contains(comparison.add(graph, loops::lower(s.schedule())).source, i.ptx));
      }
    }
  };
  add_all(wmma);
  add_all(mma);
  comparison.check();
}

TEST_CASE("padding keeps vectors of a copy together where they lie on one side of it") {
  Comparison comparison(80);
  const auto text = [&](std::array<std::int64_t, 3> m_n_k, bool asynchronous) {
    const Graph graph = product(m_n_k, ScalarType::Float16, false, false);
    auto s = test::tensorized_matmul(graph, "mma_fp16", {{2, 1}, {1, 2}, 1});
    s.pipeline(s.stage("matmul.accumulator"), s.state().stages[s.stage("A.shared")].location.iter, {2, asynchronous});
    return comparison.add(graph, loops::lower(s.schedule())).source;
  };
  // Rows of 40 and 72 numbers end between vectors of 8; those of 44 and 76 between vectors of 4.
  const std::string whole = text({50, 72, 40}, true), halves = text({50, 76, 44}, true);
  CHECK(contains(whole, "copy_async<16>(&"));
  CHECK_FALSE(contains(whole, "copy_async<8>(&"));
  CHECK(contains(halves, "copy_async<8>(&"));
  CHECK_FALSE(contains(halves, "copy_async<16>(&"));
  CHECK(contains(text({50, 72, 40}, false), "reinterpret_cast<const Vector<half, 8>*>(&"));
  comparison.check();
}

TEST_CASE("compute capability 7.5 has smaller instructions that do the same") {
  Comparison comparison(75);
  for (const Instruction& i : mma) {
    if (i.type == ScalarType::BFloat16) continue;
    const Graph graph = product({33, 48, 64}, i.type, false, i.type == ScalarType::UInt8);
    const DeviceProgram& program =
        comparison.add(graph, loops::lower(test::tensorized_matmul(graph, i.name, {{1, 3}, {3, 1}, 2}).schedule()));
    CHECK(program.min_compute_capability == 75);
    CHECK(contains(program.source, "m16n8k8.row.col.f32") == (i.type == ScalarType::Float16));
    CHECK(contains(program.source, "m8n8k16.row.col.s32") == (i.type != ScalarType::Float16));
  }
  comparison.check();
}

TEST_CASE("sums leave fragments of known layout from registers, two at a time where rows are even") {
  const auto text = [](std::int64_t columns, const char* instruction) {
    const Graph graph = product({32, columns, 32}, ScalarType::Float16, false, false);
    return codegen::to_cuda(loops::lower(test::tensorized_matmul(graph, instruction, {{1, 1}, {2, 2}, 1}).schedule()))
        .source;
  };
  const std::string even = text(48, "mma_fp16"), odd = text(35, "mma_fp16"), staged = text(48, "wmma_fp16");
  CHECK(contains(even, " = (int)threadIdx.x / 4 + part / 2 % 2 * 8;"));
  CHECK(contains(even, " = (int)threadIdx.x % 4 * 2 + part % 2 + part / 4 * 8;"));
  CHECK(contains(even, "part += 2"));
  CHECK(contains(even, "matmul_lanes.y = matmul_accumulator"));
  CHECK(contains(even, "*reinterpret_cast<float2*>(&"));
  CHECK_FALSE(contains(odd, "float2"));
  CHECK_FALSE(contains(even + odd, "staged"));
  CHECK(contains(staged, "staged[element]"));
}

TEST_CASE("wrong texts are found: matrices, registers and elements in another order, rows instead of columns") {
  struct Mutant {
    const char* instruction;
    const char *from, *to;
  };
  Comparison comparison(80);
  const Graph graph = product({32, 32, 32}, ScalarType::Float16, false, false);
  for (const Mutant& mutant : {
           Mutant{"mma_fp16", ".trans", ""},
           Mutant{"mma_fp16", "column = lane / 16 * 16", "column = lane / 8 % 2 * 16"},
           Mutant{"mma_fp16", "\"r\"(a[1]), \"r\"(a[2])", "\"r\"(a[2]), \"r\"(a[1])"},
           Mutant{"mma_fp16", "\"r\"(b[2]), \"r\"(b[3])", "\"r\"(b[0]), \"r\"(b[1])"},
           Mutant{"mma_fp16", "part / 2 % 2 * 8", "part / 4 * 8"},
           Mutant{"wmma_fp16", "wmma.load.b.sync.aligned.row", "wmma.load.b.sync.aligned.col"},
           Mutant{"wmma_fp16", "wmma.mma.sync.aligned.row.row", "wmma.mma.sync.aligned.row.col"},
       }) {
    comparison.add_mutant(
        graph, loops::lower(test::tensorized_matmul(graph, mutant.instruction, {{1, 2}, {2, 1}, 1}).schedule()),
        mutant.from, mutant.to);
  }
  comparison.check_all_wrong();
}

TEST_CASE("random schedules of products, batches and convolutions of odd shapes with what follows them") {
  // Three quarters of two instructions at least, so that bytes, which come to 32 terms, fill enough of theirs too.
  const auto dim = [](Rng& rng) { return 25 + static_cast<std::int64_t>(rng.below(8)); };
  const auto workload = [&](std::size_t number, ScalarType type, Rng& rng) {
    const std::int64_t m = dim(rng), n = dim(rng), k = dim(rng);
    return test::product_and_what_follows(number, m, n, k, type);
  };
  const spaces::MultiLevelTiling space;
  Comparison comparison(80);
  std::size_t ahead = 0;
  Rng rng(20);
  struct Case {
    ScalarType type;
    std::size_t by_wmma_too;  // number of a workload
  };
  for (const Case& c : {Case{ScalarType::Float16, 0}, Case{ScalarType::BFloat16, 1}, Case{ScalarType::Int8, 2}}) {
    for (std::size_t number = 0; number < 3; ++number) {
      const Graph graph = workload(number, c.type, rng);
      const Task task = program::make_task("product", graph, gpu_target("A100"));
      bool mma_left = true, wmma_left = number == c.by_wmma_too;
      for (int draw = 0; (mma_left || wmma_left) && draw < 80; ++draw) {
        const auto config = space.sample(task, rng);
        REQUIRE(config);
        const std::string text = codegen::to_cuda(loops::lower(*config)).source;
        bool& left = contains(text, "\"mma.sync") ? mma_left : wmma_left;
        if (!left || !contains(text, "mma.sync")) continue;
        left = false;
        ahead += contains(text, "wait_for_copies");
        comparison.add(graph, loops::lower(*config));
      }
      CHECK_FALSE(mma_left);
      CHECK_FALSE(wmma_left);
    }
  }
  CHECK(ahead >= 3);
  comparison.check();
}

TEST_CASE("an accumulator whose loops are not marked for an instruction is refused") {
  const Graph graph = product({32, 32, 32}, ScalarType::Float16, false, false);
  LoopNest nest = loops::to_device(loops::lower(test::tensorized_matmul(graph, "wmma_fp16", {}).schedule()));
  CHECK_NOTHROW((void)codegen::device_form_to_cuda(nest));
  loops::device::visit_nodes<loops::Loop>(nest.body, [](loops::Loop& loop) { loop.intrinsic = nullptr; });
  CHECK_THROWS_WITH_AS((void)codegen::device_form_to_cuda(nest),
                       "no tensor instruction computes 'matmul.accumulator'; keep it in another scope",
                       codegen::Unsupported);
}
