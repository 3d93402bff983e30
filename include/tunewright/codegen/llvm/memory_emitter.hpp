// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "tunewright/codegen/llvm/value_emitter.hpp"

/// Loads and stores of buffer elements in LLVM IR.
namespace tunewright::codegen::llvm_backend {

/// The condition of loads: one common to all lanes and one per lane. If it fails, no memory is accessed and the value
/// is zero. An element that all lanes share is loaded for all if the condition holds in one of them.
struct Mask {
  llvm::Value* uniform = nullptr;
  llvm::Value* lanes = nullptr;
  [[nodiscard]] bool always() const { return uniform == nullptr && lanes == nullptr; }
};

/// Caches that are asked for lines, by the localities that LLVM gives them.
enum class Cache : std::uint32_t { L2 = 2, L1 = 3 };
inline constexpr std::int64_t line_bytes = 64;  ///< that a prefetch fetches

/// Buffers never overlap, which scoped alias metadata declares. Values that the current basic block has loaded or
/// stored are remembered, so that an unrolled tile loads each element once.
class MemoryEmitter {
 public:
  MemoryEmitter(EmissionContext& context, ValueEmitter& values)
      : context_(context),
        nest_(context.nest),
        builder_(context.builder),
        numbers_(context.numbers),
        values_(values),
        scopes_(nest_.buffers.size(), nullptr),
        noalias_(nest_.buffers.size(), nullptr) {
    llvm::MDBuilder metadata(builder_.getContext());
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("buffers");
    std::vector<llvm::Metadata*> all;
    for (const loops::Buffer& buffer : nest_.buffers)
      all.push_back(metadata.createAnonymousAliasScope(domain, buffer.name));
    for (std::size_t b = 0; b < all.size(); ++b) {
      scopes_[b] = llvm::MDNode::get(builder_.getContext(), {all[b]});
      std::vector<llvm::Metadata*> others = all;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(b));
      noalias_[b] = llvm::MDNode::get(builder_.getContext(), others);
    }
  }

  [[nodiscard]] Mask narrowed(const Mask& mask, llvm::Value* condition) {
    if (condition == nullptr) return mask;
    return is_vector(condition) ? Mask{mask.uniform, values_.both(mask.lanes, condition)}
                                : Mask{values_.both(mask.uniform, condition), mask.lanes};
  }

  [[nodiscard]] llvm::Value* load(loops::BufferId id, const Affine& at, const Mask& mask) {
    const program::ScalarType type = nest_.buffers[id].type;
    if (!mask.always()) return numbers_.from_memory(masked_load(id, at, mask), type);
    const unsigned width = at.uniform() ? 1 : context_.lanes;
    const auto key = std::make_tuple(id, values_.sum_of_terms(at), at.constant, at.stride, width);
    if (at.lane_part != nullptr) return numbers_.from_memory(plain_load(id, at), type);
    llvm::Value*& known = context_.loaded[key];
    if (known == nullptr) known = numbers_.from_memory(plain_load(id, at), type);
    return known;
  }

  /// Loads a value of `type` from the memory at one element; all lanes refer to the element of the first.
  [[nodiscard]] llvm::Value* load_bits(loops::BufferId id, const Affine& at, llvm::Type* type) {
    return annotate(builder_.CreateAlignedLoad(type, address(id, at), alignment(id)), id);
  }

  /// Stores a value of any type to the memory at one element.
  void store_bits(loops::BufferId id, const Affine& at, llvm::Value* value) {
    forget(id);
    annotate(builder_.CreateAlignedStore(value, address(id, at), alignment(id)), id);
  }

  /// Stores `value`; a scalar goes to every lane. Only lanes of `lane_mask` are written; the caller branches on uniform
  /// conditions. With `bypass_caches` whole vectors, which must lie at multiples of their size, are stored around the
  /// caches.
  void store(loops::BufferId id, const Affine& at, llvm::Value* value, llvm::Value* lane_mask,
             bool bypass_caches = false) {
    const program::ScalarType type = nest_.buffers[id].type;
    forget(id);
    if (at.uniform()) {
      if (is_vector(value)) value = builder_.CreateExtractElement(value, std::uint64_t{context_.lanes - 1});
      value = numbers_.to_memory(value, type);
      annotate(builder_.CreateAlignedStore(value, address(id, at), alignment(id)), id);
      return;
    }
    llvm::Value* const held = values_.widen(value);
    value = numbers_.to_memory(held, type);
    llvm::Instruction* instruction = nullptr;
    if (at.stride == 1 && at.lane_part == nullptr) {
      llvm::Value* pointer = address(id, at);
      if (lane_mask != nullptr) {
        instruction = builder_.CreateMaskedStore(value, pointer, alignment(id), lane_mask);
      } else if (bypass_caches) {
        instruction = builder_.CreateAlignedStore(value, pointer, size_of(value));
        llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
        instruction->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(builder_.getContext(), {one}));
      } else {
        instruction = builder_.CreateAlignedStore(value, pointer, alignment(id));
      }
    } else {
      if (lane_mask == nullptr) lane_mask = all_lanes();
      instruction = builder_.CreateMaskedScatter(value, addresses(id, at), alignment(id), lane_mask);
    }
    annotate(instruction, id);
    if (lane_mask == nullptr && at.lane_part == nullptr && type != program::ScalarType::Bool) {
      context_.loaded[std::make_tuple(id, values_.sum_of_terms(at), at.constant, at.stride, context_.lanes)] = held;
    }
  }

  /// Forgets the known elements of a buffer that is written by other means than `store`.
  void forget(loops::BufferId id) {
    for (auto entry = context_.loaded.begin(); entry != context_.loaded.end();) {
      entry = std::get<0>(entry->first) == id ? context_.loaded.erase(entry) : std::next(entry);
    }
  }

  [[nodiscard]] std::int64_t element_bytes(loops::BufferId id) const {
    return static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[id].type));
  }

  /// Asks for the line of an element in a cache. The element may lie outside the buffer.
  void prefetch(loops::BufferId id, const Affine& at, Cache cache) {
    constexpr std::uint32_t read = 0, data = 1;
    builder_.CreateIntrinsic(llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
                             {address(id, at), builder_.getInt32(read),
                              builder_.getInt32(static_cast<std::uint32_t>(cache)), builder_.getInt32(data)});
  }

  /// Address of the first lane.
  [[nodiscard]] llvm::Value* address(loops::BufferId id, const Affine& at) {
    if (context_.pointers[id] == nullptr)
      throw std::logic_error("buffer '" + nest_.buffers[id].name + "' is used before it is allocated");
    llvm::Type* type = numbers_.memory_type(nest_.buffers[id].type);
    llvm::Value* pointer = context_.pointers[id];
    if (llvm::Value* sum = values_.sum_of_terms(at)) {
      llvm::Value*& base = context_.known.addresses[{id, sum}];
      if (base == nullptr) base = builder_.CreateGEP(type, pointer, sum);
      pointer = base;
    }
    if (at.constant != 0)
      pointer = builder_.CreateGEP(type, pointer, builder_.getInt64(static_cast<std::uint64_t>(at.constant)));
    return pointer;
  }

  [[nodiscard]] llvm::AllocaInst* stack_slot(llvm::Type* type, std::uint64_t alignment) {
    llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    llvm::BasicBlock& entry = builder_.GetInsertBlock()->getParent()->getEntryBlock();
    builder_.SetInsertPoint(&entry, entry.begin());
    llvm::AllocaInst* slot = builder_.CreateAlloca(type);
    slot->setAlignment(llvm::Align(alignment));
    return slot;
  }

  /// Adds constant data to the module, aligned to a cache line, under a name that begins with `name`.
  [[nodiscard]] llvm::GlobalVariable* add_constant(llvm::Constant* value, const char* name) {
    auto* variable = new llvm::GlobalVariable(context_.module, value->getType(), true,
                                              llvm::GlobalValue::InternalLinkage, value, name);  // the module owns it
    variable->setAlignment(llvm::Align(64));
    return variable;
  }

 private:
  [[nodiscard]] llvm::Align alignment(loops::BufferId id) const {
    return llvm::Align(program::size_in_bytes(nest_.buffers[id].type));
  }
  [[nodiscard]] llvm::Align size_of(const llvm::Value* vector) const {
    return llvm::Align(context_.module.getDataLayout().getTypeStoreSize(vector->getType()).getFixedValue());
  }
  [[nodiscard]] llvm::Value* all_lanes() {
    return llvm::ConstantInt::getTrue(vector_of(builder_.getInt1Ty(), context_.lanes));
  }

  /// Addresses of all lanes.
  [[nodiscard]] llvm::Value* addresses(loops::BufferId id, const Affine& at) {
    Affine scalar = at;
    scalar.stride = 0;
    scalar.lane_part = nullptr;
    llvm::Value* offsets = values_.lane_numbers(builder_.getInt64Ty(), at.stride);
    if (at.lane_part != nullptr) offsets = builder_.CreateAdd(offsets, at.lane_part);
    return builder_.CreateGEP(numbers_.memory_type(nest_.buffers[id].type), address(id, scalar), offsets);
  }

  [[nodiscard]] llvm::Value* plain_load(loops::BufferId id, const Affine& at) {
    llvm::Type* type = numbers_.memory_type(nest_.buffers[id].type);
    if (at.uniform()) return annotate(builder_.CreateAlignedLoad(type, address(id, at), alignment(id)), id);
    llvm::Type* wide = vector_of(type, context_.lanes);
    if (at.lane_part == nullptr && at.stride == 1) {
      return annotate(builder_.CreateAlignedLoad(wide, address(id, at), alignment(id)), id);
    }
    if (at.lane_part == nullptr && at.stride == 2) return every_second(id, at, wide, nullptr);
    if (llvm::Value* picked = from_one_vector(id, at, type)) return picked;
    return annotate(builder_.CreateMaskedGather(wide, addresses(id, at), alignment(id), all_lanes()), id);
  }

  /// Elements 0, 2, 4, ... of the lanes in `mask` (null: of all): two loads that do not read beyond the last of them,
  /// and a shuffle.
  [[nodiscard]] llvm::Value* every_second(loops::BufferId id, const Affine& at, llvm::Type* wide, llvm::Value* mask) {
    Affine second = at;
    second.constant += context_.lanes - 1;
    const int lanes = static_cast<int>(context_.lanes);
    const auto loaded = [&](const Affine& from, int first) -> llvm::Value* {
      if (mask == nullptr) return annotate(builder_.CreateAlignedLoad(wide, address(id, from), alignment(id)), id);
      // Elements in between are not read, because those beside idle lanes may lie outside the buffer.
      llvm::SmallVector<int, 64> of_elements;
      for (int e = first; e < first + lanes; ++e) of_elements.push_back(e % 2 == 0 ? e / 2 : lanes);
      llvm::Value* nothing = llvm::Constant::getNullValue(mask->getType());
      return annotate(builder_.CreateMaskedLoad(wide, address(id, from), alignment(id),
                                                builder_.CreateShuffleVector(mask, nothing, of_elements),
                                                llvm::Constant::getNullValue(wide)),
                      id);
    };
    llvm::SmallVector<int, 64> picked;
    for (int lane = 0; lane < lanes; ++lane) picked.push_back(2 * lane < lanes ? 2 * lane : 2 * lane + 1);
    llvm::Value* low = loaded(at, 0);
    return builder_.CreateShuffleVector(low, loaded(second, lanes - 1), picked);
  }

  /// Elements at known distances within one vector, as groups of channels read theirs: a load and a shuffle. Null where
  /// distances are not known or larger.
  [[nodiscard]] llvm::Value* from_one_vector(loops::BufferId id, const Affine& at, llvm::Type* type) {
    const auto* distances = llvm::dyn_cast_or_null<llvm::Constant>(at.lane_part);
    if (distances == nullptr) return nullptr;
    llvm::SmallVector<std::int64_t, 64> offsets;
    for (unsigned lane = 0; lane < context_.lanes; ++lane) {
      const auto* part = llvm::dyn_cast_or_null<llvm::ConstantInt>(distances->getAggregateElement(lane));
      if (part == nullptr) return nullptr;
      offsets.push_back(part->getSExtValue() + static_cast<std::int64_t>(lane) * at.stride);
    }
    const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
    const std::int64_t span = *most - *least + 1;
    if (span > static_cast<std::int64_t>(context_.lanes)) return nullptr;
    Affine first = at;
    first.constant += *least;
    first.stride = 0;
    first.lane_part = nullptr;
    llvm::Type* wide = vector_of(type, static_cast<unsigned>(span));
    llvm::Value* all = annotate(builder_.CreateAlignedLoad(wide, address(id, first), alignment(id)), id);
    if (span == 1) return builder_.CreateVectorSplat(context_.lanes, all);
    llvm::SmallVector<int, 64> picked;
    for (const std::int64_t offset : offsets) picked.push_back(static_cast<int>(offset - *least));
    return builder_.CreateShuffleVector(all, picked);
  }

  /// A load without a branch: if the uniform condition fails, it reads zeros from elsewhere.
  [[nodiscard]] llvm::Value* masked_load(loops::BufferId id, const Affine& at, const Mask& mask) {
    llvm::Type* type = numbers_.memory_type(nest_.buffers[id].type);
    llvm::Type* wide = vector_of(type, context_.lanes);
    if (at.uniform()) {
      const auto* decided = llvm::dyn_cast_or_null<llvm::Constant>(mask.lanes);
      if (decided != nullptr && decided->isNullValue()) return llvm::Constant::getNullValue(type);
      const bool known = mask.lanes == nullptr || decided != nullptr;
      llvm::Value* any = known ? mask.uniform : values_.both(mask.uniform, builder_.CreateOrReduce(mask.lanes));
      if (any == nullptr) return plain_load(id, at);
      return builder_.CreateAlignedLoad(type, builder_.CreateSelect(any, address(id, at), zeros()), alignment(id));
    }
    if (at.lane_part == nullptr && at.stride == 1) {
      llvm::Value* pointer = address(id, at);
      if (mask.uniform != nullptr) pointer = builder_.CreateSelect(mask.uniform, pointer, zeros());
      if (mask.lanes == nullptr) return builder_.CreateAlignedLoad(wide, pointer, alignment(id));
      return builder_.CreateMaskedLoad(wide, pointer, alignment(id), mask.lanes, llvm::Constant::getNullValue(wide));
    }
    if (at.lane_part == nullptr && at.stride == 2 && context_.plan.masks_vectors() && mask.lanes != nullptr &&
        mask.uniform == nullptr)
      return every_second(id, at, wide, values_.widen(mask.lanes));
    llvm::Value* lanes = mask.lanes;
    if (mask.uniform != nullptr) lanes = values_.both(lanes, values_.widen(mask.uniform));
    return builder_.CreateMaskedGather(wide, addresses(id, at), alignment(id), lanes,
                                       llvm::Constant::getNullValue(wide));
  }

  /// Zeros for a whole vector register, read instead of memory that must not be accessed.
  [[nodiscard]] llvm::Value* zeros() {
    if (zeros_ == nullptr) {
      llvm::Type* type = llvm::ArrayType::get(builder_.getInt64Ty(), 64);
      zeros_ = add_constant(llvm::Constant::getNullValue(type), "zeros");
    }
    return zeros_;
  }

  llvm::Instruction* annotate(llvm::Instruction* instruction, loops::BufferId id) {
    instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, scopes_[id]);
    instruction->setMetadata(llvm::LLVMContext::MD_noalias, noalias_[id]);
    return instruction;
  }

  EmissionContext& context_;
  const loops::LoopNest& nest_;
  llvm::IRBuilder<>& builder_;
  NumberEmitter& numbers_;
  ValueEmitter& values_;
  std::vector<llvm::MDNode*> scopes_;
  std::vector<llvm::MDNode*> noalias_;
  llvm::GlobalVariable* zeros_ = nullptr;
};

}  // namespace tunewright::codegen::llvm_backend
