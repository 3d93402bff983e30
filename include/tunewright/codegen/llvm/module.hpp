// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

/// Compiles an LLVM module to machine code with LLVM's C interface, whose headers are cheap to compile.
namespace tunewright::codegen::llvm_backend {

inline void initialise_llvm_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    LLVMInitializeNativeAsmParser();
    // Exported kernels may be for another machine.
#if LLVM_HAS_AARCH64_TARGET && !defined(__aarch64__)
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
#endif
#if LLVM_HAS_X86_TARGET && !defined(__x86_64__)
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
#endif
  });
}

/// Takes ownership of a string allocated by LLVM.
[[nodiscard]] inline std::string taken(char* text) {
  std::string copy = text == nullptr ? "" : text;
  LLVMDisposeMessage(text);
  return copy;
}
[[nodiscard]] inline std::string message_of(LLVMErrorRef error) {
  char* text = LLVMGetErrorMessage(error);
  std::string copy = text;
  LLVMDisposeErrorMessage(text);
  return copy;
}

/// Throws `std::runtime_error` with LLVM's message if there is an error.
inline void check(LLVMErrorRef error) {
  if (error != nullptr) throw std::runtime_error(message_of(error));
}

/// The target processor in LLVM's terms.
struct Processor {
  std::string triple;
  std::string name;
  std::string features{};   ///< those that the name does not imply, and those that it lacks: "+dotprod,-sve"
  std::string deviation{};  ///< the part of `features` by which this machine differs from the name

  /// The name and what it lacks of the features, in the form of `Target::architecture`: "cortex-a55+dotprod".
  [[nodiscard]] std::string requirement() const {
    std::string text = name;
    for (std::size_t at = 0; at < features.size();) {
      const std::size_t end = std::min(features.find(',', at), features.size());
      if (features[at] == '+') text += features.substr(at, end - at);
      at = end + 1;
    }
    return text;
  }
};

/// Target machine and optimiser for one target. Construction takes less than a millisecond; reuse it for many modules,
/// from one thread at a time.
class Backend {
 public:
  Backend(const Processor& processor, bool aggressive) : triple_(processor.triple) {
    initialise_llvm_once();
    LLVMTargetRef target = nullptr;
    char* problem = nullptr;
    if (LLVMGetTargetFromTriple(triple_.c_str(), &target, &problem) != 0) {
      throw std::runtime_error("LLVM has no code generator for " + triple_ + ": " + taken(problem));
    }
    machine_.reset(LLVMCreateTargetMachine(target, triple_.c_str(), processor.name.c_str(), processor.features.c_str(),
                                           aggressive ? LLVMCodeGenLevelAggressive : LLVMCodeGenLevelDefault,
                                           LLVMRelocPIC, LLVMCodeModelDefault));
    if (!machine_) throw std::runtime_error("LLVM cannot make a code generator for " + triple_);
  }

  void prepare(LLVMModuleRef module) const {
    LLVMSetTarget(module, triple_.c_str());
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine_.get());
    LLVMSetModuleDataLayout(module, layout);
    LLVMDisposeTargetData(layout);
  }

  /// Runs a short, fixed pipeline: the emitted code is already unrolled and vectorised, and no pass does either.
  void optimise(LLVMModuleRef module, const char* passes) const {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, passes, machine_.get(), options);
    LLVMDisposePassBuilderOptions(options);
    if (error != nullptr) throw std::runtime_error("LLVM passes: " + message_of(error));
  }

  /// Relocatable object file, or assembly text.
  [[nodiscard]] std::shared_ptr<std::vector<char>> emit(LLVMModuleRef module, bool assembly = false) const {
    LLVMMemoryBufferRef memory = nullptr;
    char* problem = nullptr;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine_.get(), module, assembly ? LLVMAssemblyFile : LLVMObjectFile,
                                            &problem, &memory) != 0) {
      throw std::runtime_error("LLVM cannot write machine code: " + taken(problem));
    }
    const char* begin = LLVMGetBufferStart(memory);
    auto bytes = std::make_shared<std::vector<char>>(begin, begin + LLVMGetBufferSize(memory));
    LLVMDisposeMemoryBuffer(memory);
    return bytes;
  }

 private:
  struct Dispose {
    void operator()(LLVMTargetMachineRef machine) const { LLVMDisposeTargetMachine(machine); }
  };
  std::unique_ptr<LLVMOpaqueTargetMachine, Dispose> machine_;
  std::string triple_;
};

/// Throws `std::logic_error` with LLVM's message if the module is malformed.
inline void verify(LLVMModuleRef module) {
  char* problem = nullptr;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &problem) != 0)
    throw std::logic_error("malformed LLVM module: " + taken(problem));
  LLVMDisposeMessage(problem);
}

/// Parses IR text. Throws `std::invalid_argument` with the position of the error.
[[nodiscard]] inline LLVMModuleRef parse(LLVMContextRef context, const std::string& text) {
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "text");
  LLVMModuleRef module = nullptr;
  char* problem = nullptr;
  if (LLVMParseIRInContext(context, buffer, &module, &problem) != 0)
    throw std::invalid_argument("LLVM IR: " + taken(problem));
  return module;
}

}  // namespace tunewright::codegen::llvm_backend
