// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/graph.hpp"

/// Libraries as kernels: the same buffers, the same protocol, the same process as what we generate.
///
/// A native kernel is a plain function, so the functions of libraries with their shapes sit in a table of the program.
/// Fill it before the measurer is made: the measuring process is forked from this one and sees the table as it was
/// then.
namespace tunewright::bench {

/// Buffers in the order of `codegen::Kernel`: inputs and constants in tensor order, then outputs.
using LibraryCall = std::function<void(void* const* buffers)>;

struct LibraryKernel {
  std::string library;
  codegen::Kernel kernel;
};

namespace detail {

inline constexpr std::size_t max_library_kernels = 1536;

inline std::vector<LibraryCall>& library_runs() {
  static std::vector<LibraryCall> runs;
  return runs;
}

template <std::size_t Slot>
void run_slot(void* const* buffers, const codegen::tunewright_runtime*) {
  library_runs()[Slot](buffers);
}

template <std::size_t... Slots>
constexpr std::array<codegen::tunewright_kernel, sizeof...(Slots)> slot_functions(std::index_sequence<Slots...>) {
  return {&run_slot<Slots>...};
}

}  // namespace detail

/// The timing of a kernel that has to run. Throws `std::runtime_error` with the reason if it failed.
inline const Timing& timing_of(const Outcome& outcome) {
  if (!outcome.valid()) throw std::runtime_error("a kernel that has to run failed: " + outcome.failure()->detail);
  return *outcome.timing();
}

/// Enters a library's function for the outputs of `graph` into the table.
inline LibraryKernel library_kernel(std::string library, const std::shared_ptr<const program::ComputeGraph>& graph,
                                    LibraryCall call) {
  static constexpr auto functions = detail::slot_functions(std::make_index_sequence<detail::max_library_kernels>{});
  std::vector<LibraryCall>& runs = detail::library_runs();
  if (runs.size() == functions.size()) throw std::length_error("the table of library kernels is full");
  const loops::LoopNest plain = loops::lower(schedule::Schedule{graph, {}});
  LibraryKernel entry{std::move(library), {}};
  entry.kernel.symbol = entry.library;
  for (const loops::BufferId id : plain.arguments) entry.kernel.buffers.push_back({plain.buffers[id]});
  entry.kernel.native = functions[runs.size()];
  runs.push_back(std::move(call));
  return entry;
}

}  // namespace tunewright::bench
