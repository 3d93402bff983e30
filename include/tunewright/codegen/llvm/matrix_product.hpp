// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tunewright/codegen/llvm/loop_bindings.hpp"
#include "tunewright/codegen/llvm/loop_chain.hpp"
#include "tunewright/codegen/llvm/value_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Finds matrix products in a nest that AMX tile registers can compute.
namespace tunewright::codegen::llvm_backend {

/// A matrix in memory that is loaded into or stored from a tile register.
struct Matrix {
  loops::BufferId buffer = 0;
  const loops::IndexExpr* offset = nullptr;  ///< of the first element
  std::int64_t row_bytes = 0;                ///< distance between rows
};

/// The number of rows of the first factor, and of groups of terms of both, per instruction.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t steps = 0;
  auto operator<=>(const MatrixShape&) const = default;
};

/// A sum of matrix products in tile registers.
struct MatrixProduct {
  const loops::Statement* statement = nullptr;
  std::vector<const loops::Loop*> around;  ///< loops around the instruction, outermost first
  std::vector<const loops::Loop*> inside;  ///< loops that the instruction replaces
  Matrix rows, columns, target;
  MatrixShape shape;
  llvm::Intrinsic::ID instruction = llvm::Intrinsic::not_intrinsic;
  std::map<std::int64_t, unsigned> accumulators;  ///< register by the constant part of the target's offset
};

/// Finds sums of products that fit tile registers: where the instruction reads its factors, where the sums are stored,
/// and the register of each. Emits only index arithmetic.
class MatrixProductFinder {
 public:
  MatrixProductFinder(EmissionContext& context, ValueEmitter& values)
      : context_(context), plan_(context.plan), nest_(context.nest), values_(values) {}

  /// The product in `loop`, if tile registers can hold its target while `loop` runs: no guards cut it, the operands
  /// have the layout that the instruction reads, and the loops move the target to few known addresses.
  [[nodiscard]] std::optional<MatrixProduct> find(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || s->kind != loops::Statement::Kind::Update || context_.lanes != 1) return std::nullopt;
    const std::vector<const loops::Loop*> all = chain(loop);
    const auto first = std::find_if(
        all.begin(), all.end(), [&](const loops::Loop* l) { return plan_.has_instruction(*l) && l->intrinsic->m > 1; });
    if (first == all.end()) return std::nullopt;
    MatrixProduct product;
    product.statement = s;
    product.around.assign(all.begin(), first);
    product.inside.assign(first, all.end());
    const bool cut = std::any_of(s->guards.begin(), s->guards.end(),
                                 [&](const loops::Guard& guard) { return !context_.is_satisfied(guard); });
    if (cut || !find_operands(product) || !assign_registers(product)) return std::nullopt;
    return product;
  }

  /// Whether `initialise`, inside the loops `around`, stores the identity in exactly the elements to which the product
  /// adds.
  [[nodiscard]] bool starts(const MatrixProduct& product, const std::vector<const loops::Loop*>& around,
                            const loops::Statement& initialise) const {
    std::vector<const loops::Loop*> added = product.around;
    added.insert(added.end(), product.inside.begin(), product.inside.end());
    return loops::starts(initialise, around, *product.statement, added, plan_.of(*product.statement).target.offset);
  }

 private:
  [[nodiscard]] bool find_operands(MatrixProduct& product) const {
    const schedule::TensorIntrinsic& intrinsic = *product.inside.front()->intrinsic;
    const std::optional<schedule::Product> factors = schedule::product_of(*product.statement->op);
    if (product.inside.size() != 4 || !factors) return false;
    product.shape = {plan_.extent(product.inside[0]->var), plan_.extent(product.inside[1]->var)};
    const StatementPlan& plan = plan_.of(*product.statement);
    const auto matrix = [&](const Access& access, std::size_t row) {
      const auto size = static_cast<std::int64_t>(program::size_in_bytes(nest_.buffers[access.buffer].type));
      return Matrix{access.buffer, &access.offset, size * *loops::stride(access.offset, product.inside[row]->var)};
    };
    const loops::TileStrides in_rows = loops::strides_of_rows(intrinsic);
    const loops::TileStrides in_columns = loops::strides_of_columns(intrinsic);
    const auto lies = [&](const Access& access, const loops::TileStrides& wanted) {
      return loops::lies(access.offset, product.inside, wanted);
    };
    const bool swapped = !lies(plan.loads.at(factors->first), in_rows);
    const program::ExprNode* a = swapped ? factors->second : factors->first;
    const program::ExprNode* b = swapped ? factors->first : factors->second;
    if (!lies(plan.loads.at(a), in_rows) || !lies(plan.loads.at(b), in_columns) ||
        !lies(plan.target, loops::strides_of_sums()))
      return false;
    product.rows = matrix(plan.loads.at(a), 0);
    product.columns = matrix(plan.loads.at(b), 1);
    product.target = matrix(plan.target, 0);
    product.instruction = instruction_for(a->type, b->type);
    return true;
  }

  [[nodiscard]] static llvm::Intrinsic::ID instruction_for(program::ScalarType a, program::ScalarType b) {
    using program::ScalarType;
    if (a == ScalarType::BFloat16) return llvm::Intrinsic::x86_tdpbf16ps;
    if (a == ScalarType::Int8)
      return b == ScalarType::Int8 ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud;
    return b == ScalarType::Int8 ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud;
  }

  /// Returns false if the outermost loop moves the target, which should then be in registers only further inside, or if
  /// there are more addresses than registers.
  [[nodiscard]] bool assign_registers(MatrixProduct& product) {
    const loops::IndexExpr& offset = *product.target.offset;
    std::int64_t places = 1;
    bool outermost = true;
    for (const loops::Loop* loop : product.around) {
      const std::int64_t extent = plan_.extent(loop->var);
      if (loop->kind == loops::LoopKind::Parallel || loop->kind == loops::LoopKind::Vectorized) return false;
      if (extent == 1) continue;
      const bool moves = offset.uses(loop->var);
      if (moves && (outermost || !plan_.is_static(*loop))) return false;
      if (moves) places *= extent;
      outermost = false;
      if (places > loops::max_tile_accumulators) return false;
    }
    std::optional<Affine> at_start;
    bool same_address = true;
    at_first_iteration(context_, product.inside, [&] {
      for_each_element(context_, product.around, *product.statement, [&] {
        const Affine at = values_.affine(offset);
        if (!at_start) at_start = at;
        same_address = same_address && at.terms == at_start->terms && at.uniform();
        product.accumulators.emplace(at.constant, static_cast<unsigned>(product.accumulators.size()));
      });
    });
    return same_address;
  }

  EmissionContext& context_;
  const EmissionPlan& plan_;
  const loops::LoopNest& nest_;
  ValueEmitter& values_;
};

}  // namespace tunewright::codegen::llvm_backend
