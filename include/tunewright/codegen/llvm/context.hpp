// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/codegen/emission_plan.hpp"
#include "tunewright/codegen/llvm/affine.hpp"
#include "tunewright/codegen/llvm/number_emitter.hpp"
#include "tunewright/core/target.hpp"

/// Generates LLVM IR from loop nests. The generator consists of parts that share one `EmissionContext`. Each part emits
/// code for one kind of construct, and holds references to the context and to the parts that it uses:
///
///   NumberEmitter, MathEmitter       number types and elementary functions
///   ValueEmitter                     index arithmetic
///   MemoryEmitter                    elements of buffers
///   ExpressionEmitter                scalar bodies
///   StatementEmitter                 statements under their guards
///   RegisterTileEmitter              targets of reductions in vector registers
///   ConstantPrefetcher               weights on their way from memory while earlier ones are used
///   RowPrefetcher, BlockPrefetcher   rows of a matrix on their way to L1, and blocks of it to L2
///   TensorEmitter                    tensor instructions for one row, and copies in the order that they read
///   TransposedCopyEmitter            square tiles whose operands are transposed relative to their target
///   MatrixProductFinder              products that AMX tile registers can compute
///   TileRegisterEmitter              emits these products
///   LoopEmitter                      loops, branches and storage; owns the parts above
///   KernelEmitter                    one function per nest; owns the context
///
/// Only `LoopEmitter` recurses into loops; the parts above never call it. The namespace is not called `llvm`, because
/// that would hide LLVM's own namespace.
namespace tunewright::codegen::llvm_backend {

/// Values that dominate the current insertion point, so that they can be reused there.
struct KnownValues {
  std::map<std::pair<llvm::Value*, unsigned>, llvm::Value*> splats;
  std::map<std::vector<std::pair<std::int64_t, llvm::Value*>>, llvm::Value*> sums;
  std::map<std::tuple<llvm::Value*, std::int64_t, std::int64_t, bool>, llvm::Value*> quotients;  ///< and remainders
  std::map<std::pair<loops::BufferId, llvm::Value*>, llvm::Value*> addresses;
};

/// Elements that the current basic block has loaded or stored; key: buffer, scalar terms, constant and stride of the
/// offset, and lanes.
using LoadedElements =
    std::map<std::tuple<loops::BufferId, llvm::Value*, std::int64_t, std::int64_t, unsigned>, llvm::Value*>;

/// The state that all parts of the generator share: the module, the nest and its plan, and the current insertion point.
struct EmissionContext {
  EmissionContext(EmissionPlan& the_plan, const Target& the_target, llvm::Module& the_module)
      : plan(the_plan),
        nest(the_plan.nest()),
        target(the_target),
        module(the_module),
        builder(the_module.getContext()),
        numbers(builder, the_target.isa),
        bindings(nest.variables.size()),
        pointers(nest.buffers.size(), nullptr) {
    llvm::FastMathFlags flags;
    flags.setAllowContract();
    builder.setFastMathFlags(flags);
  }
  EmissionContext(const EmissionContext&) = delete;
  EmissionContext& operator=(const EmissionContext&) = delete;

  [[nodiscard]] llvm::Function* function() const { return builder.GetInsertBlock()->getParent(); }
  [[nodiscard]] llvm::BasicBlock* add_block(const llvm::Twine& name) {
    return llvm::BasicBlock::Create(builder.getContext(), name, function());
  }

  /// Continues in a block that the current one dominates: known values stay valid.
  void enter(llvm::BasicBlock* block) {
    builder.SetInsertPoint(block);
    loaded.clear();
  }
  /// Continues where only `values` are valid.
  void enter(llvm::BasicBlock* block, KnownValues values) {
    known = std::move(values);
    enter(block);
  }

  [[nodiscard]] bool is_satisfied(const loops::Guard& guard) const {
    return std::find(satisfied.begin(), satisfied.end(), &guard) != satisfied.end();
  }
  /// Whether the thread that runs an iteration of the loop usually runs the next one, too.
  [[nodiscard]] bool goes_on_in_thread(const loops::Loop& loop) const {
    return loop.kind != loops::LoopKind::Parallel ||
           plan.extent(loop.var) > static_cast<std::int64_t>(std::max(1U, target.threads));
  }
  /// Enters a chunk of a vectorised loop, and returns the binding of its variable.
  [[nodiscard]] Binding start_of(const EmissionPlan::Chunk& chunk) {
    lanes = static_cast<unsigned>(chunk.lanes);
    idle_lanes = static_cast<unsigned>(chunk.lanes - chunk.active);
    return lanes > 1 ? lanes_from(chunk.start) : constant(chunk.start);
  }
  void leave_chunk() {
    lanes = 1;
    idle_lanes = 0;
  }
  /// Bindings of a loop variable: to a number, to a value, to the lanes of a vector from `first` on, or to those of the
  /// current iteration of a loop over whole vectors.
  [[nodiscard]] Binding constant(std::int64_t value) const {
    return {.kind = Binding::Kind::Constant, .constant = value, .depth = depth};
  }
  [[nodiscard]] Binding scalar(llvm::Value* value) const {
    return {.kind = Binding::Kind::Scalar, .value = value, .depth = depth};
  }
  [[nodiscard]] Binding lanes_from(std::int64_t first) const {
    return {.kind = Binding::Kind::Lanes, .constant = first, .depth = depth};
  }
  [[nodiscard]] Binding lanes_of_chunk() const {
    return {.kind = Binding::Kind::Lanes, .chunked = true, .depth = depth};
  }
  [[nodiscard]] Binding first_value() const { return constant(0); }

  EmissionPlan& plan;
  const loops::LoopNest& nest;
  const Target& target;
  llvm::Module& module;
  llvm::IRBuilder<> builder;
  NumberEmitter numbers;

  std::vector<Binding> bindings;               ///< of loop variables, by `loops::Var`
  std::vector<llvm::Value*> pointers;          ///< address of each buffer in the current function, by `BufferId`
  std::vector<const loops::Guard*> satisfied;  ///< guards that are known to hold here
  KnownValues known;
  LoadedElements loaded;
  unsigned lanes = 1;       ///< of the surrounding vectorised loop; 1 in scalar code
  unsigned idle_lanes = 0;  ///< the last lanes, which have no iteration of the loop
  unsigned depth = 0;       ///< number of surrounding loops that are emitted as loops
};

}  // namespace tunewright::codegen::llvm_backend
