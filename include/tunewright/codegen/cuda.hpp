// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda/kernel_parts.hpp"
#include "tunewright/codegen/cuda/program.hpp"
#include "tunewright/codegen/cuda/scalar_emitter.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/detail/config.hpp"

/// Generates CUDA C++ for NVIDIA GPUs from loop nests.
///
/// Every top-level loop tree becomes one kernel. Loops bound to blocks and threads become hardware indices, and shared
/// buffers become shared memory. Thread-private buffers become local arrays whose loops are unrolled, so that they are
/// in registers. The code includes no headers and needs no compiler flags.
namespace tunewright::codegen {

struct CudaOptions {
  /// A loop whose variable indexes a thread-private array is unrolled if that gives at most so many statements: only
  /// then can the array be in registers.
  std::int64_t max_register_statements = 2048;
  /// Kernels that need more shared memory use dynamic shared memory: the compiler limits static shared memory to 48
  /// KiB.
  std::int64_t max_static_shared_bytes = 48 * 1024;
};

/// Hash of all options: each affects the source of some program.
[[nodiscard]] inline std::uint64_t stable_hash(const CudaOptions& options) {
  return StableHash().add(options.max_register_statements).add(options.max_static_shared_bytes).value();
}

namespace cuda {

/// Emits a whole program.
class ProgramEmitter {
 public:
  ProgramEmitter(const loops::LoopNest& nest, const CudaOptions& options)
      : nest_(nest), options_(options), context_(nest), position_(nest.buffers.size(), 0) {}

  [[nodiscard]] DeviceProgram write();

 private:
  void add_buffer(BufferId id);

  [[nodiscard]] std::string kernel(loops::DeviceKernel each);

  [[nodiscard]] std::string declare_shared(const KernelParts& parts, DeviceLaunch& launch);

  [[nodiscard]] std::string definitions() const;

  const loops::LoopNest& nest_;
  const CudaOptions& options_;
  SourceContext context_;
  std::vector<std::uint32_t> position_;  // by BufferId: index into the program's buffers
  DeviceProgram program_;
};

}  // namespace cuda

/// CUDA C++ for a nest in device form. Guards are hoisted (`loops::partition`).
///
/// Throws `loops::DeviceFormError` for a nest in another form, `Unsupported` for types and operators without CUDA code.
/// Determinism: equal nests give equal text. Cost: under a millisecond.
[[nodiscard]] DeviceProgram device_form_to_cuda(const loops::LoopNest& device_nest, const CudaOptions& options = {});

/// CUDA C++ for the nest to which a schedule lowers: `device_form_to_cuda` of its device form.
///
/// Deviates: if one operand of a maximum or minimum is NaN, the result is the other operand, and not always the second.
[[nodiscard]] DeviceProgram to_cuda(const loops::LoopNest& nest, const CudaOptions& options = {});

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include "tunewright/codegen/cuda/asynchronous_copies.hpp"
#include "tunewright/codegen/cuda/kernel_emitter.hpp"
#include "tunewright/codegen/cuda/lane_plan.hpp"
#include "tunewright/codegen/cuda/register_loops.hpp"
#include "tunewright/codegen/cuda/types.hpp"
#include "tunewright/codegen/cuda/vector_stores.hpp"
#include "tunewright/core/rounded_up.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/eliminate_guards.hpp"
#include "tunewright/loops/partition.hpp"

namespace tunewright::codegen::cuda {

TUNEWRIGHT_INLINE DeviceProgram ProgramEmitter::write() {
  program_.name = nest_.name;
  for (const BufferId id : nest_.arguments) add_buffer(id);
  for (const loops::Node& node : nest_.body) {
    if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) add_buffer(allocate->buffer);
  }
  std::string kernels;
  for (loops::DeviceKernel& each : loops::device_kernels(nest_)) kernels += kernel(std::move(each));
  program_.source = definitions() + kernels;
  program_.min_compute_capability = context_.min_compute_capability;
  program_.multiplies_by_warp_groups = context_.multiplies_by_warp_groups;
  return std::move(program_);
}

TUNEWRIGHT_INLINE void ProgramEmitter::add_buffer(BufferId id) {
  position_[id] = static_cast<std::uint32_t>(program_.buffers.size());
  program_.buffers.push_back({nest_.buffers[id]});
  // The name is fixed here, so that it is the same in all kernels.
  context_.buffers[id] = context_.names.unique(nest_.buffers[id].name);
}

TUNEWRIGHT_INLINE std::string ProgramEmitter::kernel(loops::DeviceKernel each) {
  KernelParts parts = kernel_parts(nest_, std::move(each));
  std::sort(parts.arguments.begin(), parts.arguments.end(),
            [&](BufferId a, BufferId b) { return position_[a] < position_[b]; });
  DeviceLaunch& launch = program_.launches.emplace_back();
  const std::string what = parts.written.empty() ? "" : "_" + nest_.buffers[*parts.written.rbegin()].name;
  launch.symbol = context_.names.unique(nest_.name + "_" + std::to_string(program_.launches.size() - 1) + what);
  launch.grid = parts.kernel.grid;
  launch.block = parts.kernel.block;

  std::string parameters;
  for (const BufferId id : parts.arguments) {
    launch.arguments.push_back(position_[id]);
    parameters += (parameters.empty() ? "" : ", ") + std::string(parts.written.count(id) != 0 ? "" : "const ") +
                  std::string(context_.type(nest_.buffers[id].type).spelling) + "* __restrict__ " +
                  context_.buffers[id];
  }
  std::string shared = declare_shared(parts, launch);
  KernelEmitter emitter(context_, parts);
  const std::string body = emitter.body();
  shared += emitter.reductions().scratch_declaration();
  launch.static_shared_bytes += emitter.reductions().scratch_bytes();
  return "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(launch.threads()) + ") " + launch.symbol +
         "(" + parameters + ") {\n" + shared + body + "}\n\n";
}

TUNEWRIGHT_INLINE std::string ProgramEmitter::declare_shared(const KernelParts& parts, DeviceLaunch& launch) {
  // Fragments of wmma instructions are staged there, and must be at multiples of 32 bytes.
  const bool stages_fragments = parts.kernel.staging_bytes > 0;
  const auto alignment_of = [&](BufferId id) -> std::int64_t {
    const loops::Buffer& buffer = nest_.buffers[id];
    if (buffer.swizzled) return loops::swizzle_bytes;
    if (buffer.asynchronous && has_whole_lines(buffer)) return 128;
    return stages_fragments ? 32 : 16;
  };
  const auto aligned = [](std::int64_t to) { return "__align__(" + std::to_string(to) + ") "; };
  // Those at the roundest addresses come first, so that little is lost between buffers.
  std::vector<BufferId> buffers = parts.kernel.shared;
  std::stable_sort(buffers.begin(), buffers.end(),
                   [&](BufferId a, BufferId b) { return alignment_of(a) > alignment_of(b); });
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
  for (const BufferId id : buffers) {
    bytes = rounded_up(bytes, alignment_of(id));
    offsets.push_back(bytes);
    bytes += nest_.buffers[id].bytes();
  }
  const std::int64_t staging = rounded_up(bytes, 32);
  if (stages_fragments) bytes = staging + parts.kernel.staging_bytes;
  // Reductions across threads also need static shared memory, which counts towards the same limit.
  const bool dynamic = bytes > 0 && bytes + parts.kernel.combination_bytes > options_.max_static_shared_bytes;
  (dynamic ? launch.dynamic_shared_bytes : launch.static_shared_bytes) = bytes;
  std::string text;
  // All kernels of a source declare this array, so its alignment must be the same in all of them.
  const bool any_swizzled =
      std::any_of(nest_.buffers.begin(), nest_.buffers.end(), [](const loops::Buffer& b) { return b.swizzled; });
  if (dynamic) {
    text += "  extern __shared__ " + aligned(any_swizzled ? loops::swizzle_bytes : 128) +
            "unsigned char shared_memory[];\n";
  }
  if (stages_fragments) {
    text += dynamic ? "  unsigned char* const staging = shared_memory + " + std::to_string(staging) + ";\n"
                    : "  __shared__ " + aligned(32) + "unsigned char staging[" +
                          std::to_string(parts.kernel.staging_bytes) + "];\n";
  }
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const loops::Buffer& buffer = nest_.buffers[buffers[b]];
    std::string& name = context_.buffers[buffers[b]];
    name = context_.names.unique(buffer.name);
    const std::string type(context_.type(buffer.type).spelling);
    text += dynamic ? "  " + type + "* const " + name + " = reinterpret_cast<" + type + "*>(shared_memory + " +
                          std::to_string(offsets[b]) + ");\n"
                    : "  __shared__ " + aligned(alignment_of(buffers[b])) + type + " " + name + "[" +
                          std::to_string(buffer.elements()) + "];\n";
  }
  return text;
}

TUNEWRIGHT_INLINE std::string ProgramEmitter::definitions() const {
  std::string text;
  if (context_.uses_infinity) text += infinity_definition;
  if (context_.uses_vectors) text += vector_definition;
  if (context_.uses_half) text += half_definition;
  if (context_.uses_bfloat16) text += bfloat16_definition;
  if (context_.copies_asynchronously) text += asynchronous_copy_definition;
  if (context_.index.uses_floor()) text += floor_definition;
  for (const auto& [name, definition] : context_.number_helpers) text += definition;
  if (!context_.helpers.empty()) {
    text +=
        "// What the threads of a warp, or of four, do together with fragments, which tensor units work "
        "on.\n";
    for (const auto& [name, definition] : context_.helpers) text += definition;
    text += "\n";
  }
  return text;
}

}  // namespace tunewright::codegen::cuda

namespace tunewright::codegen {

TUNEWRIGHT_INLINE DeviceProgram device_form_to_cuda(const loops::LoopNest& device_nest, const CudaOptions& options) {
  const loops::LoopNest nest = loops::partition(cuda::vectorize_stores(
      cuda::unroll_register_loops(cuda::guard_whole_vectors(device_nest), options.max_register_statements)));
  return cuda::ProgramEmitter(nest, options).write();
}

TUNEWRIGHT_INLINE DeviceProgram to_cuda(const loops::LoopNest& nest, const CudaOptions& options) {
  return device_form_to_cuda(loops::to_device(loops::eliminate_guards(nest)), options);
}

}  // namespace tunewright::codegen

#endif
