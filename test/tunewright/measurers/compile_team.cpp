// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/compile_team.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
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

}  // namespace

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
