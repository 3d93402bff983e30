// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/host_cuda.hpp"
#include "tunewright/codegen/cuda.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/lower.hpp"

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
