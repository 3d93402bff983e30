// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/object_loader.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/host_target.hpp"

using namespace tunewright;
using codegen::ObjectCode;

namespace {

codegen::Kernel kernel_of(const std::string& body, const std::string& rest = "", const Target& target = host_target()) {
  return codegen::LlvmCompiler(target).compile_ir_text(
      "define void @kernel(ptr %buffers, ptr %runtime) {\n" + body + "  ret void\n}\n" + rest, "kernel", {});
}
double run(const codegen::Kernel& kernel, double given) {
  const ObjectCode code(*kernel.object, kernel.symbol);
  double value = given;
  void* buffers[] = {&value};
  code.entry()(buffers, nullptr);
  return value;
}
const std::string in_place = "  %p = load ptr, ptr %buffers\n  %x = load double, ptr %p\n";

}  // namespace

TEST_CASE("code, constants, functions of its own and of the C library are linked") {
  CHECK(run(kernel_of(in_place + "  %y = fmul double %x, 0x400921FB54442D18\n  store double %y, ptr %p\n"), 2) ==
        doctest::Approx(6.283185307));
  CHECK(run(kernel_of(in_place + "  %y = call double @exp(double %x)\n  store double %y, ptr %p\n",
                      "declare double @exp(double)\n"),
            1) == std::exp(1.0));
  CHECK(run(kernel_of(in_place + "  %y = call double @twice(double %x)\n  store double %y, ptr %p\n",
                      "define double @twice(double %x) noinline {\n  %y = fadd double %x, %x\n  ret double %y\n}\n"),
            21) == 42);
  const std::string table =
      "@table = internal constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]\n";
  const codegen::Kernel looked_up = kernel_of(in_place +
                                                  "  %i = fptosi double %x to i64\n  %q = getelementptr [4 x double], "
                                                  "ptr @table, i64 0, i64 %i\n  %y = load double, ptr %q\n  store "
                                                  "double %y, ptr %p\n",
                                              table);
  CHECK(run(looked_up, 0) == 1);
  CHECK(run(looked_up, 3) == 8);
  const codegen::Kernel counted =
      kernel_of(in_place +
                    "  %c = load double, ptr @count\n  %y = fadd double %c, %x\n  store double %y, ptr @count\n  store "
                    "double %y, ptr %p\n",
                "@count = global double 5.0\n");
  CHECK(run(counted, 1) == 6);
  CHECK(run(counted, 1) == 6);  // loaded afresh
}

TEST_CASE("what cannot be linked is refused by name") {
  const codegen::Kernel other = kernel_of("  call void @system()\n", "declare void @system()\n");
  CHECK(test::refusal<std::runtime_error>([&] { const ObjectCode code(*other.object, other.symbol); }).find("system") !=
        std::string::npos);
  const codegen::Kernel kernel = kernel_of("");
  CHECK(test::refusal<std::invalid_argument>([&] {
          const ObjectCode code(*kernel.object, "another");
        }).find("another") != std::string::npos);
  const codegen::Kernel arm = kernel_of("", "", arm_target("Raspberry Pi 4"));
  if (host_family == CpuFamily::X86_64)
    CHECK(test::refusal<std::invalid_argument>([&] {
            const ObjectCode code(*arm.object, arm.symbol);
          }).find("aarch64") != std::string::npos);
  const std::string text = "no object file at all, but long enough to hold the header of one, which has 64 bytes";
  CHECK(test::refusal<std::invalid_argument>([&] { const ObjectCode code(text, "kernel"); }).find("no object file") !=
        std::string::npos);
}

TEST_CASE("a symbol table beyond the end of the file is refused before memory is reserved for it") {
  const codegen::Kernel kernel = kernel_of("");
  std::vector<char> changed = *kernel.object;
  Elf64_Ehdr header;
  std::memcpy(&header, changed.data(), sizeof header);
  for (std::size_t s = 0; s < header.e_shnum; ++s) {
    char* const at = changed.data() + header.e_shoff + s * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, at, sizeof section);
    if (section.sh_type == SHT_SYMTAB) section.sh_size = std::uint64_t{1} << 62;
    std::memcpy(at, &section, sizeof section);
  }
  CHECK(test::refusal<std::invalid_argument>([&] {
          const ObjectCode code(changed, kernel.symbol);
        }).find("truncated") != std::string::npos);
}

TEST_CASE("a truncated or changed object file is refused or loaded, never read beyond its end") {
  const codegen::Kernel kernel = kernel_of(in_place + "  %y = call double @exp(double %x)\n  store double %y, ptr %p\n",
                                           "declare double @exp(double)\n");
  const std::vector<char>& whole = *kernel.object;
  std::size_t refused = 0;
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    try {
      const ObjectCode code(part, kernel.symbol);
    } catch (const std::exception&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<char> changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    try {
      const ObjectCode code(changed, kernel.symbol);
    } catch (const std::exception&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
}
