// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/confinement.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
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

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("not so: ") + what);
}

/// What is asked for at the start of libraries, which do without.
void ask_for_what_is_denied(void* const* buffers, const tunewright_runtime* runtime) {
  const auto denied = [](long result) { return result == -1 && errno == EACCES; };
  expect(denied(::socket(AF_INET, SOCK_STREAM, 0)), "no connection");
  expect(denied(::socket(AF_UNIX, SOCK_STREAM, 0)), "no connection to another process");
  expect(denied(::open(path().c_str(), O_WRONLY | O_CREAT, 0600)), "no file to write");
  expect(denied(::open("/dev/null", O_RDWR)), "no file to read and write");
  expect(denied(::creat(path().c_str(), 0600)), "no file to create");
  expect(denied(::shm_open("/tunewright", O_CREAT | O_RDWR, 0600)), "no shared memory");
  expect(::syscall(SYS_tkill, ::getpid(), 0) == -1 && errno == ENOSYS, "tkill seems not to be there");
  add(buffers, runtime);
}
// ThreadSanitizer's fork() holds locks of its runtime while the system refuses the call. That runtime also runs handlers of
// signals, and the one of SIGSYS would wait for these locks for ever. _Fork() makes the same call without them.
#if defined(__SANITIZE_THREAD__)
constexpr bool fork_holds_locks = true;
#elif defined(__has_feature)
constexpr bool fork_holds_locks = __has_feature(thread_sanitizer);
#else
constexpr bool fork_holds_locks = false;
#endif
void start_a_process(void* const* buffers, const tunewright_runtime* runtime) {
  if ((fork_holds_locks ? ::_Fork() : ::fork()) == 0) ::pause();
  add(buffers, runtime);
}
void make_a_folder_with_signals_blocked(void* const*, const tunewright_runtime*) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::mkdir(path().c_str(), 0700);
}
void run_a_program(void* const*, const tunewright_runtime*) { ::execl("/bin/true", "true", nullptr); }
void kill_the_tuner(void* const*, const tunewright_runtime*) { ::kill(::getppid(), 0); }
void leave_the_group(void* const* buffers, const tunewright_runtime* runtime) {
  static_cast<void>(::setsid());
  add(buffers, runtime);
}
void remove_a_file(void* const*, const tunewright_runtime*) { ::unlink(path().c_str()); }
void rename_a_file(void* const*, const tunewright_runtime*) {
  static_cast<void>(::rename(path().c_str(), (path() + "2").c_str()));
}
void rename_a_file_in_a_folder(void* const*, const tunewright_runtime*) {
  static_cast<void>(::syscall(SYS_renameat, AT_FDCWD, path().c_str(), AT_FDCWD, (path() + "2").c_str()));
}
void make_a_folder(void* const*, const tunewright_runtime*) { ::mkdir(path().c_str(), 0700); }
void change_a_mode(void* const*, const tunewright_runtime*) { ::chmod(path().c_str(), 0777); }
void cut_a_file(void* const*, const tunewright_runtime*) { static_cast<void>(::truncate(path().c_str(), 0)); }
void strip_a_file(void* const*, const tunewright_runtime*) {
  static_cast<void>(::syscall(SYS_removexattr, path().c_str(), "user.mark"));
}
void name_the_tuner_owner(void* const*, const tunewright_runtime*) { ::fcntl(STDIN_FILENO, F_SETOWN, ::getppid()); }
void choose_a_signal(void* const*, const tunewright_runtime*) { ::fcntl(STDIN_FILENO, F_SETSIG, SIGTERM); }
void name_the_tuner_owner_otherwise(void* const*, const tunewright_runtime*) {
  int process = ::getppid();
  ::ioctl(STDIN_FILENO, FIOSETOWN, &process);
}
void hide_memory(void* const*, const tunewright_runtime*) { ::syscall(447, 0); }  // memfd_secret
void change_a_mode_by_a_newer_call(void* const*, const tunewright_runtime*) {
  ::syscall(452, AT_FDCWD, path().c_str(), 0777, 0);  // fchmodat2
}
void slow_the_tuner_down(void* const*, const tunewright_runtime*) { ::setpriority(PRIO_PROCESS, 0, 1); }
void slow_the_tuner_down_otherwise(void* const*, const tunewright_runtime*) {
  const sched_param lowest{};
  ::sched_setscheduler(::getppid(), SCHED_IDLE, &lowest);
}
void take_a_growing_stack(void* const*, const tunewright_runtime*) {
  static_cast<void>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0));
}
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
/// Lines of this process's status that begin so.
std::string status(const std::string& beginning) {
  std::ifstream file("/proc/self/status");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(beginning)) text += line + "\n";
  }
  return text;
}
/// What the system does against speculation in the tuner.
std::string& mitigations_outside() {
  static std::string text;
  return text;
}
void compare_mitigations(void* const* buffers, const tunewright_runtime* runtime) {
  expect(status("Seccomp:") == "Seccomp:\t2\n", "calls are filtered");
  expect(status("Speculation") == mitigations_outside(), "the system slows nothing down");
  add(buffers, runtime);
}
/// The tuner's limit of memory.
rlim_t& limit_outside() {
  static rlim_t bytes = 0;
  return bytes;
}
void compare_limits(void* const* buffers, const tunewright_runtime* runtime) {
  rlimit limit{};
  expect(::getrlimit(RLIMIT_DATA, &limit) == 0, "limits may be read");
  expect(limit.rlim_cur == limit_outside(), "memory is as limited as outside");
  add(buffers, runtime);
}
/// Two threads that wait for one another, again and again.
void take_turns() {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  const auto play = [&](int parity) {
    for (int round = 0; round < 100; ++round) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn % 2 == parity; });
      ++turn;
      changed.notify_all();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}
/// What libraries do.
void behave(void* const* buffers, const tunewright_runtime* runtime) {
  take_turns();
  ::sched_yield();
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  expect(static_cast<bool>(std::getline(file, line)), "files may be read");
  DIR* const folder = ::opendir("/sys/devices/system/cpu");
  expect(folder != nullptr && ::readdir(folder) != nullptr, "folders may be read");
  ::closedir(folder);
  std::free(std::malloc(std::size_t{64} << 20));
  const std::size_t bytes = std::size_t{4} << 20;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(memory != MAP_FAILED, "memory may be taken");
  // A system without huge pages calls it invalid.
  expect(::madvise(memory, bytes, MADV_HUGEPAGE) == 0 || errno == EINVAL, "huge pages may be asked for");
  ::munmap(memory, bytes);
  std::array<char, 16> random{};
  expect(::getrandom(random.data(), random.size(), 0) == 16, "randomness may be asked for");
  rlimit limit{};
  expect(::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 256, "limits may be read");
  std::thread([] {
    cpu_set_t own;
    expect(::sched_getaffinity(0, sizeof own, &own) == 0 && ::sched_setaffinity(0, sizeof own, &own) == 0,
           "threads may choose processors");
  }).join();
  add(buffers, runtime);
}
void give_up(void* const*, const tunewright_runtime*) { std::abort(); }

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
  const auto check_that_it_ends = [&](codegen::tunewright_kernel function, const char* how) {
    const Outcome outcome = sandbox.measure(kernel(function), quick());
    INFO(detail_of(outcome));
    REQUIRE(outcome.failure() != nullptr);
    CHECK(name(outcome.failure()->fault) == "run_error");
    CHECK(detail_of(outcome).find(how) != std::string::npos);
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  };
  for (const auto function : {run_a_program,
                              kill_the_tuner,
                              leave_the_group,
                              remove_a_file,
                              rename_a_file,
                              rename_a_file_in_a_folder,
                              make_a_folder,
                              change_a_mode,
                              cut_a_file,
                              strip_a_file,
                              name_the_tuner_owner,
                              choose_a_signal,
                              name_the_tuner_owner_otherwise,
                              slow_the_tuner_down,
                              slow_the_tuner_down_otherwise,
                              hide_memory,
                              change_a_mode_by_a_newer_call,
                              take_shared_memory,
                              take_a_growing_stack,
                              raise_a_limit}) {
    check_that_it_ends(function, "SIGSYS: made system call");
  }
  // The system then ends the process itself, and no handler learns the number of the call.
  check_that_it_ends(make_a_folder_with_signals_blocked, "SIGSYS: made a system call, with signals blocked");
  check_that_it_ends(start_a_process, "SIGSYS: made ");  // fork() blocks signals in glibc from 2.41 on
  const Outcome denied = sandbox.measure(kernel(ask_for_what_is_denied), quick());
  INFO(detail_of(denied));
  CHECK(denied.valid());
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
  const auto refuse = [&](codegen::tunewright_kernel function, const char* detail) {
    const Outcome outcome = sandbox.measure(kernel(function), quick());
    INFO(detail_of(outcome));
    REQUIRE(outcome.failure() != nullptr);
    CHECK(name(outcome.failure()->fault) == "run_error");
    CHECK(detail_of(outcome).find(detail) != std::string::npos);
    CHECK(sandbox.measure(kernel(add), quick()).valid());
  };
  refuse(take_memory, "bad_alloc");
  refuse(take_descriptors, "no more descriptors than");
  refuse(fill_what_is_open, "SIGXFSZ: wrote more to a file");
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
  const Outcome given_up = sandbox.measure(kernel(give_up), quick());
  REQUIRE(given_up.failure() != nullptr);
  CHECK(detail_of(given_up) == "ended by SIGABRT");
}

TEST_CASE("no limit of memory can be asked for") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_DATA, &limit) == 0);
  limit_outside() = limit.rlim_cur;
  measurers::WorkerParts parts;
  parts.confinement.memory_bytes = std::numeric_limits<std::uint64_t>::max();
  Sandbox sandbox(parts);
  sandbox.set_task(addition());
  const Outcome outcome = sandbox.measure(kernel(compare_limits), quick());
  INFO(detail_of(outcome));
  CHECK(outcome.valid());
}

TEST_CASE("the system turns on nothing for the filter that slows code down") {
  if (!measurers::sandbox::can_filter_system_calls()) {
    MESSAGE("skipped: this system does not filter system calls");
    return;
  }
  mitigations_outside() = status("Speculation");
  Sandbox sandbox;
  sandbox.set_task(addition());
  const Outcome outcome = sandbox.measure(kernel(compare_mitigations), quick());
  INFO(detail_of(outcome));
  CHECK(outcome.valid());
}
