// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/llvm/pass_gate.hpp"

#include <doctest/doctest.h>
#include <llvm/IR/Module.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tunewright/codegen/llvm/module.hpp"
#include "tunewright/codegen/llvm/processor.hpp"

namespace {

using namespace tunewright;
namespace backend = codegen::llvm_backend;

/// Asks another gate, and notes what it says.
struct Recorder final : llvm::OptPassGate {
  Recorder(llvm::LLVMContext& context, llvm::OptPassGate& other) : asked(other) { context.setOptPassGate(*this); }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef where) override {
    const bool runs = asked.shouldRunPass(pass, where);
    if (runs) ++let_through;
    if (!runs) refused.push_back(pass.str());
    return runs;
  }
  bool isEnabled() const override { return asked.isEnabled(); }

  llvm::OptPassGate& asked;
  std::size_t let_through = 0;
  std::vector<std::string> refused;
};

/// Two functions, each of which copies `count` numbers.
std::string copies() {
  std::string text;
  for (const std::string name : {"first", "second"}) {
    text += "define void @" + name + R"((ptr %from, ptr %to, i64 %count) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %source = getelementptr float, ptr %from, i64 %i
  %target = getelementptr float, ptr %to, i64 %i
  %value = load float, ptr %source
  store float %value, ptr %target
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
)";
  }
  return text;
}

TEST_CASE("a context asks the gate that was made for it") {
  llvm::LLVMContext context;
  CHECK_FALSE(context.getOptPassGate().isEnabled());
  backend::PassGate gate(context);
  CHECK(&context.getOptPassGate() == &gate);
  CHECK(gate.isEnabled());
}

TEST_CASE("the code generator has the pass that is left out, by this name, and loses no other") {
  for (const bool aggressive : {false, true}) {
    llvm::LLVMContext context;
    backend::PassGate gate(context);
    Recorder recorder(context, gate);
    backend::Backend machine(backend::processor_of(Target{.isa = Isa::Avx512}), aggressive);
    const std::unique_ptr<llvm::Module> module(llvm::unwrap(backend::parse(llvm::wrap(&context), copies())));
    CHECK_FALSE(machine.emit(llvm::wrap(module.get()))->empty());
    // Once a function; a pass that LLVM calls otherwise would be let through.
    CHECK(recorder.refused == std::vector<std::string>(2, "X86 Domain Reassignment Pass"));
    CHECK(recorder.let_through > 10);
  }
}

}  // namespace
