// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tunewright::study {

namespace type_name {

/// The compiler's spelling of type `T`, with namespaces and arguments.
template <class T>
consteval std::string_view spelled() {
  constexpr std::string_view function = __PRETTY_FUNCTION__;  // "... [with T = ns::Name<...>; ...]" or "... [T = ...]"
  constexpr std::size_t begin = function.find("T = ") + 4;
  std::size_t depth = 0, end = begin;
  for (; end < function.size(); ++end) {
    const char c = function[end];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (depth == 0 && (c == ';' || c == ']')) break;
    if (c == '>' || c == ')' || c == ']' || c == '}') --depth;
  }
  return function.substr(begin, end - begin);
}

/// The name without namespaces and arguments: `tunewright::recipes::Ansor<...>` is `Ansor`.
consteval std::string_view last(std::string_view spelled) {
  std::size_t depth = 0, begin = 0, end = spelled.size();
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    const char c = spelled[i];
    if (c == '<' || c == '(' || c == '{') {
      if (depth++ == 0 && c == '<') end = i;
    } else if (c == '>' || c == ')' || c == '}') {
      --depth;
    } else if (depth == 0 && c == ':') {
      begin = i + 1;
      end = spelled.size();
    }
  }
  return spelled.substr(begin, end - begin);
}

}  // namespace type_name

/// The name of a recipe in a study: its member `static constexpr std::string_view name`, else its type without
/// namespaces and arguments. A variant inherits the member and must redefine it.
template <class Recipe>
consteval std::string_view recipe_name() {
  if constexpr (requires { std::string_view(Recipe::name); })
    return Recipe::name;
  else
    return type_name::last(type_name::spelled<Recipe>());
}

}  // namespace tunewright::study
