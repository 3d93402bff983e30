// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tunewright/codegen/emission_plan.hpp"
#include "tunewright/codegen/kernel.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/nest.hpp"

/// Compiles loop nests for CPUs: LLVM IR, then an object file.
///
/// The generator itself implements vectors, unrolling and register tiles as in the nest; LLVM's vectorisers and
/// unroller do not run. Targets of reductions stay in registers across reduction loops; buffers are declared as
/// non-overlapping; sums may be contracted to fused multiply-adds and are otherwise evaluated in the order of the nest.
namespace tunewright::codegen {

/// Every member is trivially destructible: if a constructor that takes options throws, GCC 12 destroys the members of a
/// nested aggregate twice.
struct CompileOptions {
  bool register_tiles = true;      ///< keep targets of reductions in registers
  bool prefetch_constants = true;  ///< fetch the next weights of a register tile while it uses the present ones
  bool prefetch_rows = true;       ///< fetch the rows that a register tile uses some terms later
  bool prefetch_blocks = true;     ///< fetch the next block of a matrix while register tiles use the present one
  bool aggressive = false;         ///< use LLVM's highest level of instruction selection and scheduling
  bool verify = false;             ///< check the IR first, for tests
  /// Limit of temporaries per thread: that of the static filters, so that what they let pass compiles.
  std::int64_t max_stack_bytes = loops::CpuLimits{}.max_local_bytes;
  /// LLVM's optimisation passes, in the syntax of `opt -passes`; empty for none. The text must outlive the compiler, as
  /// a literal does.
  const char* passes =
      "function(sroa<preserve-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
      "simplifycfg)";
  EmissionPlanOptions plan = {};
};
static_assert(std::is_trivially_destructible_v<CompileOptions>);

/// Hash of all options that affect machine code: of all but `verify`.
[[nodiscard]] std::uint64_t stable_hash(const CompileOptions& options);

/// The duration of a compilation in seconds.
struct CompileTimes {
  double emit = 0;      ///< loop nest to IR
  double optimise = 0;  ///< passes
  double machine = 0;   ///< instruction selection, register allocation, object file
};

/// Compiles loop nests for one target. Reuse it, because it owns LLVM's target machine; each thread needs its own.
class LlvmCompiler {
 public:
  /// Throws `std::invalid_argument` for a GPU and for an ARM processor unknown to LLVM, `std::runtime_error` if the
  /// linked LLVM does not support the target's family of processors.
  explicit LlvmCompiler(Target target, CompileOptions options = {});
  LlvmCompiler(LlvmCompiler&&) noexcept;
  LlvmCompiler& operator=(LlvmCompiler&&) noexcept;
  ~LlvmCompiler();

  /// Machine code for `nest`. Throws `Unsupported` if the nest cannot run on a CPU or needs too much stack.
  /// Determinism: equal nests and targets give equal bytes. Cost: 5 to 20 ms for a register-tiled kernel.
  [[nodiscard]] Kernel compile(const loops::LoopNest& nest);

  /// A kernel from LLVM IR text, for tests of later stages. Throws `std::invalid_argument` if the text is malformed or
  /// does not define `symbol`.
  [[nodiscard]] Kernel compile_ir_text(const std::string& text, const std::string& symbol,
                                       std::vector<KernelBuffer> buffers);

  /// The optimised IR of `nest`, and its assembly, as text. Throw as `compile`.
  [[nodiscard]] std::string to_llvm_ir(const loops::LoopNest& nest);
  [[nodiscard]] std::string to_assembly(const loops::LoopNest& nest);

  /// The times of the last compilation.
  [[nodiscard]] const CompileTimes& times() const noexcept;
  [[nodiscard]] const Target& target() const noexcept;

  /// Identifies the compiler and its options, e.g. "llvm 19.1.7 cascadelake -O2"; part of the key of a measurement.
  /// If this machine hides features of the processor or shows others, as in "cascadelake,-avx512vnni", they follow its
  /// name. Where options beside `aggressive` are not the default, their hash follows.
  [[nodiscard]] std::string identity() const;

 private:
  struct State;  // everything that needs LLVM's headers
  std::unique_ptr<State> state_;
};

/// Compiles with a new compiler; `LlvmCompiler` is cheaper for several nests.
[[nodiscard]] inline Kernel compile(const loops::LoopNest& nest, const Target& target, CompileOptions options = {}) {
  return LlvmCompiler(target, options).compile(nest);
}

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(orc)

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tunewright/codegen/llvm/kernel_emitter.hpp"
#include "tunewright/codegen/llvm/module.hpp"
#include "tunewright/codegen/llvm/pass_gate.hpp"
#include "tunewright/codegen/llvm/processor.hpp"
#include "tunewright/codegen/store_in_output.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"

namespace tunewright::codegen {

TUNEWRIGHT_INLINE std::uint64_t stable_hash(const CompileOptions& options) {
  return StableHash()
      .add(unsigned{options.register_tiles})
      .add(unsigned{options.prefetch_constants})
      .add(unsigned{options.prefetch_rows})
      .add(unsigned{options.prefetch_blocks})
      .add(unsigned{options.aggressive})
      .add(options.max_stack_bytes)
      .add(std::string_view(options.passes))
      .add(options.plan.max_unrolled_instances)
      .add(options.plan.max_guarded_instances)
      .add(options.plan.max_unrolled_chunks)
      .add(options.plan.max_iterations_per_step)
      .add(options.plan.max_instances_per_step)
      .add(options.plan.max_bytes_per_step)
      .value();
}

struct LlvmCompiler::State {
  State(Target the_target, const CompileOptions& the_options)
      : target(std::move(the_target)),
        options(the_options),
        processor(known_processor_of(target)),
        backend(processor, options.aggressive) {}

  [[nodiscard]] static llvm_backend::Processor known_processor_of(const Target& target) {
    llvm_backend::Processor processor = llvm_backend::processor_of(target);
    llvm_backend::check_known(processor, target);
    return processor;
  }

  using SteadyClock = std::chrono::steady_clock;

  /// The optimised module of a nest. Sets symbol and buffers of `kernel` if that is given.
  [[nodiscard]] std::unique_ptr<llvm::Module> build(const loops::LoopNest& guarded, llvm::LLVMContext& context,
                                                    Kernel* kernel);

  Target target;
  CompileOptions options;
  llvm_backend::Processor processor;
  llvm_backend::Backend backend;
  CompileTimes times;
};

TUNEWRIGHT_INLINE std::unique_ptr<llvm::Module> LlvmCompiler::State::build(const loops::LoopNest& guarded,
                                                                           llvm::LLVMContext& context, Kernel* kernel) {
  const loops::LoopNest nest = loops::prepare_for_codegen(store_in_output(guarded, target), target.vector_bytes());
  const auto start = SteadyClock::now();
  auto module = std::make_unique<llvm::Module>(nest.name, context);
  backend.prepare(llvm::wrap(module.get()));
  EmissionPlan plan(nest, target, options.plan);
  llvm_backend::KernelEmitter emitter(plan, target, *module,
                                      {.register_tiles = options.register_tiles,
                                       .prefetch_constants = options.prefetch_constants,
                                       .prefetch_rows = options.prefetch_rows,
                                       .prefetch_blocks = options.prefetch_blocks,
                                       .max_stack_bytes = options.max_stack_bytes});
  const std::vector<loops::BufferId> workspace = emitter.emit();
  if (options.verify) llvm_backend::verify(llvm::wrap(module.get()));
  times.emit = seconds_since(start);
  const auto middle = SteadyClock::now();
  if (*options.passes != '\0') backend.optimise(llvm::wrap(module.get()), options.passes);
  times.optimise = seconds_since(middle);
  if (kernel != nullptr) {
    kernel->symbol = nest.name;
    kernel->threads = target.threads;
    kernel->processor = processor.requirement();
    kernel->uses_tile_registers = emitter.uses_tile_registers();
    for (const loops::BufferId id : nest.arguments) kernel->buffers.push_back({nest.buffers[id]});
    for (const loops::BufferId id : workspace) kernel->buffers.push_back({nest.buffers[id]});
  }
  return module;
}

TUNEWRIGHT_INLINE LlvmCompiler::LlvmCompiler(Target target, CompileOptions options) {
  if (target.kind != DeviceKind::Cpu) {
    throw std::invalid_argument("target '" + target.name + "' is a GPU; LlvmCompiler compiles for CPUs");
  }
  state_ = std::make_unique<State>(std::move(target), options);
}
TUNEWRIGHT_INLINE LlvmCompiler::LlvmCompiler(LlvmCompiler&&) noexcept = default;
TUNEWRIGHT_INLINE LlvmCompiler& LlvmCompiler::operator=(LlvmCompiler&&) noexcept = default;
TUNEWRIGHT_INLINE LlvmCompiler::~LlvmCompiler() = default;

TUNEWRIGHT_INLINE Kernel LlvmCompiler::compile(const loops::LoopNest& nest) {
  Kernel kernel;
  llvm::LLVMContext context;
  llvm_backend::PassGate gate(context);
  const std::unique_ptr<llvm::Module> module = state_->build(nest, context, &kernel);
  const auto start = State::SteadyClock::now();
  kernel.object = state_->backend.emit(llvm::wrap(module.get()));
  state_->times.machine = seconds_since(start);
  return kernel;
}

TUNEWRIGHT_INLINE Kernel LlvmCompiler::compile_ir_text(const std::string& text, const std::string& symbol,
                                                       std::vector<KernelBuffer> buffers) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module(llvm::unwrap(llvm_backend::parse(llvm::wrap(&context), text)));
  if (module->getFunction(symbol) == nullptr)
    throw std::invalid_argument("the LLVM IR does not define '" + symbol + "'");
  state_->backend.prepare(llvm::wrap(module.get()));
  Kernel kernel;
  kernel.symbol = symbol;
  kernel.buffers = std::move(buffers);
  kernel.object = state_->backend.emit(llvm::wrap(module.get()));
  return kernel;
}

TUNEWRIGHT_INLINE std::string LlvmCompiler::to_llvm_ir(const loops::LoopNest& nest) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = state_->build(nest, context, nullptr);
  return llvm_backend::taken(LLVMPrintModuleToString(llvm::wrap(module.get())));
}

TUNEWRIGHT_INLINE std::string LlvmCompiler::to_assembly(const loops::LoopNest& nest) {
  llvm::LLVMContext context;
  llvm_backend::PassGate gate(context);
  const std::unique_ptr<llvm::Module> module = state_->build(nest, context, nullptr);
  const auto text = state_->backend.emit(llvm::wrap(module.get()), true);
  return {text->begin(), text->end()};
}

TUNEWRIGHT_INLINE const CompileTimes& LlvmCompiler::times() const noexcept { return state_->times; }
TUNEWRIGHT_INLINE const Target& LlvmCompiler::target() const noexcept { return state_->target; }

TUNEWRIGHT_INLINE std::string LlvmCompiler::identity() const {
  CompileOptions usual;
  usual.aggressive = state_->options.aggressive;
  const std::uint64_t hash = stable_hash(state_->options);
  const llvm_backend::Processor& processor = state_->processor;
  return "llvm " LLVM_VERSION_STRING " " + llvm_backend::joined(processor.name, processor.deviation) +
         (usual.aggressive ? " -O3" : " -O2") + (hash == stable_hash(usual) ? "" : ", options " + to_hex(hash));
}

}  // namespace tunewright::codegen

#endif
