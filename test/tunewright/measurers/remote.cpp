// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/remote.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "support/fault_of.hpp"
#include "support/faulty_nests.hpp"
#include "support/measurer_laws.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/measurers/sandbox/confinement.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;
using loops::LoopKind;
using loops::LoopNest;
using measurers::Remote;
using test::fault_of;
using test::nest_of;
using test::with_too_many_rows;
using test::without_initialisation;

static_assert(std::is_aggregate_v<Remote>);
static_assert(StreamingMeasurerFor<Remote, LoopNest>);
static_assert(IdentifiedMeasurer<Remote>);
static_assert(BestAwareMeasurer<Remote>);

namespace {

Task matmul_task(std::int64_t m, std::int64_t n, std::int64_t k, const Target& target) {
  return test::matmul_task(m, n, k, target.with_threads(1));
}
Remote quick(std::vector<std::string> command = {TUNEWRIGHT_WORKER}) {
  return test::with_short_repeats(
      Remote{.command = std::move(command), .compile_threads = 1, .connect_timeout_seconds = 20});
}
bool says(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}
void kill_worker(const Remote& measurer) { ::kill(-measurer.state->connection->process(), SIGKILL); }

/// A worker on this device that takes a task; where its first result would begin, the shell runs `instead`.
std::vector<std::string> without_results(const measurers::remote::Device& device, const std::string& instead) {
  using namespace measurers::remote;
  constexpr std::size_t frame_header_bytes = 12;
  const std::size_t bytes = to_bytes(Hello{.device = device}).size() + 2 * to_bytes(TaskAnswer{}).size();
  return {"sh", "-c",
          std::string(TUNEWRIGHT_WORKER) + " | { dd bs=1 count=" + std::to_string(bytes + 3 * frame_header_bytes) +
              " 2> /dev/null; " + instead + "; }"};
}

}  // namespace

TEST_CASE("laws of measurers: Remote") {
  Remote measurer = quick();
  const Task task = matmul_task(12, 20, 8, measurer.target());
  test::check_measurer(
      measurer,
      test::KnownPrograms<LoopNest>{
          .task = task,
          .programs = {nest_of(task), without_initialisation(task), with_too_many_rows(task),
                       nest_of(matmul_task(8, 8, 8, task.target)), nest_of(task, LoopKind::Vectorized)},
          .works = {true, false, false, false, true}},
      false);
}

TEST_CASE("each fault is told as on this machine, and one worker measures two tasks") {
  Remote measurer = quick();
  for (const std::int64_t rows : {24, 16}) {
    const Task task = matmul_task(rows, 20, 28, measurer.target());
    const std::vector<LoopNest> programs = {nest_of(task), without_initialisation(task), with_too_many_rows(task),
                                            nest_of(task, LoopKind::Vectorized)};
    std::vector<std::size_t> seen;
    const auto outcomes = measurer.measure(task, programs, [&](std::size_t i, const Outcome&) { seen.push_back(i); });
    REQUIRE(outcomes.size() == 4);
    CHECK(fault_of(outcomes[0]) == "none");
    CHECK(fault_of(outcomes[1]) == "wrong_result");
    CHECK(fault_of(outcomes[2]) == "out_of_bounds");
    CHECK(fault_of(outcomes[3]) == "none");
    CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(outcomes[0].compile_time.count() > 0);
    CHECK(outcomes[0].run_time.count() > 0);
  }
  CHECK(measurer.state->workers_started == 1);
  CHECK(says(measurer.identity(), measurer.device().identity()));
}

TEST_CASE("a worker has given up connections and processes of its own") {
  if (!measurers::sandbox::can_filter_system_calls()) {
    MESSAGE("skipped: this system does not filter system calls");
    return;
  }
  if (measurers::sandbox::has_sanitizer) {
    MESSAGE("skipped: workers with a sanitizer are not confined, so that leaks are reported");
    return;
  }
  Remote measurer = quick();
  static_cast<void>(measurer.device());
  std::ifstream status("/proc/" + std::to_string(measurer.state->connection->process()) + "/status");
  std::string filtered;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Seccomp:")) filtered = line;
  }
  CHECK(filtered == "Seccomp:\t2");
}

TEST_CASE("kernels whose results a killed worker owes are measured by the next") {
  for (const unsigned ahead : {1U, 4U}) {
    Remote measurer = quick();
    measurer.ahead = ahead;
    const Task task = matmul_task(24, 20, 28, measurer.target());
    std::vector<LoopNest> programs(12, nest_of(task));
    programs[3] = with_too_many_rows(task);  // its crash is a result, which is not asked for again
    std::vector<std::size_t> seen;
    const auto outcomes = measurer.measure(task, programs, [&](std::size_t i, const Outcome&) {
      seen.push_back(i);
      if (i == 1 || i == 6) kill_worker(measurer);
    });
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      CHECK(fault_of(outcomes[i]) == (i == 3 ? "out_of_bounds" : "none"));
    CHECK(seen == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    CHECK(measurer.state->workers_started == 3);
  }
}

TEST_CASE("a kernel at which two workers were lost is the failure, those that were sent after it are not") {
  for (const unsigned ahead : {1U, 3U}) {
    Remote measurer = quick();
    measurer.ahead = ahead;
    const std::vector<std::string> works = measurer.command, fails = without_results(measurer.device(), "kill -9 0");
    const Task task = matmul_task(24, 20, 28, measurer.target());
    std::vector<std::size_t> failed;
    const auto outcomes =
        measurer.measure(task, std::vector<LoopNest>(8, nest_of(task)), [&](std::size_t i, const Outcome& outcome) {
          if (i == 1) {
            measurer.command = fails;
            kill_worker(measurer);
          }
          if (outcome.valid()) return;
          failed.push_back(i);
          measurer.command = works;
        });
    REQUIRE(failed.size() == 1);
    CHECK(failed[0] >= 2);
    if (ahead == 1) CHECK(failed[0] == 2);  // else others were answered before the worker died
    const Outcome& outcome = outcomes[failed[0]];
    CHECK(fault_of(outcome) == "unknown");
    CHECK(says(outcome.failure()->detail, "was lost: it has closed the connection; so was the one before it"));
    CHECK(measurer.state->workers_started == 3);
  }
}

TEST_CASE("a worker that was lost between two batches counts against no kernel") {
  Remote measurer = quick();
  const Task task = matmul_task(24, 20, 28, measurer.target());
  const std::vector<LoopNest> programs(1, nest_of(task));
  CHECK(fault_of(measurer.measure(task, programs)[0]) == "none");
  kill_worker(measurer);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(measurer.state->connection->process()), &ended, WEXITED | WNOWAIT) == 0);
  // The next one is lost at the kernel, which is its first loss; the one after that measures it.
  const support::TemporaryFolder folder;
  const std::string up = folder.file("up");
  measurer.command = {"sh", "-c",
                      "test -e " + up + " && exec " + TUNEWRIGHT_WORKER + "; touch " + up + "; " +
                          without_results(measurer.device(), "kill -9 0").back()};
  CHECK(fault_of(measurer.measure(task, programs)[0]) == "none");
  CHECK(measurer.state->workers_started == 3);
}

TEST_CASE("workers that are lost too often without a result end the measuring, with what is known") {
  Remote measurer = quick();
  measurer.max_restarts = 1;
  measurer.ahead = 1;
  const std::vector<std::string> fails = without_results(measurer.device(), "kill -9 0");
  const Task task = matmul_task(24, 20, 28, measurer.target());
  const std::vector<LoopNest> programs(6, nest_of(task));
  std::vector<std::string> known;
  const auto note = [&](std::size_t i, const Outcome& outcome) {
    CHECK(i == known.size());
    known.push_back(fault_of(outcome));
    if (i == 2) measurer.command = fails;
    if (i <= 2) kill_worker(measurer);
  };
  CHECK(says(test::refusal<std::runtime_error>([&] { measurer.measure(task, programs, note); }),
             "was lost 2 times without a result in between"));
  CHECK(known == std::vector<std::string>{"none", "none", "none", "unknown"});
  CHECK(says(test::refusal<std::runtime_error>([&] { measurer.measure(task, programs); }), "was lost 2 times"));
}

TEST_CASE("a worker that does not start again at once is tried until restarts are used up, and nothing has failed") {
  for (const unsigned ahead : {1U, 3U}) {
    Remote measurer = quick();
    measurer.max_restarts = 3;
    measurer.ahead = ahead;
    const Task task = matmul_task(24, 20, 28, measurer.target());
    const std::vector<LoopNest> programs(6, nest_of(task));
    const support::TemporaryFolder folder;
    const std::string up = folder.file("up");
    const std::vector<std::string> works = measurer.command, fails = {"sh", "-c", "exit 3"};
    // It fails once and leaves a file; the next one finds the file and works.
    const std::vector<std::string> works_later = {
        "sh", "-c", "test -e " + up + " && exec " + TUNEWRIGHT_WORKER + "; touch " + up + "; exit 3"};
    const auto outcomes = measurer.measure(task, programs, [&](std::size_t i, const Outcome&) {
      if (i != 1) return;
      measurer.command = works_later;
      measurer.connect_timeout_seconds = 5;
      kill_worker(measurer);
    });
    for (const Outcome& outcome : outcomes) CHECK(fault_of(outcome) == "none");
    CHECK(measurer.state->workers_started == 3);

    std::size_t known = 0;
    CHECK(says(test::refusal<std::runtime_error>([&] {
                 measurer.measure(task, programs, [&](std::size_t, const Outcome& outcome) {
                   CHECK(fault_of(outcome) == "none");
                   if (++known != 2) return;
                   measurer.command = fails;
                   measurer.connect_timeout_seconds = 0.3;
                   kill_worker(measurer);
                 });
               }),
               "there is no worker at the end of 'sh -c exit 3': "));
    CHECK(known >= 2);
    CHECK(measurer.state->workers_started == 6);
  }
}

TEST_CASE("a task that the worker refuses costs no worker, and the one before it is measured again") {
  Remote measurer = quick({TUNEWRIGHT_WORKER, "--max-task-mib", "1"});
  const Task task = matmul_task(24, 20, 28, measurer.target()), large = matmul_task(20000, 20, 28, measurer.target());
  const auto measured = [&] { return measurer.measure(task, std::vector<LoopNest>(2, nest_of(task))); };
  for (const Outcome& outcome : measured()) CHECK(fault_of(outcome) == "none");
  CHECK(says(test::refusal([&] { measurer.measure(large, std::vector<LoopNest>{nest_of(large)}); }),
             "the worker refuses the task"));
  for (const Outcome& outcome : measured()) CHECK(fault_of(outcome) == "none");
  CHECK(measurer.state->workers_started == 1);
}

TEST_CASE("a worker whose process cannot be made ready for a task refuses it with the reason") {
  Remote measurer = quick({TUNEWRIGHT_WORKER, "--processors", "1023"});
  const Task task = matmul_task(24, 20, 28, measurer.target());
  CHECK(says(test::refusal([&] { measurer.measure(task, std::vector<LoopNest>{nest_of(task)}); }),
             "processor 1023 is none that this process may use"));
  CHECK(measurer.state->workers_started == 1);
}

TEST_CASE("a batch that its listener breaks off leaves nothing for the next one") {
  Remote measurer = quick();
  const Task task = matmul_task(24, 20, 28, measurer.target());
  const std::vector<LoopNest> programs(4, nest_of(task));
  const auto full = [](std::size_t, const Outcome&) { throw std::runtime_error("the disk is full"); };
  CHECK(says(test::refusal<std::runtime_error>([&] { measurer.measure(task, programs, full); }), "the disk is full"));
  for (const Outcome& outcome : measurer.measure(task, programs)) CHECK(fault_of(outcome) == "none");
}

TEST_CASE("what is no worker is told by what it said") {
  const auto refused = [](const std::string& script) {
    Remote measurer = quick({"sh", "-c", script});
    measurer.connect_timeout_seconds = 2;
    return test::refusal<std::runtime_error>([&] { static_cast<void>(measurer.target()); });
  };
  CHECK(says(refused("echo 'Welcome to board, have fun'; cat > /dev/null"), "'Welcome to board, have fun?'"));
  CHECK(says(refused("printf hm"), "it said 'hm' and closed"));
  CHECK(says(refused("exit 0"), "closed"));
  CHECK(says(refused("cat > /dev/null"), "not heard of for 2 s"));
  CHECK(says(refused("printf 'TWRK\\001\\000\\000\\000\\004\\000\\000\\000\\001\\000\\000\\000'; cat > /dev/null"),
             "speaks version 1 of the protocol, and this program 4"));
  CHECK(says(refused("printf 'TWRK\\001\\000\\000\\000\\377\\377\\377\\177'; cat > /dev/null"),
             "a frame of 2147483647 bytes"));
  CHECK(says(refused("printf 'TWRK\\006\\000\\000\\000\\000\\000\\000\\000'; cat > /dev/null"),
             "kind 6 where 1 was expected"));
  CHECK(says(refused("printf 'TWRK\\001\\000\\000\\000\\004\\000\\000\\000\\004\\000\\000\\000'; cat > /dev/null"),
             "ends too early"));
  for (const char* options : {" --processors 0,x", " --max-task-mib 12x"}) {
    const std::string command = TUNEWRIGHT_WORKER + std::string(options);
    CHECK(says(refused(command + " 2>&1 | tail -c 20"), "it said"));
  }
  Remote nowhere = quick({"/there/is/no/such/program"});
  CHECK(says(test::refusal<std::runtime_error>([&] { static_cast<void>(nowhere.target()); }), "/there/is/no/such"));
  Remote none = quick({});
  CHECK(says(test::refusal([&] { static_cast<void>(none.target()); }), "command is empty"));
}

TEST_CASE("a worker that falls silent is lost after the time that it is given") {
  // It introduces itself; what remains of it takes no task.
  Remote asleep = quick({"sh", "-c", std::string(TUNEWRIGHT_WORKER) + " < /dev/null; exec cat > /dev/null"});
  const Task task = matmul_task(24, 20, 28, asleep.target());
  const std::vector<LoopNest> programs(3, nest_of(task));
  asleep.connect_timeout_seconds = 1.5;
  asleep.state->connection.reset();
  const std::string refused = test::refusal<std::runtime_error>([&] { asleep.measure(task, programs); });
  CHECK(says(refused, "was lost: it was not heard of for 1.5 s; so was the one before it"));
  CHECK(says(refused, "task 'matmul'"));
  CHECK(asleep.state->workers_started == 3);
  // It takes a task, and answers no kernel.
  Remote silent = quick(without_results(asleep.device(), "cat > /dev/null"));
  silent.protocol.run_timeout_seconds = 0.5;
  silent.reply_grace_seconds = 0.25;
  const auto outcomes = silent.measure(task, std::span(programs).first(1));
  REQUIRE(fault_of(outcomes[0]) == "unknown");
  CHECK(says(outcomes[0].failure()->detail, "was lost: it was not heard of for 0.75 s; so was the one before it"));
  // It measures, and then stops; the next one does not.
  Remote stopped = quick();
  CHECK(fault_of(stopped.measure(task, programs)[2]) == "none");
  ::kill(-stopped.state->connection->process(), SIGSTOP);
  stopped.protocol.run_timeout_seconds = 1;
  stopped.reply_grace_seconds = 0.5;
  for (const Outcome& outcome : stopped.measure(task, programs)) CHECK(fault_of(outcome) == "none");
  CHECK(stopped.state->workers_started == 2);
}

TEST_CASE("garbage in place of results loses the worker, and a task for another device is refused with both named") {
  Remote measurer = quick();
  const Task task = matmul_task(12, 20, 8, measurer.target());
  // What a kernel cannot say, but a shell script around a worker can.
  Remote noisy = quick(without_results(measurer.device(), "echo something else entirely; cat"));
  for (const Outcome& outcome : noisy.measure(task, std::vector<LoopNest>(3, nest_of(task)))) {
    REQUIRE(fault_of(outcome) == "unknown");
    CHECK(says(outcome.failure()->detail, "was lost: it said 'something else"));
  }
  CHECK(noisy.state->workers_started == 6);
  const Task other = matmul_task(
      12, 20, 8,
      family_of(measurer.target().isa) == CpuFamily::X86_64 ? arm_target("Raspberry Pi 4") : Target{.isa = Isa::Avx2});
  const std::string refused = test::refusal([&] { measurer.measure(other, std::vector<LoopNest>{nest_of(other)}); });
  CHECK(says(refused, other.target.name));
  CHECK(says(refused, measurer.target().name));
  Task wide = task;
  wide.target = wide.target.with_threads(1000);
  CHECK(says(test::refusal([&] { measurer.measure(wide, std::vector<LoopNest>{nest_of(wide)}); }), "fewer processors"));
  measurer.ahead = 0;
  CHECK(says(test::refusal([&] { measurer.measure(task, std::vector<LoopNest>{}); }), "ahead"));
}

TEST_CASE("what is known of the device outlives the worker") {
  Remote measurer = quick();
  const measurers::remote::Device& device = measurer.device();
  CHECK(&device == &*measurer.state->device);
  const std::string identity = device.identity();
  measurer.state->connection.reset();
  CHECK(device.identity() == identity);
  CHECK(&measurer.target() == &device.target);  // of the next worker
}

TEST_CASE("a worker that comes back as another device is refused, one whose system keeps some more pages is not") {
  Remote measurer = quick();
  const Task task = matmul_task(12, 20, 8, measurer.target());
  std::uint64_t& memory_bytes = measurer.state->device->memory_bytes;
  memory_bytes = (memory_bytes + (std::uint64_t{1} << 29)) >> 30 << 30;
  measurer.state->connection.reset();
  for (const Outcome& outcome : measurer.measure(task, std::vector<LoopNest>{nest_of(task)}))
    CHECK(fault_of(outcome) == "none");
  memory_bytes += std::uint64_t{64} << 30;
  measurer.state->connection.reset();
  CHECK(says(test::refusal<std::runtime_error>([&] { measurer.measure(task, std::vector<LoopNest>{nest_of(task)}); }),
             "is another device"));
}

TEST_CASE("a worker that comes back as another device within a batch is refused, and measures nothing") {
  Remote measurer = quick();
  measurer.ahead = 1;
  const Task task = matmul_task(12, 20, 8, measurer.target());
  std::vector<std::size_t> seen;
  const auto exchange_device = [&](std::size_t i, const Outcome&) {
    seen.push_back(i);
    measurer.state->device->memory_bytes += std::uint64_t{64} << 30;
    kill_worker(measurer);
  };
  const std::string refused = test::refusal<std::runtime_error>(
      [&] { measurer.measure(task, std::vector<LoopNest>(4, nest_of(task)), exchange_device); });
  CHECK(says(refused, "was started again and is another device"));
  CHECK(seen == std::vector<std::size_t>{0});
}

#if defined(TUNEWRIGHT_AARCH64_WORKER)
TEST_CASE("a worker for 64-bit ARM, in an emulator, tells right kernels from wrong ones") {
  if (std::system("qemu-aarch64 --version > /dev/null 2>&1") != 0 ||
      !std::filesystem::exists(TUNEWRIGHT_AARCH64_WORKER)) {
    MESSAGE("skipped: no emulator for 64-bit ARM; on Debian and Ubuntu install qemu-user");
    return;
  }
  Remote board = quick({"qemu-aarch64", TUNEWRIGHT_AARCH64_WORKER});
  CHECK(board.device().emulated);
  CHECK(board.target().isa == Isa::Neon);
  const Task task = matmul_task(24, 20, 28, board.target());
  const auto outcomes =
      board.measure(task, std::vector<LoopNest>{nest_of(task, LoopKind::Vectorized), without_initialisation(task),
                                                with_too_many_rows(task), nest_of(task)});
  CHECK(fault_of(outcomes[0]) == "none");
  CHECK(fault_of(outcomes[1]) == "wrong_result");
  CHECK(fault_of(outcomes[2]) != "none");
  CHECK(fault_of(outcomes[3]) == "none");
}
#endif
