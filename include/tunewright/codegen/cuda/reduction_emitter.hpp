// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tunewright/codegen/cuda/statement_emitter.hpp"

namespace tunewright::codegen::cuda {

/// Emits reductions across threads: with shuffles within warps, through shared memory beyond.
class ReductionEmitter {
 public:
  ReductionEmitter(SourceContext& context, const loops::DeviceKernel& kernel, SourceWriter& out,
                   StatementEmitter& statements)
      : context_(context), nest_(context.nest), kernel_(kernel), out_(out), statements_(statements) {}

  /// The declaration that reductions need before the body; call it after the body is written.
  [[nodiscard]] std::string scratch_declaration() const {
    if (scratch_bytes_ == 0) return {};
    return "  __shared__ __align__(16) unsigned char " + scratch_ + "[" + std::to_string(scratch_bytes_) + "];\n";
  }
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }

  void emit(const loops::CrossThreadReduction& r) {
    const loops::Buffer& buffer = nest_.buffers[r.partial];
    const CudaType& type = context_.type(buffer.type);
    const std::string own = context_.element(r.partial, element_offset(nest_, buffer, r.axis_values));
    out_.block("", [&] { emit_inside(r, type, own); });
  }

 private:
  void emit_inside(const loops::CrossThreadReduction& r, const CudaType& type, const std::string& own) {
    const auto along = [&](std::size_t d) { return kernel_.block[d]; };
    const std::string total = context_.names.unique(nest_.buffers[r.target].name + "_total");
    out_.line(std::string(type.spelling) + " " + total + " = " + own + ";");
    const bool only_x = r.over[0] && !r.over[1] && !r.over[2];
    if (loops::device::stays_in_warp(kernel_, r)) {
      shuffle(r, type, total, along(0));
    } else if (only_x && along(0) % 32 == 0) {
      shuffle(r, type, total, 32);
      across_warps(r, type, total);
    } else {
      in_shared_memory(r, type, total);
    }
    const std::string target =
        context_.element(r.target, element_offset(nest_, nest_.buffers[r.target], r.axis_values));
    std::string stores;
    if (!statements_.is_private(r.target)) {
      static constexpr const char* indices[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
      for (std::size_t d = 0; d < 3; ++d) {
        if (r.over[d] && along(d) > 1) stores += (stores.empty() ? "" : " && ") + std::string(indices[d]) + " == 0";
      }
      if (const std::string guards = statements_.condition(r.guards); !guards.empty())
        stores += (stores.empty() ? "" : " && ") + guards;
    }
    out_.line((stores.empty() ? "" : "if (" + stores + ") ") + target + " = " + total + ";");
  }

  [[nodiscard]] std::string combined(const loops::CrossThreadReduction& r, const CudaType& type,
                                     const std::string& kept, const std::string& value) {
    return ScalarEmitter::combine(context_, r.op->combiner, type, kept,
                                  ScalarEmitter::as_term(r.op->combiner, type, {value}));
  }

  /// Reduces groups of `lanes` neighbours within a warp; all of them get the result.
  void shuffle(const loops::CrossThreadReduction& r, const CudaType& type, const std::string& total,
               std::int64_t lanes) {
    if (lanes == 1) return;
    const std::int64_t threads = kernel_.threads();
    std::string mask = "0xffffffffu";
    if (threads % 32 != 0) {  // the last warp is not full
      const std::string part = std::to_string((std::int64_t{1} << threads % 32) - 1) + "u";
      mask = threads < 32 ? part
                          : "(" + thread_number() + " / 32 == " + std::to_string(threads / 32) + " ? " + part + " : " +
                                mask + ")";
    }
    out_.line("#pragma unroll");
    out_.block("for (int lanes = " + std::to_string(lanes / 2) + "; lanes > 0; lanes /= 2)",
               [&] { out_.line(combined(r, type, total, exchanged(type, mask, total))); });
  }

  /// The value of another lane. Types below 32 bits are exchanged as integers.
  [[nodiscard]] static std::string exchanged(const CudaType& type, const std::string& mask, const std::string& total) {
    const auto exchange = [&](const std::string& value) {
      return "__shfl_xor_sync(" + mask + ", " + value + ", lanes)";
    };
    if (type.emulated)
      return std::string(type.spelling) + "{(unsigned short)" + exchange("(int)" + total + ".bits") + "}";
    if (type.bytes < 4) return "(" + std::string(type.spelling) + ")" + exchange("(int)" + total);
    return exchange(total);
  }

  /// Reduces the consecutive results of the warps along x.
  void across_warps(const loops::CrossThreadReduction& r, const CudaType& type, const std::string& total) {
    const std::int64_t warps = kernel_.block[0] / 32;
    if (warps == 1) return;
    const std::string scratch = scratch_array(type, warps * kernel_.block[1] * kernel_.block[2]);
    out_.line("if (threadIdx.x % 32 == 0) " + scratch + "[" + thread_number() + " / 32] = " + total + ";");
    out_.line("__syncthreads();");
    const std::string first =
        "(" + thread_number() + ") / " + std::to_string(kernel_.block[0]) + " * " + std::to_string(warps);
    out_.line(total + " = " + scratch + "[" + first + "];");
    out_.line("#pragma unroll");
    out_.block("for (int warp = 1; warp < " + std::to_string(warps) + "; ++warp)",
               [&] { out_.line(combined(r, type, total, scratch + "[" + first + " + warp]")); });
  }

  /// Reduces over any threads of the block, as a tree.
  void in_shared_memory(const loops::CrossThreadReduction& r, const CudaType& type, const std::string& total) {
    static constexpr const char* indices[] = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
    const std::int64_t threads = kernel_.threads();
    const std::string scratch = scratch_array(type, threads);
    std::int64_t size = 1;  // of a group
    std::string member = "0";
    std::string group = "0";
    for (std::size_t d = 3; d-- > 0;) {
      const std::string extent = std::to_string(kernel_.block[d]);
      if (kernel_.block[d] == 1) continue;
      std::string& number = r.over[d] ? member : group;
      number =
          number == "0" ? "(int)" + std::string(indices[d]) : "(" + number + ") * " + extent + " + (int)" + indices[d];
      if (r.over[d]) size *= kernel_.block[d];
    }
    out_.line("const int member = " + member + ";");
    out_.line(std::string(type.spelling) + "* const group = " + scratch + " + (" + group + ") * " +
              std::to_string(size) + ";");
    out_.line("group[member] = " + total + ";");
    std::int64_t half = 1;
    while (2 * half < size) half *= 2;
    out_.block("for (int distance = " + std::to_string(size == 1 ? 0 : half) + "; distance > 0; distance /= 2)", [&] {
      out_.line("__syncthreads();");
      out_.block("if (member < distance && member + distance < " + std::to_string(size) + ")",
                 [&] { out_.line(combined(r, type, "group[member]", "group[member + distance]")); });
    });
    out_.line("__syncthreads();");
    out_.line(total + " = group[0];");
  }

  /// Shared memory for a reduction, safe to write. Reductions are sequential, so they share it.
  [[nodiscard]] std::string scratch_array(const CudaType& type, std::int64_t elements) {
    if (scratch_.empty()) scratch_ = context_.names.unique("combined");
    // Other threads may still read the results of the previous reduction or iteration.
    if (out_.is_in_loop() || scratch_bytes_ > 0) out_.line("__syncthreads();");
    scratch_bytes_ = std::max(scratch_bytes_, elements * static_cast<std::int64_t>(type.bytes));
    const std::string name = context_.names.unique("shares");
    const std::string spelling(type.spelling);
    out_.line(spelling + "* const " + name + " = reinterpret_cast<" + spelling + "*>(" + scratch_ + ");");
    return name;
  }
  [[nodiscard]] std::string thread_number() const {
    std::string number = "threadIdx.x";
    if (kernel_.block[1] * kernel_.block[2] > 1) {
      const std::string yz = kernel_.block[2] > 1
                                 ? "(threadIdx.y + " + std::to_string(kernel_.block[1]) + " * threadIdx.z)"
                                 : "threadIdx.y";
      number = "(threadIdx.x + " + std::to_string(kernel_.block[0]) + " * " + yz + ")";
    }
    return number;
  }

  SourceContext& context_;
  const loops::LoopNest& nest_;
  const loops::DeviceKernel& kernel_;
  SourceWriter& out_;
  StatementEmitter& statements_;
  std::string scratch_;
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace tunewright::codegen::cuda
