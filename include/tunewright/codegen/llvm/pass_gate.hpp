// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/OptBisect.h>

namespace tunewright::codegen::llvm_backend {

/// Leaves out a pass of LLVM's code generator that costs more than it gives here, for all code that is generated in
/// `context` while this object lives.
///
/// Domain reassignment looks for integers that could live in mask registers; addresses cannot. Its time grows with the
/// square of the number of addresses in straight-line code, so that it outweighs all other passes in the kernels that
/// are unrolled most.
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
