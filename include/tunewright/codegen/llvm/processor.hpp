// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "tunewright/codegen/llvm/functions.hpp"
#include "tunewright/codegen/llvm/module.hpp"
#include "tunewright/core/target.hpp"

/// Selects the processor for which LLVM generates code.
namespace tunewright::codegen::llvm_backend {

/// The processor of a CPU target: the architecture that the target names. Without one, it is this processor for targets
/// of AVX-512 or Advanced SIMD if it has that, and otherwise a typical one with the target's instruction set. Scalable
/// vectors are disabled on ARM, because kernels use vectors of a known width.
[[nodiscard]] inline Processor processor_of(const Target& target) {
  Processor processor;
  const bool is_native = family_of(target.isa) == host_family;
  const std::string& architecture_name = target.architecture;
  const auto plus = std::min(architecture_name.find('+'), architecture_name.size());
  processor.name = architecture_name.substr(0, plus);
  processor.features = named_features(architecture_name);
  const auto unless_named = [&](const std::string& name) {
    if (processor.name.empty()) processor.name = name;
  };
  switch (target.isa) {
    case Isa::Sse42: unless_named("nehalem"); break;
    case Isa::Avx2: unless_named("haswell"); break;
    case Isa::Avx512: {
      const bool host_has_it = is_native && taken(LLVMGetHostCPUFeatures()).find("+avx512f") != std::string::npos;
      unless_named(host_has_it ? taken(LLVMGetHostCPUName()) : "skylake-avx512");
      break;
    }
    case Isa::Neon: {
      unless_named(is_native ? taken(LLVMGetHostCPUName()) : "generic");
      processor.features += processor.features.empty() ? "-sve" : ",-sve";
      break;
    }
  }
  if (is_native)
    processor.triple = taken(LLVMGetDefaultTargetTriple());
  else
    processor.triple = target.isa == Isa::Neon ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
  return processor;
}

/// Throws `std::runtime_error` if the linked LLVM does not support this family, and `std::invalid_argument` for an
/// unknown processor or feature, which LLVM would ignore.
inline void check_known(const Processor& processor, const Target& target) {
  initialise_llvm_once();
  std::string problem;
  const llvm::Target* generator = llvm::TargetRegistry::lookupTarget(processor.triple, problem);
  if (generator == nullptr) {
    throw std::runtime_error("LLVM " LLVM_VERSION_STRING ", as it is linked, generates no code for " +
                             processor.triple + ", which target '" + target.name +
                             "' is for: link one that was built with this back end (LLVM_TARGETS_TO_BUILD)");
  }
  const std::unique_ptr<llvm::MCSubtargetInfo> known(generator->createMCSubtargetInfo(processor.triple, "", ""));
  if (!known->isCPUStringValid(processor.name)) {
    throw std::invalid_argument("architecture '" + target.architecture + "' of target '" + target.name +
                                "' names no processor that LLVM " LLVM_VERSION_STRING " knows; 'llc -mtriple=" +
                                processor.triple + " -mcpu=help' lists them, and an empty one is for any");
  }
  llvm::SmallVector<llvm::StringRef, 8> features;
  llvm::StringRef(processor.features).split(features, ',', -1, false);
  for (const llvm::StringRef feature : features) {
    const auto all = known->getAllProcessorFeatures();
    const bool is_known = std::any_of(
        all.begin(), all.end(), [&](const llvm::SubtargetFeatureKV& row) { return feature.drop_front(1) == row.Key; });
    if (!is_known) {
      throw std::invalid_argument("architecture '" + target.architecture + "' of target '" + target.name +
                                  "' has the feature '" + feature.drop_front(1).str() +
                                  "', which LLVM " LLVM_VERSION_STRING " does not know; 'llc -mtriple=" +
                                  processor.triple + " -mattr=help' lists them");
    }
  }
}

}  // namespace tunewright::codegen::llvm_backend
