// SPDX-License-Identifier: Apache-2.0
//
// Lesson 13: how schedules use tensor instructions, and how to add one.
//
// Shows:  a descriptor with the shape and types of an instruction; loops of this shape mapped to it; the errors for
//         other loops; machine code with and without it; a descriptor of your own.
// Run:    build/release/examples/13_a_tensor_instruction
// Expect: the loop nest with its instruction, whether machine code has it, and what a new descriptor multiplies.
//         Kernels are not run, so any machine works. The program fails if the instruction changes the result or is
//         not used.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/loops/explain.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/schedule.hpp"

using namespace tunewright;
using schedule::Schedule;
using schedule::ScheduleBuilder;

namespace {

using program::ScalarType;

// [snippet-begin descriptor]
/// A new instruction: 32 sums, each of 4 products of bytes. It replaces loops of m, n and k iterations.
constexpr schedule::TensorIntrinsic dot32{
    .name = "dot32",
    .n = 32,
    .k = 4,
    .unit = TensorUnit::Avx512Vnni,  // required unit of the processor
    .types = {{{ScalarType::UInt8, ScalarType::Int8, ScalarType::Int32}}},
};
// [snippet-end descriptor]

// [snippet-begin schedule]
/// Four rows of a product of bytes, computed by an instruction with 16 sums of 4 products.
Schedule with_instruction(std::shared_ptr<const program::ComputeGraph> graph) {
  ScheduleBuilder s(std::move(graph));
  const auto c = s.stage("matmul");
  const auto i = s.split(c, 0, {4});
  const auto j = s.split(c, 1, {16});                  // n of the instruction
  const auto k = s.split(c, 2, {4});                   // its k
  s.reorder(c, {i[0], j[0], k[0], i[1], j[1], k[1]});  // the instruction needs n, then k, innermost
  s.unroll(c, i[1]);
  s.tensorize(c, j[1], "avx512_vnni");
  return s.schedule();
}
// [snippet-end schedule]

/// The result of a schedule on small integers.
std::vector<double> result_of(const Schedule& schedule) {
  const loops::LoopNest nest = loops::lower(schedule);
  std::vector<std::vector<double>> arguments;
  for (program::TensorId id = 0; id < schedule.graph->size(); ++id) {
    std::size_t size = 1;
    for (const std::int64_t extent : schedule.graph->op(id).shape()) size *= static_cast<std::size_t>(extent);
    std::vector<double>& values = arguments.emplace_back(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>((7 * i + id) % 5);
  }
  loops::interpret(nest, arguments);
  return arguments.back();
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t n = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

int main() {
  const auto graph = program::operators::matmul_graph(
      {.m = 8, .n = 32, .k = 64, .type = ScalarType::UInt8, .type_b = ScalarType::Int8});
  const auto floats = program::operators::matmul_graph({.m = 8, .n = 32, .k = 64});
  const Schedule schedule = with_instruction(graph);
  std::printf("%s\n", explain(schedule).c_str());

  // The loops remain and keep their meaning, so code that ignores the instruction runs them.
  const bool same = result_of(schedule) == result_of({graph, {}});
  std::printf("computes what plain loops compute: %s\n", same ? "yes" : "no");

  // The call rejects an operator that the instruction cannot compute; lowering rejects loops of another shape, here one
  // loop over all 32 columns.
  const auto refusal = [](const std::shared_ptr<const program::ComputeGraph>& of) -> std::string {
    try {
      ScheduleBuilder s(of);
      s.tensorize(s.stage("matmul"), 1, "avx512_vnni");
      static_cast<void>(loops::lower(s.schedule()));
    } catch (const schedule::ScheduleError& error) {
      return error.what();
    }
    return "";
  };
  const std::string of_floats = refusal(floats), of_misfits = refusal(graph);
  std::printf("given floats: %s\ngiven 32 columns: %s\n", of_floats.c_str(), of_misfits.c_str());

  // [snippet-begin compile]
  // Code for a processor with the instruction and for one without it; neither needs to be present.
  const Target without{.name = "an AVX-512 server", .isa = Isa::Avx512};
  const Target with = without.with_tensor_unit(TensorUnit::Avx512Vnni);
  const auto uses = [&](const Target& target, const Schedule& of) {
    return count(codegen::LlvmCompiler(target).to_assembly(loops::lower(of)), "vpdpbusd");
  };
  const bool used = uses(with, schedule) > 0, used_without = uses(without, schedule) > 0;
  // [snippet-end compile]
  const auto said = [](bool yes) { return yes ? "yes" : "no"; };
  std::printf("vpdpbusd on a processor that has it: %s, on one that has not: %s\n", said(used), said(used_without));

  // [snippet-begin own]
  // A descriptor is data: it can be checked against an operator before there is a schedule.
  const auto fits = [&](const schedule::TensorIntrinsic& one, const program::ComputeGraph& of) {
    return schedule::multiplies(one, of.op(of.outputs().front()));
  };
  const bool bytes_fit = fits(dot32, *graph), floats_fit = fits(dot32, *floats);
  // [snippet-end own]
  std::printf("%s multiplies bytes: %s, floats: %s\n", std::string(dot32.name).c_str(), said(bytes_fit),
              said(floats_fit));
  return same && !of_floats.empty() && !of_misfits.empty() && used && !used_without && bytes_fit && !floats_fit ? 0 : 1;
}
