// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/run_kernel.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/codegen/export.hpp"
#include "tunewright/program/element_type.hpp"

/// Exported kernels in a C program for 64-bit ARM Linux, run on this machine by an emulator.
namespace tunewright::test {

/// Whether the cross compiler and the emulator are here: packages gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and
/// qemu-user of Debian and Ubuntu.
[[nodiscard]] inline bool can_emulate_aarch64() {
  static const bool can = std::system(
                              "aarch64-linux-gnu-gcc --version > /dev/null 2>&1 && qemu-aarch64 --version > /dev/null "
                              "2>&1 && echo 'int main(void) { return 0; }' | aarch64-linux-gnu-gcc -x c -static -o "
                              "/dev/null - 2> /dev/null") == 0;
  return can;
}
inline constexpr const char* why_not_emulated =
    "skipped: no emulator or cross compiler for 64-bit ARM; on Debian and Ubuntu install qemu-user, "
    "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross";

/// Collects kernels with arguments and runs them all in one process.
class EmulatedProgram {
 public:
  /// `arguments`: as for `run_kernel`.
  void add(codegen::Kernel kernel, std::vector<std::vector<double>> arguments) {
    const std::string name = "k" + std::to_string(cases_.size());
    codegen::export_kernel(kernel, name, folder_.path());
    cases_.push_back({std::move(kernel), std::move(arguments)});
  }
  struct Case {
    codegen::Kernel kernel;
    std::vector<std::vector<double>> arguments;
    bool intact = false;  ///< nothing around the buffers was written
  };

  /// Runs all, on a team of `threads`, and returns them with their outputs written back. Throws `std::runtime_error`
  /// when the program cannot be built or does not end well.
  [[nodiscard]] const std::vector<Case>& run(unsigned threads) {
    codegen::export_runtime(folder_.path());
    std::ofstream(folder_.file("main.c")) << main_text(threads);
    write_inputs();
    const std::string at = folder_.path();
    command("aarch64-linux-gnu-gcc -std=c11 -O1 -Wall -Wextra -Werror -pthread -static -o " + at + "/program " + at +
            "/main.c " + at + "/tunewright_runtime.c " + at + "/k*.o -lm");
    command("qemu-aarch64 " + at + "/program < " + at + "/inputs > " + at + "/outputs");
    read_outputs();
    return cases_;
  }

 private:
  static void command(const std::string& text) {
    if (std::system(text.c_str()) != 0) throw std::runtime_error("this failed: " + text);
  }

  [[nodiscard]] std::string main_text(unsigned threads) const {
    std::string includes = "#include \"tunewright_runtime.h\"\n";
    std::string table;
    for (std::size_t c = 0; c < cases_.size(); ++c) {
      const std::string k = "k" + std::to_string(c);
      std::string roles;
      for (const codegen::KernelBuffer& buffer : cases_[c].kernel.buffers)
        roles += "icot"[static_cast<std::size_t>(buffer.layout.role)];
      includes += "#include \"" + k + ".h\"\n";
      table += "  {" + k + ", " + k + "_buffer_bytes, \"" + roles + "\"},\n";
    }
    return includes + R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  void (*run)(void* const*, const struct tunewright_runtime*);
  const size_t* bytes;
  const char* roles;
} cases[] = {
)" + table +
           R"(};

enum { fence = 256 };

int main(void) {
  struct tunewright_team* team = tunewright_team_create()" +
           std::to_string(threads) + R"(, NULL, 0);
  if (team == NULL) return 1;
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
    void* buffers[64];
    const int count = (int)strlen(cases[c].roles);
    for (int b = 0; b < count; ++b) {
      const size_t bytes = cases[c].bytes[b];
      unsigned char* memory = aligned_alloc(64, (2 * fence + bytes + 63) / 64 * 64);
      memset(memory, 0xff, 2 * fence + bytes);
      buffers[b] = memory + fence;
      if ((cases[c].roles[b] == 'i' || cases[c].roles[b] == 'c') && fread(buffers[b], 1, bytes, stdin) != bytes) return 2;
    }
    cases[c].run(buffers, tunewright_team_runtime(team));
    unsigned char intact = 1;
    for (int b = 0; b < count; ++b) {
      const size_t bytes = cases[c].bytes[b];
      unsigned char* memory = (unsigned char*)buffers[b] - fence;
      for (int i = 0; i < fence; ++i) intact = intact && memory[i] == 0xff && memory[fence + bytes + i] == 0xff;
      if (cases[c].roles[b] == 'o') fwrite(buffers[b], 1, bytes, stdout);
      free(memory);
    }
    fwrite(&intact, 1, 1, stdout);
  }
  tunewright_team_destroy(team);
  return fflush(stdout) == 0 ? 0 : 3;
}
)";
  }

  void write_inputs() const {
    std::ofstream file(folder_.file("inputs"), std::ios::binary);
    for (const Case& c : cases_) {
      for (std::size_t b = 0; b < c.kernel.buffers.size(); ++b) {
        const loops::Buffer& layout = c.kernel.buffers[b].layout;
        if (layout.role != loops::BufferRole::Input && layout.role != loops::BufferRole::Constant) continue;
        program::with_element_type(layout.type, [&]<class T>(T) {
          for (const double value : c.arguments[b]) {
            const auto element = static_cast<T>(value);
            file.write(reinterpret_cast<const char*>(&element), sizeof element);
          }
        });
      }
    }
  }
  void read_outputs() {
    std::ifstream file(folder_.file("outputs"), std::ios::binary);
    for (Case& c : cases_) {
      for (std::size_t b = 0; b < c.kernel.buffers.size(); ++b) {
        const loops::Buffer& layout = c.kernel.buffers[b].layout;
        if (layout.role != loops::BufferRole::Output) continue;
        program::with_element_type(layout.type, [&](auto element) {
          for (double& value : c.arguments[b]) {
            file.read(reinterpret_cast<char*>(&element), sizeof element);
            value = static_cast<double>(element);
          }
        });
      }
      c.intact = file.get() == 1;
    }
    if (!file || file.peek() != std::ifstream::traits_type::eof())
      throw std::runtime_error("the emulated program wrote other outputs than its kernels have");
  }

  support::TemporaryFolder folder_;
  std::vector<Case> cases_;
};

}  // namespace tunewright::test
