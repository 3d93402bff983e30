// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/OptBisect.h>

namespace tunewright::codegen::llvm_backend {

/// Disables a pass of LLVM's code generator that costs more than it gains, for all code generated in `context` during
/// the lifetime of this object.
///
/// Domain reassignment looks for integers that could be in mask registers, which addresses cannot. Its time is
/// quadratic in the number of addresses in straight-line code, so it dominates all other passes for the most unrolled
/// kernels.
class PassGate final : public llvm::OptPassGate {
 public:
  explicit PassGate(llvm::LLVMContext& context) { context.setOptPassGate(*this); }
  PassGate(const PassGate&) = delete;
  PassGate& operator=(const PassGate&) = delete;

  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override {
    return pass != "X86 Domain Reassignment Pass";
  }
  bool isEnabled() const override { return true; }
};

}  // namespace tunewright::codegen::llvm_backend
