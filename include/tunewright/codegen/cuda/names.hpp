// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "tunewright/codegen/keywords.hpp"
#include "tunewright/core/word_list.hpp"

namespace tunewright::codegen::cuda {

/// Words that generated code must not declare: keywords, macros of <math.h>, and names that it uses itself.
[[nodiscard]] inline bool is_reserved(std::string_view word) {
  static constexpr std::string_view used =
      " INFINITY NAN NULL Vector abs begin_products bfloat16 blockDim blockIdx commit_copies commit_products "
      "copy_async copy_async_if describe_matrix describe_swizzled_matrix distance double2 element erf erff errno exp "
      "expf fabs fabsf float2 float4 floor_div floor_mod fmax fmaxf fmin fminf gridDim group half int2 int4 lanes log "
      "logf longlong2 max member min part shared_memory show_stores_to_tensor_units sqrt sqrtf staged staging "
      "swizzled_1 swizzled_2 tanh tanhf threadIdx to_bfloat16 to_float to_half towards_odd wait_for_copies "
      "wait_for_products wait_for_products_but_1 warp warpSize wrapping_abs wrapping_quotient zero_if_nan ";
  return is_keyword(word) || contains_word(used, word);
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
