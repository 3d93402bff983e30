// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace tunewright::codegen::cuda {

/// The text of a kernel's body, line by line.
class SourceWriter {
 public:
  void line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }
  /// Calls `inside`, whose lines are indented by one more step.
  template <class Inside>
  void indented(const Inside& inside) {
    ++depth_;
    inside();
    --depth_;
  }
  /// Puts braces around the output of `inside`, after `head` if that is given.
  template <class Inside>
  void block(const std::string& head, const Inside& inside) {
    line(head.empty() ? "{" : head + " {");
    indented(inside);
    line("}");
  }
  /// A block that is a loop of the nest.
  template <class Inside>
  void loop(const std::string& head, const Inside& inside) {
    ++loops_;
    block(head, inside);
    --loops_;
  }
  [[nodiscard]] bool is_in_loop() const noexcept { return loops_ > 0; }

  /// The lines written since the last call.
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
  std::size_t depth_ = 1;
  std::size_t loops_ = 0;
};

}  // namespace tunewright::codegen::cuda
