// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/summary/tensors.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;

using Graph = std::shared_ptr<const program::ComputeGraph>;

TEST_CASE("statements of random schedules are those of the nest that code is generated for") {
  const std::vector<Graph> graphs{
      program::operators::matmul_graph({.m = 40, .n = 48, .k = 100, .type = ScalarType::BFloat16}),
      program::operators::matmul_graph({.m = 33, .n = 40, .k = 96, .constant_b = true, .type = ScalarType::Int8}),
      program::operators::conv2d_graph({.height = 14,
                                        .width = 14,
                                        .in_channels = 32,
                                        .out_channels = 32,
                                        .kernel = 3,
                                        .padding = 1,
                                        .type = ScalarType::UInt8,
                                        .weight_type = ScalarType::Int8})};
  Target server;
  server.isa = Isa::Avx512;
  for (const TensorUnit unit :
       {TensorUnit::AmxInt8, TensorUnit::AmxBf16, TensorUnit::Avx512Vnni, TensorUnit::Avx512Bf16})
    server = server.with_tensor_unit(unit);
  const spaces::MultiLevelTiling space;
  loops::SummaryTensors tensors;
  std::size_t products = 0, shared_out = 0;
  std::vector<Task> tasks;
  for (const Graph& graph : graphs) {
    for (const Target& target : {server, server.with_isa(Isa::Avx2)}) {
      if (target.isa == Isa::Avx512 || graph != graphs[0]) tasks.push_back(program::make_task("t", graph, target));
    }
  }
  for (const Task& task : tasks) {
    Rng rng(7);
    for (int drawn = 0; drawn < 60;) {
      const auto config = space.sample(task, rng);
      if (!config) continue;
      ++drawn;
      const loops::LoopNest nest = loops::lower(*config);
      const loops::LoopNest emitted = loops::prepare_for_codegen(nest, 64);
      std::vector<loops::TensorStatement> found, all;
      tensors.find(nest, found);
      loops::TensorStatements().find(emitted, all);
      std::map<std::size_t, loops::Share> shares;
      for (const loops::TensorStatement& t : all) shares[t.number] += t.share;
      REQUIRE_MESSAGE(found.size() == shares.size(), loops::to_string(nest));
      for (const loops::TensorStatement& t : found) {
        CHECK_MESSAGE(t.share == shares[t.number], loops::to_string(nest));
        products += t.kind == loops::TensorStatement::Kind::Product ? 1U : 0U;
        shared_out += t.share < loops::whole_share ? 1U : 0U;
        for (const loops::TensorStatement& other : all) {
          if (other.number != t.number || other.statement->guards.size() != t.statement->guards.size()) continue;
          CHECK((other.own == t.own && other.kept == t.kept && other.starts == t.starts));
        }
      }
    }
  }
  CHECK(products > 60);
  CHECK(shared_out > 5);
}

}  // namespace
