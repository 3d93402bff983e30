// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>
#include <unordered_map>

#include "tunewright/codegen/llvm_math.hpp"
#include "tunewright/codegen/llvm_memory.hpp"

/// Scalar bodies in LLVM IR, evaluated in scalar or vector code.
namespace tunewright::codegen::detail {

/// A value stays a scalar until it meets one that differs between lanes. Code is free of branches: a select
/// reads its arms under masks.
class ExpressionEmitter : public MemoryEmitter {
 public:
  ExpressionEmitter(Plan& plan, const Target& target, llvm::Module& module)
      : MemoryEmitter(plan, target, module), math_(builder_, target.isa) {}

 protected:
  /// Body of the statement at the current bindings. `clamped`: coordinates of guarded axes come from the
  /// clamp variables.
  [[nodiscard]] llvm::Value* evaluate(const loops::Statement& s, bool clamped, const Mask& mask) {
    const StatementPlan& plan = plan_.of(s);
    accesses_ = clamped ? &plan.clamped_loads : &plan.loads;
    indices_ = clamped ? &plan.clamped_indices : &plan.indices;
    values_.clear();
    own_mask_ = mask;
    return value(*s.op->body, mask);
  }

  [[nodiscard]] llvm::Value* combine(program::Combiner combiner, llvm::Value* a, llvm::Value* b) {
    match(a, b);
    const bool real = a->getType()->isFPOrFPVectorTy();
    switch (combiner) {
      case program::Combiner::Sum: return real ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
      case program::Combiner::Product: return real ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
      case program::Combiner::Max: return larger(a, b);
      case program::Combiner::Min: return smaller(a, b);
      case program::Combiner::None: break;
    }
    return b;
  }
  [[nodiscard]] llvm::Constant* identity(program::Combiner combiner, program::ScalarType type) {
    if (program::is_float(type)) return number(program::identity(combiner), type);
    const unsigned bits = value_type(type)->getIntegerBitWidth();
    switch (combiner) {
      case program::Combiner::Max:
        return llvm::ConstantInt::get(context_, llvm::APInt::getSignedMinValue(bits));
      case program::Combiner::Min:
        return llvm::ConstantInt::get(context_, llvm::APInt::getSignedMaxValue(bits));
      default: return number(program::identity(combiner), type);
    }
  }
  /// All lanes of `v` combined, pairwise.
  [[nodiscard]] llvm::Value* across_lanes(program::Combiner combiner, llvm::Value* v) {
    auto width = llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements();
    const unsigned saved = lanes_;
    for (; width > 1; width /= 2) {
      llvm::SmallVector<int, 32> low, high;
      for (int lane = 0; lane < static_cast<int>(width / 2); ++lane) {
        low.push_back(lane);
        high.push_back(lane + static_cast<int>(width / 2));
      }
      lanes_ = width / 2;
      v = combine(combiner, builder_.CreateShuffleVector(v, low), builder_.CreateShuffleVector(v, high));
    }
    lanes_ = saved;
    return builder_.CreateExtractElement(v, std::uint64_t{0});
  }
  [[nodiscard]] llvm::Value* select(llvm::Value* condition, llvm::Value* a, llvm::Value* b) {
    match(a, b);
    if (is_vector(condition)) {
      a = widen(a);
      b = widen(b);
    }
    return builder_.CreateSelect(condition, a, b);
  }

  ~ExpressionEmitter() = default;

 private:
  /// a > b ? a : b (a < b ? a : b), which is one instruction; a NaN gives `b`.
  [[nodiscard]] llvm::Value* larger(llvm::Value* a, llvm::Value* b) {
    const bool real = a->getType()->isFPOrFPVectorTy();
    return builder_.CreateSelect(real ? builder_.CreateFCmpOGT(a, b) : builder_.CreateICmpSGT(a, b), a, b);
  }
  [[nodiscard]] llvm::Value* smaller(llvm::Value* a, llvm::Value* b) {
    const bool real = a->getType()->isFPOrFPVectorTy();
    return builder_.CreateSelect(real ? builder_.CreateFCmpOLT(a, b) : builder_.CreateICmpSLT(a, b), a, b);
  }

  [[nodiscard]] static bool reads_outside(
      const program::Expr& e, const std::unordered_map<const program::ExprNode*, Access>& accesses) {
    bool found = false;
    program::visit(e, [&](const program::ExprNode& node) {
      if (node.op == program::Op::Load) found = found || !accesses.at(&node).inside;
    });
    return found;
  }

  [[nodiscard]] llvm::Value* value(const program::ExprNode& e, const Mask& mask) {
    // Values under the statement's own mask are shared; those in the arm of a select are not valid elsewhere.
    const bool shared = mask.uniform == own_mask_.uniform && mask.lanes == own_mask_.lanes;
    if (shared) {
      if (const auto found = values_.find(&e); found != values_.end()) return found->second;
    }
    llvm::Value* result = fresh(e, mask);
    if (shared) values_[&e] = result;
    return result;
  }

  [[nodiscard]] llvm::Value* fresh(const program::ExprNode& e, const Mask& mask) {
    using program::Op;
    switch (e.op) {
      case Op::Constant: return number(e.value, e.type);
      case Op::Index: return emit(indices_->at(&e));
      case Op::Load: {
        const Access& access = accesses_->at(&e);
        return load(access.buffer, affine(access.offset), mask);
      }
      case Op::Select: return select_arms(e.args[0], e.args[1], e.args[2], mask);
      case Op::And:
        if (reads_outside(e.args[1], *accesses_)) {
          return select_arms(e.args[0], e.args[1], program::constant(0, program::ScalarType::Bool), mask);
        }
        break;
      case Op::Or:
        if (reads_outside(e.args[1], *accesses_)) {
          return select_arms(e.args[0], program::constant(1, program::ScalarType::Bool), e.args[1], mask);
        }
        break;
      default: break;
    }
    llvm::Value* a = value(*e.args[0], mask);
    if (e.args.size() == 1) return unary(e, a);
    llvm::Value* b = value(*e.args[1], mask);
    match(a, b);
    return binary(e, a, b);
  }

  [[nodiscard]] llvm::Value* select_arms(const program::Expr& condition, const program::Expr& a,
                                         const program::Expr& b, const Mask& mask) {
    llvm::Value* c = value(*condition, mask);
    if (auto* decided = llvm::dyn_cast<llvm::ConstantInt>(c)) return value(decided->isOne() ? *a : *b, mask);
    if (auto* decided = llvm::dyn_cast<llvm::Constant>(c); decided != nullptr && is_vector(c)) {
      if (decided->isAllOnesValue()) return value(*a, mask);
      if (decided->isNullValue()) return value(*b, mask);
    }
    const bool careful_a = reads_outside(a, *accesses_);
    const bool careful_b = reads_outside(b, *accesses_);
    llvm::Value* x = value(*a, careful_a ? narrowed(mask, c) : mask);
    // What a masked load does not read is zero, so a padding with zeros needs no select.
    const bool masked = careful_a && a->op == program::Op::Load && is_vector(x) >= is_vector(c);
    if (masked && b->op == program::Op::Constant && b->value == 0) return x;
    llvm::Value* y = value(*b, careful_b ? narrowed(mask, builder_.CreateNot(c)) : mask);
    return select(c, x, y);
  }

  [[nodiscard]] llvm::Value* unary(const program::ExprNode& e, llvm::Value* a) {
    using program::Op;
    const bool real = a->getType()->isFPOrFPVectorTy();
    switch (e.op) {
      case Op::Negate: return real ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
      case Op::Abs:
        return real ? math_.abs(a)
                    : builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse());
      case Op::Exp: return math_.exp(a);
      case Op::Log: return math_.log(a);
      case Op::Sqrt: return math_.sqrt(a);
      case Op::Tanh: return math_.tanh(a);
      case Op::Erf: return math_.erf(a);
      case Op::Not: return builder_.CreateNot(a);
      case Op::Cast: return converted(a, e.args[0]->type, e.type);
      default: break;
    }
    throw std::logic_error("not an operation of one argument");
  }

  [[nodiscard]] llvm::Value* converted(llvm::Value* a, program::ScalarType from, program::ScalarType to) {
    llvm::Type* type = vector_of(value_type(to), is_vector(a) ? lanes_ : 1);
    if (to == program::ScalarType::Bool) {
      llvm::Constant* zero = llvm::Constant::getNullValue(a->getType());
      return program::is_float(from) ? builder_.CreateFCmpUNE(a, zero) : builder_.CreateICmpNE(a, zero);
    }
    if (program::is_float(from))
      return program::is_float(to) ? builder_.CreateFPCast(a, type) : builder_.CreateFPToSI(a, type);
    if (program::is_float(to)) {
      return from == program::ScalarType::Bool ? builder_.CreateUIToFP(a, type)
                                               : builder_.CreateSIToFP(a, type);
    }
    return from == program::ScalarType::Bool ? builder_.CreateZExt(a, type)
                                             : builder_.CreateSExtOrTrunc(a, type);
  }

  [[nodiscard]] llvm::Value* binary(const program::ExprNode& e, llvm::Value* a, llvm::Value* b) {
    using program::Op;
    const bool real = a->getType()->isFPOrFPVectorTy();
    switch (e.op) {
      case Op::Add: return real ? builder_.CreateFAdd(a, b) : builder_.CreateAdd(a, b);
      case Op::Subtract: return real ? builder_.CreateFSub(a, b) : builder_.CreateSub(a, b);
      case Op::Multiply: return real ? builder_.CreateFMul(a, b) : builder_.CreateMul(a, b);
      case Op::Divide: {
        if (real) {
          llvm::Value* quotient = builder_.CreateFDiv(a, b);
          // Divisors that do not change in a loop, as in a softmax, are inverted once in front of it.
          if (auto* division = llvm::dyn_cast<llvm::Instruction>(quotient)) division->setHasAllowReciprocal(true);
          return quotient;
        }
        // Lanes whose result is not used may divide by zero, which would trap.
        llvm::Value* zero = builder_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
        return builder_.CreateSDiv(a,
                                   builder_.CreateSelect(zero, llvm::ConstantInt::get(b->getType(), 1), b));
      }
      case Op::Min: return smaller(a, b);
      case Op::Max: return larger(a, b);
      case Op::Less: return real ? builder_.CreateFCmpOLT(a, b) : builder_.CreateICmpSLT(a, b);
      case Op::LessEqual: return real ? builder_.CreateFCmpOLE(a, b) : builder_.CreateICmpSLE(a, b);
      case Op::Equal: return real ? builder_.CreateFCmpOEQ(a, b) : builder_.CreateICmpEQ(a, b);
      case Op::And: return builder_.CreateAnd(a, b);
      case Op::Or: return builder_.CreateOr(a, b);
      default: break;
    }
    throw std::logic_error("not an operation of two arguments");
  }

  MathEmitter math_;
  const std::unordered_map<const program::ExprNode*, Access>* accesses_ = nullptr;
  const std::unordered_map<const program::ExprNode*, loops::IndexExpr>* indices_ = nullptr;
  std::unordered_map<const program::ExprNode*, llvm::Value*> values_;
  Mask own_mask_;
};

}  // namespace tunewright::codegen::detail
