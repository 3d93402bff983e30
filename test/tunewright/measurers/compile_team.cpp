// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/compile_team.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "support/address_space.hpp"

using namespace tunewright;

namespace {

struct NamingCompiler {
  [[nodiscard]] codegen::Kernel compile(const loops::LoopNest& nest) const {
    codegen::Kernel kernel;
    kernel.symbol = nest.name;
    return kernel;
  }
};
using Team = measurers::CompileTeam<NamingCompiler>;

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr double limit_seconds = 0.2;
/// Takes more than the limit: of its thread's processor time for a nest called "work", of any other clock for others.
struct SlowCompiler {
  [[nodiscard]] codegen::Kernel compile(const loops::LoopNest& nest) const {
    if (nest.name == "work") {
      for (const double start = thread_seconds(); thread_seconds() - start <= limit_seconds;) {
      }
    } else {
      std::this_thread::sleep_for(Seconds(1.1 * limit_seconds));
    }
    return {};
  }
};

}  // namespace

TEST_CASE("a compilation takes too long by the processor time of its thread, not by that of a stopped program") {
  std::vector<loops::LoopNest> nests(2);
  nests[0].name = "wait";
  nests[1].name = "work";
  measurers::CompileTeam<SlowCompiler>::Compilers compilers;
  compilers.push_back(std::make_unique<SlowCompiler>());
  measurers::CompileTeam<SlowCompiler> team(nests, compilers, 1, limit_seconds, {});
  const measurers::Compiled waited = team.wait(0), worked = team.wait(1);
  CHECK(std::holds_alternative<codegen::Kernel>(waited.result));
  CHECK(waited.time > Seconds(limit_seconds));
  REQUIRE(std::holds_alternative<Failure>(worked.result));
  CHECK(std::get<Failure>(worked.result).fault == Fault::CompileTimeout);
  CHECK(worked.time > Seconds(limit_seconds));
}

TEST_CASE("nests for whose compilers the system has few threads, or none, are compiled by the others") {
  if (!support::limits_address_space) {
    MESSAGE("skipped: a sanitizer needs the address space");
    return;
  }
  constexpr std::size_t count = 1000;
  std::vector<loops::LoopNest> nests(count);
  for (std::size_t i = 0; i < count; ++i) nests[i].name = std::to_string(i);
  Team::Compilers compilers;
  for (std::size_t i = 0; i < count; ++i) compilers.push_back(std::make_unique<NamingCompiler>());
  const auto run = [&] {
    Team team(nests, compilers, count, 60, {});
    for (std::size_t i = 0; i < count; ++i) {
      const measurers::Compiled compiled = team.wait(i);
      if (std::get<codegen::Kernel>(compiled.result).symbol != nests[i].name) return 1;
    }
    return 0;
  };
  CHECK(support::status_with_room_for(rlim_t{64} << 20, run) == 0);  // for the stacks of few threads
  CHECK(support::status_with_room_for(rlim_t{4} << 20, run) == 0);   // for the stack of none
}
