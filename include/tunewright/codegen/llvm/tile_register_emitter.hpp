// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/matrix_product.hpp"
#include "tunewright/codegen/llvm/memory_emitter.hpp"

/// Matrix products in the tile registers of AMX.
namespace tunewright::codegen::llvm_backend {

/// Each of eight tile registers holds up to 16 rows of 64 bytes. Four are accumulators, two hold rows and two hold
/// columns. Accumulators stay in registers across the reduction loops around the instruction.
class TileRegisterEmitter {
 public:
  TileRegisterEmitter(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory)
      : context_(context), builder_(context.builder), values_(values), memory_(memory) {}

  /// Whether the emitted code uses tile registers.
  [[nodiscard]] bool are_used() const noexcept { return !users_.empty(); }

  [[nodiscard]] bool is_open() const noexcept { return open_.has_value(); }

  /// Loads the target's elements into registers, or zeros if `fresh`.
  void open(MatrixProduct product, bool fresh) {
    open_ = std::move(product);
    forget_factors();
    const MatrixShape usual = users_.try_emplace(context_.function(), open_->shape).first->second;
    if (usual != open_->shape) call(llvm::Intrinsic::x86_ldtilecfg, {configuration(open_->shape)});
    for_each_accumulator([&](const Affine& at, unsigned tile) {
      if (fresh) {
        call(llvm::Intrinsic::x86_tilezero, {tile_number(tile)});
      } else {
        move_tile(llvm::Intrinsic::x86_tileloadd64, tile, open_->target, at);
      }
    });
  }
  /// Stores the sums of the open product.
  void close() {
    for_each_accumulator([&](const Affine& at, unsigned tile) {
      move_tile(llvm::Intrinsic::x86_tilestored64, tile, open_->target, at);
    });
    memory_.forget(open_->statement->target);
    const MatrixShape usual = users_.at(context_.function());
    if (usual != open_->shape) call(llvm::Intrinsic::x86_ldtilecfg, {configuration(usual)});
    open_.reset();
  }

  /// Adds one matrix product; `loop` is the loop that the open product's instruction replaces.
  [[nodiscard]] bool emit(const loops::Loop& loop) {
    if (!open_ || open_->inside.front() != &loop) return false;
    at_first_iteration(context_, open_->inside, [&] {
      const unsigned sum = open_->accumulators.at(values_.affine(*open_->target.offset).constant);
      const unsigned rows = factor(open_->rows, rows_);
      const unsigned columns = factor(open_->columns, columns_);
      call(open_->instruction, {tile_number(sum), tile_number(rows), tile_number(columns)});
    });
    return true;
  }

  /// Registers a call that runs other parts of the kernel, which release the tile registers at their end.
  void loses_registers(llvm::CallInst& call) { releasing_calls_.push_back(&call); }

  /// Configures the registers at the entry of a finished function that uses them, and releases them at its end.
  void configure(llvm::Function& function) {
    const auto user = users_.find(&function);
    if (user == users_.end()) return;
    llvm::IRBuilder<>::InsertPointGuard guard(builder_);
    llvm::BasicBlock& entry = function.getEntryBlock();
    builder_.SetInsertPoint(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
    call(llvm::Intrinsic::x86_ldtilecfg, {configuration(user->second)});
    for (llvm::CallInst* losing : releasing_calls_) {
      if (losing->getFunction() != &function) continue;
      builder_.SetInsertPoint(losing->getNextNode());
      call(llvm::Intrinsic::x86_ldtilecfg, {configuration(user->second)});
    }
    for (llvm::BasicBlock& block : function) {
      if (!llvm::isa<llvm::ReturnInst>(block.getTerminator())) continue;
      builder_.SetInsertPoint(block.getTerminator());
      call(llvm::Intrinsic::x86_tilerelease, {});
    }
  }

 private:
  static constexpr unsigned factor_registers = 2;  ///< per factor
  static constexpr std::uint8_t bytes_of_row = 64;
  static constexpr std::uint8_t bytes_of_term = 4;

  template <class F>
  void for_each_accumulator(const F& f) {
    std::set<unsigned> done;
    at_first_iteration(context_, open_->inside, [&] {
      for_each_element(context_, open_->around, *open_->statement, [&] {
        const Affine at = values_.affine(*open_->target.offset);
        const unsigned tile = open_->accumulators.at(at.constant);
        if (done.insert(tile).second) f(at, tile);
      });
    });
  }

  /// Key of a register: a buffer, and terms and constant of an offset into it.
  struct Held {
    loops::BufferId buffer = loops::LoopNest::no_buffer;
    llvm::Value* terms = nullptr;
    std::int64_t constant = 0;
    bool operator==(const Held&) const = default;
  };
  struct Factor {
    unsigned register_number = 0;
    Held held;
  };
  using Factors = std::array<Factor, factor_registers>;

  /// The register that holds a factor; loads it into the least recently used register if necessary.
  [[nodiscard]] unsigned factor(const Matrix& matrix, Factors& factors) {
    if (factors_block_ != builder_.GetInsertBlock()) forget_factors();
    const Affine at = values_.affine(*matrix.offset);
    const Held wanted{matrix.buffer, values_.sum_of_terms(at), at.constant};
    auto chosen = std::find_if(factors.begin(), factors.end(), [&](const Factor& f) { return f.held == wanted; });
    const bool known = chosen != factors.end();
    if (!known) chosen = std::prev(factors.end());
    std::rotate(factors.begin(), chosen, std::next(chosen));
    Factor& latest = factors.front();
    if (!known) {
      latest.held = wanted;
      move_tile(llvm::Intrinsic::x86_tileloadd64, latest.register_number, matrix, at);
    }
    return latest.register_number;
  }
  void forget_factors() {
    for (unsigned r = 0; r < factor_registers; ++r) {
      rows_[r] = {loops::max_tile_accumulators + r, {}};
      columns_[r] = {loops::max_tile_accumulators + factor_registers + r, {}};
    }
    factors_block_ = builder_.GetInsertBlock();
  }

  void move_tile(llvm::Intrinsic::ID how, unsigned tile, const Matrix& matrix, const Affine& at) {
    call(how, {tile_number(tile), memory_.address(matrix.buffer, at),
               builder_.getInt64(static_cast<std::uint64_t>(matrix.row_bytes))});
  }
  [[nodiscard]] llvm::Value* tile_number(unsigned tile) { return builder_.getInt8(static_cast<std::uint8_t>(tile)); }
  void call(llvm::Intrinsic::ID instruction, llvm::ArrayRef<llvm::Value*> arguments) {
    builder_.CreateIntrinsic(instruction, {}, arguments);
  }

  /// The data that `ldtilecfg` reads: palette 1, from byte 16 on the row bytes of each register, from byte 48 on its
  /// number of rows.
  [[nodiscard]] llvm::GlobalVariable* configuration(const MatrixShape& shape) {
    llvm::GlobalVariable*& known = configurations_[shape];
    if (known != nullptr) return known;
    std::array<std::uint8_t, 64> bytes{1};
    const auto rows = static_cast<std::uint8_t>(shape.rows);
    const auto steps = static_cast<std::uint8_t>(shape.steps);
    const auto give = [&](std::size_t tile, std::uint8_t tile_rows, std::uint8_t row_bytes) {
      bytes[16 + 2 * tile] = row_bytes;
      bytes[48 + tile] = tile_rows;
    };
    for (std::size_t tile = 0; tile < loops::max_tile_accumulators; ++tile) give(tile, rows, bytes_of_row);
    for (std::size_t r = 0; r < factor_registers; ++r) {
      give(loops::max_tile_accumulators + r, rows, static_cast<std::uint8_t>(bytes_of_term * steps));
      give(loops::max_tile_accumulators + factor_registers + r, steps, bytes_of_row);
    }
    llvm::Constant* value = llvm::ConstantDataArray::get(builder_.getContext(), llvm::ArrayRef<std::uint8_t>(bytes));
    known = memory_.add_constant(value, "tile_configuration");
    return known;
  }

  EmissionContext& context_;
  llvm::IRBuilder<>& builder_;
  ValueEmitter& values_;
  MemoryEmitter& memory_;
  std::optional<MatrixProduct> open_;
  Factors rows_{};  ///< most recently used first
  Factors columns_{};
  const llvm::BasicBlock* factors_block_ = nullptr;
  std::map<const llvm::Function*, MatrixShape> users_;  ///< configured except in products of other shapes
  std::vector<llvm::CallInst*> releasing_calls_;
  std::map<MatrixShape, llvm::GlobalVariable*> configurations_;
};

}  // namespace tunewright::codegen::llvm_backend
