// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tunewright/json/scanner.hpp"

namespace tunewright::data {

/// A part that repeats from line to line of a log, such as the task of a record: equal text is parsed once.
template <class T>
class RepeatedPart {
 public:
  /// The part of `line` at the position of `in`, which is moved behind it. `parse(in)` reads text that differs from the
  /// previous part.
  template <class Parse>
  [[nodiscard]] std::shared_ptr<const T> read(json::Scanner& in, std::string_view line, Parse&& parse) {
    in.peek();
    const char* from = in.position();
    const auto left = static_cast<std::size_t>(line.data() + line.size() - from);
    if (part_ && left > text_.size() && std::string_view(from, text_.size()) == text_) {
      in.skip_to(from + text_.size());
    } else {
      part_ = std::make_shared<const T>(parse(in));
      text_.assign(from, in.position());
    }
    return part_;
  }

 private:
  std::string text_;
  std::shared_ptr<const T> part_;
};

}  // namespace tunewright::data
