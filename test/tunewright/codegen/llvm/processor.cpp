// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm/processor.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <memory>
#include <string>

#include "support/nest_builder.hpp"
#include "support/refusal.hpp"
#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright;
using codegen::llvm_backend::check_known;
using codegen::llvm_backend::deviation_of;
using codegen::llvm_backend::processor_of;

Target arm(const std::string& architecture = "") {
  return {.name = "board", .isa = Isa::Neon, .architecture = architecture};
}

/// A product whose innermost loop is vectorised.
loops::LoopNest product() {
  return test::plain_nest(*program::operators::matmul_graph({.m = 4, .n = 16, .k = 8}), loops::LoopKind::Vectorized);
}

TEST_CASE("targets name processors as LLVM does") {
  const auto processor = processor_of(arm_target("Raspberry Pi 4"));
  CHECK(processor.triple.starts_with("aarch64-"));
  CHECK(processor.triple.find("linux") != std::string::npos);
  CHECK(processor.name == "cortex-a72");
  CHECK(processor.features == "-sve");
  CHECK(processor_of(arm("cortex-a55+dotprod+fullfp16")).name == "cortex-a55");
  CHECK(processor_of(arm("cortex-a55+dotprod+fullfp16")).features == "+dotprod,+fullfp16,-sve");
  if (host_family != CpuFamily::Aarch64) CHECK(processor_of(arm()).name == "generic");
  CHECK(processor_of(Target{.isa = Isa::Avx2}).triple.starts_with("x86_64-"));
  CHECK(processor_of(Target{.isa = Isa::Avx2}).features.empty());
}

TEST_CASE("features that a machine hides are not those of the processor's name") {
  const std::string triple = "x86_64-unknown-linux-gnu";
  CHECK(deviation_of(triple, "znver4", "").empty());
  CHECK(deviation_of(triple, "skylake-avx512", "+avx512f,-avx512vl,+avx512bw,+avxvnni") == "+avxvnni,-avx512vl");
  CHECK(deviation_of(triple, "skylake-avx512", "+avxvnni,-avx512vl,-avx512bf16") == "+avxvnni,-avx512vl");
  // What is hidden takes with it what needs it, wherever that stands.
  for (const char* reported : {"-avx512f,+avx512bw", "+avx512bw,-avx512f"}) {
    CHECK(deviation_of(triple, "haswell", reported).empty());
    CHECK(deviation_of(triple, "skylake-avx512", reported) == "-avx512bw,-avx512cd,-avx512dq,-avx512f,-avx512vl");
  }
  // What only systems use is hidden from most programs, and no matter.
  CHECK(deviation_of(triple, "znver4", "-pku,-mwaitx,-avx512vnni,-wbnoinvd") == "-avx512vnni");
}

TEST_CASE("instructions that a machine hides are not generated") {
  namespace backend = codegen::llvm_backend;
  const std::string triple = "x86_64-unknown-linux-gnu";
  const auto assembly = [&](const std::string& features) {
    llvm::LLVMContext context;
    const backend::Backend machine({triple, "haswell", features}, false);
    const std::unique_ptr<llvm::Module> module(llvm::unwrap(backend::parse(llvm::wrap(&context), R"(
declare double @llvm.fmuladd.f64(double, double, double)
define double @f(double %a, double %b, double %c) {
  %r = call double @llvm.fmuladd.f64(double %a, double %b, double %c)
  ret double %r
}
)")));
    machine.prepare(llvm::wrap(module.get()));
    const auto text = machine.emit(llvm::wrap(module.get()), true);
    return std::string(text->begin(), text->end());
  };
  CHECK(assembly("").find("vfmadd") != std::string::npos);
  const std::string without = assembly(deviation_of(triple, "haswell", "+avx2,-fma"));
  CHECK(without.find("vfmadd") == std::string::npos);
  CHECK(without.find("vmulsd") != std::string::npos);
}

TEST_CASE("code for this machine has nothing that it hides, beside the units that the target has") {
  namespace backend = codegen::llvm_backend;
  Target host = host_target();
  if (host.isa != Isa::Avx512) return;  // a typical processor stands for it
  host.tensor_units = 0;
  const auto processor = processor_of(host);
  std::string problem;
  const llvm::Target* generator = llvm::TargetRegistry::lookupTarget(processor.triple, problem);
  REQUIRE(generator != nullptr);
  const std::unique_ptr<llvm::MCSubtargetInfo> chosen(
      generator->createMCSubtargetInfo(processor.triple, processor.name, processor.features));
  const std::string shown = "," + backend::taken(LLVMGetHostCPUFeatures()) + ",";
  std::size_t hidden = 0;
  for (const llvm::SubtargetFeatureKV& row : chosen->getAllProcessorFeatures()) {
    if (shown.find(",-" + std::string(row.Key) + ",") == std::string::npos || backend::is_for_systems(row.Key))
      continue;
    ++hidden;
    CHECK_MESSAGE(!chosen->getFeatureBits().test(row.Value), row.Key);
  }
  CHECK(hidden > 0);  // no processor has everything
}

TEST_CASE("a processor is required with what its code needs beside its name") {
  CHECK(codegen::llvm_backend::Processor{"", "cortex-a55", "+dotprod,-sve,+fullfp16"}.requirement() ==
        "cortex-a55+dotprod+fullfp16");
  const Target named{.isa = Isa::Avx512, .architecture = "skylake-avx512"};
  CHECK(processor_of(named).features.empty());
  CHECK(processor_of(named).requirement() == "skylake-avx512");
  const auto with_unit = processor_of(named.with_tensor_unit(TensorUnit::AmxInt8));
  CHECK(with_unit.features == "+amx-tile,+amx-int8");
  CHECK(with_unit.deviation.empty());
  CHECK(with_unit.requirement() == "skylake-avx512+amx-tile+amx-int8");
  CHECK(codegen::compile(product(), named).processor == "skylake-avx512");
}

TEST_CASE("every listed ARM machine is known to LLVM, and code for it uses vectors of 128 bits alone") {
  for (const ArmModel& model : arm_models) {
    INFO(model.name);
    codegen::LlvmCompiler compiler(arm_target(model.name));
    CHECK(compiler.identity().find(model.processor) != std::string::npos);
    const std::string assembly = compiler.to_assembly(product());
    CHECK(assembly.find("fmla\tv") != std::string::npos);
    CHECK(assembly.find(".4s") != std::string::npos);
    CHECK(assembly.find("\tz") == std::string::npos);
  }
}

TEST_CASE("tensor units of x86-64 are nothing to an ARM target") {
  Target with_bits = arm();
  for (const TensorUnit unit :
       {TensorUnit::Avx512Vnni, TensorUnit::Avx512Bf16, TensorUnit::AmxInt8, TensorUnit::AmxBf16})
    with_bits = with_bits.with_tensor_unit(unit);
  CHECK(codegen::LlvmCompiler(with_bits).to_assembly(product()) == codegen::LlvmCompiler(arm()).to_assembly(product()));
}

TEST_CASE("processors and features that LLVM does not know are refused, not passed over") {
  const auto refused = [](const std::string& architecture) {
    return test::refusal([&] { codegen::LlvmCompiler compiler(arm(architecture)); });
  };
  CHECK(refused("cortex-z1").starts_with("architecture 'cortex-z1' of target 'board' names no processor that LLVM "));
  CHECK(refused("skylake").starts_with("architecture 'skylake' of target 'board' names no processor"));
  CHECK(refused("cortex-a55+fast").find("has the feature 'fast', which LLVM ") != std::string::npos);
  CHECK(refused("cortex-a55+").find("has the feature ''") != std::string::npos);
}

TEST_CASE("a family that LLVM has no code generator for is named, with the target and the way out") {
  const std::string said = test::refusal<std::runtime_error>(
      [] { check_known({.triple = "sparc-unknown-linux-gnu", .name = "generic", .features = ""}, arm()); });
  CHECK(said.find(", as it is linked, generates no code for sparc-unknown-linux-gnu, which target 'board' is for: ") !=
        std::string::npos);
  CHECK(said.find("LLVM_TARGETS_TO_BUILD") != std::string::npos);
}

TEST_CASE("a kernel for another family is not loaded") {
  const Target foreign = host_family == CpuFamily::Aarch64 ? Target{} : arm();
  const codegen::Kernel kernel = codegen::compile(product(), foreign);
  CHECK(codegen::family_of_object(*kernel.object) == family_of(foreign.isa));
  codegen::KernelLoader loader;
  const std::string said = test::refusal([&] { static_cast<void>(loader.load(kernel)); });
  CHECK(said.starts_with("kernel '" + kernel.symbol + "' is machine code for " +
                         std::string(name(family_of(foreign.isa)))));
  CHECK(said.find("codegen::export_kernel") != std::string::npos);
}

}  // namespace
