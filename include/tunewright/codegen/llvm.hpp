// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/codegen/llvm_loops.hpp"
#include "tunewright/codegen/llvm_module.hpp"
#include "tunewright/codegen/llvm_pass_gate.hpp"
#include "tunewright/codegen/plan.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/loops/as_emitted.hpp"

/// Loop nest -> LLVM IR -> object file, for CPUs.
///
/// The generator decides about vectors, unrolling and register tiles itself, as the nest says; LLVM's
/// vectorisers and unroller do not run. Targets of reductions stay in registers across reduction loops;
/// buffers are declared not to overlap; sums may be contracted to fused multiply-adds and are otherwise
/// evaluated in the order of the nest.
namespace tunewright::codegen {

/// Own nothing: what holds options may fail while it is made, and GCC 12 then destroys the members of an aggregate
/// within an aggregate twice.
struct CompileOptions {
  bool register_tiles = true;                      ///< keep targets of reductions in registers
  bool aggressive = false;                         ///< LLVM's highest level of instruction selection and scheduling
  bool verify = false;                             ///< check the IR first; for tests
  std::int64_t max_stack_bytes = 2 * 1024 * 1024;  ///< of temporaries of one thread
  /// Of LLVM's optimiser, as its `-passes` takes them; empty for none. Must outlive the compiler, as a literal does.
  const char* passes =
      "function(sroa<preserve-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
      "simplifycfg)";
  PlanOptions plan = {};
};
static_assert(std::is_trivially_destructible_v<CompileOptions>);

/// What a compilation cost, in seconds.
struct CompileTimes {
  double emit = 0;      ///< loop nest to IR
  double optimise = 0;  ///< passes
  double machine = 0;   ///< instruction selection, register allocation, object file
};

/// Compiles loop nests for one target. Keeps LLVM's target machine, so reuse it; one object a thread.
class LlvmCompiler {
 public:
  explicit LlvmCompiler(Target target, CompileOptions options = {})
      : target_(std::move(target)), options_(options), backend_(target_.isa, options_.aggressive) {
    if (target_.kind != DeviceKind::Cpu) {
      throw std::invalid_argument("target '" + target_.name + "' is a GPU; LlvmCompiler compiles for CPUs");
    }
  }

  /// Machine code for `nest`. Throws `Unsupported` when the nest cannot run on a CPU or needs too much stack.
  /// Determinism: the same nest and target give the same bytes. Cost: 5 to 20 ms for a register-tiled kernel.
  [[nodiscard]] Kernel compile(const loops::LoopNest& nest) {
    Kernel kernel;
    llvm::LLVMContext context;
    detail::PassGate gate(context);
    const std::unique_ptr<llvm::Module> module = build(nest, context, &kernel);
    const auto start = Clock::now();
    kernel.object = backend_.emit(llvm::wrap(module.get()));
    times_.machine = since(start);
    return kernel;
  }

  /// A kernel from LLVM IR text: for tests of what happens to a kernel later. `symbol` must be defined there.
  [[nodiscard]] Kernel compile_ir_text(const std::string& text, const std::string& symbol,
                                       std::vector<KernelBuffer> buffers) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module(llvm::unwrap(detail::parse(llvm::wrap(&context), text)));
    if (module->getFunction(symbol) == nullptr)
      throw std::invalid_argument("the LLVM IR does not define '" + symbol + "'");
    backend_.prepare(llvm::wrap(module.get()));
    Kernel kernel;
    kernel.symbol = symbol;
    kernel.buffers = std::move(buffers);
    kernel.object = backend_.emit(llvm::wrap(module.get()));
    return kernel;
  }

  [[nodiscard]] std::string to_llvm_ir(const loops::LoopNest& nest) {
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = build(nest, context, nullptr);
    return detail::taken(LLVMPrintModuleToString(llvm::wrap(module.get())));
  }
  [[nodiscard]] std::string to_assembly(const loops::LoopNest& nest) {
    llvm::LLVMContext context;
    detail::PassGate gate(context);
    const std::unique_ptr<llvm::Module> module = build(nest, context, nullptr);
    const auto text = backend_.emit(llvm::wrap(module.get()), true);
    return {text->begin(), text->end()};
  }

  /// Of the last compilation.
  [[nodiscard]] const CompileTimes& times() const noexcept { return times_; }
  [[nodiscard]] const Target& target() const noexcept { return target_; }

  /// What turns nests into machine code, e.g. "llvm 19.1.7 cascadelake -O2"; part of the key of a
  /// measurement.
  [[nodiscard]] std::string identity() const {
    return "llvm " LLVM_VERSION_STRING " " + detail::processor_name(target_.isa) +
           (options_.aggressive ? " -O3" : " -O2");
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] static double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  [[nodiscard]] std::unique_ptr<llvm::Module> build(const loops::LoopNest& guarded, llvm::LLVMContext& context,
                                                    Kernel* kernel) {
    const loops::LoopNest nest = loops::as_emitted(guarded);
    const auto start = Clock::now();
    auto module = std::make_unique<llvm::Module>(nest.name, context);
    backend_.prepare(llvm::wrap(module.get()));
    Plan plan(nest, target_, options_.plan);
    detail::LoopEmitter emitter(plan, target_, *module, {options_.register_tiles, options_.max_stack_bytes});
    const std::vector<loops::BufferId> workspace = emitter.emit_kernel();
    if (options_.verify) detail::verify(llvm::wrap(module.get()));
    times_.emit = since(start);
    const auto middle = Clock::now();
    if (*options_.passes != '\0') backend_.optimise(llvm::wrap(module.get()), options_.passes);
    times_.optimise = since(middle);
    if (kernel != nullptr) {
      kernel->symbol = nest.name;
      kernel->uses_tile_registers = emitter.uses_tile_registers();
      for (const loops::BufferId id : nest.arguments) kernel->buffers.push_back({nest.buffers[id]});
      for (const loops::BufferId id : workspace) kernel->buffers.push_back({nest.buffers[id]});
    }
    return module;
  }

  Target target_;
  CompileOptions options_;
  detail::Backend backend_;
  CompileTimes times_;
};

/// One compilation with a compiler of its own; `LlvmCompiler` is cheaper for several.
[[nodiscard]] inline Kernel compile(const loops::LoopNest& nest, const Target& target, CompileOptions options = {}) {
  return LlvmCompiler(target, options).compile(nest);
}

}  // namespace tunewright::codegen
