// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tunewright::test {

/// The IR text with calls of a function of this program, at the address `function`, in place of those of an intrinsic
/// without a result, such as "@llvm.prefetch.p0".
[[nodiscard]] inline std::string with_function_for(std::string text, const std::string& intrinsic,
                                                   std::uintptr_t function) {
  const std::string call = intrinsic + "(";
  const std::string declaration = "declare void " + call;
  if (const auto declared = text.find(declaration); declared != std::string::npos)
    text.erase(declared, text.find('\n', declared) - declared);
  for (std::size_t found = text.find(call); found != std::string::npos; found = text.find(call, found))
    text.replace(found, call.size(), "inttoptr (i64 " + std::to_string(function) + " to ptr)(");
  return text;
}

}  // namespace tunewright::test
