// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace tunewright::test {

/// How many programs a test case compared with the reference, by what they ran on.
class ProgramTally {
 public:
  void count(std::string_view on, bool right) {
    ++checked_[std::string(on)];
    wrong_ += !right;
  }

  [[nodiscard]] std::size_t checked() const {
    std::size_t all = 0;
    for (const auto& [on, programs] : checked_) all += programs;
    return all;
  }
  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

  /// A line for the log of the test: docs/studies/reliability.md quotes it.
  [[nodiscard]] std::string to_string() const {
    std::string text = "random programs compared with the reference: " + std::to_string(checked());
    for (const auto& [on, programs] : checked_) text += ", " + on + " " + std::to_string(programs);
    return text + ", wrong " + std::to_string(wrong_);
  }

 private:
  std::map<std::string, std::size_t> checked_;
  std::size_t wrong_ = 0;
};

}  // namespace tunewright::test
