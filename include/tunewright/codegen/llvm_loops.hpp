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

#include "tunewright/codegen/llvm_tile_registers.hpp"

/// Loops, branches and storage of a loop nest in LLVM IR.
namespace tunewright::codegen::detail {

struct LoopOptions {
  bool register_tiles = true;                  ///< keep reduction targets in registers
  std::int64_t max_stack_bytes = 1024 * 1024;  ///< of temporaries of one thread
};

class LoopEmitter : public TileRegisterEmitter {
 public:
  LoopEmitter(Plan& plan, const Target& target, llvm::Module& module, const LoopOptions& options)
      : TileRegisterEmitter(plan, target, module), options_(options) {}

  /// Adds the kernel to the module and returns the top-level temporaries, which the caller passes after the
  /// arguments.
  std::vector<loops::BufferId> emit_kernel() {
    llvm::Type* pointer = builder_.getPtrTy();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer}, false);
    llvm::Function* function = add_function(type, llvm::GlobalValue::ExternalLinkage, nest_.name);
    runtime_ = function->getArg(1);
    enter(llvm::BasicBlock::Create(context_, "entry", function));
    std::vector<loops::BufferId> workspace;
    for (const loops::Node& node : nest_.body) {
      if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) workspace.push_back(allocate->buffer);
    }
    std::vector<loops::BufferId> passed = nest_.arguments;
    passed.insert(passed.end(), workspace.begin(), workspace.end());
    for (std::size_t b = 0; b < passed.size(); ++b) {
      llvm::Value* slot = builder_.CreateConstGEP1_64(pointer, function->getArg(0), b);
      pointers_[passed[b]] = promise_alignment(builder_.CreateAlignedLoad(pointer, slot, llvm::Align(8)));
    }
    emit_body(nest_.body, true);
    builder_.CreateRetVoid();
    configure_tile_registers(*function);
    return workspace;
  }

 private:
  [[nodiscard]] llvm::Function* add_function(llvm::FunctionType* type, llvm::GlobalValue::LinkageTypes linkage,
                                             const std::string& name) {
    auto* function = llvm::Function::Create(type, linkage, name, module_);
    function->setDoesNotThrow();
    function->addFnAttr("frame-pointer", "none");
    if (target_.isa == Isa::Avx512) {
      // Without these, vectors of 512 bits are split in two on processors that prefer 256.
      function->addFnAttr("prefer-vector-width", "512");
      function->addFnAttr("min-legal-vector-width", "512");
      if (const std::string units = tensor_features(target_); !units.empty())
        function->addFnAttr("target-features", units);
    }
    return function;
  }

  llvm::Value* promise_alignment(llvm::LoadInst* pointer) {
    llvm::Metadata* bytes = llvm::ConstantAsMetadata::get(builder_.getInt64(64));
    pointer->setMetadata(llvm::LLVMContext::MD_align, llvm::MDNode::get(context_, {bytes}));
    pointer->setMetadata(llvm::LLVMContext::MD_nonnull, llvm::MDNode::get(context_, {}));
    pointer->setMetadata(llvm::LLVMContext::MD_noundef, llvm::MDNode::get(context_, {}));
    return pointer;
  }

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
          emit_statement(*statement);
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
    stack_bytes_ += buffer.bytes();
    if (stack_bytes_ > options_.max_stack_bytes) {
      throw Unsupported("temporary '" + buffer.name + "' of " + std::to_string(buffer.bytes()) +
                        " bytes brings the stack of a thread to " + std::to_string(stack_bytes_) + "; at most " +
                        std::to_string(options_.max_stack_bytes) +
                        " fit: compute it further inside, in smaller tiles, or at the top level");
    }
    pointers_[id] =
        stack_slot(llvm::ArrayType::get(memory_type(buffer.type), static_cast<std::uint64_t>(buffer.elements())), 64);
  }

  void emit_branch(const loops::Branch& branch) {
    llvm::Value* condition_value = nullptr;
    bool never = false;
    for (const loops::Guard& guard : branch.conditions) {
      llvm::Value* holds = condition(guard);
      if (auto* decided = llvm::dyn_cast_or_null<llvm::Constant>(holds)) {
        never = never || decided->isNullValue();
        holds = nullptr;
      }
      condition_value = both(condition_value, holds);
    }
    if (never || condition_value == nullptr) {
      emit_body(never ? branch.otherwise : branch.then);
      return;
    }
    llvm::Function* function = builder_.GetInsertBlock()->getParent();
    auto* then = llvm::BasicBlock::Create(context_, "then", function);
    auto* otherwise = branch.otherwise.empty() ? nullptr : llvm::BasicBlock::Create(context_, "else", function);
    auto* after = llvm::BasicBlock::Create(context_, "after", function);
    builder_.CreateCondBr(condition_value, then, otherwise != nullptr ? otherwise : after);
    const Known before = known_;
    enter(then);
    emit_body(branch.then);
    builder_.CreateBr(after);
    if (otherwise != nullptr) {
      enter(otherwise, before);
      emit_body(branch.otherwise);
      builder_.CreateBr(after);
    }
    enter(after, before);
  }

  void emit_loop(const loops::Loop& loop, bool fresh = false) {
    if (options_.register_tiles && tile_ == nullptr && !has_open_matrices()) {
      if (std::optional<MatrixProduct> product = matrix_product(loop)) {
        open_matrices(*product, fresh);
        emit_guarded(loop);
        close_matrices();
        return;
      }
      if (std::optional<RegisterTile> tile = tile_of(loop)) {
        tile_ = &*tile;
        open_tile(*tile, fresh);
        emit_guarded(loop);
        close_tile(*tile, fresh);
        tile_ = nullptr;
        return;
      }
    }
    emit_guarded(loop);
  }

  /// Asks for guards as soon as all their variables are known.
  void emit_guarded(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || s->guards.empty()) {
      emit_iterations(loop);
      return;
    }
    const std::size_t before = satisfied_.size();
    const std::size_t rank = nest_.buffers[s->target].shape.size();
    const bool tolerant = (tile_ != nullptr && tile_->statement == s) || s->may_overcompute;
    llvm::Value* holds = nullptr;
    for (const loops::Guard& guard : s->guards) {
      if ((tolerant && guard.axis < rank) || is_satisfied(guard) || varies_in(loop, guard.value)) continue;
      llvm::Value* asked = condition(guard);
      if (asked != nullptr && is_vector(asked)) continue;
      holds = both(holds, asked);
      satisfied_.push_back(&guard);
    }
    branch_on(holds, [&] { emit_iterations(loop); });
    satisfied_.resize(before);
  }

  void emit_iterations(const loops::Loop& loop) {
    if (plan_.has_instruction(loop) && (emit_matrix_instruction(loop) || emit_instruction(loop))) return;
    if (emit_interleaved(loop)) return;
    const std::int64_t extent = plan_.extent(loop.var);
    if (plan_.is_static(loop)) {
      for_each_binding(loop, [&] { emit_body(loop.body); });
    } else if (loop.kind == loops::LoopKind::Vectorized) {
      emit_chunks(loop);
    } else if (loop.kind == loops::LoopKind::Parallel) {
      emit_parallel(loop);
    } else {
      emit_serial(loop.var, builder_.getInt64(0), builder_.getInt64(static_cast<std::uint64_t>(extent)),
                  [&] { emit_body(loop.body); });
    }
  }

  /// A loop that runs at least once, unless `may_be_empty`.
  template <class F>
  void emit_serial(loops::Var var, llvm::Value* begin, llvm::Value* end, const F& emit_inside,
                   bool may_be_empty = false) {
    llvm::Function* function = builder_.GetInsertBlock()->getParent();
    auto* header = llvm::BasicBlock::Create(context_, nest_.variables[var].name, function);
    auto* after = llvm::BasicBlock::Create(context_, "after", function);
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    if (may_be_empty) {
      builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), header, after);
    } else {
      builder_.CreateBr(header);
    }
    const Known known_before = known_;
    enter(header);
    llvm::PHINode* counter = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    counter->addIncoming(begin, before);
    const Binding saved = bindings_[var];
    bindings_[var] = {Binding::Kind::Scalar, 0, counter, false, ++depth_};
    emit_inside();
    bindings_[var] = saved;
    --depth_;
    llvm::Value* next = builder_.CreateAdd(counter, builder_.getInt64(1), "", true, true);
    counter->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), header, after);
    after->moveAfter(builder_.GetInsertBlock());
    enter(after, known_before);
  }

  /// A vectorised loop too long to unroll: a loop over full vectors, then the rest.
  void emit_chunks(const loops::Loop& loop) {
    const std::int64_t lanes = plan_.lanes(loop.body);
    const std::int64_t full = plan_.extent(loop.var) / lanes;
    const Binding saved = bindings_[loop.var];
    plan_.set_extent(plan_.chunk_variable(), full);
    lanes_ = static_cast<unsigned>(lanes);
    bindings_[loop.var] = {Binding::Kind::Lanes, 0, nullptr, true, depth_};
    emit_serial(plan_.chunk_variable(), builder_.getInt64(0), builder_.getInt64(static_cast<std::uint64_t>(full)),
                [&] { emit_body(loop.body); });
    for (const auto& [start, width] : Plan::chunks(plan_.extent(loop.var) - full * lanes, lanes)) {
      lanes_ = static_cast<unsigned>(width);
      bindings_[loop.var] = {width > 1 ? Binding::Kind::Lanes : Binding::Kind::Constant, full * lanes + start, nullptr,
                             false, depth_};
      emit_body(loop.body);
    }
    lanes_ = 1;
    bindings_[loop.var] = saved;
  }

  /// Outlines the loop as a function over a part of its range and hands it to the runtime, with the values it
  /// needs.
  void emit_parallel(const loops::Loop& loop) {
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Type* word = builder_.getInt64Ty();
    std::vector<llvm::Value**> captured;
    for (llvm::Value*& p : pointers_) {
      if (p != nullptr) captured.push_back(&p);
    }
    for (Binding& b : bindings_) {
      if (b.kind == Binding::Kind::Scalar) captured.push_back(&b.value);
    }
    llvm::AllocaInst* context = stack_slot(llvm::ArrayType::get(word, std::max<std::size_t>(captured.size(), 1)), 8);
    std::vector<llvm::Value*> outer;
    for (std::size_t c = 0; c < captured.size(); ++c) {
      outer.push_back(*captured[c]);
      builder_.CreateAlignedStore(outer.back(), builder_.CreateConstGEP1_64(word, context, c), llvm::Align(8));
    }
    auto* body_type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, word, word}, false);
    llvm::Function* body =
        add_function(body_type, llvm::GlobalValue::InternalLinkage, nest_.name + "." + nest_.variables[loop.var].name);
    llvm::Value* parallel_for = builder_.CreateAlignedLoad(pointer, runtime_, llvm::Align(8));
    auto* call_type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer, word, pointer, pointer}, false);
    llvm::CallInst* call = builder_.CreateCall(
        call_type, parallel_for,
        {runtime_, builder_.getInt64(static_cast<std::uint64_t>(plan_.extent(loop.var))), body, context});
    loses_tile_registers(*call);

    llvm::BasicBlock* resume = builder_.GetInsertBlock();
    const std::int64_t saved_stack_bytes = std::exchange(stack_bytes_, 0);
    const std::vector<llvm::Value*> saved_pointers = pointers_;
    const Known saved_known = known_;
    enter(llvm::BasicBlock::Create(context_, "entry", body), {});
    for (std::size_t c = 0; c < captured.size(); ++c) {
      llvm::Value* slot = builder_.CreateConstGEP1_64(word, body->getArg(0), c);
      llvm::LoadInst* inner = builder_.CreateAlignedLoad(outer[c]->getType(), slot, llvm::Align(8));
      *captured[c] = inner->getType()->isPointerTy() ? promise_alignment(inner) : inner;
    }
    emit_serial(loop.var, body->getArg(1), body->getArg(2), [&] { emit_body(loop.body); }, true);
    builder_.CreateRetVoid();
    configure_tile_registers(*body);
    for (std::size_t c = 0; c < captured.size(); ++c) *captured[c] = outer[c];
    pointers_ = saved_pointers;
    stack_bytes_ = saved_stack_bytes;
    enter(resume, saved_known);
  }

  /// An initialisation followed by the update of exactly the same elements: the registers start with the
  /// identity and the initialisation itself is not needed.
  bool emit_initialised(const loops::Node& first, const loops::Node& second) {
    if (!options_.register_tiles || tile_ != nullptr) return false;
    const auto* statement = std::get_if<loops::Statement>(&first.content);
    const auto* around = std::get_if<loops::Loop>(&first.content);
    const loops::Statement* initialise = around != nullptr ? only_statement(*around) : statement;
    const auto* update = std::get_if<loops::Loop>(&second.content);
    if (initialise == nullptr || initialise->kind != loops::Statement::Kind::Initialise || update == nullptr)
      return false;
    if (has_open_matrices()) return false;
    if (const std::optional<MatrixProduct> product = matrix_product(*update)) {
      if (around == nullptr || !starts(*product, chain(*around), *initialise)) return false;
      emit_loop(*update, true);
      return true;
    }
    const std::optional<RegisterTile> tile = tile_of(*update);
    if (!tile || tile->statement->target != initialise->target) return false;
    std::optional<Affine> at_first;
    std::optional<Affine> at_update;
    const auto initialised =
        elements_of(around != nullptr ? chain(*around) : std::vector<const loops::Loop*>{}, *initialise, at_first);
    const auto updated = elements_of(tile->loops, *tile->statement, at_update);
    if (!initialised || !updated || *initialised != *updated || !(at_first->terms == at_update->terms)) return false;
    emit_loop(*update, true);
    return true;
  }

  const LoopOptions options_;
  llvm::Value* runtime_ = nullptr;
  std::int64_t stack_bytes_ = 0;
};

}  // namespace tunewright::codegen::detail
