// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/cuda.hpp"
#include "tunewright/codegen/cuda_compile.hpp"
#include "tunewright/core/outcome.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::measurers::nvrtc {

/// The reason why a driver of version `driver` (1000 * major + 10 * minor) cannot load the compiler's code; empty if it
/// can. A driver loads machine code of its own major version of CUDA and of older ones.
[[nodiscard]] std::string too_old(int driver, const codegen::NvrtcVersion& compiler);

/// Compiles loop nests for one target; used by `CompileTeam`.
class Compiler {
 public:
  Compiler(Target target, codegen::CudaOptions options, std::vector<std::string> flags)
      : target_(std::move(target)), options_(options), flags_(std::move(flags)) {}

  /// A nest that the target cannot run is an `InvalidSchedule` and is not compiled.
  [[nodiscard]] std::variant<codegen::DeviceCode, Failure> code(const loops::LoopNest& nest) const;
  [[nodiscard]] std::variant<codegen::Kernel, Failure> compile(const loops::LoopNest& nest) const;

 private:
  Target target_;
  codegen::CudaOptions options_;
  std::vector<std::string> flags_;
};

}  // namespace tunewright::measurers::nvrtc

#if TUNEWRIGHT_DEFINES(nvrtc)

#include "tunewright/loops/limits.hpp"
#include "tunewright/measurers/nvrtc/code_wire.hpp"
#include "tunewright/measurers/nvrtc/device_limits.hpp"

namespace tunewright::measurers::nvrtc {

TUNEWRIGHT_INLINE std::string too_old(int driver, const codegen::NvrtcVersion& compiler) {
  if (driver / 1000 >= compiler.major) return {};
  const auto text = [](int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); };
  return "the driver is for CUDA " + text(driver / 1000, driver % 1000 / 10) + " and loads no code of nvrtc " +
         text(compiler.major, compiler.minor) + "; install a driver for CUDA " + std::to_string(compiler.major) +
         ", or build with a toolkit of CUDA " + std::to_string(driver / 1000);
}

TUNEWRIGHT_INLINE std::variant<codegen::DeviceCode, Failure> Compiler::code(const loops::LoopNest& nest) const {
  codegen::DeviceProgram program = codegen::to_cuda(nest, options_);
  if (std::string limit = exceeded_limit(program, target_); !limit.empty())
    return Failure{Fault::InvalidSchedule, std::move(limit)};
  if (target_.kind == DeviceKind::Gpu) {
    if (const std::string_view limit = loops::exceeded_limit(nest, target_); !limit.empty())
      return Failure{Fault::InvalidSchedule, std::string(limit)};
  }
  codegen::CudaCompileOptions compile;
  compile.architecture = target_.architecture;
  compile.flags = flags_;
  auto result = codegen::compile_cuda(std::move(program), compile);
  if (const auto* code = std::get_if<codegen::DeviceCode>(&result)) {
    for (std::size_t k = 0; k < code->resources.size(); ++k) {
      if (std::string limit = exceeded_registers(code->program.launches[k], code->resources[k].registers, target_);
          !limit.empty())
        return Failure{Fault::InvalidSchedule, std::move(limit)};
    }
  }
  return result;
}

TUNEWRIGHT_INLINE std::variant<codegen::Kernel, Failure> Compiler::compile(const loops::LoopNest& nest) const {
  auto result = code(nest);
  if (auto* failure = std::get_if<Failure>(&result)) return std::move(*failure);
  return as_kernel(std::get<codegen::DeviceCode>(result));
}

}  // namespace tunewright::measurers::nvrtc

#endif
