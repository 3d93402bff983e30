// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/codegen/llvm/context.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/loops/tensor_operands.hpp"

/// Index arithmetic in LLVM IR: bindings of loop variables to values, and expressions over them.
namespace tunewright::codegen::llvm_backend {

[[nodiscard]] inline llvm::Type* vector_of(llvm::Type* element, unsigned lanes) {
  return lanes > 1 ? llvm::FixedVectorType::get(element, lanes) : element;
}
[[nodiscard]] inline bool is_vector(const llvm::Value* v) { return v->getType()->isVectorTy(); }

class ValueEmitter {
 public:
  explicit ValueEmitter(EmissionContext& context)
      : context_(context),
        plan_(context.plan),
        nest_(context.nest),
        builder_(context.builder),
        numbers_(context.numbers) {}

  [[nodiscard]] llvm::Constant* number(double value, program::ScalarType type) {
    const double held = program::converted(value, program::ScalarType::Float64, type);
    if (program::is_float(type)) return llvm::ConstantFP::get(numbers_.value_type(type), held);
    return llvm::ConstantInt::getSigned(numbers_.value_type(type), program::as_int64(held));
  }

  /// The value broadcast to all lanes.
  [[nodiscard]] llvm::Value* widen(llvm::Value* v) {
    if (context_.lanes <= 1 || is_vector(v)) return v;
    if (auto* constant = llvm::dyn_cast<llvm::Constant>(v)) {
      return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(context_.lanes), constant);
    }
    llvm::Value*& splat = context_.known.splats[{v, context_.lanes}];
    if (splat == nullptr) splat = builder_.CreateVectorSplat(context_.lanes, v);
    return splat;
  }
  void match(llvm::Value*& a, llvm::Value*& b) {
    if (is_vector(a) != is_vector(b)) {
      a = widen(a);
      b = widen(b);
    }
  }
  /// A mask of the first `count` lanes.
  [[nodiscard]] llvm::Constant* first_lanes(unsigned count) {
    llvm::SmallVector<llvm::Constant*, 64> values;
    for (unsigned lane = 0; lane < context_.lanes; ++lane) values.push_back(builder_.getInt1(lane < count));
    return llvm::ConstantVector::get(values);
  }
  /// 0, 1, 2, ... times `stride`.
  [[nodiscard]] llvm::Constant* lane_numbers(llvm::Type* element, std::int64_t stride) {
    llvm::SmallVector<llvm::Constant*, 64> values;
    for (unsigned lane = 0; lane < context_.lanes; ++lane) {
      values.push_back(llvm::ConstantInt::getSigned(element, static_cast<std::int64_t>(lane) * stride));
    }
    return llvm::ConstantVector::get(values);
  }

  /// The expression with folded constants, and lanes separated from scalar terms.
  [[nodiscard]] Affine affine(const loops::IndexExpr& e) {
    Affine result;
    if (e.is_affine()) {
      add_terms(result, e, 1, false);
    } else {
      add_terms(result, specialised(e), 1, true);
    }
    sort_few(result.terms, [](const Affine::Term& a, const Affine::Term& b) { return a.depth < b.depth; });
    return result;
  }

  /// Sum of the scalar terms; null if there are none.
  [[nodiscard]] llvm::Value* sum_of_terms(const Affine& a) {
    if (a.terms.empty()) return nullptr;
    std::vector<std::pair<std::int64_t, llvm::Value*>> key;
    for (const Affine::Term& t : a.terms) key.emplace_back(t.coefficient, t.value);
    llvm::Value*& sum = context_.known.sums[key];
    if (sum != nullptr) return sum;
    for (const Affine::Term& t : a.terms) {
      llvm::Value* term =
          t.coefficient == 1
              ? t.value
              : builder_.CreateNSWMul(t.value, builder_.getInt64(static_cast<std::uint64_t>(t.coefficient)));
      sum = sum == nullptr ? term : builder_.CreateNSWAdd(sum, term);
    }
    return sum;
  }

  /// The value as an i64, or as a vector of them if it differs between lanes.
  [[nodiscard]] llvm::Value* emit(const Affine& a) {
    llvm::Value* value = sum_of_terms(a);
    llvm::Constant* constant = builder_.getInt64(static_cast<std::uint64_t>(a.constant));
    if (value == nullptr) {
      value = constant;
    } else if (a.constant != 0) {
      value = builder_.CreateNSWAdd(value, constant);
    }
    if (a.stride != 0) value = builder_.CreateNSWAdd(widen(value), lane_numbers(builder_.getInt64Ty(), a.stride));
    if (a.lane_part != nullptr) value = builder_.CreateNSWAdd(widen(value), a.lane_part);
    return value;
  }
  [[nodiscard]] llvm::Value* emit(const loops::IndexExpr& e) { return emit(affine(e)); }

  [[nodiscard]] program::Range range_of(loops::Var var) const {
    const Binding& b = context_.bindings[var];
    if (b.kind == Binding::Kind::Constant) return {b.constant, b.constant};
    if (var == plan_.lane_variable()) return {0, static_cast<std::int64_t>(context_.lanes) - 1};
    return {0, plan_.extent(var) - 1};
  }
  [[nodiscard]] program::Range range(const loops::IndexExpr& e) const {
    return e.range([this](loops::Var var) { return range_of(var); });
  }
  /// Whether no guard can fail in the iterations that are left at the current bindings.
  [[nodiscard]] bool always_holds(const std::vector<loops::Guard>& guards) const {
    return std::ranges::none_of(guards, [this](const loops::Guard& guard) {
      return !context_.is_satisfied(guard) && loops::can_fail(guard, [this](loops::Var var) { return range_of(var); });
    });
  }
  /// The condition of a guard; null if it always holds. A vector if lanes differ.
  [[nodiscard]] llvm::Value* condition(const loops::Guard& guard) {
    const program::Range r = range(guard.value);
    const bool below = guard.below && r.min < 0;
    const bool above = guard.above && r.max >= guard.extent;
    if (!below && !above) return nullptr;
    const Affine a = affine(guard.value);
    // 32-bit lanes if they suffice, which halves the registers.
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    const bool narrow =
        !a.uniform() && a.lane_part == nullptr && r.min > -limit && r.max < limit && guard.extent < limit;
    llvm::Value* value = nullptr;
    if (narrow) {
      Affine scalar = a;
      scalar.stride = 0;
      value = widen(builder_.CreateTrunc(emit(scalar), builder_.getInt32Ty()));
      value = builder_.CreateNSWAdd(value, lane_numbers(builder_.getInt32Ty(), a.stride));
    } else {
      value = emit(a);
    }
    llvm::Type* type = value->getType();
    llvm::Value* result = nullptr;
    if (below) result = builder_.CreateICmpSGE(value, llvm::ConstantInt::get(type, 0));
    if (above) {
      llvm::Value* under = builder_.CreateICmpSLT(value, llvm::ConstantInt::getSigned(type, guard.extent));
      result = result == nullptr ? under : builder_.CreateAnd(result, under);
    }
    return result;
  }
  [[nodiscard]] llvm::Value* both(llvm::Value* a, llvm::Value* b) {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    match(a, b);
    return builder_.CreateAnd(a, b);
  }

 private:
  /// Substitutes constants and separates lane variables, so that quotients and remainders simplify.
  [[nodiscard]] loops::IndexExpr specialised(const loops::IndexExpr& e) const {
    return e.substitute(
        [this](loops::Var var) {
          const Binding& b = context_.bindings[var];
          if (b.kind == Binding::Kind::Constant) return loops::IndexExpr(b.constant);
          if (b.kind != Binding::Kind::Lanes) return loops::IndexExpr::variable(var);
          loops::IndexExpr start(b.constant);
          if (b.chunked)
            start += static_cast<std::int64_t>(context_.lanes) * loops::IndexExpr::variable(plan_.chunk_variable());
          return start + loops::IndexExpr::variable(plan_.lane_variable());
        },
        [this](loops::Var var) { return range_of(var); });
  }

  void add_variable(Affine& result, loops::Var var, std::int64_t coefficient) {
    if (var == plan_.lane_variable()) {
      result.stride += coefficient;
      return;
    }
    const Binding& b = context_.bindings[var];
    switch (b.kind) {
      case Binding::Kind::Constant: result.constant += coefficient * b.constant; return;
      case Binding::Kind::Scalar:
        result.constant += coefficient * b.constant;
        add_scalar(result, coefficient, b.value, b.depth);
        return;
      case Binding::Kind::Lanes:
        result.constant += coefficient * b.constant;
        result.stride += coefficient;
        if (b.chunked) {
          const Binding& chunk = context_.bindings[plan_.chunk_variable()];
          add_scalar(result, coefficient * static_cast<std::int64_t>(context_.lanes), chunk.value, chunk.depth);
        }
        return;
      case Binding::Kind::None: break;
    }
    throw std::logic_error("loop variable '" + nest_.variables[var].name + "' is used outside its loop");
  }
  static void add_scalar(Affine& result, std::int64_t coefficient, llvm::Value* value, unsigned depth) {
    for (Affine::Term& t : result.terms) {
      if (t.value == value) {
        t.coefficient += coefficient;
        return;
      }
    }
    result.terms.push_back({coefficient, value, depth});
  }

  void add_terms(Affine& result, const loops::IndexExpr& e, std::int64_t factor, bool quasi) {
    result.constant += factor * e.constant();
    for (const loops::IndexExpr::Term& t : e.terms()) {
      if (t.kind == loops::IndexExpr::Kind::Variable) {
        add_variable(result, t.var, factor * t.coefficient);
        continue;
      }
      if (!quasi) continue;
      llvm::Value* value = divided(t);
      if (!is_vector(value)) {
        add_scalar(result, factor * t.coefficient, value, context_.depth + 1);
        continue;
      }
      value = builder_.CreateMul(value, llvm::ConstantInt::getSigned(value->getType(), factor * t.coefficient));
      result.lane_part = result.lane_part == nullptr ? value : builder_.CreateAdd(result.lane_part, value);
    }
  }

  /// Floor quotient or remainder.
  [[nodiscard]] llvm::Value* divided(const loops::IndexExpr::Term& t) {
    const Affine numerator = affine(*t.numerator);
    const bool quotient = t.kind == loops::IndexExpr::Kind::Quotient;
    if (!numerator.uniform()) return divided(emit(numerator), t, quotient);
    llvm::Value*& known = context_.known.quotients[{sum_of_terms(numerator), numerator.constant, t.divisor, quotient}];
    if (known == nullptr) known = divided(emit(numerator), t, quotient);
    return known;
  }
  [[nodiscard]] llvm::Value* divided(llvm::Value* x, const loops::IndexExpr::Term& t, bool quotient) {
    auto* divisor = llvm::ConstantInt::getSigned(x->getType(), t.divisor);
    if (range(*t.numerator).min >= 0)
      return quotient ? builder_.CreateUDiv(x, divisor) : builder_.CreateURem(x, divisor);
    llvm::Value* remainder = builder_.CreateSRem(x, divisor);
    llvm::Value* negative = builder_.CreateICmpSLT(remainder, llvm::ConstantInt::get(x->getType(), 0));
    remainder = builder_.CreateSelect(negative, builder_.CreateAdd(remainder, divisor), remainder);
    return quotient ? builder_.CreateSDiv(builder_.CreateSub(x, remainder), divisor) : remainder;
  }

  EmissionContext& context_;
  const EmissionPlan& plan_;
  const loops::LoopNest& nest_;
  llvm::IRBuilder<>& builder_;
  NumberEmitter& numbers_;
};

}  // namespace tunewright::codegen::llvm_backend
