// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tunewright/core/word_list.hpp"

namespace tunewright::codegen::cuda {

/// Words that generated code must not declare: keywords, macros of compilers and of <math.h>, and names that it uses
/// itself.
[[nodiscard]] inline bool is_reserved(std::string_view word) {
  static constexpr std::string_view words =
      " INFINITY NAN NULL abs alignas alignof and and_eq asm auto bfloat16 bitand bitor blockDim blockIdx bool "
      "break case catch char char16_t char32_t char8_t class co_await co_return co_yield compl concept const "
      "const_cast consteval constexpr constinit continue decltype default delete distance do double double2 "
      "dynamic_cast element else enum erf erff errno exp expf explicit export extern fabs fabsf false float "
      "float2 float4 fmax fmaxf fmin fminf for friend goto gridDim group half if inline int int2 int4 lanes "
      "linux log logf long longlong2 max member min mutable namespace new noexcept not not_eq nullptr operator "
      "or or_eq private public register reinterpret_cast requires return shared_memory short signed sizeof sqrt "
      "sqrtf staged staging static static_assert static_cast struct switch tanh tanhf template this threadIdx "
      "thread_local throw true try typedef typeid typename union unix unsigned using virtual void volatile warp "
      "warpSize wchar_t while xor xor_eq ";
  static constexpr std::string_view own =
      " Vector begin_products commit_copies commit_products copy_async copy_async_if describe_matrix "
      "describe_swizzled_matrix floor_div floor_mod part show_stores_to_tensor_units swizzled_1 swizzled_2 "
      "to_bfloat16 to_float to_half towards_odd wait_for_copies wait_for_products wait_for_products_but_1 "
      "wrapping_abs wrapping_quotient zero_if_nan ";
  return contains_word(words, word) || contains_word(own, word);
}

/// `text` as a C identifier: other characters become underscores, without repetitions.
[[nodiscard]] inline std::string identifier(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (keep) result += c;
    if (!keep && (result.empty() || result.back() != '_')) result += '_';
  }
  while (result.size() > 1 && result.back() == '_') result.pop_back();
  if (result.empty() || result == "_") result = "x";
  // A leading underscore is reserved for the implementation.
  if (result.front() == '_') result.insert(0, "x");
  if (std::isdigit(static_cast<unsigned char>(result.front())) != 0) result.insert(0, "x");
  if (is_reserved(result)) result += "_";
  return result;
}

/// Gives every declaration a unique name.
class Names {
 public:
  [[nodiscard]] std::string unique(std::string_view wanted) {
    const std::string base = identifier(wanted);
    std::string name = base;
    for (int n = 1; !taken_.insert(name).second; ++n) name = base + (base.back() == '_' ? "" : "_") + std::to_string(n);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

}  // namespace tunewright::codegen::cuda
