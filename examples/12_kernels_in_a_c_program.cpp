// SPDX-License-Identifier: Apache-2.0
//
// Lesson 12: kernels in a C program.
//
// Shows:  how a program without this library runs a tuned kernel: with an object file, a header and the C runtime;
//         weights packed once; the runtime's own threads or the threads of the program; the same kernel
//         cross-compiled for a board with an ARM processor.
// Run:    build/release/examples/12_kernels_in_a_c_program
// Expect: the files, the output of the C program, and its output on an emulated board if there is an
//         emulator. The program fails if a kernel differs from plain C.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tunewright/codegen/export.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/schedule/schedule.hpp"

using namespace tunewright;
using schedule::Schedule;
using schedule::ScheduleBuilder;

namespace {

/// Tiles of 4 rows and two vectors, parallel rows, weights packed in the order of reading. In lesson 1 a search finds
/// such a schedule.
Schedule by_hand(std::shared_ptr<const program::ComputeGraph> graph, const Target& target) {
  ScheduleBuilder s(std::move(graph));
  const auto y = s.stage("dense");
  const auto sums = s.cache_write(y);
  const auto i = s.split(y, 0, {4});
  const auto j = s.split(y, 1, {2 * static_cast<std::int64_t>(target.vector_bytes() / 4)});
  s.reorder(y, {i[0], j[0], i[1], j[1]});
  s.compute_at(sums, y, j[0]);
  s.reorder(sums, {2, 0, 1});
  s.parallel(y, i[0]);
  s.vectorize(y, j[1]);
  s.unroll(sums, 0);
  s.vectorize(sums, 1);
  s.pack(s.stage("weight"), sums);
  return s.schedule();
}

constexpr const char* c_program = R"(
// [snippet-begin program]
#include <stdio.h>
#include <stdlib.h>

#include "layer.h"
#include "tunewright_runtime.h"

enum { batch = 60, in = 48, out = 100 };

static int is_right(const float* x, const float* w, const float* y) {
  for (int i = 0; i < batch; ++i) {
    for (int j = 0; j < out; ++j) {
      float sum = 0;
      for (int k = 0; k < in; ++k) sum += x[i * in + k] * w[k * out + j];
      if (y[i * out + j] != sum) return 0;
    }
  }
  return 1;
}

/* The threads of this program: here a single one, which runs all pieces one after the other. */
static void run_all(void* pool, int64_t n, void (*body)(void* context, int64_t i), void* context) {
  for (int64_t i = 0; i < n; ++i, ++*(int*)pool) body(context, i);
}
static int64_t three(void* pool) {
  (void)pool;
  return 3;
}

int main(void) {
  static float weights[in * out];
  void* buffers[layer_buffer_count];
  for (int b = 0; b < layer_buffer_count; ++b) buffers[b] = aligned_alloc(64, (layer_buffer_bytes[b] + 63) / 64 * 64);
  float* x = buffers[layer_data];
  float* y = buffers[layer_dense];
  for (int i = 0; i < batch * in; ++i) x[i] = (float)(i % 7 - 3);
  for (int i = 0; i < in * out; ++i) weights[i] = (float)(i % 5 - 2);
  layer_pack_weight(weights, buffers[layer_weight]); /* once, ahead of all calls */

  /* The runtime's own threads; any number of kernels and callers may share them. */
  struct tunewright_team* team = tunewright_team_create(layer_threads, NULL, 0);
  if (team == NULL) return 1;
  layer(buffers, tunewright_team_runtime(team));
  const int by_team = is_right(x, weights, y);
  tunewright_team_destroy(team);

  /* The program's own threads. */
  int pieces = 0;
  struct tunewright_pool pool = {run_all, three, &pieces};
  const struct tunewright_runtime runtime = tunewright_pool_runtime(&pool);
  layer(buffers, &runtime);
  const int by_pool = is_right(x, weights, y);

  printf("a team of %d: %s; a pool, in %d pieces: %s\n", layer_threads, by_team ? "right" : "wrong", pieces,
         by_pool ? "right" : "wrong");
  return by_team && by_pool ? 0 : 1;
}
// [snippet-end program]
)";

/// Writes the files of the C program into a folder.
void export_layer(const std::filesystem::path& folder, const Target& target) {
  const auto graph = program::operators::dense_graph({.batch = 60, .in = 48, .out = 100, .bias = false});
  // [snippet-begin export]
  const codegen::Kernel kernel = codegen::LlvmCompiler(target).compile(loops::lower(by_hand(graph, target)));
  const codegen::ExportedKernel files = codegen::export_kernel(kernel, "layer", folder, target.name);
  const codegen::ExportedRuntime runtime = codegen::export_runtime(folder);
  // [snippet-end export]
  std::ofstream(folder / "main.c") << c_program;
  std::printf("%s: %s, %s, %s, %s\n", folder.filename().c_str(), files.object.filename().c_str(),
              files.header.filename().c_str(), runtime.source.filename().c_str(), runtime.header.filename().c_str());
  std::fflush(stdout);
}

bool succeeds(const std::string& command) { return std::system(command.c_str()) == 0; }

/// Compiles the program of a folder and runs it.
bool runs(const std::filesystem::path& folder, const std::string& compiler, const std::string& emulator) {
  const auto file = [&](const char* name) { return " '" + (folder / name).string() + "'"; };
  return succeeds(compiler + " -std=c11 -O2 -pthread -o" + file("main") + file("main.c") + file("layer.o") +
                  file("tunewright_runtime.c") + " -lm") &&
         succeeds(emulator + file("main"));
}

}  // namespace

int main() {
  const std::filesystem::path folder = std::filesystem::current_path() / "12_kernels_in_a_c_program.files";
  bool as_expected = true;
  export_layer(folder / "here", host_target());
  if (succeeds("cc --version > /dev/null 2>&1")) {
    as_expected = runs(folder / "here", "cc", "");
  } else {
    std::printf("not run: there is no C compiler\n");
  }

  // Cross-compiles an unmeasured kernel for a board; to tune for a board, measure on it.
  // [snippet-begin board]
  const Target board = arm_target("Raspberry Pi 4");
  export_layer(folder / "board", board);
  // [snippet-end board]
  if (succeeds("aarch64-linux-gnu-gcc --version > /dev/null 2>&1 && qemu-aarch64 --version > /dev/null 2>&1")) {
    as_expected = runs(folder / "board", "aarch64-linux-gnu-gcc -static", "qemu-aarch64 ") && as_expected;
  } else {
    std::printf("not run: there is no cross compiler with an emulator; take the folder to the board\n");
  }

  // Kernels for another processor are rejected, here and by the C compiler.
  std::string refusal = "loaded";
  try {
    const auto graph = program::operators::dense_graph({.batch = 1, .in = 1, .out = 1, .bias = false});
    const Target other = host_family == CpuFamily::Aarch64 ? Target{} : board;
    static_cast<void>(codegen::KernelLoader().load(codegen::compile(loops::lower(Schedule{graph, {}}), other)));
  } catch (const std::invalid_argument& error) {
    refusal = error.what();
  }
  std::printf("loaded into this process: %s\n", refusal.c_str());
  as_expected = as_expected && refusal != "loaded";
  std::printf("all that ran was right: %s\n", as_expected ? "yes" : "no");
  return as_expected ? 0 : 1;
}
