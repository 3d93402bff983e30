// SPDX-License-Identifier: Apache-2.0
//
// Lesson 3: how to get a latency that can be trusted.
//
// Shows:  how kernels run in a separate process, are checked against reference values and timed; what happens to
//         kernels that crash, hang, write out of bounds or compute wrong results; and why similar kernels are
//         measured alternately.
// Run:    build/release/examples/03_measuring_honestly
// Expect: a latency for each correct kernel, a fault for each wrong one, and a new worker process after each
//         kernel that broke one. The program fails if a fault differs from the expected one.
//
// The kernels are written by hand. `measurers::OrcJit` measures the kernels of a tuner in the same way.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/reference_data.hpp"
#include "tunewright/measurers/sandbox.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;
using codegen::tunewright_runtime;

namespace {

constexpr int n = 96;  // C = A * B, all n x n

// [snippet-begin kernels]
/// The buffers in the order declared by the kernel below: A, B, C.
struct Matrices {
  const float* a;
  const float* b;
  float* c;
  explicit Matrices(void* const* buffers)
      : a(static_cast<const float*>(buffers[0])),
        b(static_cast<const float*>(buffers[1])),
        c(static_cast<float*>(buffers[2])) {}
};

/// The textbook order of loops: the innermost loop walks down a column of B.
void by_columns(void* const* buffers, const tunewright_runtime*) {
  const Matrices m(buffers);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int k = 0; k < n; ++k) sum += m.a[i * n + k] * m.b[k * n + j];
      m.c[i * n + j] = sum;
    }
  }
}

/// The same sums with the two inner loops exchanged: all accesses are contiguous, and the compiler can
/// vectorize.
void by_rows(void* const* buffers, const tunewright_runtime*) {
  const Matrices m(buffers);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) m.c[i * n + j] = 0;
    for (int k = 0; k < n; ++k) {
      for (int j = 0; j < n; ++j) m.c[i * n + j] += m.a[i * n + k] * m.b[k * n + j];
    }
  }
}

/// Assumes wrongly that memory is initially zero.
void without_zeroing(void* const* buffers, const tunewright_runtime*) {
  const Matrices m(buffers);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      for (int j = 0; j < n; ++j) m.c[i * n + j] += m.a[i * n + k] * m.b[k * n + j];
    }
  }
}

/// Correct except for the last row.
void one_row_short(void* const* buffers, const tunewright_runtime*) {
  const Matrices m(buffers);
  by_rows(buffers, nullptr);
  for (int j = 0; j < n; ++j) m.c[(n - 1) * n + j] *= 1.001F;
}

/// Correct, but also writes one row too many.
void one_row_more(void* const* buffers, const tunewright_runtime*) {
  by_rows(buffers, nullptr);
  volatile float* c = Matrices(buffers).c;
  for (int j = 0; j < n; ++j) c[n * n + j] = 0;
}

void crashing(void* const*, const tunewright_runtime*) { std::abort(); }

void hanging(void* const*, const tunewright_runtime*) {
  for (volatile bool forever = true; forever;) {
  }
}
// [snippet-end kernels]

/// Makes a function of this program a kernel of the task, by naming the tensor of each of its buffers.
codegen::Kernel as_kernel(const Task& task, codegen::tunewright_kernel function) {
  codegen::Kernel kernel;
  kernel.native = function;
  for (program::TensorId id = 0; id < task.graph->size(); ++id) {
    codegen::KernelBuffer buffer;
    buffer.layout.name = task.graph->op(id).name;
    buffer.layout.tensor = id;
    buffer.layout.shape = task.graph->op(id).shape();
    buffer.layout.role = id < 2 ? loops::BufferRole::Input : loops::BufferRole::Output;
    kernel.buffers.push_back(std::move(buffer));
  }
  return kernel;
}

}  // namespace

int main() {
  // Comes first, while this process has one thread: forks the process that will fork workers.
  measurers::Sandbox sandbox;

  // [snippet-begin measure]
  const Task task = program::make_task("matmul", program::operators::matmul_graph({.m = n, .n = n, .k = n}),
                                       host_target().with_threads(1));
  sandbox.set_task(measurers::make_task_data(task));  // random A and B; C from the reference evaluator

  measurers::Protocol protocol;
  protocol.run_timeout_seconds = 1;
  // [snippet-end measure]
  std::printf("a repeat lasts at least %.0f ms; repeats go on until they agree within %.0f %%\n\n",
              1e3 * protocol.min_repeat_seconds, 1e2 * protocol.wanted_spread);

  struct Candidate {
    const char* name;
    codegen::tunewright_kernel function;
    const char* expected;
  };
  const std::vector<Candidate> candidates = {
      {"by columns", by_columns, "none"},
      {"without zeroing", without_zeroing, "wrong_result"},
      {"one row short", one_row_short, "wrong_result"},
      {"one row more", one_row_more, "out_of_bounds"},
      {"crashing", crashing, "run_error"},
      {"hanging", hanging, "run_timeout"},
      {"by rows", by_rows, "none"},
  };
  bool as_expected = true;
  for (const Candidate& candidate : candidates) {
    const Outcome outcome = sandbox.measure(as_kernel(task, candidate.function), protocol);
    std::string fault = "none";
    if (const Timing* timing = outcome.timing()) {
      std::printf("%-16s %7.1f us  +- %.1f %%  (%zu repeats of %u calls)\n", candidate.name,
                  1e6 * timing->median.count(), 1e2 * (timing->median_absolute_deviation / timing->median),
                  timing->repeats.size(), timing->calls_per_repeat);
    } else {
      fault = name(outcome.failure()->fault);
      std::printf("%-16s %s: %s\n", candidate.name, fault.c_str(), outcome.failure()->detail.c_str());
    }
    as_expected = as_expected && fault == candidate.expected;
  }
  // A worker survives wrong results; each of the other three faults needed a new one.
  std::printf("\n%zu kernels ran in %zu workers\n", sandbox.statistics().kernels_run,
              sandbox.statistics().workers_started);

  // [snippet-begin interleaved]
  // If the machine speeds up or slows down between two measurements, their ratio is wrong. Alternating the
  // measurements avoids this.
  const std::vector<codegen::Kernel> both = {as_kernel(task, by_columns), as_kernel(task, by_rows)};
  const std::vector<Outcome> outcomes = sandbox.measure_interleaved(both, protocol, 9);
  // [snippet-end interleaved]
  as_expected = as_expected && outcomes[0].valid() && outcomes[1].valid();
  if (as_expected) {
    std::printf("in turns, by columns takes %.1f times as long as by rows\n",
                outcomes[0].timing()->median / outcomes[1].timing()->median);
  }
  return as_expected ? 0 : 1;
}
