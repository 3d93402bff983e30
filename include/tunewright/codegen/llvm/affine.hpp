// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Value.h>

#include <cstdint>

/// The forms that loop variables and index expressions take during emission.
namespace tunewright::codegen::llvm_backend {

/// The value of a loop variable at the place of emission.
struct Binding {
  enum class Kind : std::uint8_t { None, Constant, Scalar, Lanes };
  Kind kind = Kind::None;
  std::int64_t constant = 0;     ///< the value of Constant; the value in the first lane of Lanes
  llvm::Value* value = nullptr;  ///< of Scalar; a Lanes binding with `chunked` starts at chunk variable * lanes
  bool chunked = false;
  unsigned depth = 0;  ///< loops around; outer terms are summed first, so that they can be hoisted
};

/// constant + sum of coefficient * value + stride * lane number + lane_part.
struct Affine {
  struct Term {
    std::int64_t coefficient = 0;
    llvm::Value* value = nullptr;
    unsigned depth = 0;
    bool operator==(const Term& other) const { return coefficient == other.coefficient && value == other.value; }
  };
  std::int64_t constant = 0;
  llvm::SmallVector<Term, 4> terms;
  std::int64_t stride = 0;
  llvm::Value* lane_part = nullptr;  ///< a vector: what is not linear in the lane number

  [[nodiscard]] bool uniform() const { return stride == 0 && lane_part == nullptr; }
  [[nodiscard]] bool is_constant() const { return uniform() && terms.empty(); }
};

}  // namespace tunewright::codegen::llvm_backend
