// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/host_cuda.hpp"
#include "tunewright/codegen/cuda.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace tunewright::test {

using Graph = std::shared_ptr<const program::ComputeGraph>;
using Numbers = std::vector<std::vector<double>>;

/// Small integers, so that sums are exact in any order; another sequence for each argument, all of both signs where the
/// type has them.
inline Numbers arguments_of(const loops::LoopNest& nest) {
  Numbers arguments;
  int next = 1;
  for (const loops::BufferId id : nest.arguments) {
    arguments.emplace_back(static_cast<std::size_t>(nest.buffers[id].elements()));
    const int lowest = nest.buffers[id].type == program::ScalarType::UInt8 ? 120 : -6;
    for (double& value : arguments.back()) value = (next = (next * 137 + 71) % 8191) % 13 + lowest;
  }
  return arguments;
}

/// A matrix product (0), a batch of them (1) or a convolution (2) of `m` rows, `n` columns and `k` terms, with a bias,
/// a rectifier and, for floats, a conversion behind it.
inline Graph product_and_what_follows(std::size_t number, std::int64_t m, std::int64_t n, std::int64_t k,
                                      program::ScalarType type) {
  namespace ops = program::operators;
  auto g = std::make_shared<program::ComputeGraph>();
  program::Tensor y;
  if (number == 0) {
    y = ops::matmul(*g, g->input("A", {m, k}, type), g->input("B", {k, n}, type));
  } else if (number == 1) {
    y = ops::batch_matmul(*g, g->input("A", {2, m, k}, type), g->input("B", {2, k, n}, type));
  } else {
    y = ops::conv2d(*g, g->input("x", {1, 2, m, k}, type), g->constant("w", {3, 3, k, n}, type), {.padding = 1});
  }
  y = ops::relu(*g, ops::bias_add(*g, y, g->constant("bias", {n}, y.type)));
  if (program::is_float(type)) ops::cast(*g, y, type);
  return g;
}

/// Programs that are compiled together and must compute what unscheduled loops do.
struct Comparison {
  explicit Comparison(unsigned architecture) : host(architecture) {}
  const codegen::DeviceProgram& add(const Graph& graph, loops::LoopNest nest) {
    nest.name = "program" + std::to_string(entries.size());
    entries.push_back({loops::lower(schedule::Schedule{graph, {}}), codegen::to_cuda(nest)});
    host.add(entries.back().program);
    return entries.back().program;
  }
  /// The program with a part of its text replaced wherever it is, which it must be.
  void add_mutant(const Graph& graph, loops::LoopNest nest, const std::string& from, const std::string& to) {
    nest.name = "mutant" + std::to_string(entries.size());
    codegen::DeviceProgram program = codegen::to_cuda(nest);
    std::size_t at = program.source.find(from);
    CAPTURE(from);
    REQUIRE(at != std::string::npos);
    for (; at != std::string::npos; at = program.source.find(from, at + to.size()))
      program.source.replace(at, from.size(), to);
    host.add(program);
    entries.push_back({loops::lower(schedule::Schedule{graph, {}}), program});
  }
  void check() {
    host.build();
    for (const Entry& entry : entries) {
      CAPTURE(entry.program.source);
      CHECK(error_of(entry) == 0);
    }
  }
  void check_all_wrong() {
    host.build();
    for (const Entry& entry : entries) {
      CAPTURE(entry.program.name);
      CHECK(error_of(entry) > 0);
    }
  }
  struct Entry {
    loops::LoopNest plain;
    codegen::DeviceProgram program;
  };
  [[nodiscard]] double error_of(const Entry& entry) const {
    Numbers got = arguments_of(entry.plain);
    Numbers want = got;
    loops::interpret(entry.plain, want);
    host.run(entry.program, got);
    return largest_error(got, want);
  }
  HostCuda host;
  std::vector<Entry> entries;
};

}  // namespace tunewright::test
