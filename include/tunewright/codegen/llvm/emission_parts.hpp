// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/codegen/llvm/expression_emitter.hpp"

namespace tunewright::codegen::llvm_backend {

/// The common members of emitters of statements. The referenced objects must outlive them.
class EmissionParts {
 public:
  EmissionParts(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory, ExpressionEmitter& expressions)
      : context_(context),
        plan_(context.plan),
        nest_(context.nest),
        builder_(context.builder),
        numbers_(context.numbers),
        values_(values),
        memory_(memory),
        expressions_(expressions) {}

 protected:
  EmissionContext& context_;
  const EmissionPlan& plan_;
  const loops::LoopNest& nest_;
  llvm::IRBuilder<>& builder_;
  NumberEmitter& numbers_;
  ValueEmitter& values_;
  MemoryEmitter& memory_;
  ExpressionEmitter& expressions_;
};

}  // namespace tunewright::codegen::llvm_backend
