// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"

/// Loads compiled kernels into this process.
namespace tunewright::codegen {

/// A callable kernel. Its code is unloaded with the last copy of this object.
class LoadedKernel {
 public:
  LoadedKernel() = default;
  LoadedKernel(tunewright_kernel entry, std::shared_ptr<void> code) : entry_(entry), code_(std::move(code)) {}
  [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
  [[nodiscard]] tunewright_kernel function() const noexcept { return entry_; }
  TUNEWRIGHT_CALLS_COMPILED_CODE void operator()(void* const* buffers, const tunewright_runtime* runtime) const {
    entry_(buffers, runtime);
  }

 private:
  tunewright_kernel entry_ = nullptr;
  std::shared_ptr<void> code_;
};

/// Links object files into this process (LLVM ORC). Construct one and load many kernels, from one thread at a time.
/// Kernels may outlive it, and may be destroyed on any thread. Cost: about a millisecond for construction, far less per
/// kernel.
class KernelLoader {
 public:
  KernelLoader();

  /// Throws `std::runtime_error` if the object file cannot be linked or does not define the kernel's symbol, and
  /// `std::invalid_argument` for a kernel without code or for another family of processors.
  [[nodiscard]] LoadedKernel load(const Kernel& kernel);

 private:
  struct Session;  // of LLVM's linker; shared by loaded kernels
  struct Code;     // of one kernel
  std::shared_ptr<Session> session_;
};

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(orc)

#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/llvm/module.hpp"
#include "tunewright/core/target.hpp"

namespace tunewright::codegen {

/// Symbols of a library are unique, so each kernel gets its own library; emptied ones are reused.
struct KernelLoader::Session {
  Session() {
    llvm_backend::initialise_llvm_once();
    llvm_backend::check(LLVMOrcCreateLLJIT(&jit, nullptr));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { LLVMConsumeError(LLVMOrcDisposeLLJIT(jit)); }

  LLVMOrcJITDylibRef take() {
    const std::lock_guard lock(mutex);
    if (!free.empty()) {
      LLVMOrcJITDylibRef library = free.back();
      free.pop_back();
      return library;
    }
    LLVMOrcJITDylibRef library = nullptr;
    const std::string name = "kernel" + std::to_string(made++);
    llvm_backend::check(
        LLVMOrcExecutionSessionCreateJITDylib(LLVMOrcLLJITGetExecutionSession(jit), &library, name.c_str()));
    LLVMOrcDefinitionGeneratorRef process = nullptr;
    llvm_backend::check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, LLVMOrcLLJITGetGlobalPrefix(jit),
                                                                             nullptr, nullptr));
    LLVMOrcJITDylibAddGenerator(library, process);
    return library;
  }
  void give_back(LLVMOrcJITDylibRef library) {
    const std::lock_guard lock(mutex);
    if (LLVMErrorRef error = LLVMOrcJITDylibClear(library)) {
      LLVMConsumeError(error);
    } else {
      free.push_back(library);
    }
  }

  LLVMOrcLLJITRef jit = nullptr;
  std::mutex mutex;
  std::vector<LLVMOrcJITDylibRef> free;
  unsigned made = 0;
};

struct KernelLoader::Code {
  explicit Code(std::shared_ptr<Session> owner) : session(std::move(owner)), library(session->take()) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { session->give_back(library); }

  tunewright_kernel link(const Kernel& kernel) {
    LLVMMemoryBufferRef bytes =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(kernel.object->data(), kernel.object->size(), kernel.symbol.c_str());
    llvm_backend::check(LLVMOrcLLJITAddObjectFile(session->jit, library, bytes));
    LLVMOrcCJITDylibSearchOrderElement where{library, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
    LLVMOrcCLookupSetElement what{LLVMOrcLLJITMangleAndIntern(session->jit, kernel.symbol.c_str()),
                                  LLVMOrcSymbolLookupFlagsRequiredSymbol};
    Answer answer;
    LLVMOrcExecutionSessionLookup(LLVMOrcLLJITGetExecutionSession(session->jit), LLVMOrcLookupKindStatic, &where, 1,
                                  &what, 1, &Code::receive, &answer);
    llvm_backend::check(answer.error);
    return reinterpret_cast<tunewright_kernel>(answer.address);  // NOLINT: an address in this process
  }

  struct Answer {
    LLVMErrorRef error = nullptr;
    std::uint64_t address = 0;
  };
  /// Linking runs on the calling thread, so the result is available when the lookup returns.
  static void receive(LLVMErrorRef error, LLVMOrcCSymbolMapPairs result, std::size_t count, void* context) {
    auto* answer = static_cast<Answer*>(context);
    answer->error = error;
    if (error == nullptr && count == 1) answer->address = result[0].Sym.Address;
  }

  std::shared_ptr<Session> session;
  LLVMOrcJITDylibRef library;
};

TUNEWRIGHT_INLINE KernelLoader::KernelLoader() : session_(std::make_shared<Session>()) {}

TUNEWRIGHT_INLINE LoadedKernel KernelLoader::load(const Kernel& kernel) {
  if (kernel.native != nullptr) return {kernel.native, nullptr};
  if (!kernel.object || kernel.object->empty()) {
    throw std::invalid_argument("kernel '" + kernel.symbol + "' has no code; compile it first");
  }
  const CpuFamily family = family_of_object(*kernel.object);
  if (family != CpuFamily::Other && family != host_family) {
    throw std::invalid_argument("kernel '" + kernel.symbol + "' is machine code for " + std::string(name(family)) +
                                ", and this program runs on " + std::string(name(host_family)) +
                                ": export it with codegen::export_kernel and run it there, or compile it for "
                                "host_target()");
  }
  try {
    auto code = std::make_shared<Code>(session_);
    const tunewright_kernel entry = code->link(kernel);
    return {entry, std::move(code)};
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("cannot load kernel '" + kernel.symbol + "': " + error.what());
  }
}

}  // namespace tunewright::codegen

#endif
