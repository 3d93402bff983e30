// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>

#include "tunewright/core/target.hpp"
#include "tunewright/program/scalar_type.hpp"

/// Number types in LLVM IR: the types of values in registers and in memory, and conversions, for scalars and vectors of
/// any number of lanes.
namespace tunewright::codegen::llvm_backend {

/// 16-bit floating-point types are float32 in registers, always with a value that the type can represent, and 16-bit
/// integers in memory. Conversions of bfloat16, and of float16 on processors without them, are integer arithmetic,
/// because the functions that a compiler would call are not available in a process that loads kernels.
class NumberEmitter {
 public:
  using ScalarType = program::ScalarType;
  NumberEmitter(llvm::IRBuilder<>& builder, Isa isa) : b_(builder), isa_(isa) {}

  [[nodiscard]] llvm::Type* value_type(ScalarType type) {
    switch (type) {
      case ScalarType::Bool: return b_.getInt1Ty();
      case ScalarType::Int8:
      case ScalarType::UInt8: return b_.getInt8Ty();
      case ScalarType::Int32: return b_.getInt32Ty();
      case ScalarType::Int64: return b_.getInt64Ty();
      case ScalarType::Float16:
      case ScalarType::BFloat16:
      case ScalarType::Float32: return b_.getFloatTy();
      case ScalarType::Float64: break;
    }
    return b_.getDoubleTy();
  }
  /// A Bool takes a byte in memory.
  [[nodiscard]] llvm::Type* memory_type(ScalarType type) {
    if (type == ScalarType::Bool) return b_.getInt8Ty();
    return program::is_narrow_float(type) ? b_.getInt16Ty() : value_type(type);
  }

  [[nodiscard]] llvm::Value* from_memory(llvm::Value* v, ScalarType type) {
    switch (type) {
      case ScalarType::Bool: return b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
      case ScalarType::BFloat16: return as_float(b_.CreateShl(b_.CreateZExt(v, words(v)), 16));
      case ScalarType::Float16: return half_to_float(v);
      default: return v;
    }
  }
  [[nodiscard]] llvm::Value* to_memory(llvm::Value* v, ScalarType type) {
    switch (type) {
      case ScalarType::Bool: return b_.CreateZExt(v, like(v, b_.getInt8Ty()));
      case ScalarType::BFloat16: return b_.CreateTrunc(b_.CreateLShr(bits(v), 16), like(v, b_.getInt16Ty()));
      case ScalarType::Float16: return half_bits(v);
      default: return v;
    }
  }

  /// The result of an operation on values of `type`, rounded to the type.
  [[nodiscard]] llvm::Value* rounded(llvm::Value* v, ScalarType type) {
    if (type == ScalarType::BFloat16) return round_bfloat(v);
    return type == ScalarType::Float16 ? round_half(v) : v;
  }

  [[nodiscard]] llvm::Value* converted(llvm::Value* v, ScalarType from, ScalarType to) {
    llvm::Type* type = like(v, value_type(to));
    if (to == ScalarType::Bool) {
      llvm::Constant* zero = llvm::Constant::getNullValue(v->getType());
      return program::is_float(from) ? b_.CreateFCmpUNE(v, zero) : b_.CreateICmpNE(v, zero);
    }
    const bool without_sign = from == ScalarType::Bool || from == ScalarType::UInt8;
    if (!program::is_float(to)) {
      if (!program::is_float(from)) {
        return without_sign ? b_.CreateZExtOrTrunc(v, type) : b_.CreateSExtOrTrunc(v, type);
      }
      return b_.CreateIntrinsic(to == ScalarType::UInt8 ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat,
                                {type, v->getType()}, {v});
    }
    if (program::is_float(from)) {
      if (!program::is_narrow_float(to)) return b_.CreateFPCast(v, type);
      return rounded(from == ScalarType::Float64 ? towards_odd(v) : v, to);
    }
    // A float cannot represent every 32-bit integer, and a value must not be rounded twice.
    const bool wide = from == ScalarType::Int32 || from == ScalarType::Int64;
    if (program::is_narrow_float(to) && wide)
      return rounded(towards_odd(b_.CreateSIToFP(v, like(v, b_.getDoubleTy()))), to);
    return without_sign ? b_.CreateUIToFP(v, type) : b_.CreateSIToFP(v, type);
  }

 private:
  [[nodiscard]] static llvm::Type* like(llvm::Value* v, llvm::Type* element) {
    auto* vector = llvm::dyn_cast<llvm::VectorType>(v->getType());
    return vector == nullptr ? element : llvm::VectorType::get(element, vector->getElementCount());
  }
  [[nodiscard]] llvm::Type* words(llvm::Value* v) { return like(v, b_.getInt32Ty()); }
  [[nodiscard]] llvm::Value* bits(llvm::Value* v) { return b_.CreateBitCast(v, words(v)); }
  [[nodiscard]] llvm::Value* as_float(llvm::Value* v) { return b_.CreateBitCast(v, like(v, b_.getFloatTy())); }
  [[nodiscard]] static llvm::Constant* word(llvm::Value* like, std::uint32_t value) {
    return llvm::ConstantInt::get(like->getType(), value);
  }
  [[nodiscard]] static llvm::Constant* real(llvm::Value* like, double value) {
    return llvm::ConstantFP::get(like->getType(), value);
  }

  /// The upper bits of a word, with the `dropped` lower ones rounded away, ties to even.
  [[nodiscard]] llvm::Value* round_bits(llvm::Value* w, unsigned dropped) {
    const std::uint32_t half = std::uint32_t{1} << (dropped - 1);
    llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(w, dropped), word(w, 1));
    return b_.CreateAnd(b_.CreateAdd(w, b_.CreateAdd(odd, word(w, half - 1))), word(w, ~(2 * half - 1)));
  }

  [[nodiscard]] llvm::Value* round_bfloat(llvm::Value* v) {
    llvm::Value* w = bits(v);
    llvm::Value* quiet = b_.CreateAnd(b_.CreateOr(w, word(w, 0x00400000U)), word(w, 0xffff0000U));
    return as_float(b_.CreateSelect(b_.CreateFCmpUNO(v, v), quiet, round_bits(w, 16)));
  }

  [[nodiscard]] bool has_half_conversions() const { return isa_ != Isa::Sse42; }

  [[nodiscard]] llvm::Value* round_half(llvm::Value* v) {
    if (has_half_conversions()) {
      return b_.CreateFPExt(b_.CreateFPTrunc(v, like(v, b_.getHalfTy())), v->getType());
    }
    const llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
    b_.clearFastMathFlags();
    llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
    // Adding a half removes the bits below the step of subnormal numbers.
    llvm::Value* tiny = b_.CreateFSub(b_.CreateFAdd(magnitude, real(v, 0.5)), real(v, 0.5));
    llvm::Value* normal = as_float(round_bits(bits(magnitude), 13));
    llvm::Value* result = b_.CreateSelect(b_.CreateFCmpOLT(magnitude, real(v, 0x1p-14)), tiny, normal);
    result = b_.CreateSelect(b_.CreateFCmpOGE(magnitude, real(v, 65520)), llvm::ConstantFP::getInfinity(v->getType()),
                             result);
    result = b_.CreateSelect(b_.CreateFCmpUNO(v, v), v, result);
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, v);
  }

  /// The bits of a float whose value is a float16.
  [[nodiscard]] llvm::Value* half_bits(llvm::Value* v) {
    llvm::Type* narrow = like(v, b_.getInt16Ty());
    if (has_half_conversions()) return b_.CreateBitCast(b_.CreateFPTrunc(v, like(v, b_.getHalfTy())), narrow);
    llvm::Value* w = bits(v);
    llvm::Value* magnitude = b_.CreateAnd(w, word(w, 0x7fffffffU));
    llvm::Value* normal = b_.CreateLShr(b_.CreateSub(magnitude, word(w, 112U << 23)), 13);
    llvm::Value* steps = b_.CreateFMul(as_float(magnitude), real(v, 0x1p24));
    llvm::Value* small = b_.CreateICmpULT(magnitude, word(w, 113U << 23));
    llvm::Value* tiny = b_.CreateFPToSI(b_.CreateSelect(small, steps, real(v, 0)), w->getType());
    llvm::Value* result = b_.CreateSelect(small, tiny, normal);
    llvm::Value* nan = b_.CreateICmpUGT(magnitude, word(w, 255U << 23));
    llvm::Value* special = b_.CreateSelect(nan, word(w, 0x7e00), word(w, 0x7c00));
    result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, word(w, 255U << 23)), special, result);
    llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(w, 16), word(w, 0x8000));
    return b_.CreateTrunc(b_.CreateOr(result, sign), narrow);
  }

  [[nodiscard]] llvm::Value* half_to_float(llvm::Value* v) {
    if (has_half_conversions())
      return b_.CreateFPExt(b_.CreateBitCast(v, like(v, b_.getHalfTy())), like(v, b_.getFloatTy()));
    llvm::Value* w = b_.CreateZExt(v, words(v));
    llvm::Value* moved = b_.CreateShl(b_.CreateAnd(w, word(w, 0x7fff)), 13);
    llvm::Value* scaled = b_.CreateFMul(as_float(moved), real(as_float(moved), 0x1p112));
    llvm::Value* special = b_.CreateICmpUGE(moved, word(w, 31U << 23));
    llvm::Value* result = b_.CreateSelect(special, b_.CreateOr(moved, word(w, 255U << 23)), bits(scaled));
    return as_float(b_.CreateOr(result, b_.CreateShl(b_.CreateAnd(w, word(w, 0x8000)), 16)));
  }

  /// Rounds a double to odd: the adjacent float whose last bit is set, unless it is a float. Rounding that to fewer
  /// bits gives the same result as rounding the double.
  [[nodiscard]] llvm::Value* towards_odd(llvm::Value* v) {
    llvm::Value* nearest = b_.CreateFPTrunc(v, like(v, b_.getFloatTy()));
    llvm::Value* back = b_.CreateFPExt(nearest, v->getType());
    llvm::Value* w = bits(nearest);
    llvm::Value* beyond = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                           b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v));
    llvm::Value* truncated = b_.CreateSub(w, b_.CreateZExt(beyond, w->getType()));
    llvm::Value* odd = b_.CreateOr(truncated, word(w, 1));
    return as_float(b_.CreateSelect(b_.CreateFCmpONE(back, v), odd, w));
  }

  llvm::IRBuilder<>& b_;
  Isa isa_;
};

}  // namespace tunewright::codegen::llvm_backend
