// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/confinement.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "../native_kernels.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace native_kernels;
using codegen::tunewright_runtime;
using measurers::Protocol;
using measurers::Sandbox;

Protocol quick() {
  Protocol protocol;
  protocol.min_repeat_seconds = 1e-4;
  protocol.repeats_min = 3;
  protocol.repeats_max = 5;
  protocol.run_timeout_seconds = 20;
  return protocol;
}

/// Where kernels write that should not; set before the sandbox is made, which copies it.
std::string& path() {
  static std::string one;
  return one;
}

void open_a_socket(void* const* buffers, const tunewright_runtime* runtime) {
  static_cast<void>(::socket(AF_INET, SOCK_STREAM, 0));
  add(buffers, runtime);
}
void start_a_process(void* const* buffers, const tunewright_runtime* runtime) {
  if (::fork() == 0) ::pause();
  add(buffers, runtime);
}
void run_a_program(void* const*, const tunewright_runtime*) { ::execl("/bin/true", "true", nullptr); }
void kill_the_tuner(void* const*, const tunewright_runtime*) { ::kill(::getppid(), 0); }
void leave_the_group(void* const* buffers, const tunewright_runtime* runtime) {
  static_cast<void>(::setsid());
  add(buffers, runtime);
}
void write_a_file(void* const*, const tunewright_runtime*) {
  const int fd = ::open(path().c_str(), O_WRONLY | O_CREAT, 0600);
  for (char block[4096] = {}; ::write(fd, block, sizeof block) > 0;) {
  }
}
void remove_a_file(void* const*, const tunewright_runtime*) { ::unlink(path().c_str()); }
void fill_what_is_open(void* const*, const tunewright_runtime*) {
  for (char block[4096] = {}; ::write(STDERR_FILENO, block, sizeof block) > 0;) {
  }
}
/// 100 GiB, a gibibyte at a time, each page touched.
void take_memory(void* const* buffers, const tunewright_runtime* runtime) {
  constexpr std::size_t part = std::size_t{1} << 30;
  for (int i = 0; i < 100; ++i) {
    void* memory = ::mmap(nullptr, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    std::memset(memory, 1, part);
  }
  add(buffers, runtime);
}
void take_shared_memory(void* const* buffers, const tunewright_runtime* runtime) {
  static_cast<void>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  add(buffers, runtime);
}
void take_descriptors(void* const*, const tunewright_runtime*) {
  for (int i = 0; i < 5000; ++i) {
    if (::dup(0) < 0) throw std::runtime_error("no more descriptors than " + std::to_string(i));
  }
}
void raise_a_limit(void* const* buffers, const tunewright_runtime* runtime) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) std::abort();
  limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
  static_cast<void>(::setrlimit(RLIMIT_DATA, &limit));
  add(buffers, runtime);
}
/// What the system does against speculation in this process.
std::string mitigations() {
  std::ifstream file("/proc/self/status");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Speculation")) text += line + "\n";
  }
  return text;
}
std::string& mitigations_outside() {
  static std::string text;
  return text;
}
void compare_mitigations(void* const* buffers, const tunewright_runtime* runtime) {
  if (mitigations() != mitigations_outside()) throw std::runtime_error("the system slows this process down");
  add(buffers, runtime);
}
/// What libraries do.
void behave(void* const* buffers, const tunewright_runtime* runtime) {
  std::thread([] {}).join();
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  if (!std::getline(file, line)) std::abort();
  std::free(std::malloc(std::size_t{64} << 20));
  add(buffers, runtime);
}

std::string detail_of(const Outcome& outcome) { return outcome.failure() == nullptr ? "" : outcome.failure()->detail; }

}  // namespace

TEST_CASE("a kernel that reaches for other processes, the network or files ends, and the next one is measured") {
  if (!measurers::sandbox::can_filter_system_calls()) {
    MESSAGE("skipped: this system does not filter system calls");
    return;
  }
  const support::TemporaryFolder folder;
  path() = folder.file("written");
  Sandbox sandbox;
  sandbox.set_task(addition());
  for (const auto function : {open_a_socket, start_a_process, run_a_program, kill_the_tuner, leave_the_group,
                              write_a_file, remove_a_file, take_shared_memory, raise_a_limit}) {
    const Outcome outcome = sandbox.measure(kernel(function), quick());
    INFO(detail_of(outcome));
    REQUIRE(outcome.failure() != nullptr);
    CHECK(name(outcome.failure()->fault) == "run_error");
    CHECK(detail_of(outcome).find("SIGSYS: made system call") != std::string::npos);
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  }
  CHECK_FALSE(std::ifstream(path()).good());
}

TEST_CASE("memory, descriptors and the growth of files are limited") {
  const support::TemporaryFolder folder;
  const std::string log = folder.file("log");
  const int standard_error = ::dup(STDERR_FILENO);
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  REQUIRE(::dup2(file, STDERR_FILENO) == STDERR_FILENO);
  measurers::WorkerParts parts;
  parts.confinement = {.memory_bytes = std::size_t{256} << 20, .open_files = 64, .file_bytes = std::size_t{1} << 20};
  Sandbox sandbox(parts);
  ::dup2(standard_error, STDERR_FILENO);
  ::close(standard_error);
  ::close(file);
  sandbox.set_task(addition());
  const auto expect = [&](codegen::tunewright_kernel function, const char* detail) {
    const Outcome outcome = sandbox.measure(kernel(function), quick());
    INFO(detail_of(outcome));
    REQUIRE(outcome.failure() != nullptr);
    CHECK(name(outcome.failure()->fault) == "run_error");
    CHECK(detail_of(outcome).find(detail) != std::string::npos);
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  };
  expect(take_memory, "bad_alloc");
  expect(take_descriptors, "no more descriptors than");
  expect(fill_what_is_open, "SIGXFSZ: wrote more to a file");
  CHECK(std::ifstream(log, std::ios::ate).tellg() <= (std::int64_t{1} << 20));
}

TEST_CASE("what libraries do is allowed, and what is asked for is limited by default") {
  Sandbox sandbox;
  sandbox.set_task(addition());
  const Outcome outcome = sandbox.measure(kernel(behave), quick());
  INFO(detail_of(outcome));
  CHECK(outcome.valid());
  const Outcome greedy = sandbox.measure(kernel(take_descriptors), quick());
  REQUIRE(greedy.failure() != nullptr);
  CHECK(detail_of(greedy).find("no more descriptors than") != std::string::npos);
}

TEST_CASE("the system turns on nothing for the filter that slows code down") {
  mitigations_outside() = mitigations();
  Sandbox sandbox;
  sandbox.set_task(addition());
  const Outcome outcome = sandbox.measure(kernel(compare_mitigations), quick());
  INFO(detail_of(outcome));
  CHECK(outcome.valid());
}
