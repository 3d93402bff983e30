// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/finalists.hpp"

#include <doctest/doctest.h>

#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/toy_space.hpp"
#include "tunewright/study/network_problem.hpp"

namespace {

using namespace tunewright;

/// The second program fails, the others take 1, 2, ... seconds in the order of entering.
struct InTurns : toy::Measurer {
  std::vector<Outcome> confirm(const Task&, std::span<const toy::Program> programs) {
    std::vector<Outcome> outcomes(programs.size());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (i == 1)
        outcomes[i].result = Failure{Fault::RunError, "no more"};
      else
        outcomes[i].result = Timing{.repeats = {}, .median = Seconds(static_cast<double>(i + 1))};
    }
    return outcomes;
  }
};
static_assert(study::MeasuredInTurns<study::Problem<toy::Space, InTurns>>);
static_assert(study::MeasuredInTurns<study::NetworkProblem<toy::Space, InTurns>>);
static_assert(!study::MeasuredInTurns<study::Problem<toy::Space, toy::Measurer>>);

study::Problem<toy::Space, InTurns> problem() { return {.name = "p", .task = toy::task()}; }

/// Some configuration, as text.
std::string config(std::uint64_t seed) {
  Rng rng(seed);
  const toy::Space space;
  return space.encode(*space.sample(toy::task(), rng));
}

TEST_CASE("every recipe's program enters once and the first one's twice") {
  const study::Finalists finalists =
      study::measure_finalists(problem(), 7, 9, {{"A", config(1)}, {"B", config(2)}, {"C", config(3)}});
  CHECK(finalists.problem == "p");
  CHECK(finalists.seed == 7);
  CHECK(finalists.conditions == 9);
  CHECK(finalists.latencies_s == std::map<std::string, double>{{"A", 1}, {"C", 3}});
  CHECK(finalists.entrants.size() == 3);
  CHECK(finalists.entrants.at("B") == study::hash_of({"B", config(2)}));
  CHECK(finalists.entrants.at("B") != finalists.entrants.at("C"));
  CHECK(finalists.twice == "A");
  CHECK(finalists.again_s == 4);
}

TEST_CASE("a program that fails when it enters again has not entered twice") {
  const study::Finalists finalists = study::measure_finalists(problem(), 7, 9, {{"A", config(1)}});
  CHECK(finalists.latencies_s == std::map<std::string, double>{{"A", 1}});
  CHECK(finalists.twice.empty());
  CHECK(finalists.again_s == 0);
}

TEST_CASE("finalists of a network are the sums over its tasks, each by its occurrences") {
  const study::NetworkProblem<toy::Space, InTurns> network{.name = "n",
                                                           .tasks = {{toy::task("a", 1), 2}, {toy::task("b", 2), 0.5}}};
  const auto both = [](std::uint64_t first, std::uint64_t second) { return config(first) + "\n" + config(second); };
  const study::Finalists finalists =
      study::measure_finalists(network, 7, 9, {{"A", both(1, 2)}, {"B", both(3, 4)}, {"C", both(5, 6)}});
  CHECK(finalists.latencies_s == std::map<std::string, double>{{"A", 2.5}, {"C", 7.5}});
  CHECK(finalists.again_s == 10);
  for (const std::string& other : {config(1), both(1, 2) + "\n" + config(3)}) {  // of one task, and of three
    CHECK_THROWS_WITH_AS((void)study::measure_finalists(network, 0, 0, {{"A", other}}),
                         doctest::Contains("what A ended with on n belongs to another version"), std::runtime_error);
  }
}

TEST_CASE("nothing is measured of searches that found nothing, and programs of another space are refused") {
  const study::Finalists none = study::measure_finalists(problem(), 0, 0, {});
  CHECK(none.latencies_s.empty());
  CHECK(none.twice.empty());
  CHECK_THROWS_WITH_AS((void)study::measure_finalists(problem(), 0, 0, {{"A", "nonsense"}}),
                       doctest::Contains("what A ended with on p belongs to another version of the space"),
                       std::runtime_error);
}

TEST_CASE("finalists are one line, read back to the bit") {
  study::Finalists finalists{.problem = "p", .seed = 3, .conditions = 0xffffffffffffffff};
  finalists.latencies_s = {{"A", 1e-6 / 3}, {"B", 2}};
  finalists.entrants = {{"A", 0xffffffffffffffff}, {"B", 2}, {"C", 3}};
  for (const bool twice : {false, true}) {
    if (twice) finalists.twice = "A", finalists.again_s = 1.5e-6 / 3;
    const std::string line = study::to_line(finalists, "study");
    study::Finalists read;
    std::string study;
    study::from_line(line.substr(0, line.size() - 1), read, study);
    CHECK(read == finalists);
    CHECK(study == "study");
    for (std::size_t length = 0; length + 2 < line.size(); ++length)
      CHECK_THROWS_AS(study::from_line(line.substr(0, length), read, study), FormatError);
  }
}

TEST_CASE("finalists without one of their members, or with one twice, are a bad line") {
  std::string line = study::to_line({.problem = "p", .entrants = {{"A", 1}}, .latencies_s = {{"A", 1}}}, "s"), study;
  line.pop_back();
  study::Finalists read;
  CHECK_NOTHROW(study::from_line(line, read, study));
  for (const std::string name : {"study", "problem", "seed", "conditions", "entrants", "latencies_s"}) {
    std::string other = line;
    other.replace(other.find('"' + name + '"') + 1, name.size(), "another");
    read = {.problem = {}, .entrants = {{"A", 1}}};
    const std::string missing = "expected finalists with a member '" + name + "'";
    CHECK_THROWS_WITH_AS(study::from_line(other, read, study), doctest::Contains(missing.c_str()), FormatError);
  }
  // A member that is there twice does not stand in for a missing one.
  std::string twice = line;
  twice.replace(twice.find("\"seed\""), 6, "\"entrants\": {}, \"another\"");
  read = {};
  CHECK_THROWS_WITH_AS(study::from_line(twice, read, study),
                       doctest::Contains("expected finalists with 'entrants' once"), FormatError);
}

TEST_CASE("finalists that cannot have been measured are a bad line") {
  const auto refused = [](const study::Finalists& finalists) {
    std::string line = study::to_line(finalists, "study"), study;
    line.pop_back();
    study::Finalists read;
    CHECK_THROWS_AS(study::from_line(line, read, study), FormatError);
  };
  refused({.problem = "p", .entrants = {{"A", 1}}, .latencies_s = {{"A", 0}}});
  refused({.problem = "p", .entrants = {{"A", 1}}, .latencies_s = {{"B", 1}}});
  refused({.problem = "p", .entrants = {{"A", 1}}, .latencies_s = {{"A", 1}}, .twice = "B", .again_s = 1});
  refused({.problem = "p", .entrants = {{"A", 1}}, .latencies_s = {{"A", 1}}, .twice = "A", .again_s = -1});
}

}  // namespace
