// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Value.h>

#include <cstdint>

/// Representations of loop variables and index expressions during emission.
namespace tunewright::codegen::llvm_backend {

/// The current value of a loop variable.
struct Binding {
  enum class Kind : std::uint8_t { None, Constant, Scalar, Lanes };
  Kind kind = Kind::None;
  std::int64_t constant = 0;     ///< of Constant: the value; of Scalar: added to `value`; of Lanes: in the first lane
  llvm::Value* value = nullptr;  ///< of Scalar; a Lanes binding with `chunked` starts at chunk variable * lanes
  bool chunked = false;
  unsigned depth = 0;  ///< number of surrounding loops; outer terms are summed first, so that they can be hoisted
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
  llvm::Value* lane_part = nullptr;  ///< a vector: the part that is not linear in the lane number

  [[nodiscard]] bool uniform() const { return stride == 0 && lane_part == nullptr; }
  [[nodiscard]] bool is_constant() const { return uniform() && terms.empty(); }
};

}  // namespace tunewright::codegen::llvm_backend
