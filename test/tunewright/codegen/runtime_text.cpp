// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/runtime_text.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "support/c_program.hpp"
#include "support/nest_builder.hpp"
#include "tunewright/codegen/export.hpp"
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/core/host_target.hpp"

namespace {

using namespace tunewright;
using loops::LoopKind;

/// C = A B over parallel rows, 37 by 24 by 20.
codegen::Kernel product() {
  program::ComputeGraph g;
  const auto a = g.input("A", {37, 20});
  const auto b = g.input("B", {20, 24});
  g.reduce("C", {{"i", 37}, {"j", 24}}, {{"k", 20}}, program::Combiner::Sum,
           [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  return codegen::compile(test::plain_nest(g, LoopKind::Vectorized, LoopKind::Parallel), Target{.threads = 3});
}

/// y = 2 x + 1 over 64 parallel rows of 8.
codegen::Kernel line() {
  program::ComputeGraph g;
  const auto x = g.input("x", {64, 8});
  g.compute("y", {{"i", 64}, {"j", 8}}, [&](auto i) { return x(i[0], i[1]) * 2.0 + 1.0; });
  return codegen::compile(test::plain_nest(g, LoopKind::Vectorized, LoopKind::Parallel), Target{.threads = 3});
}

/// What all programs below start with: two kernels in one program, and their answers by plain C.
constexpr const char* two_kernels = R"(
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "product.h"
#include "line.h"
#include "tunewright_runtime.h"

#define CHECK(claim) do { if (!(claim)) { fprintf(stderr, "line %d: %s\n", __LINE__, #claim); return 0; } } while (0)

static _Alignas(64) float A[37][20], B[20][24], x[64][8];

static void fill(void) {
  for (int i = 0; i < 37 * 20; ++i) A[0][i] = (float)(i % 7 - 3);
  for (int i = 0; i < 20 * 24; ++i) B[0][i] = (float)(i % 5 - 2);
  for (int i = 0; i < 64 * 8; ++i) x[0][i] = (float)i;
}

/* Runs both kernels `times` times; whether all was right. */
static int both_are_right(const struct tunewright_runtime* runtime, int times) {
  struct { _Alignas(64) float C[37][24]; _Alignas(64) float y[64][8]; } out;
  void* of_product[product_buffer_count];
  void* of_line[line_buffer_count];
  of_product[product_A] = A;
  of_product[product_B] = B;
  of_product[product_C] = out.C;
  of_line[line_x] = x;
  of_line[line_y] = out.y;
  for (int t = 0; t < times; ++t) {
    memset(&out, 0xff, sizeof out);
    product(of_product, runtime);
    line(of_line, runtime);
    for (int i = 0; i < 37; ++i) {
      for (int j = 0; j < 24; ++j) {
        float sum = 0;
        for (int k = 0; k < 20; ++k) sum += A[i][k] * B[k][j];
        CHECK(out.C[i][j] == sum);
      }
    }
    for (int i = 0; i < 64 * 8; ++i) CHECK(out.y[0][i] == 2 * x[0][i] + 1);
  }
  return 1;
}
)";

/// Whether a program of `two_kernels`, `checks` and a main function that calls `check()` succeeds.
bool succeeds(const std::string& checks, const std::string& options = "") {
  const test::CProgram program;
  codegen::export_kernel(product(), "product", program.path());
  codegen::export_kernel(line(), "line", program.path());
  codegen::export_runtime(program.path());
  program.write_main(two_kernels + checks + "\nint main(void) { fill(); return check() ? 0 : 1; }\n");
  const bool compiled = program.compiles("tunewright_runtime.c product.o line.o -lm", "-std=c11 -pthread " + options);
  if (!compiled) MESSAGE(program.said());
  return compiled && program.succeeds();
}

TEST_CASE("two kernels in one C program run on teams of any size, and on the calling thread alone") {
  CHECK(succeeds(R"(
struct visits { atomic_int seen[1000]; const struct tunewright_runtime* inner; };
static void visit(void* context, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) atomic_fetch_add(&((struct visits*)context)->seen[i], 1);
}
static void visit_inside(void* context, int64_t begin, int64_t end) {
  struct visits* v = context;
  for (int64_t i = begin; i < end; ++i) v->inner->parallel_for(v->inner, 1000, visit, v);
}
static int check(void) {
  CHECK(product_threads == 3);
  CHECK(both_are_right(&tunewright_serial_runtime, 1));
  for (unsigned threads = 1; threads <= 7; threads += 2) {
    struct tunewright_team* team = tunewright_team_create(threads, NULL, 0);
    CHECK(team != NULL && tunewright_team_threads(team) == threads);
    const struct tunewright_runtime* runtime = tunewright_team_runtime(team);
    CHECK(both_are_right(runtime, 100));
    const struct timespec until_asleep = {0, 3000000};
    for (int t = 0; t < 5; ++t) {
      nanosleep(&until_asleep, NULL);
      CHECK(both_are_right(runtime, 1));
    }
    for (int64_t count = 0; count <= 1000; count += count < 4 ? 1 : 83) {
      struct visits v = {.inner = NULL};
      runtime->parallel_for(runtime, count, visit, &v);
      for (int64_t i = 0; i < 1000; ++i) CHECK(v.seen[i] == (i < count));
    }
    struct visits nested = {.inner = runtime};
    runtime->parallel_for(runtime, 6, visit_inside, &nested);
    for (int i = 0; i < 1000; ++i) CHECK(nested.seen[i] == 6);
    tunewright_team_destroy(team);
  }
  struct tunewright_team* whole = tunewright_team_create(0, NULL, 0);
  CHECK(whole != NULL && tunewright_team_threads(whole) >= 1);
  tunewright_team_destroy(whole);
  tunewright_team_destroy(NULL);
  return 1;
}
)"));
}

TEST_CASE("threads of a C program call kernels with one team at the same time") {
  CHECK(succeeds(R"(
static void* calls(void* team) { return both_are_right(tunewright_team_runtime(team), 200) ? team : NULL; }
static int check(void) {
  struct tunewright_team* team = tunewright_team_create(2, NULL, 0);
  pthread_t callers[3];
  for (int c = 0; c < 3; ++c) CHECK(pthread_create(&callers[c], NULL, calls, team) == 0);
  for (int c = 0; c < 3; ++c) {
    void* result = NULL;
    pthread_join(callers[c], &result);
    CHECK(result == team);
  }
  tunewright_team_destroy(team);
  return 1;
}
)"));
}

TEST_CASE("the caller has the first iterations, and helpers keep to the processors they are given") {
  CHECK(succeeds(R"(
struct part { int64_t begin, end; pthread_t thread; int processor; };
static void note(void* context, int64_t begin, int64_t end) {
  struct part* part = &((struct part*)context)[begin];
  *part = (struct part){begin, end, pthread_self(), sched_getcpu()};
}
static int check(void) {
  cpu_set_t set;
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
  int last = 0;
  for (int p = 0; p < CPU_SETSIZE; ++p) if (CPU_ISSET(p, &set)) last = p;
  const int processors[] = {0, last, last};
  struct tunewright_team* team = tunewright_team_create(3, processors, 3);
  CHECK(team != NULL);
  const struct tunewright_runtime* runtime = tunewright_team_runtime(team);
  struct part parts[3] = {{-1, -1, pthread_self(), -1}};
  runtime->parallel_for(runtime, 3, note, parts); /* an iteration for each, which is not cut */
  CHECK(both_are_right(runtime, 1));
  CHECK(parts[0].begin == 0 && parts[0].end == 1 && parts[1].end == 2 && parts[2].end == 3);
  CHECK(pthread_equal(parts[0].thread, pthread_self()));
  CHECK(!pthread_equal(parts[1].thread, pthread_self()) && !pthread_equal(parts[1].thread, parts[2].thread));
  CHECK(parts[1].processor == last && parts[2].processor == last);
  cpu_set_t now;
  CHECK(sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&set, &now));
  tunewright_team_destroy(team);

  const int absent[] = {0, CPU_SETSIZE - 1}, negative[] = {0, -1}, beyond[] = {0, CPU_SETSIZE};
  CHECK(tunewright_team_create(2, absent, 2) == NULL && errno == EINVAL);
  CHECK(tunewright_team_create(2, negative, 2) == NULL && errno == EINVAL);
  CHECK(tunewright_team_create(2, beyond, 2) == NULL && errno == EINVAL);
  errno = 0;
  CHECK(tunewright_team_create(2, absent, 0) == NULL && errno == EINVAL);
  errno = 0;
  CHECK(tunewright_team_create(2, NULL, 2) == NULL && errno == EINVAL);
  return 1;
}
)"));
}

TEST_CASE("in a C program too, who is ready takes pieces of a slow thread's share") {
  CHECK(succeeds(R"(
struct loop { int64_t count; pthread_t caller; int caller_is_slow; atomic_int slow_has_begun, right; _Atomic int64_t ran; };
static void one_is_slow(void* context, int64_t begin, int64_t end) {
  struct loop* loop = context;
  const time_t until = time(NULL) + 20;
  if ((pthread_equal(pthread_self(), loop->caller) != 0) == loop->caller_is_slow) {
    loop->slow_has_begun = 1;
    while (loop->ran != loop->count - (end - begin) && time(NULL) < until) sched_yield();
    loop->right = loop->ran == loop->count - (end - begin);
  } else {
    while (!loop->slow_has_begun && time(NULL) < until) sched_yield(); /* nobody takes what a thread has not begun */
  }
  loop->ran += end - begin;
}
static int check(void) {
  struct tunewright_team* team = tunewright_team_create(2, NULL, 0);
  const struct tunewright_runtime* runtime = tunewright_team_runtime(team);
  for (int64_t count = 3; count < 3000; count *= 5) {
    for (int caller_is_slow = 0; caller_is_slow < 2; ++caller_is_slow) {
      struct loop loop = {.count = count, .caller = pthread_self(), .caller_is_slow = caller_is_slow};
      runtime->parallel_for(runtime, count, one_is_slow, &loop);
      CHECK(loop.right && loop.ran == count);
      CHECK(both_are_right(runtime, 1));
    }
  }
  tunewright_team_destroy(team);
  return 1;
}
)"));
}

TEST_CASE("the threads of a C program run the loops of kernels through two functions") {
  CHECK(succeeds(R"(
/* Each piece on a thread of its own, the last first. */
struct pool { int64_t workers; atomic_int pieces; };
struct piece { void (*body)(void*, int64_t); void* context; int64_t i; };
static void* run_piece(void* argument) {
  const struct piece* piece = argument;
  piece->body(piece->context, piece->i);
  return NULL;
}
static void run(void* pool, int64_t n, void (*body)(void*, int64_t), void* context) {
  pthread_t threads[8];
  struct piece pieces[8];
  for (int64_t i = n; i-- > 0;) {
    pieces[i] = (struct piece){body, context, i};
    pthread_create(&threads[i], NULL, run_piece, &pieces[i]);
    atomic_fetch_add(&((struct pool*)pool)->pieces, 1);
  }
  for (int64_t i = 0; i < n; ++i) pthread_join(threads[i], NULL);
}
static int64_t workers(void* pool) { return ((struct pool*)pool)->workers; }
static int check(void) {
  /* The product has two loops and the line one; a pool of one worker, or that says nothing of use, gets none. */
  const struct { int64_t workers; int pieces; } expected[] = {{-1, 0}, {0, 0}, {1, 0}, {3, 9}, {4, 12}};
  for (int e = 0; e < 5; ++e) {
    struct pool own = {expected[e].workers, 0};
    struct tunewright_pool pool = {run, workers, &own};
    const struct tunewright_runtime runtime = tunewright_pool_runtime(&pool);
    CHECK(both_are_right(&runtime, 1));
    CHECK(own.pieces == expected[e].pieces);
  }
  return 1;
}
)"));
}

TEST_CASE("OpenMP runs the loops of kernels, inside parallel regions as well") {
  const test::CProgram probe;
  probe.write_main("#include <omp.h>\nint main(void) { return omp_get_max_threads() > 0 ? 0 : 1; }\n");
  if (!probe.compiles("", "-std=c11 -fopenmp")) {
    MESSAGE("skipped: no C compiler with OpenMP");
    return;
  }
  const std::string checks = R"(
static int check(void) {
  const struct tunewright_runtime* runtime = tunewright_openmp_runtime();
  CHECK(both_are_right(runtime, 100));
  int right = 0;
#pragma omp parallel num_threads(3) reduction(+ : right)
  right += both_are_right(runtime, 20);
  CHECK(right == 3);
  return 1;
}
)";
  CHECK(succeeds(checks, "-fopenmp"));
}

TEST_CASE("without OpenMP a program that asks for it does not link, and the linker says for what") {
  const test::CProgram program;
  codegen::export_runtime(program.path());
  program.write_main(
      "#include \"tunewright_runtime.h\"\nint main(void) { return tunewright_openmp_runtime() == NULL; }\n");
  CHECK_FALSE(program.compiles("tunewright_runtime.c", "-std=c11 -pthread"));
  CHECK(program.said().find("tunewright_openmp_runtime") != std::string::npos);
}

TEST_CASE("headers are C99 and C++, in any order") {
  const test::CProgram program;
  codegen::export_kernel(line(), "line", program.path());
  codegen::export_runtime(program.path());
  program.write_main(
      "#include \"tunewright_runtime.h\"\n#include \"line.h\"\n#include \"tunewright_runtime.h\"\n"
      "int main(void) { return tunewright_serial_runtime.state != NULL; }\n");
  CHECK(program.compiles("", "-std=c99"));
  CHECK(program.compiles("", "-x c++ -std=c++11"));
  program.write_main(
      "#include \"line.h\"\n#include \"tunewright_runtime.h\"\nint main(void) { return line_threads != 3; }\n");
  CHECK(program.compiles("", "-std=c99"));
  CHECK(program.succeeds());
}

TEST_CASE("what cannot be written is told") {
  const test::CProgram folder;
  std::ofstream(folder.file("file")) << "not a folder";
  CHECK_THROWS_AS(codegen::export_runtime(folder.file("file")), std::runtime_error);
}

}  // namespace
