// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "native_kernels.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/sandbox/crash_report.hpp"
#include "tunewright/measurers/sandbox/serve_requests.hpp"

namespace {

using namespace native_kernels;
using codegen::tunewright_runtime;
using measurers::Evict;
using measurers::Protocol;
using measurers::Sandbox;
using measurers::sandbox::Reply;

/// Short, because most cases are about what is reported rather than how precisely.
Protocol quick() {
  Protocol protocol;
  protocol.min_repeat_seconds = 1e-4;
  protocol.repeats_min = 3;
  protocol.repeats_max = 5;
  protocol.run_timeout_seconds = 20;
  return protocol;
}

/// The shortest repeat, which tells what a kernel needs where other programs take the processors away.
double shortest_s(const Timing& timing) {
  return std::min_element(timing.repeats.begin(), timing.repeats.end())->count();
}

TUNEWRIGHT_TEST_UNCHECKED void crash(void* const*, const tunewright_runtime*) {
  *reinterpret_cast<volatile int*>(std::uintptr_t{0x1000}) = 1;
}
TUNEWRIGHT_TEST_UNCHECKED void illegal(void* const*, const tunewright_runtime*) { __builtin_trap(); }
TUNEWRIGHT_TEST_UNCHECKED void divide(void* const*, const tunewright_runtime*) { ::raise(SIGFPE); }
/// Keeps a thread, as libraries do, from the first call on; later calls look where it may run.
void use_a_thread(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  static std::thread* helper = nullptr;
  if (helper == nullptr) {
    helper = new std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); });  // ends with the worker
    return;
  }
  cpu_set_t own, other, both;
  if (::sched_getaffinity(0, sizeof own, &own) != 0 ||
      ::pthread_getaffinity_np(helper->native_handle(), sizeof other, &other) != 0)
    std::abort();
  CPU_AND(&both, &own, &other);
  if (CPU_COUNT(&own) != 1 || CPU_COUNT(&other) != 1 || CPU_COUNT(&both) != 0) std::abort();
}
/// Seconds to read a float of each line. Each address depends on the value before, so misses do not overlap.
TUNEWRIGHT_TEST_UNCHECKED double seconds_to_visit_lines(const volatile float* values) {
  constexpr std::int64_t floats_per_line = 16;
  constexpr std::int64_t lines = count / floats_per_line;
  constexpr std::int64_t stride = 23;
  static_assert(std::gcd(stride, lines) == 1);
  const auto start = std::chrono::steady_clock::now();
  std::int64_t line = 0;
  for (std::int64_t visited = 0; visited < lines; ++visited) {
    const bool in_range = std::abs(values[line * floats_per_line]) <= std::numeric_limits<float>::max();
    line = (line + stride - 1 + std::int64_t{in_range}) % lines;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
void visit_lines(void* const* buffers, const tunewright_runtime* runtime) {
  for (const int input : {0, 1}) static_cast<void>(seconds_to_visit_lines(in(buffers, input)));
  add(buffers, runtime);
}
/// Takes 3 ms unless reading A takes twice as long as reading B, which comes first, since what a call reads first takes
/// longer.
void await_a_alone_cold(void* const* buffers, const tunewright_runtime* runtime) {
  const double b = seconds_to_visit_lines(in(buffers, 1)), a = seconds_to_visit_lines(in(buffers, 0));
  if (a < 2 * b) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  add(buffers, runtime);
}
/// Writes -1 to the integers of the output, which all bits set are.
TUNEWRIGHT_TEST_UNCHECKED void write_minus_one(void* const* buffers, const tunewright_runtime*) {
  std::memset(buffers[2], 0xff, count * sizeof(std::int32_t));
}
TUNEWRIGHT_TEST_UNCHECKED void leave_one_of_minus_one(void* const* buffers, const tunewright_runtime*) {
  auto* const c = static_cast<std::int32_t*>(buffers[2]);
  std::fill(c, c + 700, -1);
  std::fill(c + 701, c + count, -1);
}
void raise_a_real_time_signal(void* const*, const tunewright_runtime*) { ::raise(SIGRTMIN); }
void abort_it(void* const*, const tunewright_runtime*) { std::abort(); }
void exit_it(void* const*, const tunewright_runtime*) { std::exit(3); }
void exit_quietly(void* const*, const tunewright_runtime*) { ::_exit(0); }
void vanish(void* const*, const tunewright_runtime*) { ::kill(::getpid(), SIGKILL); }
void throw_it(void* const*, const tunewright_runtime*) { throw std::runtime_error("no such tile"); }
void hang(void* const*, const tunewright_runtime*) {
  for (volatile int forever = 1; forever != 0;) {
  }
}
void start_a_process(void* const* buffers, const tunewright_runtime* runtime) {
  if (::fork() == 0) hang(buffers, runtime);
  hang(buffers, runtime);
}
TUNEWRIGHT_TEST_UNCHECKED int recurse(const volatile bool& go_on) {
  volatile char frame[4096] = {};
  frame[7] = 1;
  return go_on ? recurse(go_on) + frame[7] : 0;
}
void overflow_the_stack(void* const*, const tunewright_runtime*) {
  const volatile bool go_on = true;
  static_cast<void>(recurse(go_on));
}
TUNEWRIGHT_TEST_UNCHECKED void write_past_the_end(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  static_cast<volatile float*>(out(buffers))[count] = 0;  // the red zone: 4000 bytes are no multiple of 64
}
TUNEWRIGHT_TEST_UNCHECKED void write_before_the_start(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  static_cast<volatile float*>(out(buffers))[-1] = 0;
}
TUNEWRIGHT_TEST_UNCHECKED void write_a_row_past_the_end(void* const* buffers, const tunewright_runtime*) {
  static_cast<volatile float*>(out(buffers))[count + 1000] = 0;
}
TUNEWRIGHT_TEST_UNCHECKED void read_past_the_end(void* const* buffers, const tunewright_runtime*) {
  static_cast<void>(static_cast<const volatile float*>(in(buffers, 1))[count + 100]);
}
TUNEWRIGHT_TEST_UNCHECKED void overrun_workspace(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  static_cast<volatile float*>(out(buffers, 3))[501] = 0;
}
TUNEWRIGHT_TEST_UNCHECKED void write_to_an_input(void* const* buffers, const tunewright_runtime*) {
  *const_cast<volatile float*>(in(buffers, 0)) = 1;
}
TUNEWRIGHT_TEST_UNCHECKED void forget_the_last(void* const* buffers, const tunewright_runtime*) {
  for (std::int64_t i = 0; i + 1 < count; ++i) out(buffers)[i] = in(buffers, 0)[i] + in(buffers, 1)[i];
}
TUNEWRIGHT_TEST_UNCHECKED void one_is_wrong(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  out(buffers)[700] += 0.01F;
}
TUNEWRIGHT_TEST_UNCHECKED void one_is_no_number(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  out(buffers)[3] = std::numeric_limits<float>::quiet_NaN();
}
TUNEWRIGHT_TEST_UNCHECKED void use_stale_workspace(void* const* buffers, const tunewright_runtime* runtime) {
  add(buffers, runtime);
  out(buffers)[0] += 0 * out(buffers, 3)[0];
}
/// Writes 0 to the first element of the output and what the workspace holds to the others.
template <class Element>
TUNEWRIGHT_TEST_UNCHECKED void copy_workspace(void* const* buffers, const tunewright_runtime*) {
  auto* const c = static_cast<Element*>(buffers[2]);
  for (std::int64_t i = 0; i < count; ++i) c[i] = static_cast<const Element*>(buffers[3])[i % 500];
  c[0] = Element{0};
}
TUNEWRIGHT_TEST_UNCHECKED void slow_add(void* const* buffers, const tunewright_runtime* runtime) {
  for (int i = 0; i < 50; ++i) add(buffers, runtime);
}
TUNEWRIGHT_TEST_UNCHECKED void parallel_add(void* const* buffers, const tunewright_runtime* runtime) {
  runtime->parallel_for(
      runtime, count,
      [](void* context, std::int64_t begin, std::int64_t end) {
        auto* const* memory = static_cast<void* const*>(context);
        for (std::int64_t i = begin; i < end; ++i) out(memory)[i] = in(memory, 0)[i] + in(memory, 1)[i];
      },
      const_cast<void**>(buffers));
}

/// One that this process may use, which kernels know as well.
const int some_processor = host_processors().front();

void on_that_processor_only(void* const* buffers, const tunewright_runtime* runtime) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != 1 || !CPU_ISSET(some_processor, &set))
    std::abort();
  add(buffers, runtime);
}

/// This process may use these processors before any test, and the zygote inherits them.
const cpu_set_t usual_processors = [] {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}();

void on_the_usual_processors(void* const* buffers, const tunewright_runtime* runtime) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0 || !CPU_EQUAL(&set, &usual_processors)) std::abort();
  add(buffers, runtime);
}

/// A worker that answers as if kernels took a millisecond, and ends after each answer to a request of kind `last`
/// while `*lives` counts down to 0. It gets nothing more from the moment it answers.
measurers::WorkerParts ending_after(measurers::sandbox::Request::Kind last, int* lives) {
  measurers::WorkerParts parts;
  parts.serve = [last, lives](int socket) {
    using namespace measurers::sandbox;
    for (;;) {
      Request request;
      Descriptor contents;
      if (receive_record(socket, request, &contents) != Received::Message) return;
      if (request.kind == last && *lives > 0) {
        --*lives;
        ::shutdown(socket, SHUT_RD);
      }
      Reply reply;
      reply.repeat_count = 1;
      reply.repeats[0] = 1e-3;
      if (!send_record(socket, reply)) return;
    }
  };
  return parts;
}

/// A number that this process has in common with its forks.
class SharedNumber {
 public:
  SharedNumber()
      : at_(static_cast<int*>(
            ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(at_ != MAP_FAILED);
  }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  ~SharedNumber() { ::munmap(at_, sizeof(int)); }
  [[nodiscard]] int* at() const { return at_; }

 private:
  int* at_;
};

Failure failure_of(Sandbox& sandbox, codegen::tunewright_kernel function, Protocol protocol = quick()) {
  const Outcome outcome = sandbox.measure(kernel(function), protocol);
  REQUIRE(outcome.failure() != nullptr);
  return *outcome.failure();
}
/// Answers in place of the worker, as the worker does whose memory a kernel wrote over.
template <class Damage>
[[noreturn]] void answer(Reply::Kind kind, const Damage& damage) {
  Reply reply;
  reply.kind = kind;
  reply.repeat_count = 1;
  reply.repeats[0] = 1e-3;
  damage(reply);
  static_cast<void>(measurers::sandbox::send_record(measurers::sandbox::crash_report::socket(), reply));
  ::_exit(0);
}
bool alive(int process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return false;
  return line[line.rfind(')') + 2] != 'Z';
}
bool gone_soon(int process) {
  for (int i = 0; i < 500; ++i) {
    if (!alive(process)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_CASE("threads of a library and its caller have a processor each") {
  const std::vector<int> processors = host_processors();
  if (processors.size() < 2) {
    MESSAGE("skipped: one processor");
    return;
  }
  Sandbox sandbox;
  sandbox.set_task(addition(), 2, std::span(processors).first(2));
  const Outcome outcome = sandbox.measure(kernel(use_a_thread), quick());
  INFO((outcome.valid() ? std::string() : outcome.failure()->detail));
  CHECK(outcome.valid());
}

}  // namespace

TEST_CASE("a right kernel gets a latency") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  const Outcome outcome = sandbox.measure(kernel(add), quick());
  REQUIRE(outcome.timing() != nullptr);
  const Timing& timing = *outcome.timing();
  CHECK(timing.median.count() > 1e-8);
  CHECK(timing.median.count() < 1e-2);
  CHECK(timing.repeats.size() >= 3);
  CHECK(timing.repeats.size() <= 5);
  CHECK(timing.calls_per_repeat >= 1);
  CHECK(outcome.run_time.count() > 0);
}

TEST_CASE("each way to fail is its own fault, and the next kernel is measured as if nothing had happened") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  const auto expect = [&](codegen::tunewright_kernel function, Fault fault, const char* detail) {
    const Failure failure = failure_of(sandbox, function);
    CHECK(name(failure.fault) == name(fault));
    CHECK_MESSAGE(failure.detail.find(detail) != std::string::npos, failure.detail);
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  };
  expect(crash, Fault::RunError, "SIGSEGV: wrote at 0x1000");
  expect(illegal, Fault::RunError, "SIGILL");
  expect(divide, Fault::RunError, "SIGFPE");
  expect(raise_a_real_time_signal, Fault::RunError,
         ("ended by signal " + std::to_string(SIGRTMIN) + " without a report").c_str());
  expect(abort_it, Fault::RunError, "SIGABRT");
  expect(exit_it, Fault::RunError, "status 3");
  expect(exit_quietly, Fault::RunError, "status 0");
  expect(throw_it, Fault::RunError, "no such tile");
  expect(vanish, Fault::Unknown, "vanished");
  expect(overflow_the_stack, Fault::RunError, "stack overflow");
  expect(write_past_the_end, Fault::OutOfBounds, "wrote 0 bytes after the end of buffer 'C'");
  expect(write_before_the_start, Fault::OutOfBounds, "wrote 4 bytes before the start of buffer 'C'");
  expect(write_a_row_past_the_end, Fault::OutOfBounds, "wrote 4000 bytes after the end of buffer 'C'");
  expect(read_past_the_end, Fault::OutOfBounds, "read 400 bytes after the end of buffer 'B'");
  expect(overrun_workspace, Fault::OutOfBounds, "after the end of buffer 'workspace");
  expect(write_to_an_input, Fault::OutOfBounds, "read-only buffer 'A'");
  expect(forget_the_last, Fault::WrongResult, "element 999 of 1000 was never written");
  expect(one_is_wrong, Fault::WrongResult, "output 'C': element 700 is");
  expect(one_is_no_number, Fault::WrongResult, "element 3 is nan");
  expect(use_stale_workspace, Fault::WrongResult, "element 0 of 1000 was never written, or computed from one");
}

TEST_CASE("answers that no worker gives are a fault of the kernel, and the worker is replaced") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  const auto expect = [&](codegen::tunewright_kernel function) {
    const Outcome outcome = sandbox.measure(kernel(function), quick());
    CHECK(outcome.result ==
          TimingOrFailure(
              Failure{Fault::RunError, "its process answers what none does; the kernel wrote over memory there"}));
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  };
  using Kind = Reply::Kind;
  expect([](void* const*, const tunewright_runtime*) { answer(static_cast<Kind>(9), [](Reply&) {}); });
  expect([](void* const*, const tunewright_runtime*) {
    answer(Kind::Failed, [](Reply& reply) { reply.fault = static_cast<Fault>(77); });
  });
  expect([](void* const*, const tunewright_runtime*) {
    answer(Kind::Done, [](Reply& reply) { reply.stopped = static_cast<StopReason>(5); });
  });
  expect([](void* const*, const tunewright_runtime*) {
    answer(Kind::Done, [](Reply& reply) { reply.repeat_count = 257; });
  });
  expect([](void* const*, const tunewright_runtime*) {
    answer(Kind::Done, [](Reply& reply) { reply.repeat_count = 0; });
  });
  expect([](void* const*, const tunewright_runtime*) { answer(Kind::Done, [](Reply& reply) { reply.calls = 0; }); });
  expect([](void* const*, const tunewright_runtime*) {
    answer(Kind::Done, [](Reply& reply) { reply.repeats[0] = std::numeric_limits<double>::quiet_NaN(); });
  });
  expect(
      [](void* const*, const tunewright_runtime*) { answer(Kind::Done, [](Reply& reply) { reply.repeats[0] = -1; }); });
}

TEST_CASE("texts of answers end with their fields") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  CHECK(failure_of(sandbox, [](void* const*, const tunewright_runtime*) {
          answer(Reply::Kind::Failed, [](Reply& reply) {
            reply.fault = Fault::RunError;
            std::memset(reply.detail.data(), 'x', sizeof reply.detail);
            std::memset(reply.repeats.data(), 'y', sizeof reply.repeats);
          });
        }) == Failure{Fault::RunError, std::string(512, 'x')});
  CHECK(failure_of(sandbox, [](void* const*, const tunewright_runtime*) {
          answer(Reply::Kind::Crashed, [](Reply& reply) {
            reply.signal = SIGSEGV;
            reply.data_begin = 2;
            reply.data_end = 4;
            reply.address = 5;
            std::memset(reply.buffer.data(), 'x', sizeof reply.buffer);
            std::memset(reply.detail.data(), 'y', sizeof reply.detail);
          });
        }) == Failure{Fault::OutOfBounds, "read 1 bytes after the end of buffer '" + std::string(48, 'x') + "'"});
}

TEST_CASE("a hang ends at the time limit, with everything it started") {
  measurers::WorkerParts parts;
  parts.confinement.filter_system_calls = false;  // else a kernel starts nothing
  Sandbox sandbox(parts);
  sandbox.set_task(addition());
  Protocol protocol = quick();
  protocol.run_timeout_seconds = 0.25;
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  for (const auto function : {hang, start_a_process}) {
    const int worker = sandbox.statistics().worker_process;
    const auto start = std::chrono::steady_clock::now();
    const Failure failure = failure_of(sandbox, function, protocol);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    CHECK(failure == Failure{Fault::RunTimeout, "still running after 0.25 s"});
    CHECK(gone_soon(worker));
    for (int i = 0; i < 500 && ::kill(-worker, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(::kill(-worker, 0) != 0);
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  }
}

TEST_CASE("a worker serves many kernels") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  for (int i = 0; i < 50; ++i) {
    CHECK(sandbox.measure(kernel(add), quick()).valid());
    CHECK(failure_of(sandbox, one_is_wrong).fault == Fault::WrongResult);
  }
  CHECK(sandbox.statistics().workers_started == 1);
  CHECK(sandbox.statistics().kernels_run == 100);
  static_cast<void>(failure_of(sandbox, crash));
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK(sandbox.statistics().workers_started == 2);
}

TEST_CASE("the worker's processes end with the tuner, even when that is killed, with a standard input or without") {
  bool has_input = true;
  SUBCASE("with") {}
  SUBCASE("without") { has_input = false; }
  int report[2];
  REQUIRE(::pipe(report) == 0);
  const pid_t tuner = ::fork();
  if (tuner == 0) {
    if (!has_input) ::close(STDIN_FILENO);
    Sandbox sandbox;
    Sandbox another;  // holds copies of the first one's descriptors unless these were closed
    for (Sandbox* each : {&sandbox, &another}) {
      each->set_task(addition());
      static_cast<void>(each->measure(kernel(add), quick()));
    }
    const int processes[] = {sandbox.statistics().worker_process, sandbox.statistics().zygote_process,
                             another.statistics().worker_process, another.statistics().zygote_process};
    if (::write(report[1], processes, sizeof processes) != sizeof processes) ::_exit(1);
    Protocol patient = quick();
    patient.run_timeout_seconds = 1000;
    static_cast<void>(sandbox.measure(kernel(hang), patient));
    ::_exit(0);
  }
  int processes[4] = {};
  REQUIRE(::read(report[0], processes, sizeof processes) == sizeof processes);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const int process : processes) CHECK(alive(process));
  ::kill(tuner, SIGKILL);
  ::waitpid(tuner, nullptr, 0);
  for (const int process : processes) CHECK(gone_soon(process));
  ::close(report[0]);
  ::close(report[1]);
}

TEST_CASE("a zygote ends with its owner, also while a fork of the owner holds its socket") {
  auto zygote = std::make_unique<measurers::sandbox::Zygote>(measurers::WorkerParts{});
  const pid_t process = zygote->pid(), another = ::fork();
  if (another == 0) {
    ::pause();
    ::_exit(0);
  }
  zygote.reset();  // waits for it
  CHECK(::kill(process, 0) == -1);
  ::kill(another, SIGKILL);
  ::waitpid(another, nullptr, 0);
}

TEST_CASE("a fork of the tuner leaves the worker as it is") {
  auto sandbox = std::make_unique<Sandbox>();
  sandbox->set_task(addition());
  CHECK(sandbox->measure(kernel(add), quick()).valid());
  const pid_t another = ::fork();
  if (another == 0) {
    sandbox.reset();
    ::_exit(0);
  }
  ::waitpid(another, nullptr, 0);
  CHECK(sandbox->measure(kernel(add), quick()).valid());
  CHECK(sandbox->statistics().workers_started == 1);
}

TEST_CASE("a zygote that is gone is an error of measuring, not of the kernel") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK(sandbox.can_start());
  const int worker = sandbox.statistics().worker_process;
  ::kill(sandbox.statistics().zygote_process, SIGKILL);
  CHECK(gone_soon(worker));
  CHECK_FALSE(sandbox.can_start());
  CHECK_THROWS_WITH_AS(static_cast<void>(sandbox.measure(kernel(add), quick())), doctest::Contains("is gone"),
                       std::runtime_error);
}

TEST_CASE("a worker that was killed between two kernels is no fault of the second") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  const int worker = sandbox.statistics().worker_process;
  ::kill(worker, SIGKILL);
  REQUIRE(gone_soon(worker));
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK(sandbox.statistics().workers_started == 2);
  CHECK(sandbox.statistics().kernels_run == 2);
}

TEST_CASE("a kernel that two workers did not live to get is the failure, and the next is measured") {
  using Kind = measurers::sandbox::Request::Kind;
  const SharedNumber lives;
  *lives.at() = 2;
  Sandbox sandbox(ending_after(Kind::SetTask, lives.at()));
  sandbox.set_task(addition());
  CHECK(failure_of(sandbox, add).fault == Fault::RunError);
  CHECK(sandbox.statistics().kernels_run == 0);
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK(sandbox.statistics().workers_started == 3);
}

TEST_CASE("workers that end between the turns of interleaved measuring cost no repeats") {
  using Kind = measurers::sandbox::Request::Kind;
  const SharedNumber lives;
  const std::vector<codegen::Kernel> kernels(3, kernel(add));
  for (const Kind last : {Kind::Keep, Kind::Repeat}) {
    *lives.at() = 2;
    Sandbox sandbox(ending_after(last, lives.at()));
    sandbox.set_task(addition());
    // The two losses are at one kernel if they come while kernels are kept, at two if they come between turns.
    std::size_t failed = 0;
    for (const Outcome& outcome : sandbox.measure_interleaved(kernels, quick(), 4)) {
      if (outcome.valid()) CHECK(outcome.timing()->repeats.size() == 4);
      failed += outcome.valid() ? 0 : 1;
    }
    CHECK(failed == (last == Kind::Keep ? 1 : 0));
    CHECK(sandbox.statistics().workers_started == 3);
  }
  // However often it happens, it ends.
  *lives.at() = 1000;
  Sandbox sandbox(ending_after(Kind::Keep, lives.at()));
  sandbox.set_task(addition());
  for (const Outcome& outcome : sandbox.measure_interleaved(kernels, quick(), 4)) CHECK(outcome.failure() != nullptr);
}

TEST_CASE("a worker that refuses the task gets no kernels of it") {
  const auto refuse_the_task = [](int socket) {
    using measurers::sandbox::Request;
    measurers::sandbox::serve_requests(socket, [](const Request& request, const auto&, Reply&) {
      if (request.kind == Request::Kind::SetTask) throw measurers::sandbox::Rejected(Fault::Unknown, "no such device");
      throw measurers::sandbox::Rejected(Fault::InvalidSchedule, "a kernel without its task");
    });
  };
  measurers::WorkerParts parts;
  parts.serve = refuse_the_task;
  Sandbox sandbox(parts);
  sandbox.set_task(addition());
  for (std::size_t attempt = 1; attempt <= 2; ++attempt) {
    CHECK_THROWS_WITH_AS(static_cast<void>(sandbox.measure(kernel(add), quick())), doctest::Contains("no such device"),
                         std::runtime_error);
    CHECK(sandbox.statistics().workers_started == attempt);
    CHECK(sandbox.statistics().worker_process == 0);
  }
}

TEST_CASE("timing follows the protocol") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  Protocol protocol = quick();
  const auto timing_of_kernel = [&](const codegen::Kernel& measured, Seconds best = Seconds(0)) {
    const Outcome outcome = sandbox.measure(measured, protocol, best);
    REQUIRE(outcome.valid());
    return *outcome.timing();
  };
  const auto timing_of = [&](codegen::tunewright_kernel function, Seconds best = Seconds(0)) {
    return timing_of_kernel(kernel(function), best);
  };

  SUBCASE("fifty times the work takes about fifty times as long") {
    protocol.repeats_min = protocol.repeats_max = 20;
    const double ratio = shortest_s(timing_of(slow_add)) / shortest_s(timing_of(add));
    CHECK(ratio > 10);
    CHECK(ratio < 2000);
  }
  SUBCASE("a kernel far slower than the best is repeated seldom") {
    const Timing timing = timing_of(slow_add, Seconds(1e-9));
    CHECK(timing.stopped == StopReason::FarSlower);
    CHECK(timing.repeats.size() <= Protocol::far_slower_repeats);
  }
  SUBCASE("any spread will do") {
    protocol.wanted_spread = protocol.noisy_spread = 1e9;
    const Timing timing = timing_of(add);
    CHECK(timing.stopped == StopReason::Precise);
    CHECK(timing.repeats.size() == 3);
  }
  SUBCASE("seconds run out before repeats do") {
    protocol.wanted_spread = 0;
    protocol.budget_seconds = 1e-9;
    const Timing timing = timing_of(add);
    CHECK(timing.stopped == StopReason::Budget);
    CHECK(timing.repeats.size() == 1);
  }
  SUBCASE("calls whose buffers were evicted are slower") {
    protocol.repeats_min = protocol.repeats_max = 20;
    const Timing warm = timing_of(visit_lines);
    protocol.evict = Evict::Everything;
    const Timing cold = timing_of(visit_lines);
    CHECK(cold.repeats.size() == 20);
    CHECK(shortest_s(cold) > shortest_s(warm));
  }
  SUBCASE("constants are evicted alone, where there are any") {
    protocol.repeats_min = protocol.repeats_max = 20;
    protocol.evict = Evict::Constants;
    codegen::Kernel waiting = kernel(await_a_alone_cold);
    CHECK(timing_of_kernel(waiting).median >= Seconds(3e-3));
    waiting.buffers[0].layout.role = loops::BufferRole::Constant;
    CHECK(shortest_s(timing_of_kernel(waiting)) < 3e-3);
  }
  SUBCASE("what cannot be followed is refused") {
    protocol.repeats_max = 0;
    CHECK_THROWS_WITH_AS(static_cast<void>(timing_of(add)), doctest::Contains("repeats_max"), std::invalid_argument);
  }
}

TEST_CASE("parallel loops run on the worker's runtime") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  CHECK(sandbox.measure(kernel(parallel_add), quick()).valid());
}

TEST_CASE("kernels run where they are told to") {
  Sandbox sandbox;
  const std::vector<int> one = {some_processor};
  sandbox.set_task(addition(), 1, one);
  CHECK(sandbox.measure(kernel(on_that_processor_only), quick()).valid());
  for (const std::vector<int>& others : {std::vector<int>{1023}, std::vector<int>{some_processor, 1023}}) {
    sandbox.set_task(addition(), static_cast<unsigned>(others.size()), others);
    CHECK_THROWS_WITH_AS(static_cast<void>(sandbox.measure(kernel(add), quick())),
                         doctest::Contains("processor 1023 is none that this process may use"), std::runtime_error);
  }
  const std::vector<int> none = {5000};
  CHECK_THROWS_WITH_AS(sandbox.set_task(addition(), 1, none), doctest::Contains("processor 5000"),
                       std::invalid_argument);
}

TEST_CASE("a task without processors runs anywhere again, in the same worker") {
  Sandbox sandbox;
  const std::vector<int> one = {some_processor};
  sandbox.set_task(addition());
  CHECK(sandbox.measure(kernel(on_the_usual_processors), quick()).valid());
  sandbox.set_task(addition(), 1, one);
  CHECK(sandbox.measure(kernel(on_that_processor_only), quick()).valid());
  sandbox.set_task(addition(), 2);
  CHECK(sandbox.measure(kernel(on_the_usual_processors), quick()).valid());
  CHECK(sandbox.statistics().workers_started == 1);
}

TEST_CASE("constants come packed as the kernel wants them") {
  TaskData data = addition();
  codegen::Kernel wanted = kernel([](void* const* buffers, const tunewright_runtime*) {
    for (std::int64_t i = 0; i < count; ++i) out(buffers)[i] = in(buffers, 0)[i] + in(buffers, 1)[i % 16 * 63 + i / 16];
  });
  wanted.buffers[1].layout.role = loops::BufferRole::Constant;
  wanted.buffers[1].layout.packing = {{0, 1, 16},
                                      {0, 16, 63}};  // 16 columns of a [63][16] view; 8 elements are padding
  Sandbox sandbox;
  sandbox.set_task(data);
  for (int i = 0; i < 2; ++i) CHECK(sandbox.measure(wanted, quick()).valid());
  CHECK(failure_of(sandbox, [](void* const* buffers, const tunewright_runtime*) {
          for (std::int64_t i = 0; i < count; ++i) out(buffers)[i] = in(buffers, 0)[i] + in(buffers, 1)[i / 2];
        }).fault == Fault::WrongResult);
}

TEST_CASE("constants of two bytes are packed as well") {
  TaskData data;
  data.inputs.push_back({0, "w", program::ScalarType::BFloat16, {32}, std::vector<char>(64)});
  native_kernels::ExpectedOutput expected;
  expected.tensor = 1;
  expected.name = "doubled";
  expected.shape = {32};
  for (std::uint16_t i = 0; i < 32; ++i) {
    const program::BFloat value(static_cast<double>(i));
    std::memcpy(data.inputs[0].bytes.data() + 2 * i, &value, 2);
    expected.values.push_back(2.0 * i);
  }
  data.outputs = {expected};
  codegen::Kernel wanted;
  wanted.native = [](void* const* buffers, const tunewright_runtime*) {
    for (std::int64_t place = 0; place < 32; ++place) {  // even elements, then odd ones
      const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(buffers[0])[place]} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      static_cast<float*>(buffers[1])[place % 16 * 2 + place / 16] = 2 * value;
    }
  };
  wanted.buffers = {buffer("w", 0, loops::BufferRole::Constant, {32}),
                    buffer("doubled", 1, loops::BufferRole::Output, {32})};
  wanted.buffers[0].layout.type = program::ScalarType::BFloat16;
  wanted.buffers[0].layout.packing = {{0, 1, 2}, {0, 2, 16}};
  Sandbox sandbox;
  sandbox.set_task(data);
  CHECK(sandbox.measure(wanted, quick()).valid());
}

TEST_CASE("outputs may be checked at sampled elements only") {
  TaskData data = addition();
  data.outputs[0].points = {0, 500, 999};
  data.outputs[0].values = {data.outputs[0].values[0], data.outputs[0].values[500], data.outputs[0].values[999]};
  Sandbox sandbox;
  sandbox.set_task(data);
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK(sandbox.measure(kernel(one_is_wrong), quick()).valid());  // element 700
  CHECK(failure_of(sandbox, forget_the_last).fault == Fault::WrongResult);
  data.outputs[0].points[1] = 1000;
  CHECK_THROWS_WITH_AS(sandbox.set_task(data), doctest::Contains("element 1000"), std::invalid_argument);
}

TEST_CASE("what is computed from workspace that was not written is found where no element is compared") {
  const auto measured = [](program::ScalarType type, codegen::tunewright_kernel function) {
    TaskData data = addition();
    data.outputs[0].type = type;
    data.outputs[0].points = {0};
    data.outputs[0].values = {0};
    Sandbox sandbox;
    sandbox.set_task(data);
    codegen::Kernel copying = kernel(function);
    copying.buffers[2].layout.type = copying.buffers[3].layout.type = type;
    return sandbox.measure(copying, quick());
  };
  for (const Outcome& outcome : {measured(program::ScalarType::Float16, copy_workspace<std::uint16_t>),
                                 measured(program::ScalarType::BFloat16, copy_workspace<std::uint16_t>),
                                 measured(program::ScalarType::Float32, copy_workspace<float>),
                                 measured(program::ScalarType::Int32, copy_workspace<std::int32_t>)}) {
    REQUIRE(outcome.failure() != nullptr);
    CHECK(outcome.failure()->detail ==
          "output 'C': element 1 of 1000 was never written, or computed from one that was not");
  }
}

TEST_CASE("an integer must be written, and may be what the memory held before") {
  TaskData data = addition();
  measurers::ExpectedOutput& output = data.outputs[0];
  output.type = program::ScalarType::Int32;
  SUBCASE("compared at some elements") {
    output.points = {0};
    output.values = {-1};
  }
  SUBCASE("compared everywhere") { output.values.assign(static_cast<std::size_t>(count), -1); }
  const auto measured = [&](codegen::tunewright_kernel function) {
    Sandbox sandbox;
    sandbox.set_task(data);
    codegen::Kernel integers = kernel(function);
    integers.buffers[2].layout.type = program::ScalarType::Int32;
    return sandbox.measure(integers, quick());
  };
  CHECK(measured(write_minus_one).valid());
  const Outcome outcome = measured(leave_one_of_minus_one);
  REQUIRE(outcome.failure() != nullptr);
  CHECK(outcome.failure()->fault == Fault::WrongResult);
  CHECK(outcome.failure()->detail ==
        "output 'C': element 700 of 1000 was never written, or computed from one that was not");
}

TEST_CASE("another task replaces the buffers of a living worker") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  TaskData doubled = addition();
  for (double& value : doubled.outputs[0].values) value *= 2;
  sandbox.set_task(doubled);
  CHECK(failure_of(sandbox, add).fault == Fault::WrongResult);
  sandbox.set_task(addition());
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK(sandbox.statistics().workers_started == 1);
}

TEST_CASE("kernels that do not fit the task are refused without running") {
  Sandbox sandbox;
  CHECK_THROWS_WITH_AS(static_cast<void>(sandbox.measure(kernel(add), quick())), doctest::Contains("set_task"),
                       std::logic_error);
  sandbox.set_task(addition());
  const auto refusal = [&](const codegen::Kernel& wrong) { return *sandbox.measure(wrong, quick()).failure(); };
  codegen::Kernel wrong = kernel(add);
  wrong.buffers[0].layout.tensor = 9;
  CHECK(refusal(wrong) == Failure{Fault::InvalidSchedule, "buffer 'A' (tensor 9) is no input of the task"});
  wrong = kernel(add);
  wrong.buffers[0].layout.shape = {10, 101};
  CHECK(refusal(wrong) ==
        Failure{Fault::InvalidSchedule, "buffer 'A' (tensor 0) does not have as many elements as the tensor"});
  wrong.buffers[0].layout.shape = {-10, 100};
  CHECK(refusal(wrong).detail.find("a negative extent") != std::string::npos);
  wrong = kernel(add);
  wrong.buffers.erase(wrong.buffers.begin() + 2);
  CHECK(refusal(wrong) == Failure{Fault::InvalidSchedule, "the kernel has 0 outputs, the task 1"});
  wrong = kernel(nullptr);
  CHECK(refusal(wrong).fault == Fault::CompileError);
  wrong.object = std::make_shared<const std::vector<char>>(10, 'x');
  CHECK(refusal(wrong).detail.find("no loader") != std::string::npos);
  CHECK(sandbox.statistics().workers_started == 1);
}

TEST_CASE("object files go through the loader, in the worker") {
  measurers::WorkerParts parts;
  parts.load = [](std::span<const char> object, const std::string& symbol) -> measurers::LoadedObject {
    if (object.size() == 3) throw std::runtime_error("truncated");
    return {symbol == "sum" ? add : nullptr, nullptr};
  };
  Sandbox sandbox(parts);
  sandbox.set_task(addition());
  codegen::Kernel compiled = kernel(nullptr);
  compiled.symbol = "sum";
  compiled.object = std::make_shared<const std::vector<char>>(std::size_t{1} << 20, 'x');
  CHECK(sandbox.measure(compiled, quick()).valid());
  compiled.symbol = "difference";
  CHECK(*sandbox.measure(compiled, quick()).failure() ==
        Failure{Fault::CompileError, "the object file has no symbol 'difference'"});
  compiled.object = std::make_shared<const std::vector<char>>(3, 'x');
  CHECK(sandbox.measure(compiled, quick()).failure()->detail.find("truncated") != std::string::npos);
}

TEST_CASE("an eviction is followed by an empty loop, which wakes the threads of the runtime") {
  measurers::WorkerParts parts;
  parts.runtime = [](unsigned, std::span<const int>) {
    // Its state is the number of empty loops since the last kernel.
    static std::int64_t loops = 0;
    static const tunewright_runtime counting{[](const tunewright_runtime*, std::int64_t, auto, void*) { ++loops; },
                                             &loops};
    return measurers::HostRuntime{&counting, &counting, nullptr};
  };
  parts.load = [](std::span<const char>, const std::string&) -> measurers::LoadedObject {
    return {[](void* const* buffers, const tunewright_runtime* runtime) {
              auto& loops = *static_cast<std::int64_t*>(runtime->state);
              if (loops != 1) std::this_thread::sleep_for(std::chrono::milliseconds(3));
              loops = 0;
              add(buffers, runtime);
            },
            nullptr};
  };
  Sandbox sandbox(parts);
  sandbox.set_task(addition());
  codegen::Kernel loaded = kernel(nullptr);
  loaded.object = std::make_shared<const std::vector<char>>(1, 'x');
  Protocol protocol = quick();
  protocol.evict = Evict::Everything;
  const Outcome woken = sandbox.measure(loaded, protocol);
  REQUIRE(woken.valid());
  CHECK(shortest_s(*woken.timing()) < 3e-3);
  protocol.evict = Evict::Nothing;
  const Outcome asleep = sandbox.measure(loaded, protocol);
  REQUIRE(asleep.valid());
  CHECK(shortest_s(*asleep.timing()) >= 3e-3);
}

TEST_CASE("interleaved measuring keeps the order and survives failures") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  Protocol protocol = quick();
  protocol.run_timeout_seconds = 2;  // for those that do not hang too
  const std::vector<codegen::Kernel> kernels = {kernel(slow_add), kernel(crash), kernel(add), kernel(hang),
                                                kernel(one_is_wrong)};
  const std::vector<Outcome> outcomes = sandbox.measure_interleaved(kernels, protocol, 7);
  REQUIRE(outcomes.size() == 5);
  REQUIRE(outcomes[0].valid());
  CHECK(outcomes[0].timing()->repeats.size() == 7);
  CHECK(outcomes[1].failure()->fault == Fault::RunError);
  REQUIRE(outcomes[2].valid());
  CHECK(outcomes[2].timing()->repeats.size() == 7);
  CHECK(shortest_s(*outcomes[0].timing()) > shortest_s(*outcomes[2].timing()));
  CHECK(outcomes[3].failure()->fault == Fault::RunTimeout);
  CHECK(outcomes[4].failure()->fault == Fault::WrongResult);
  CHECK(sandbox.measure(kernel(add), quick()).valid());
  CHECK_THROWS_AS(static_cast<void>(sandbox.measure_interleaved(kernels, protocol, 0)), std::invalid_argument);
}

TEST_CASE("interleaved measuring ends after three rounds when they took long enough") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  const std::vector<codegen::Kernel> kernels = {kernel(slow_add), kernel(add)};
  for (const Outcome& outcome : sandbox.measure_interleaved(kernels, quick(), 200, 1e-9))
    CHECK(outcome.timing()->repeats.size() == 3);
  for (const Outcome& outcome : sandbox.measure_interleaved(kernels, quick(), 2, 1e-9))
    CHECK(outcome.timing()->repeats.size() == 2);
}
