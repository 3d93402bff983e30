// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "tunewright/codegen/llvm/functions.hpp"
#include "tunewright/codegen/llvm/loop_emitter.hpp"

/// Whole kernels in LLVM IR.
namespace tunewright::codegen::llvm_backend {

/// Emits one nest into one module; used once.
class KernelEmitter {
 public:
  KernelEmitter(EmissionPlan& plan, const Target& target, llvm::Module& module, const LoopOptions& options)
      : context_(plan, target, module), loops_(context_, options) {}

  /// Adds the kernel to the module and returns the top-level temporaries, which the caller must pass after the
  /// arguments.
  std::vector<loops::BufferId> emit() {
    llvm::IRBuilder<>& builder = context_.builder;
    llvm::Type* pointer = builder.getPtrTy();
    auto* type = llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer}, false);
    llvm::Function* function = add_function(context_, type, llvm::GlobalValue::ExternalLinkage, context_.nest.name);
    context_.enter(llvm::BasicBlock::Create(builder.getContext(), "entry", function));
    std::vector<loops::BufferId> workspace;
    for (const loops::Node& node : context_.nest.body) {
      if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) workspace.push_back(allocate->buffer);
    }
    std::vector<loops::BufferId> passed = context_.nest.arguments;
    passed.insert(passed.end(), workspace.begin(), workspace.end());
    for (std::size_t b = 0; b < passed.size(); ++b) {
      llvm::Value* slot = builder.CreateConstGEP1_64(pointer, function->getArg(0), b);
      context_.pointers[passed[b]] = load_pointer(builder, slot);
    }
    loops_.emit_nest(function->getArg(1));
    return workspace;
  }
  [[nodiscard]] bool uses_tile_registers() const noexcept { return loops_.uses_tile_registers(); }

 private:
  EmissionContext context_;
  LoopEmitter loops_;
};

}  // namespace tunewright::codegen::llvm_backend
