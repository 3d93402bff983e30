// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/core/number_text.hpp"

namespace tunewright::networks::onnx {

/// What an import may still spend on values that depend on no input, in bytes or operations. A file of a few bytes can
/// repeat one number any number of times; such repeats cost nothing until they are written out.
class FoldingBudget {
 public:
  /// `option` is the member of `OnnxOptions` whose value is `most`.
  FoldingBudget(std::string option, double most) : option_(std::move(option)), most_(most) {}

  /// Throws `std::invalid_argument` if `amount` more is beyond the limit. It is asked before the amount is spent.
  void require(double amount) const {
    if (charged_ + amount <= most_) return;
    throw std::invalid_argument("what depends on no input takes more than options." + option_ + ", " +
                                number_text(most_) + "; raise it if this is meant");
  }
  /// Counts `amount`; throws as `require` does.
  void charge(double amount) {
    require(amount);
    charged_ += amount;
  }

 private:
  std::string option_;
  double most_;
  double charged_ = 0;
};

}  // namespace tunewright::networks::onnx
