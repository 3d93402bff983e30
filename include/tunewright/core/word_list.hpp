// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tunewright {

/// Whether `word` is one of `words`, a text of words between single spaces, with one at each end too: " and or not ".
[[nodiscard]] inline bool contains_word(std::string_view words, std::string_view word) {
  return words.find(" " + std::string(word) + " ") != std::string_view::npos;
}

}  // namespace tunewright
