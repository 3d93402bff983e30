// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>

#include <string>

#include "tunewright/codegen/llvm/context.hpp"
#include "tunewright/core/target.hpp"

/// Creates functions of kernels.
namespace tunewright::codegen::llvm_backend {

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
