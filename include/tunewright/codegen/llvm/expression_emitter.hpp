// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "tunewright/codegen/llvm/math_emitter.hpp"
#include "tunewright/codegen/llvm/memory_emitter.hpp"

/// Scalar bodies in LLVM IR, evaluated as scalars or vectors.
namespace tunewright::codegen::llvm_backend {

/// A value stays a scalar until it is combined with one that differs between lanes. Code has no branches: both operands
/// of a select are read under masks.
class ExpressionEmitter {
 public:
  ExpressionEmitter(EmissionContext& context, ValueEmitter& values, MemoryEmitter& memory)
      : context_(context),
        builder_(context.builder),
        numbers_(context.numbers),
        values_(values),
        memory_(memory),
        math_(builder_) {}

  /// Evaluates the body of a statement at the current bindings. `clamped`: coordinates of guarded axes are those of the
  /// clamp variables.
  [[nodiscard]] llvm::Value* evaluate(const loops::Statement& s, bool clamped, const Mask& mask) {
    const StatementPlan& plan = context_.plan.of(s);
    accesses_ = clamped ? &plan.clamped_loads : &plan.loads;
    indices_ = clamped ? &plan.clamped_indices : &plan.indices;
    evaluated_.clear();
    own_mask_ = mask;
    return value(*s.op->body, mask);
  }

  [[nodiscard]] llvm::Value* combine(program::Combiner combiner, program::ScalarType type, llvm::Value* a,
                                     llvm::Value* b) {
    values_.match(a, b);
    const bool real = program::is_float(type);
    const auto rounded = [&](llvm::Value* v) { return numbers_.rounded(v, type); };
    switch (combiner) {
      case program::Combiner::Sum: return rounded(sum(type, a, b));
      case program::Combiner::Product: return rounded(real ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b));
      case program::Combiner::Max: return larger(type, a, b);
      case program::Combiner::Min: return smaller(type, a, b);
      case program::Combiner::None: break;
    }
    return b;
  }
  [[nodiscard]] llvm::Constant* identity(program::Combiner combiner, program::ScalarType type) {
    // The largest int64 is not representable as a double.
    if (type == program::ScalarType::Int64 && combiner == program::Combiner::Min)
      return builder_.getInt64(static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    return values_.number(program::identity(combiner, type), type);
  }
  /// Reduces all lanes of `v`, pairwise.
  [[nodiscard]] llvm::Value* across_lanes(program::Combiner combiner, program::ScalarType type, llvm::Value* v) {
    // Where products of bytes are added by halves, as below, LLVM 19 makes a dot product (vpdpbusd) and takes only one
    // of its four lanes.
    if (combiner == program::Combiner::Sum && type == program::ScalarType::Bool) return builder_.CreateOrReduce(v);
    if (combiner == program::Combiner::Sum && v->getType()->isIntOrIntVectorTy()) return builder_.CreateAddReduce(v);
    auto width = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
    const unsigned saved = context_.lanes;
    for (; width > 1; width /= 2) {
      llvm::SmallVector<int, 32> low, high;
      for (int lane = 0; lane < static_cast<int>(width / 2); ++lane) {
        low.push_back(lane);
        high.push_back(lane + static_cast<int>(width / 2));
      }
      context_.lanes = width / 2;
      v = combine(combiner, type, builder_.CreateShuffleVector(v, low), builder_.CreateShuffleVector(v, high));
    }
    context_.lanes = saved;
    return builder_.CreateExtractElement(v, std::uint64_t{0});
  }
  [[nodiscard]] llvm::Value* select(llvm::Value* condition, llvm::Value* a, llvm::Value* b) {
    values_.match(a, b);
    if (is_vector(condition)) {
      a = values_.widen(a);
      b = values_.widen(b);
    }
    return builder_.CreateSelect(condition, a, b);
  }

 private:
  /// Adds two numbers. The sum of Booleans is true if one of them is; sums of one bit would be modulo 2.
  [[nodiscard]] llvm::Value* sum(program::ScalarType type, llvm::Value* a, llvm::Value* b) {
    if (type == program::ScalarType::Bool) return builder_.CreateOr(a, b);
    return program::is_float(type) ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
  }
  /// a > b ? a : b (a < b ? a : b), a single instruction; if an operand is NaN, the result is `b`.
  [[nodiscard]] llvm::Value* larger(program::ScalarType type, llvm::Value* a, llvm::Value* b) {
    return builder_.CreateSelect(is_below(type, b, a), a, b);
  }
  [[nodiscard]] llvm::Value* smaller(program::ScalarType type, llvm::Value* a, llvm::Value* b) {
    return builder_.CreateSelect(is_below(type, a, b), a, b);
  }
  [[nodiscard]] llvm::Value* is_below(program::ScalarType type, llvm::Value* a, llvm::Value* b) {
    if (program::is_float(type)) return builder_.CreateFCmpOLT(a, b);
    return has_sign(type) ? builder_.CreateICmpSLT(a, b) : builder_.CreateICmpULT(a, b);
  }
  [[nodiscard]] static bool has_sign(program::ScalarType type) {
    return type != program::ScalarType::UInt8 && type != program::ScalarType::Bool;
  }

  [[nodiscard]] static bool reads_outside(const program::Expr& e,
                                          const std::unordered_map<const program::ExprNode*, Access>& accesses) {
    bool found = false;
    program::visit(e, [&](const program::ExprNode& node) {
      if (node.op == program::Op::Load) found = found || !accesses.at(&node).inside;
    });
    return found;
  }

  [[nodiscard]] llvm::Value* value(const program::ExprNode& e, const Mask& mask) {
    // Only values under the statement's own mask are reused; those in an arm of a select are not valid elsewhere.
    const bool shared = mask.uniform == own_mask_.uniform && mask.lanes == own_mask_.lanes;
    if (shared) {
      if (const auto found = evaluated_.find(&e); found != evaluated_.end()) return found->second;
    }
    llvm::Value* result = fresh(e, mask);
    if (shared) evaluated_[&e] = result;
    return result;
  }

  [[nodiscard]] llvm::Value* fresh(const program::ExprNode& e, const Mask& mask) {
    using program::Op;
    switch (e.op) {
      case Op::Constant: return values_.number(e.value, e.type);
      case Op::Index: return values_.emit(indices_->at(&e));
      case Op::Load: {
        const Access& access = accesses_->at(&e);
        return memory_.load(access.buffer, values_.affine(access.offset), mask);
      }
      case Op::Select: return select_arms(e.args[0], e.args[1], e.args[2], mask);
      case Op::And:
        if (reads_outside(e.args[1], *accesses_)) return select_arms(e.args[0], e.args[1], no_, mask);
        break;
      case Op::Or:
        if (reads_outside(e.args[1], *accesses_)) return select_arms(e.args[0], yes_, e.args[1], mask);
        break;
      default: break;
    }
    llvm::Value* a = value(*e.args[0], mask);
    if (e.args.size() == 1) return unary(e, a);
    llvm::Value* b = value(*e.args[1], mask);
    values_.match(a, b);
    return binary(e, a, b);
  }

  [[nodiscard]] llvm::Value* select_arms(const program::Expr& condition, const program::Expr& a, const program::Expr& b,
                                         const Mask& mask) {
    llvm::Value* c = value(*condition, mask);
    if (auto* decided = llvm::dyn_cast<llvm::ConstantInt>(c)) return value(decided->isOne() ? *a : *b, mask);
    if (auto* decided = llvm::dyn_cast<llvm::Constant>(c); decided != nullptr && is_vector(c)) {
      if (decided->isAllOnesValue()) return value(*a, mask);
      if (decided->isNullValue()) return value(*b, mask);
    }
    const bool careful_a = reads_outside(a, *accesses_);
    const bool careful_b = reads_outside(b, *accesses_);
    llvm::Value* x = value(*a, careful_a ? memory_.narrowed(mask, c) : mask);
    // A masked load gives zero in masked lanes, so zero padding needs no select.
    const bool masked = careful_a && a->op == program::Op::Load && is_vector(x) >= is_vector(c);
    if (masked && b->op == program::Op::Constant && b->value == 0 && !std::signbit(b->value)) return x;
    llvm::Value* y = value(*b, careful_b ? memory_.narrowed(mask, builder_.CreateNot(c)) : mask);
    return select(c, x, y);
  }

  [[nodiscard]] llvm::Value* unary(const program::ExprNode& e, llvm::Value* a) {
    using program::Op;
    const bool real = a->getType()->isFPOrFPVectorTy();
    // Functions of whole numbers are computed in float64.
    const auto function = [&](llvm::Value* (MathEmitter::*of)(llvm::Value*)) {
      if (real) return numbers_.rounded((math_.*of)(a), e.type);
      constexpr auto wide = program::ScalarType::Float64;
      return numbers_.converted((math_.*of)(numbers_.converted(a, e.args[0]->type, wide)), wide, e.type);
    };
    switch (e.op) {
      case Op::Negate: return real ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
      case Op::Abs:
        if (real) return math_.abs(a);
        if (!has_sign(e.type)) return a;
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse());
      case Op::Exp: return function(&MathEmitter::exp);
      case Op::Log: return function(&MathEmitter::log);
      case Op::Sqrt: return function(&MathEmitter::sqrt);
      case Op::Tanh: return function(&MathEmitter::tanh);
      case Op::Erf: return function(&MathEmitter::erf);
      case Op::Not: return builder_.CreateNot(a);
      case Op::Cast: return numbers_.converted(a, e.args[0]->type, e.type);
      default: break;
    }
    throw std::logic_error("not an operation of one argument");
  }

  [[nodiscard]] llvm::Value* binary(const program::ExprNode& e, llvm::Value* a, llvm::Value* b) {
    using program::Op;
    const program::ScalarType type = e.args[0]->type;
    const bool real = program::is_float(type);
    const auto rounded = [&](llvm::Value* v) { return numbers_.rounded(v, type); };
    // Otherwise processors with float16 arithmetic would contract two operations into one, which skips a rounding.
    const llvm::IRBuilder<>::FastMathFlagGuard guard(builder_);
    if (program::is_narrow_float(type)) builder_.clearFastMathFlags();
    switch (e.op) {
      case Op::Add: return rounded(sum(type, a, b));
      case Op::Subtract: return rounded(real ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b));
      case Op::Multiply: return rounded(real ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b));
      case Op::Divide: return real ? rounded(quotient(type, a, b)) : integer_quotient(type, a, b);
      case Op::Min: return smaller(type, a, b);
      case Op::Max: return larger(type, a, b);
      case Op::Less: return is_below(type, a, b);
      case Op::LessEqual:
        if (real) return builder_.CreateFCmpOLE(a, b);
        return builder_.CreateNot(is_below(type, b, a));
      case Op::Equal: return real ? builder_.CreateFCmpOEQ(a, b) : builder_.CreateICmpEQ(a, b);
      case Op::And: return builder_.CreateAnd(a, b);
      case Op::Or: return builder_.CreateOr(a, b);
      default: break;
    }
    throw std::logic_error("not an operation of two arguments");
  }

  [[nodiscard]] llvm::Value* quotient(program::ScalarType type, llvm::Value* a, llvm::Value* b) {
    llvm::Value* quotient = builder_.CreateFDiv(a, b);
    // Loop-invariant divisors, as in a softmax, are inverted once before the loop. The quotient of 16-bit numbers must
    // be the nearest float, so that rounding it again gives the nearest number of their type.
    auto* division = llvm::dyn_cast<llvm::Instruction>(quotient);
    if (division != nullptr && !program::is_narrow_float(type)) division->setHasAllowReciprocal(true);
    return quotient;
  }
  [[nodiscard]] llvm::Value* integer_quotient(program::ScalarType type, llvm::Value* a, llvm::Value* b) {
    // Unused lanes may divide by zero, which would trap.
    llvm::Value* zero = builder_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
    b = builder_.CreateSelect(zero, llvm::ConstantInt::get(b->getType(), 1), b);
    if (!has_sign(type)) return builder_.CreateUDiv(a, b);
    // The minimum divided by -1 would trap too; its quotient wraps around.
    llvm::Value* negated = builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
    llvm::Value* safe = builder_.CreateSelect(negated, llvm::ConstantInt::get(b->getType(), 1), b);
    return builder_.CreateSelect(negated, builder_.CreateNeg(a), builder_.CreateSDiv(a, safe));
  }

  EmissionContext& context_;
  llvm::IRBuilder<>& builder_;
  NumberEmitter& numbers_;
  ValueEmitter& values_;
  MemoryEmitter& memory_;
  MathEmitter math_;
  const std::unordered_map<const program::ExprNode*, Access>* accesses_ = nullptr;
  const std::unordered_map<const program::ExprNode*, loops::IndexExpr>* indices_ = nullptr;
  std::unordered_map<const program::ExprNode*, llvm::Value*> evaluated_;
  // Members, because `evaluated_` knows nodes by their addresses.
  const program::Expr no_ = program::constant(0, program::ScalarType::Bool);
  const program::Expr yes_ = program::constant(1, program::ScalarType::Bool);
  Mask own_mask_;
};

}  // namespace tunewright::codegen::llvm_backend
