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
#include <string_view>

#include "tunewright/codegen/llvm/module.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/core/word_list.hpp"

/// Selects the processor for which LLVM generates code.
namespace tunewright::codegen::llvm_backend {

/// Joins lists of features.
[[nodiscard]] inline std::string joined(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ",") + b;
}

/// What an architecture names beside the processor, as LLVM lists it: "+fp16,+dotprod" of "cortex-a76+fp16+dotprod".
[[nodiscard]] inline std::string named_features(const std::string& architecture) {
  std::string features;
  for (const char c : architecture.substr(std::min(architecture.find('+'), architecture.size())))
    features += c == '+' && !features.empty() ? ",+" : std::string(1, c);
  return features;
}

/// The features that LLVM needs to select instructions of the target's tensor units.
[[nodiscard]] inline std::string tensor_features(const Target& target) {
  std::string features;
  const auto add = [&](TensorUnit unit, const char* text) {
    if (target.has(unit)) features = joined(features, text);
  };
  add(TensorUnit::Avx512Vnni, "+avx512vnni");
  add(TensorUnit::Avx512Bf16, "+avx512bf16");
  add(TensorUnit::AmxInt8, "+amx-tile,+amx-int8");
  add(TensorUnit::AmxBf16, "+amx-tile,+amx-bf16");
  return features;
}

/// Whether only assembly and operating systems use the instructions of a feature, so that it changes no kernel.
[[nodiscard]] inline bool is_for_systems(llvm::StringRef feature) {
  static constexpr std::string_view names =
      " cldemote clflushopt clwb clzero enqcmd fsgsbase fxsr hreset invpcid kl lwp movdir64b mwaitx pconfig pku "
      "ptwrite rdpid rdpru rdrnd rdseed rtm serialize sgx shstk tsxldtrk uintr usermsr waitpkg wbnoinvd widekl "
      "xsave xsavec xsaveopt xsaves ";
  return contains_word(names, feature);
}

/// How a machine that shows the features of `reported`, LLVM's list of them with "+" and "-", differs from processors
/// of the name that LLVM gives it, as far as kernels depend on it: "+avxvnni,-avx512vnni". A virtual machine may hide
/// some. What it hides is not brought back by a feature that implies it. Independent of the order of `reported`.
[[nodiscard]] inline std::string deviation_of(const std::string& triple, const std::string& name,
                                              const std::string& reported) {
  initialise_llvm_once();
  std::string problem;
  const llvm::Target* generator = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (generator == nullptr) return {};  // `check_known` tells
  llvm::SmallVector<llvm::StringRef, 128> all;
  llvm::StringRef(reported).split(all, ',', -1, false);
  std::string shown, hidden;
  for (const llvm::StringRef feature : all) {
    std::string& list = feature.front() == '-' ? hidden : shown;
    list = joined(list, feature.str());
  }
  const std::unique_ptr<llvm::MCSubtargetInfo> named(generator->createMCSubtargetInfo(triple, name, ""));
  const std::unique_ptr<llvm::MCSubtargetInfo> here(
      generator->createMCSubtargetInfo(triple, name, joined(shown, hidden)));
  std::string more, less;
  for (const llvm::SubtargetFeatureKV& row : named->getAllProcessorFeatures()) {
    const bool is_named = named->getFeatureBits().test(row.Value), is_here = here->getFeatureBits().test(row.Value);
    if (is_named == is_here || is_for_systems(row.Key)) continue;
    std::string& list = is_here ? more : less;
    list = joined(list, (is_here ? "+" : "-") + std::string(row.Key));
  }
  return joined(more, less);
}

/// The processor of a CPU target: the architecture that the target names. Without one, it is this processor for targets
/// of AVX-512 or Advanced SIMD if it has that, with the features that it shows, and otherwise a typical one with the
/// target's instruction set. Scalable vectors are disabled on ARM, because kernels use vectors of a known width.
[[nodiscard]] inline Processor processor_of(const Target& target) {
  const bool is_native = family_of(target.isa) == host_family;
  Processor processor;
  if (is_native)
    processor.triple = taken(LLVMGetDefaultTargetTriple());
  else
    processor.triple = target.isa == Isa::Neon ? "aarch64-unknown-linux-gnu" : "x86_64-unknown-linux-gnu";
  processor.name = target.architecture.substr(0, target.architecture.find('+'));
  const auto unless_named = [&](const char* typical) {
    if (processor.name.empty()) processor.name = typical;
  };
  const auto this_one_unless_named = [&](const char* typical, const char* needed) {
    const std::string shown = is_native && processor.name.empty() ? taken(LLVMGetHostCPUFeatures()) : "";
    if (!is_native || !processor.name.empty() || shown.find(needed) == std::string::npos) return unless_named(typical);
    processor.name = taken(LLVMGetHostCPUName());
    processor.deviation = deviation_of(processor.triple, processor.name, shown);
  };
  switch (target.isa) {
    case Isa::Sse42: unless_named("nehalem"); break;
    case Isa::Avx2: unless_named("haswell"); break;
    case Isa::Avx512: this_one_unless_named("skylake-avx512", "+avx512f"); break;
    case Isa::Neon: this_one_unless_named("generic", ""); break;
  }
  processor.features = joined(processor.deviation, named_features(target.architecture));
  if (target.isa == Isa::Neon) processor.features = joined(processor.features, "-sve");
  if (target.isa == Isa::Avx512) processor.features = joined(processor.features, tensor_features(target));
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
