// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <string>

#include "tunewright/codegen/llvm/context.hpp"
#include "tunewright/core/target.hpp"

/// Creates functions of kernels.
namespace tunewright::codegen::llvm_backend {

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
    if (target.has(unit)) features += (features.empty() ? "" : ",") + std::string(text);
  };
  add(TensorUnit::Avx512Vnni, "+avx512vnni");
  add(TensorUnit::Avx512Bf16, "+avx512bf16");
  add(TensorUnit::AmxInt8, "+amx-tile,+amx-int8");
  add(TensorUnit::AmxBf16, "+amx-tile,+amx-bf16");
  return features;
}

/// Adds a function to the module, with the attributes for the target.
[[nodiscard]] inline llvm::Function* add_function(EmissionContext& context, llvm::FunctionType* type,
                                                  llvm::GlobalValue::LinkageTypes linkage, const std::string& name) {
  auto* function = llvm::Function::Create(type, linkage, name, context.module);
  function->setDoesNotThrow();
  function->addFnAttr("frame-pointer", "none");
  if (context.target.isa == Isa::Avx512) {
    // LLVM splits 512-bit vectors for processors that prefer 256 bits, unless these attributes are set.
    function->addFnAttr("prefer-vector-width", "512");
    function->addFnAttr("min-legal-vector-width", "512");
    if (const std::string units = tensor_features(context.target); !units.empty()) {
      // The attribute takes the place of the features of the whole module.
      const std::string named = named_features(context.target.architecture);
      function->addFnAttr("target-features", named.empty() ? units : named + "," + units);
    }
  }
  return function;
}

/// Loads the address of a buffer, which is aligned to a cache line.
[[nodiscard]] inline llvm::Value* load_pointer(llvm::IRBuilder<>& builder, llvm::Value* slot) {
  llvm::LoadInst* pointer = builder.CreateAlignedLoad(builder.getPtrTy(), slot, llvm::Align(8));
  llvm::Metadata* bytes = llvm::ConstantAsMetadata::get(builder.getInt64(64));
  pointer->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(builder.getContext(), {bytes}));
  pointer->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(builder.getContext(), {}));
  pointer->setMetadata(llvm::LLVMContext::MD_noundef, llvm::MDNode::get(builder.getContext(), {}));
  return pointer;
}

}  // namespace tunewright::codegen::llvm_backend
