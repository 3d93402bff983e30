// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/loop_bindings.hpp"
#include "tunewright/codegen/llvm/loop_chain.hpp"
#include "tunewright/codegen/llvm/value_emitter.hpp"
#include "tunewright/loops/tensor_operands.hpp"
#include "tunewright/schedule/intrinsics.hpp"

/// Products of matrices that tile registers of AMX can compute, among the loops of a nest.
namespace tunewright::codegen::llvm_backend {

/// A matrix in memory that a tile register is filled from or written to.
struct Matrix {
  loops::BufferId buffer = 0;
  const loops::IndexExpr* offset = nullptr;  ///< of the first element
  std::int64_t row_bytes = 0;                ///< from one row to the next
};

/// How many rows the instruction takes of the first factor, and groups of terms of both.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t steps = 0;
  auto operator<=>(const MatrixShape&) const = default;
};

/// A sum of products of matrices that lives in tile registers.
struct MatrixProduct {
  const loops::Statement* statement = nullptr;
  std::vector<const loops::Loop*> around;  ///< the instruction's loops, outermost first
  std::vector<const loops::Loop*> inside;  ///< the instruction's own
  Matrix rows, columns, target;
  MatrixShape shape;
  llvm::Intrinsic::ID instruction = llvm::Intrinsic::not_intrinsic;
  std::map<std::int64_t, unsigned> accumulators;  ///< register of each constant part of the target's offset
};

/// Finds sums of products that can live in tile registers: where the instruction reads its factors, where the sums go,
/// and which register each of them has. Emits nothing but index arithmetic.
class MatrixProductFinder {
 public:
  MatrixProductFinder(EmissionContext& context, ValueEmitter& values)
      : context_(context), plan_(context.plan), nest_(context.nest), values_(values) {}

  /// The product in `loop`, if tile registers can hold its target while `loop` runs: nothing is cut by guards, the
  /// operands lie as the instruction reads them, and the loops move the target to few places, all known.
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

  /// True when `initialise`, inside the loops `around`, stores the identity in exactly what the product adds to.
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

  /// False where the outermost loop moves the target, which is then better held further inside, or where there are
  /// more places than registers.
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
