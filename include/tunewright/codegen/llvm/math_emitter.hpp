// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

/// Elementary functions as LLVM IR, for scalars and vectors of any number of lanes.
///
/// Float: range reduction and polynomials that were fitted at Chebyshev nodes for this library; the largest observed
/// error over the float range is below 2 units in the last place, of erf below 2.5. Infinities and NaNs are as in C;
/// exp is zero where the exact result is smaller than any normal number. Double: functions of the C library, one lane
/// at a time.
namespace tunewright::codegen::llvm_backend {

class MathEmitter {
 public:
  explicit MathEmitter(llvm::IRBuilder<>& builder) : b_(builder) {}

  [[nodiscard]] llvm::Value* sqrt(llvm::Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  [[nodiscard]] llvm::Value* abs(llvm::Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }

  [[nodiscard]] llvm::Value* exp(llvm::Value* x) { return is_float(x) ? float_exp(x) : library("exp", x); }
  [[nodiscard]] llvm::Value* log(llvm::Value* x) { return is_float(x) ? float_log(x) : library("log", x); }
  [[nodiscard]] llvm::Value* tanh(llvm::Value* x) { return is_float(x) ? float_tanh(x) : library("tanh", x); }
  [[nodiscard]] llvm::Value* erf(llvm::Value* x) { return is_float(x) ? float_erf(x) : library("erf", x); }

 private:
  [[nodiscard]] static bool is_float(llvm::Value* x) { return x->getType()->getScalarType()->isFloatTy(); }
  [[nodiscard]] static llvm::Constant* real(llvm::Value* like, double value) {
    return llvm::ConstantFP::get(like->getType(), value);
  }
  [[nodiscard]] llvm::Type* integer_like(llvm::Value* x) {
    llvm::Type* type = b_.getInt32Ty();
    if (auto* vector = llvm::dyn_cast<llvm::VectorType>(x->getType()))
      return llvm::VectorType::get(type, vector->getElementCount());
    return type;
  }
  [[nodiscard]] static llvm::Constant* integer(llvm::Value* like, std::int64_t value) {
    return llvm::ConstantInt::getSigned(like->getType(), value);
  }
  [[nodiscard]] llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return b_.CreateFAdd(b_.CreateFMul(a, b), c);
  }
  /// `coefficients` start with the constant term.
  [[nodiscard]] llvm::Value* polynomial(llvm::Value* x, std::initializer_list<double> coefficients) {
    llvm::Value* sum = nullptr;
    for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c) {
      sum = sum == nullptr ? real(x, *c) : fma(sum, x, real(x, *c));
    }
    return sum;
  }
  [[nodiscard]] llvm::Value* bits(llvm::Value* x) { return b_.CreateBitCast(x, integer_like(x)); }

  /// exp(x) = 2^n exp(r), 0 <= r <= ln(2), so that 2^n is zero or normal for every result that is.
  [[nodiscard]] llvm::Value* float_exp(llvm::Value* x) {
    // Comparisons with NaN are false, so a NaN is propagated.
    llvm::Value* y = b_.CreateSelect(b_.CreateFCmpOGT(x, real(x, 89)), real(x, 89), x);
    y = b_.CreateSelect(b_.CreateFCmpOLT(y, real(x, -88)), real(x, -88), y);
    // n is x / ln(2) - 1/2 rounded: the sum has no room for a fraction, and the exponent of 2^n in its last bits.
    constexpr double to_exponent = 1.5 * 8388608 + 127;
    llvm::Value* exponent = b_.CreateFAdd(fma(y, real(x, 1.4426950408889634), real(x, -0.5)), real(x, to_exponent));
    llvm::Value* n = b_.CreateFSub(exponent, real(x, to_exponent));
    llvm::Value* r = fma(n, real(x, -0.693359375), y);  // ln 2 as a sum of two parts, the first exact in a few bits
    r = fma(n, real(x, 2.12194440054690583e-4), r);
    llvm::Value* p = polynomial(
        r, {1, 0.999999803453, 0.500005829216, 0.166610096175, 0.0419151074359, 0.00779210122945, 0.00194886422782});
    llvm::Value* integer_exponent = bits(exponent);
    llvm::Value* scale = b_.CreateShl(integer_exponent, integer(integer_exponent, 23));
    return b_.CreateFMul(p, b_.CreateBitCast(scale, x->getType()));
  }

  /// log(x) = e ln 2 + log(1 + z), 1 + z in [sqrt(1/2), sqrt(2)).
  [[nodiscard]] llvm::Value* float_log(llvm::Value* x) {
    llvm::Value* tiny = b_.CreateFCmpOLT(x, real(x, std::numeric_limits<float>::min()));
    llvm::Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, real(x, 8388608.0)), x);
    llvm::Value* raw = bits(scaled);
    // Moves the step of the exponent from 1 to sqrt(1/2).
    llvm::Value* shifted = b_.CreateSub(raw, integer(raw, 0x3f3504f3));
    llvm::Value* exponent = b_.CreateAShr(shifted, integer(raw, 23));
    llvm::Value* mantissa = b_.CreateSub(raw, b_.CreateShl(exponent, integer(raw, 23)));
    llvm::Value* z = b_.CreateFSub(b_.CreateBitCast(mantissa, x->getType()), real(x, 1));
    llvm::Value* e = b_.CreateSIToFP(exponent, x->getType());
    e = b_.CreateSelect(tiny, b_.CreateFSub(e, real(x, 23)), e);
    llvm::Value* square = b_.CreateFMul(z, z);
    llvm::Value* p = polynomial(z, {0.3333333118, -0.24999996958, 0.200007157489, -0.166678023195, 0.142490576457,
                                    -0.124256873315, 0.116854199235, -0.114797338466, 0.0697161147145});
    p = b_.CreateFMul(b_.CreateFMul(p, z), square);
    p = fma(e, real(x, -2.12194440054690583e-4), p);
    p = fma(square, real(x, -0.5), p);
    llvm::Value* result = fma(e, real(x, 0.693359375), b_.CreateFAdd(z, p));
    const double infinity = std::numeric_limits<double>::infinity();
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, real(x, infinity)), x, result);
    result = b_.CreateSelect(b_.CreateFCmpOEQ(x, real(x, 0)), real(x, -infinity), result);
    return b_.CreateSelect(b_.CreateFCmpULT(x, real(x, 0)), real(x, std::numeric_limits<double>::quiet_NaN()), result);
  }

  [[nodiscard]] llvm::Value* with_sign_of(llvm::Value* magnitude, llvm::Value* x) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, x);
  }

  /// Odd polynomial near 0, else 1 - 2 / (exp(2|x|) + 1).
  [[nodiscard]] llvm::Value* float_tanh(llvm::Value* x) {
    llvm::Value* magnitude = abs(x);
    llvm::Value* square = b_.CreateFMul(x, x);
    llvm::Value* near =
        polynomial(square, {-0.333333289441, 0.13332769737, -0.0538509095785, 0.0209971789991, -0.00609671416591});
    near = fma(b_.CreateFMul(near, square), x, x);
    llvm::Value* e = float_exp(b_.CreateFAdd(magnitude, magnitude));
    llvm::Value* far = b_.CreateFSub(real(x, 1), b_.CreateFDiv(real(x, 2), b_.CreateFAdd(e, real(x, 1))));
    return with_sign_of(b_.CreateSelect(b_.CreateFCmpOLT(magnitude, real(x, 0.625)), near, far),
                        x);  // near: of -0, too
  }

  /// Odd polynomial up to 1, else 1 - exp(-x^2) p(1/|x|); beyond 4 the result is 1.
  [[nodiscard]] llvm::Value* float_erf(llvm::Value* x) {
    llvm::Value* magnitude = abs(x);
    llvm::Value* square = b_.CreateFMul(x, x);
    llvm::Value* near = polynomial(square, {1.12837916585, -0.376126266667, 0.112835947152, -0.0268542120106,
                                            0.00518908742343, -0.000801686428717, 7.87587506269e-5});
    near = b_.CreateFMul(near, x);
    llvm::Value* bounded = b_.CreateSelect(b_.CreateFCmpOGT(magnitude, real(x, 4)), real(x, 4), magnitude);
    llvm::Value* inverse = b_.CreateFDiv(real(x, 1), bounded);
    llvm::Value* far = polynomial(inverse, {0.00038153229442, 0.55729263505, 0.0535994936228, -0.513899122403,
                                            0.589897173011, -0.368562558626, 0.128479450603, -0.0196050293697});
    far = b_.CreateFMul(far, float_exp(b_.CreateFNeg(b_.CreateFMul(bounded, bounded))));
    far = b_.CreateFSub(real(x, 1), far);
    return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, real(x, 1)), near, with_sign_of(far, x));
  }

  [[nodiscard]] llvm::Value* library(const std::string& name, llvm::Value* x) {
    llvm::Module* module = b_.GetInsertBlock()->getModule();
    llvm::FunctionCallee callee =
        module->getOrInsertFunction(name, llvm::FunctionType::get(b_.getDoubleTy(), {b_.getDoubleTy()}, false));
    if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
      function->setDoesNotThrow();
      function->setDoesNotAccessMemory();
    }
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    if (vector == nullptr) return b_.CreateCall(callee, {x});
    llvm::Value* result = llvm::PoisonValue::get(vector);
    for (std::uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
      result = b_.CreateInsertElement(result, b_.CreateCall(callee, {b_.CreateExtractElement(x, lane)}), lane);
    }
    return result;
  }

  llvm::IRBuilder<>& b_;
};

}  // namespace tunewright::codegen::llvm_backend
