// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "tunewright/codegen/llvm.hpp"

namespace tunewright::test {

/// An intrinsic without a result, such as "@llvm.prefetch.p0", and the address of a function of this program.
using CalledIntrinsic = std::pair<std::string, std::uintptr_t>;

/// The kernel with calls of the functions in place of those of the intrinsics.
[[nodiscard]] inline codegen::Kernel with_functions_for(std::span<const CalledIntrinsic> intrinsics,
                                                        const loops::LoopNest& nest, codegen::LlvmCompiler& compiler) {
  std::string text = compiler.to_llvm_ir(nest);
  for (const auto& [intrinsic, function] : intrinsics) {
    const std::string call = intrinsic + "(";
    const std::string declaration = "declare void " + call;
    if (const auto declared = text.find(declaration); declared != std::string::npos)
      text.erase(declared, text.find('\n', declared) - declared);
    for (std::size_t found = text.find(call); found != std::string::npos; found = text.find(call, found))
      text.replace(found, call.size(), "inttoptr (i64 " + std::to_string(function) + " to ptr)(");
  }
  const codegen::Kernel compiled = compiler.compile(nest);
  return compiler.compile_ir_text(text, compiled.symbol, compiled.buffers);
}

}  // namespace tunewright::test
