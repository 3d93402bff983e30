// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tunewright/core/word_list.hpp"

namespace tunewright::codegen {

/// Whether generated code must not declare `word` because of C or C++: keywords of either, macros of compilers, and the
/// namespace of the C++ library.
[[nodiscard]] inline bool is_keyword(std::string_view word) {
  static constexpr std::string_view keywords =
      " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t "
      "class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue "
      "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend "
      "goto if inline int linux long mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
      "protected public register reinterpret_cast requires restrict return short signed sizeof static "
      "static_assert static_cast std struct switch template this thread_local throw true try typedef typeid typename "
      "typeof typeof_unqual union unix unsigned using virtual void volatile wchar_t while xor xor_eq ";
  return contains_word(keywords, word);
}

}  // namespace tunewright::codegen
