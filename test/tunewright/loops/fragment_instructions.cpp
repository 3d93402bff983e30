// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/fragment_instructions.hpp"

#include <doctest/doctest.h>

#include <span>
#include <utility>

#include "support/tensor_schedules.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;

/// The nest of a product by `instruction`, as lowered or in device form.
loops::LoopNest nest_of(const char* instruction, bool in_device_form) {
  const auto graph =
      program::operators::matmul_graph({.m = 64, .n = 64, .k = 64, .type = program::ScalarType::Float16});
  loops::LoopNest nest = loops::lower(test::tensorized_matmul(graph, instruction, {}).schedule());
  return in_device_form ? loops::to_device(std::move(nest)) : nest;
}
loops::BufferId buffer_in(const loops::LoopNest& nest, loops::Scope scope) {
  loops::BufferId id = 0;
  while (nest.buffers.at(id).scope != scope) ++id;
  return id;
}
const schedule::TensorIntrinsic& instruction(const char* name) { return *schedule::find_intrinsic(name); }

}  // namespace

TEST_CASE("the instruction of an accumulator, as lowered and in device form; other buffers have none") {
  for (const char* name : {"mma_fp16", "wgmma_fp16_n64"}) {
    for (const bool in_device_form : {false, true}) {
      CAPTURE(name);
      CAPTURE(in_device_form);
      const loops::LoopNest nest = nest_of(name, in_device_form);
      const loops::FragmentInstructions found{std::span<const loops::Node>(nest.body)};
      CHECK(found.storing_to(buffer_in(nest, loops::Scope::Accumulator)) == &instruction(name));
      CHECK(found.storing_to(buffer_in(nest, loops::Scope::Shared)) == nullptr);
      CHECK(found.storing_to(nest.arguments.at(0)) == nullptr);
      // What is taken out is marked in device form alone.
      CHECK((found.storing_to(nest.arguments.at(2)) != nullptr) == in_device_form);
      CHECK(found.threads_together() == (instruction(name).by_warp_group() ? 128 : 32));
      CHECK(found.by_warp_groups() == instruction(name).by_warp_group());
      CHECK_FALSE(found.mix_warps_and_groups());
    }
  }
}

TEST_CASE("threads together are those of a warp without instructions, and of a group where any is a group's") {
  loops::FragmentInstructions found;
  CHECK(found.threads_together() == 32);
  CHECK_FALSE(found.by_warp_groups());
  CHECK_FALSE(found.mix_warps_and_groups());
  CHECK(found.storing_to(0) == nullptr);
  found.add(instruction("wgmma_fp16_n64"), 3);
  found.add(instruction("wgmma_bf16_n128"), 4);
  CHECK(found.threads_together() == 128);
  CHECK_FALSE(found.mix_warps_and_groups());
  found.add(instruction("mma_fp16"), 5);
  CHECK(found.threads_together() == 128);
  CHECK(found.mix_warps_and_groups());
  CHECK(found.storing_to(4) == &instruction("wgmma_bf16_n128"));
  CHECK(found.storing_to(5) == &instruction("mma_fp16"));
}

TEST_CASE("rows of fragments meet in banks that are 128 bytes around") {
  CHECK(loops::conflicts_of_fragment_rows(80) == 1);  // eight rows begin at 0, 80, 32, 112, 64, 16, 96 and 48
  CHECK(loops::conflicts_of_fragment_rows(272) == 1);
  CHECK(loops::conflicts_of_fragment_rows(32) == 2);  // at 0, 32, 64 and 96 twice
  CHECK(loops::conflicts_of_fragment_rows(64) == 4);
  CHECK(loops::conflicts_of_fragment_rows(256) == 8);
}

TEST_CASE("statements of a branch in the loops of an instruction are its own") {
  loops::Statement statement;
  statement.target = 7;
  loops::Branch branch;
  branch.otherwise.push_back(statement);
  loops::Loop loop;
  loop.intrinsic = &instruction("wmma_fp16");
  loop.body.push_back(std::move(branch));
  const loops::Node kernel(std::move(loop));
  CHECK(loops::FragmentInstructions(std::span(&kernel, 1)).storing_to(7) == &instruction("wmma_fp16"));
}
