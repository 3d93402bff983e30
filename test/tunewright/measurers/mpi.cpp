// SPDX-License-Identifier: Apache-2.0
// Cases of the suite "ranks" run in all ranks of an MPI program, which the first case starts from this one.
#include "tunewright/measurers/mpi.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/measurer_laws.hpp"
#include "support/nest_builder.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

using namespace tunewright;
using loops::LoopNest;
using measurers::Mpi;
using measurers::mpi::World;

static_assert(std::is_aggregate_v<Mpi>);
static_assert(StreamingMeasurerFor<Mpi, LoopNest>);
static_assert(IdentifiedMeasurer<Mpi>);
static_assert(BestAwareMeasurer<Mpi>);
static_assert(!ConfirmingMeasurerFor<Mpi, LoopNest>);

namespace {

/// What the libraries' launchers tell the programs that they start.
bool is_rank() { return ::getenv("OMPI_COMM_WORLD_RANK") != nullptr || ::getenv("PMI_RANK") != nullptr; }

/// Whether the last rank is to be another device than the others.
bool is_mixed() { return ::getenv("TUNEWRIGHT_MIXED_RANKS") != nullptr; }

/// The file that the last rank, which says what no worker says, makes once it is told to end; nothing where all are
/// workers.
const char* told_to_end() { return ::getenv("TUNEWRIGHT_BABBLING_RANK"); }

/// Says too much at once, again and again, until it is told to end or a minute is over.
[[noreturn]] void babble(const World& one) {
  measurers::mpi::RankLink manager(one.communicator(), 0, 0, measurers::remote::request_limit_bytes);
  const std::vector<char> large(2 * measurers::remote::reply_limit_bytes);
  try {
    for (int turn = 0; turn < 6000; ++turn) {
      for (const std::size_t bytes : {large.size(), std::size_t{100}, std::size_t{1}}) {
        manager.send(measurers::remote::FrameKind::Hello, std::span(large).first(bytes), Seconds(60));
      }
      try {
        static_cast<void>(manager.receive(Seconds(0.01)));
      } catch (const measurers::remote::Disconnected& error) {
        if (!std::string(error.what()).starts_with("it has ended")) continue;
        std::ofstream(told_to_end()) << error.what();
        break;
      }
    }
  } catch (const std::exception&) {  // nobody takes it
  }
  ::_exit(0);
}

/// In ranks other than 0 it measures until rank 0 is through with all cases, and does not return.
World& world() {
  static World one;
  if (!one.is_manager()) {
    const bool last = one.rank() + 1 == one.size();
    if (last && told_to_end() != nullptr) babble(one);
    measurers::remote::ServeOptions options;
    options.task_limit_bytes = std::size_t{1} << 20;
    if (is_mixed() && last) {  // more processors than any has of its own
      options.processors = host_processors();
      options.processors.insert(options.processors.end(), options.processors.begin(), options.processors.end());
    }
    std::exit(one.serve(options));
  }
  return one;
}

Task matmul_task(std::int64_t m, const Target& target) {
  return program::make_task("matmul", program::operators::matmul_graph({.m = m, .n = 20, .k = 28, .constant_b = true}),
                            target.with_threads(1));
}
LoopNest nest_of(const Task& task, loops::LoopKind innermost = loops::LoopKind::Serial) {
  return test::plain_nest(*task.graph, innermost, loops::LoopKind::Serial);
}
LoopNest without_initialisation(const Task& task) {
  LoopNest nest = nest_of(task);
  nest.body.erase(nest.body.begin());
  return nest;
}
LoopNest with_too_many_rows(const Task& task) {
  LoopNest nest = nest_of(task);
  for (loops::LoopVariable& variable : nest.variables) {
    if (variable.name == "matmul.i") variable.extent += 1000;
  }
  return nest;
}
Mpi quick() {
  Mpi measurer{.world = &world(), .compile_threads = 1};
  measurer.protocol.min_repeat_seconds = 1e-4;
  measurer.protocol.repeats_min = 3;
  measurer.protocol.repeats_max = 5;
  measurer.protocol.run_timeout_seconds = 10;
  measurer.connect_timeout_seconds = 20;
  return measurer;
}
std::string fault_of(const Outcome& outcome) {
  return outcome.failure() == nullptr ? "none" : std::string(name(outcome.failure()->fault));
}
std::string detail_of(const Outcome& outcome) { return outcome.failure() == nullptr ? "" : outcome.failure()->detail; }
bool says(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}
std::vector<pid_t> children_of(const std::vector<pid_t>& parents) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    children.emplace(std::stoi(line.substr(line.rfind(')') + 4)), std::stoi(name));
  }
  std::vector<pid_t> found;
  for (const pid_t parent : parents) {
    const auto [begin, end] = children.equal_range(parent);
    for (auto at = begin; at != end; ++at) found.push_back(at->second);
  }
  return found;
}

}  // namespace

TEST_CASE("ranks of an MPI program measure" * doctest::skip(is_rank())) {
  if (std::system("mpirun --version 2>&1 | grep -q 'Open MPI'") != 0) {
    MESSAGE("skipped: no mpirun of Open MPI; on Debian and Ubuntu install openmpi-bin");
    return;
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  // Open MPI ends all ranks with one that is killed, unless it is told not to; it keeps some memory to its end.
  const support::TemporaryFolder folder;
  const std::string mpirun =
      "env ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 mpirun --oversubscribe --allow-run-as-root --bind-to none "
      "--enable-recovery -n 3 " +
      self + " --test-suite=";
  // With recovery its status tells nothing of ranks that failed, but rank 0 prints how its cases went.
  const auto passes = [&](const std::string& suite) {
    const std::string log = folder.file(suite);
    CHECK(std::system(("timeout 180 " + mpirun + suite + " 2>&1 | tee " + log).c_str()) == 0);
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    return text.str().find("SUCCESS!") != std::string::npos;
  };
  CHECK(passes("ranks"));
  REQUIRE(::setenv("TUNEWRIGHT_MIXED_RANKS", "1", 1) == 0);
  CHECK(passes("mixed"));
  ::unsetenv("TUNEWRIGHT_MIXED_RANKS");
  const std::string told = folder.file("told");
  REQUIRE(::setenv("TUNEWRIGHT_BABBLING_RANK", told.c_str(), 1) == 0);
  CHECK(passes("babbling"));
  ::unsetenv("TUNEWRIGHT_BABBLING_RANK");
  CHECK(std::ifstream(told).good());
}

TEST_CASE("what is wrong with the world is told" * doctest::skip(is_rank())) {
  Mpi nowhere;
  CHECK(says(test::refusal([&] { static_cast<void>(nowhere.device()); }), "world is not set"));
  CHECK(says(test::refusal([&] { nowhere.measure(Task{}, std::vector<LoopNest>{}); }), "world is not set"));
}

TEST_SUITE("mixed" * doctest::skip(!is_rank() || !is_mixed())) {
  TEST_CASE("ranks of different devices are refused together, and measure apart") {
    Mpi together = quick();
    const std::string refused = test::refusal<std::runtime_error>([&] { static_cast<void>(together.device()); });
    CHECK(says(refused, "the ranks are different devices"));
    const std::string first = world().worker(1, Seconds(20)).device().identity();
    const std::string second = world().worker(2, Seconds(20)).device().identity();
    REQUIRE(first != second);
    CHECK(says(refused, first));
    CHECK(says(refused, second));
    for (const std::string& identity : {first, second}) {
      Mpi apart = quick();
      apart.device_name = identity;
      const Task task = matmul_task(12, apart.target());
      for (const Outcome& outcome : apart.measure(task, std::vector<LoopNest>(4, nest_of(task)))) {
        INFO(detail_of(outcome));
        CHECK(outcome.valid());
      }
      CHECK(apart.state->ranks.size() == 1);
      CHECK(says(apart.identity(), identity));
    }
  }
}

TEST_SUITE("babbling" * doctest::skip(!is_rank() || told_to_end() == nullptr)) {
  TEST_CASE("a rank that says what no worker says is lost, and hangs nothing however much it says") {
    using Clock = std::chrono::steady_clock;
    Mpi measurer = quick();
    const Task task = matmul_task(12, measurer.target());
    CHECK(measurer.state->ranks == std::vector<int>{1});
    REQUIRE(world().lost(2).has_value());
    CHECK(says(*world().lost(2), "a frame of 131072 bytes, where at most 65536 are taken"));
    for (const double seconds : {0.0, 0.3}) {
      const auto start = Clock::now();
      CHECK_FALSE(world().wait(Seconds(seconds)).has_value());
      CHECK(Seconds(Clock::now() - start).count() < seconds + 5);
    }
    for (const Outcome& outcome : measurer.measure(task, std::vector<LoopNest>(8, nest_of(task)))) {
      INFO(detail_of(outcome));
      CHECK(outcome.valid());
    }
  }
}

TEST_SUITE("ranks" * doctest::skip(!is_rank() || is_mixed() || told_to_end() != nullptr)) {
  TEST_CASE("laws of measurers: Mpi") {
    Mpi measurer = quick();
    const Task task = matmul_task(12, measurer.target());
    test::check_measurer(
        measurer,
        test::KnownPrograms<LoopNest>{
            .task = task,
            .programs = {nest_of(task), without_initialisation(task), with_too_many_rows(task),
                         nest_of(matmul_task(8, task.target)), nest_of(task, loops::LoopKind::Vectorized)},
            .works = {true, false, false, false, true}},
        false);
  }

  TEST_CASE("each fault is told as on this machine, all ranks take part, and two tasks take turns") {
    Mpi measurer = quick();
    for (const std::int64_t rows : {24, 16, 24}) {
      const Task task = matmul_task(rows, measurer.target());
      std::vector<LoopNest> programs;
      for (int i = 0; i < 5; ++i) {
        programs.insert(programs.end(), {nest_of(task), without_initialisation(task), with_too_many_rows(task),
                                         nest_of(task, loops::LoopKind::Vectorized)});
      }
      std::vector<int> seen(programs.size());
      const auto outcomes = measurer.measure(task, programs, [&](std::size_t i, const Outcome&) { ++seen[i]; });
      REQUIRE(outcomes.size() == programs.size());
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        INFO(detail_of(outcomes[i]));
        CHECK(fault_of(outcomes[i]) ==
              std::vector<std::string>{"none", "wrong_result", "out_of_bounds", "none"}[i % 4]);
        CHECK(seen[i] == 1);
        CHECK(outcomes[i].compile_time.count() > 0);
        CHECK(outcomes[i].run_time.count() > 0);
      }
    }
    CHECK(world().task_key(1) != 0);
    CHECK(world().task_key(1) == world().task_key(2));
    CHECK(says(measurer.identity(), measurer.device().identity()));
  }

  TEST_CASE("two measurers of one world take turns, each with a task of its own") {
    Mpi first = quick(), second = quick();
    const Task tall = matmul_task(24, first.target()), flat = matmul_task(8, second.target());
    for (int turn = 0; turn < 3; ++turn) {
      for (const auto& [measurer, task] : {std::pair(&first, &tall), std::pair(&second, &flat)}) {
        for (const Outcome& outcome : measurer->measure(*task, std::vector<LoopNest>(4, nest_of(*task)))) {
          INFO(detail_of(outcome));
          CHECK(outcome.valid());
        }
      }
    }
  }

  TEST_CASE("a task that ranks refuse costs no rank, and the one before it is measured again") {
    Mpi measurer = quick();
    const Task task = matmul_task(24, measurer.target()), large = matmul_task(20000, measurer.target());
    const auto measured = [&] { return measurer.measure(task, std::vector<LoopNest>(4, nest_of(task))); };
    for (const Outcome& outcome : measured()) CHECK(outcome.valid());
    CHECK(says(test::refusal([&] { measurer.measure(large, std::vector<LoopNest>{nest_of(large)}); }),
               "the worker refuses the task"));
    for (const Outcome& outcome : measured()) {
      INFO(detail_of(outcome));
      CHECK(outcome.valid());
    }
    for (const int rank : {1, 2}) CHECK_FALSE(world().lost(rank).has_value());
  }

  TEST_CASE("a listener that takes longer than ranks may is not held against them") {
    Mpi measurer = quick();
    measurer.protocol.run_timeout_seconds = 1;
    measurer.reply_grace_seconds = 0.25;
    const Task task = matmul_task(24, measurer.target());
    bool slept = false;
    const auto outcomes =
        measurer.measure(task, std::vector<LoopNest>(8, nest_of(task)), [&](std::size_t, const Outcome&) {
          if (!std::exchange(slept, true)) std::this_thread::sleep_for(std::chrono::seconds(2));
        });
    for (const Outcome& outcome : outcomes) CHECK(fault_of(outcome) == "none");
    for (const int rank : {1, 2}) CHECK_FALSE(world().lost(rank).has_value());
  }

  TEST_CASE("options, and tasks for other devices, are refused") {
    Mpi measurer = quick();
    const Task task = matmul_task(12, measurer.target());
    Task wide = task;
    wide.target = wide.target.with_threads(1000);
    CHECK(
        says(test::refusal([&] { measurer.measure(wide, std::vector<LoopNest>{nest_of(wide)}); }), "fewer processors"));
    Mpi busy = quick();
    busy.ahead = 0;
    CHECK(says(test::refusal([&] { busy.measure(task, std::vector<LoopNest>{}); }), "ahead"));
    Mpi elsewhere = quick();
    elsewhere.device_name = "abacus";
    CHECK(says(test::refusal([&] { static_cast<void>(elsewhere.device()); }), "no rank's device has 'abacus'"));
    CHECK_THROWS_AS(World(), std::logic_error);
    CHECK_THROWS_AS(static_cast<void>(world().worker(0, Seconds(1))), std::logic_error);
    CHECK_THROWS_AS(static_cast<void>(world().worker(3, Seconds(1))), std::logic_error);
    CHECK_THROWS_AS(world().serve(), std::logic_error);
  }

  TEST_CASE("a batch that its listener breaks off leaves nothing for the next one") {
    Mpi measurer = quick();
    const Task task = matmul_task(24, measurer.target());
    const std::vector<LoopNest> programs(8, nest_of(task));
    const auto full = [](std::size_t, const Outcome&) { throw std::runtime_error("the disk is full"); };
    CHECK(says(test::refusal<std::runtime_error>([&] { measurer.measure(task, programs, full); }), "the disk is full"));
    for (const Outcome& outcome : measurer.measure(task, programs)) CHECK(fault_of(outcome) == "none");
  }

  TEST_CASE("a measuring process that is killed costs no outcome, and one that always is costs its own") {
    Mpi measurer = quick();
    const Task task = matmul_task(24, measurer.target());
    const std::vector<LoopNest> programs(12, nest_of(task));
    // Each rank has a process that kernels run in from the first of them on.
    for (const Outcome& outcome : measurer.measure(task, programs)) REQUIRE(outcome.valid());
    const auto before = measurer.state->handed_on;
    // A process that dies between two kernels costs nobody anything: it is the one in a kernel that hands it on.
    for (int batch = 0; batch < 50 && measurer.state->handed_on == before; ++batch) {
      std::size_t seen = 0;
      const auto outcomes = measurer.measure(task, programs, [&](std::size_t, const Outcome&) {
        if (seen++ != static_cast<std::size_t>(batch) % 6) return;
        for (const int rank : {1, 2})
          for (const pid_t running : children_of(children_of({world().process(rank)}))) ::kill(running, SIGKILL);
      });
      for (const Outcome& outcome : outcomes) CHECK(fault_of(outcome) == "none");
    }
    CHECK(measurer.state->handed_on > before);
  }

  TEST_CASE("a rank that is killed costs nothing while another is left; then measuring ends and says why") {
    Mpi measurer = quick();
    const Task task = matmul_task(24, measurer.target());
    const std::vector<LoopNest> programs(12, nest_of(task));
    const auto with_a_kill = [&](int rank) {
      int seen = 0;
      return measurer.measure(task, programs, [&](std::size_t, const Outcome&) {
        if (++seen == 3) ::kill(world().process(rank), SIGKILL);
      });
    };
    REQUIRE(world().process(1) > 0);
    for (const Outcome& outcome : with_a_kill(1)) CHECK(fault_of(outcome) == "none");
    CHECK(world().lost(1).has_value());
    CHECK_FALSE(world().lost(2).has_value());
    const std::string refused = test::refusal<std::runtime_error>([&] { with_a_kill(2); });
    CHECK(says(refused, "no rank is left"));
    CHECK(says(refused, "rank 1: it has ended"));
    CHECK(says(refused, "rank 2: it has ended"));
    CHECK(says(test::refusal<std::runtime_error>([&] { measurer.measure(task, programs); }), "no rank is left"));
    CHECK(says(test::refusal<std::runtime_error>([&] { static_cast<void>(quick().device()); }), "no rank introduced"));
  }
}
