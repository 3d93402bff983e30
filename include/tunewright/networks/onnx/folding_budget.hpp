// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace tunewright::networks::onnx {

/// What an import may still write for values that depend on no input, in bytes. A file of a few bytes can repeat one
/// number any number of times; such repeats cost nothing until they are written out.
class FoldingBudget {
 public:
  /// `most_bytes` is `OnnxOptions::most_tensor_bytes`.
  explicit FoldingBudget(double most_bytes) : most_bytes_(most_bytes) {}

  /// Throws `std::invalid_argument` if `bytes` more are beyond the limit. It is asked before they are allocated.
  void require(double bytes) const {
    if (charged_bytes_ + bytes <= most_bytes_) return;
    throw std::invalid_argument("what depends on no input takes more than options.most_tensor_bytes, " +
                                std::to_string(most_bytes_) + "; raise it if this is meant");
  }
  /// Counts `bytes`; throws as `require` does.
  void charge(double bytes) {
    require(bytes);
    charged_bytes_ += bytes;
  }

 private:
  double most_bytes_;
  double charged_bytes_ = 0;
};

}  // namespace tunewright::networks::onnx
