// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/llvm/block_prefetcher.hpp"
#include "tunewright/codegen/llvm/constant_prefetcher.hpp"
#include "tunewright/codegen/llvm/functions.hpp"
#include "tunewright/codegen/llvm/register_tile_emitter.hpp"
#include "tunewright/codegen/llvm/row_prefetcher.hpp"
#include "tunewright/codegen/llvm/tensor_emitter.hpp"
#include "tunewright/codegen/llvm/tile_register_emitter.hpp"
#include "tunewright/codegen/llvm/transposed_copy_emitter.hpp"

/// Loops, branches and storage of a loop nest in LLVM IR.
namespace tunewright::codegen::llvm_backend {

struct LoopOptions {
  bool register_tiles;           ///< keep targets of reductions in registers
  bool prefetch_constants;       ///< see `ConstantPrefetcher`
  bool prefetch_rows;            ///< see `RowPrefetcher`
  bool prefetch_blocks;          ///< see `BlockPrefetcher`
  std::int64_t max_stack_bytes;  ///< limit of temporaries per thread
};

/// Owns the emitters of loop contents and selects the one for each loop.
class LoopEmitter {
 public:
  LoopEmitter(EmissionContext& context, const LoopOptions& options)
      : context_(context), plan_(context.plan), nest_(context.nest), builder_(context.builder), options_(options) {}

  LoopEmitter(const LoopEmitter&) = delete;
  LoopEmitter& operator=(const LoopEmitter&) = delete;

  /// Emits the whole nest into the current function and finishes the function. `runtime` points to the
  /// `tunewright_runtime` that runs parallel loops.
  void emit_nest(llvm::Value* runtime) {
    runtime_ = runtime;
    emit_body(nest_.body, true);
    finish_function();
  }
  /// Whether the code needs the AMX tile registers, which a process must request from Linux.
  [[nodiscard]] bool uses_tile_registers() const noexcept { return tile_registers_.are_used(); }

 private:
  void emit_body(const loops::Body& body, bool top = false) {
    for (std::size_t n = 0; n < body.size(); ++n) {
      const loops::Node& node = body[n];
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        if (n + 1 < body.size() && emit_initialised(node, body[n + 1])) {
          ++n;
        } else {
          emit_loop(*loop);
        }
      } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
        if (n + 1 < body.size() && emit_initialised(node, body[n + 1])) {
          ++n;
        } else {
          statements_.emit(*statement);
        }
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        emit_branch(*branch);
      } else if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
        if (!top) allocate_on_stack(allocate->buffer);
      }
    }
  }

  void allocate_on_stack(loops::BufferId id) {
    const loops::Buffer& buffer = nest_.buffers[id];
    block_prefetcher_.is_allocated(id, open_.size());
    if (context_.pointers[id] != nullptr) {  // another iteration of the same code
      memory_.forget(id);
      return;
    }
    stack_bytes_ += buffer.bytes();
    if (stack_bytes_ > options_.max_stack_bytes) {
      throw Unsupported("temporary '" + buffer.name + "' of " + std::to_string(buffer.bytes()) +
                        " bytes brings the stack of a thread to " + std::to_string(stack_bytes_) + "; at most " +
                        std::to_string(options_.max_stack_bytes) +
                        " fit: compute it further inside, in smaller tiles, or at the top level");
    }
    context_.pointers[id] = memory_.stack_slot(
        llvm::ArrayType::get(context_.numbers.memory_type(buffer.type), static_cast<std::uint64_t>(buffer.elements())),
        64);
  }

  void emit_branch(const loops::Branch& branch) {
    llvm::Value* condition_value = nullptr;
    bool never = false;
    for (const loops::Guard& guard : branch.conditions) {
      llvm::Value* holds = values_.condition(guard);
      if (auto* decided = llvm::dyn_cast_or_null<llvm::Constant>(holds)) {
        never = never || decided->isNullValue();
        holds = nullptr;
      }
      condition_value = values_.both(condition_value, holds);
    }
    if (never || condition_value == nullptr) {
      emit_body(never ? branch.otherwise : branch.then);
      return;
    }
    llvm::BasicBlock* then = context_.add_block("then");
    llvm::BasicBlock* otherwise = branch.otherwise.empty() ? nullptr : context_.add_block("else");
    llvm::BasicBlock* after = context_.add_block("after");
    builder_.CreateCondBr(condition_value, then, otherwise != nullptr ? otherwise : after);
    const KnownValues before = context_.known;
    context_.enter(then);
    emit_body(branch.then);
    builder_.CreateBr(after);
    if (otherwise != nullptr) {
      context_.enter(otherwise, before);
      emit_body(branch.otherwise);
      builder_.CreateBr(after);
    }
    context_.enter(after, before);
  }

  void emit_loop(const loops::Loop& loop, bool fresh = false) {
    if (options_.register_tiles && !statements_.uses_registers() && !tile_registers_.is_open()) {
      if (std::optional<MatrixProduct> product = matrix_products_.find(loop)) {
        tile_registers_.open(*product, fresh);
        emit_guarded(loop);
        tile_registers_.close();
        return;
      }
      if (std::optional<AccumulatorTile> tile = register_tiles_.find(loop)) {
        statements_.use_registers(&*tile);
        tile->shared_columns = tensors_.shared_columns(*tile);
        register_tiles_.open(*tile, fresh);
        find_prefetches(*tile);
        if (options_.prefetch_blocks) block_prefetcher_.emit(*tile, open_);
        emit_guarded(loop);
        constant_prefetches_.clear();
        row_prefetches_.clear();
        statements_.use_registers(nullptr);
        register_tiles_.close(*tile, fresh);
        return;
      }
    }
    emit_guarded(loop);
  }

  void find_prefetches(const AccumulatorTile& tile) {
    // One more address in loops with branches makes LLVM spill tiles that fill the registers.
    if (skips_terms(*tile.statement)) return;
    if (options_.prefetch_constants) constant_prefetches_ = constant_prefetcher_.find(tile, open_);
    if (options_.prefetch_rows) row_prefetches_ = row_prefetcher_.find(tile);
  }

  /// Whether there are guards beyond those of the target's axes: they skip terms, as in the padding of an image or
  /// behind the end of a split sum.
  [[nodiscard]] bool skips_terms(const loops::Statement& s) const {
    const std::size_t rank = nest_.buffers[s.target].shape.size();
    return std::ranges::any_of(s.guards, [&](const loops::Guard& guard) { return guard.axis >= rank; });
  }

  /// Evaluates guards as soon as all their variables are known.
  void emit_guarded(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || s->guards.empty()) {
      emit_iterations(loop);
      return;
    }
    const std::size_t before = context_.satisfied.size();
    const std::size_t rank = nest_.buffers[s->target].shape.size();
    const bool tolerant = statements_.uses_registers_for(*s) || s->may_overcompute;
    llvm::Value* holds = nullptr;
    for (const loops::Guard& guard : s->guards) {
      if ((tolerant && guard.axis < rank) || context_.is_satisfied(guard) || varies_in(loop, guard.value)) continue;
      llvm::Value* asked = values_.condition(guard);
      if (asked != nullptr && is_vector(asked)) continue;
      holds = values_.both(holds, asked);
      context_.satisfied.push_back(&guard);
    }
    statements_.branch_on(holds, [&] { emit_iterations(loop); });
    context_.satisfied.resize(before);
  }

  void emit_iterations(const loops::Loop& loop) {
    if (plan_.has_instruction(loop) && (tile_registers_.emit(loop) || tensors_.emit(loop))) return;
    if (tensors_.emit_interleaved(loop) || transposed_copies_.emit(loop)) return;
    open_.push_back(&loop);
    if (plan_.is_static(loop)) {
      for_each_binding(context_, loop, [&] { emit_body(loop.body); });
    } else if (loop.kind == loops::LoopKind::Vectorized) {
      emit_chunks(loop);
    } else if (loop.kind == loops::LoopKind::Parallel) {
      emit_parallel(loop);
    } else {
      emit_steps(loop);
    }
    open_.pop_back();
  }

  /// A serial loop of some iterations per step, then those left.
  void emit_steps(const loops::Loop& loop) {
    const std::int64_t extent = plan_.extent(loop.var), step = plan_.iterations_per_step(loop);
    const std::int64_t in_steps = extent - extent % step;
    emit_serial({.var = loop.var, .begin = number(0), .end = number(in_steps), .step = step}, [&] {
      constant_prefetcher_.emit(constant_prefetches_, loop, step);
      for (std::int64_t i = 0; i < step; ++i) {
        context_.bindings[loop.var].constant = i;
        row_prefetcher_.emit(row_prefetches_, loop);
        emit_body(loop.body);
      }
    });
    for_each_binding(context_, loop, [&] { emit_body(loop.body); }, in_steps);
  }

  /// A loop that is emitted as one.
  struct SerialLoop {
    loops::Var var = 0;
    llvm::Value* begin = nullptr;
    llvm::Value* end = nullptr;
    std::int64_t step = 1;      ///< of the counter
    bool may_be_empty = false;  ///< otherwise it is executed at least once
  };
  [[nodiscard]] llvm::Value* number(std::int64_t value) { return builder_.getInt64(static_cast<std::uint64_t>(value)); }

  template <class F>
  void emit_serial(const SerialLoop& loop, const F& emit_inside) {
    llvm::BasicBlock* header = context_.add_block(nest_.variables[loop.var].name);
    llvm::BasicBlock* after = context_.add_block("after");
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    if (loop.may_be_empty) {
      builder_.CreateCondBr(builder_.CreateICmpSLT(loop.begin, loop.end), header, after);
    } else {
      builder_.CreateBr(header);
    }
    const KnownValues known_before = context_.known;
    context_.enter(header);
    llvm::PHINode* counter = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    counter->addIncoming(loop.begin, before);
    const Binding saved = context_.bindings[loop.var];
    ++context_.depth;
    context_.bindings[loop.var] = context_.scalar(counter);
    emit_inside();
    context_.bindings[loop.var] = saved;
    --context_.depth;
    llvm::Value* next = builder_.CreateAdd(counter, number(loop.step), "", true, true);
    counter->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, loop.end), header, after);
    after->moveAfter(builder_.GetInsertBlock());
    context_.enter(after, known_before);
  }

  /// A vectorised loop too long to unroll: a loop over full vectors, then the rest.
  void emit_chunks(const loops::Loop& loop) {
    const std::int64_t lanes = plan_.lanes(loop.body);
    const std::int64_t full = plan_.extent(loop.var) / lanes;
    const Binding saved = context_.bindings[loop.var];
    plan_.set_extent(plan_.chunk_variable(), full);
    context_.lanes = static_cast<unsigned>(lanes);
    context_.bindings[loop.var] = context_.lanes_of_chunk();
    emit_serial({.var = plan_.chunk_variable(), .begin = number(0), .end = number(full)},
                [&] { emit_body(loop.body); });
    for_each_binding(context_, loop, [&] { emit_body(loop.body); }, full * lanes);
    context_.bindings[loop.var] = saved;
  }

  /// Outlines the loop as a function over a part of its range, and passes it to the runtime with the values that it
  /// needs.
  void emit_parallel(const loops::Loop& loop) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* word = builder_.getInt64Ty();
    std::vector<llvm::Value**> captured;
    for (llvm::Value*& p : context_.pointers) {
      if (p != nullptr) captured.push_back(&p);
    }
    for (Binding& b : context_.bindings) {
      if (b.kind == Binding::Kind::Scalar) captured.push_back(&b.value);
    }
    llvm::AllocaInst* context =
        memory_.stack_slot(llvm::ArrayType::get(word, std::max<std::size_t>(captured.size(), 1)), 8);
    std::vector<llvm::Value*> outer;
    for (std::size_t c = 0; c < captured.size(); ++c) {
      outer.push_back(*captured[c]);
      builder_.CreateAlignedStore(outer.back(), builder_.CreateConstGEP1_64(word, context, c), llvm::Align(8));
    }
    auto* body_type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, word, word}, false);
    llvm::Function* body = add_function(context_, body_type, llvm::GlobalValue::InternalLinkage,
                                        nest_.name + "." + nest_.variables[loop.var].name);
    llvm::Value* parallel_for = builder_.CreateAlignedLoad(pointer, runtime_, llvm::Align(8));
    auto* call_type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, word, pointer, pointer}, false);
    llvm::CallInst* call =
        builder_.CreateCall(call_type, parallel_for, {runtime_, number(plan_.extent(loop.var)), body, context});
    tile_registers_.loses_registers(*call);

    llvm::BasicBlock* resume = builder_.GetInsertBlock();
    const std::int64_t saved_stack_bytes = std::exchange(stack_bytes_, 0);
    const std::vector<llvm::Value*> saved_pointers = context_.pointers;
    const KnownValues saved_known = context_.known;
    context_.enter(llvm::BasicBlock::Create(builder_.getContext(), "entry", body), {});
    for (std::size_t c = 0; c < captured.size(); ++c) {
      llvm::Value* slot = builder_.CreateConstGEP1_64(word, body->getArg(0), c);
      *captured[c] = outer[c]->getType()->isPointerTy() ? load_pointer(builder_, slot)
                                                        : builder_.CreateAlignedLoad(word, slot, llvm::Align(8));
    }
    emit_serial({.var = loop.var, .begin = body->getArg(1), .end = body->getArg(2), .may_be_empty = true},
                [&] { emit_body(loop.body); });
    finish_function();
    for (std::size_t c = 0; c < captured.size(); ++c) *captured[c] = outer[c];
    context_.pointers = saved_pointers;
    stack_bytes_ = saved_stack_bytes;
    context_.enter(resume, saved_known);
  }

  /// An initialisation followed by an update of exactly the same elements: the registers start with the identity, and
  /// the initialisation is not emitted.
  bool emit_initialised(const loops::Node& first, const loops::Node& second) {
    if (!options_.register_tiles || statements_.uses_registers()) return false;
    const auto* statement = std::get_if<loops::Statement>(&first.content);
    const auto* around = std::get_if<loops::Loop>(&first.content);
    const loops::Statement* initialise = around != nullptr ? only_statement(*around) : statement;
    const auto* update = std::get_if<loops::Loop>(&second.content);
    if (initialise == nullptr || initialise->kind != loops::Statement::Kind::Initialise || update == nullptr)
      return false;
    if (tile_registers_.is_open()) return false;
    if (const std::optional<MatrixProduct> product = matrix_products_.find(*update)) {
      if (around == nullptr || !matrix_products_.starts(*product, chain(*around), *initialise)) return false;
      emit_loop(*update, true);
      return true;
    }
    const std::optional<AccumulatorTile> tile = register_tiles_.find(*update);
    if (!tile || tile->statement->target != initialise->target) return false;
    std::optional<Affine> at_first;
    std::optional<Affine> at_update;
    const auto initialised = register_tiles_.elements_of(
        around != nullptr ? chain(*around) : std::vector<const loops::Loop*>{}, *initialise, at_first);
    const auto updated = register_tiles_.elements_of(tile->loops, *tile->statement, at_update);
    if (!initialised || !updated || *initialised != *updated || !(at_first->terms == at_update->terms)) return false;
    emit_loop(*update, true);
    return true;
  }

  void finish_function() {
    // The release of a thread team's barrier does not order non-temporal stores.
    if (plan_.bypasses_caches()) builder_.CreateIntrinsic(builder_.getVoidTy(), llvm::Intrinsic::x86_sse_sfence, {});
    builder_.CreateRetVoid();
    tile_registers_.configure(*context_.function());
  }

  EmissionContext& context_;
  EmissionPlan& plan_;
  const loops::LoopNest& nest_;
  llvm::IRBuilder<>& builder_;
  const LoopOptions options_;
  ValueEmitter values_{context_};
  MemoryEmitter memory_{context_, values_};
  ExpressionEmitter expressions_{context_, values_, memory_};
  StatementEmitter statements_{context_, values_, memory_, expressions_};
  RegisterTileEmitter register_tiles_{context_, values_, memory_, expressions_, statements_};
  TensorEmitter tensors_{context_, values_, memory_, expressions_, statements_};
  TransposedCopyEmitter transposed_copies_{context_, values_, memory_, expressions_};
  MatrixProductFinder matrix_products_{context_, values_};
  TileRegisterEmitter tile_registers_{context_, values_, memory_};
  ConstantPrefetcher constant_prefetcher_{context_, values_, memory_};
  RowPrefetcher row_prefetcher_{context_, values_, memory_};
  BlockPrefetcher block_prefetcher_{context_, values_, memory_};
  std::vector<const loops::Loop*> open_;               // loops around the insertion point, outermost first
  std::vector<ConstantPrefetch> constant_prefetches_;  // of the register tile that is open
  std::vector<RowPrefetch> row_prefetches_;            // of it, too
  llvm::Value* runtime_ = nullptr;
  std::int64_t stack_bytes_ = 0;
};

}  // namespace tunewright::codegen::llvm_backend
