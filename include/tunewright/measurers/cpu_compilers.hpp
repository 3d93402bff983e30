// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/measurers/compile_team.hpp"
#include "tunewright/measurers/protocol.hpp"

namespace tunewright::measurers {

namespace remote {
struct Device;
}

using CpuCompileTeam = CompileTeam<codegen::LlvmCompiler>;

/// The compilers of measurers that compile for CPUs, one for each thread, kept by target and options.
class CpuCompilers {
 public:
  /// At least `count` compilers, which are made if they do not exist. Throws what `LlvmCompiler` throws.
  [[nodiscard]] const CpuCompileTeam::Compilers& at_least(std::size_t count, const Target& target,
                                                          const codegen::CompileOptions& options);

 private:
  std::map<std::uint64_t, CpuCompileTeam::Compilers> known_;
};

/// What determines the latencies of kernels that are compiled here, apart from the machine they run on.
[[nodiscard]] std::string identity_of(const Target& target, const codegen::CompileOptions& options,
                                      const Protocol& protocol);
/// The same of kernels that run on `device`, with it.
[[nodiscard]] std::string identity_of(const remote::Device& device, const codegen::CompileOptions& options,
                                      const Protocol& protocol);

}  // namespace tunewright::measurers

#if TUNEWRIGHT_DEFINES(orc)

#include <memory>

#include "tunewright/core/hash.hpp"
#include "tunewright/measurers/remote/messages.hpp"

namespace tunewright::measurers {

TUNEWRIGHT_INLINE const CpuCompileTeam::Compilers& CpuCompilers::at_least(std::size_t count, const Target& target,
                                                                          const codegen::CompileOptions& options) {
  CpuCompileTeam::Compilers& compilers =
      known_[StableHash().add(stable_hash(target)).add(stable_hash(options)).add(unsigned{options.verify}).value()];
  while (compilers.size() < count) compilers.push_back(std::make_unique<codegen::LlvmCompiler>(target, options));
  return compilers;
}

TUNEWRIGHT_INLINE std::string identity_of(const Target& target, const codegen::CompileOptions& options,
                                          const Protocol& protocol) {
  return codegen::LlvmCompiler(target, options).identity() + identity_suffix(protocol.evict);
}

TUNEWRIGHT_INLINE std::string identity_of(const remote::Device& device, const codegen::CompileOptions& options,
                                          const Protocol& protocol) {
  return identity_of(remote::compiled_for(device.target, device), options, protocol) + ", on " + device.identity();
}

}  // namespace tunewright::measurers

#endif
