// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/finished_search.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace tunewright;

study::FinishedSearch example(const char* recipe, std::uint64_t seed) {
  study::FinishedSearch search{
      .recipe = recipe, .problem = "p \"q\"", .seed = seed, .conditions = 0xffffffffffffffff, .course = {}};
  search.best_config = "[1, \"a\"]";
  search.course.imprecise = 2;
  search.course.add(study::Course::infinity, 0.5);
  search.course.add(1e-6 / 3, 1.25);
  search.course.add(2e-7, 1e3);
  return search;
}

TEST_CASE("a finished search is one line, read back to the bit") {
  const study::FinishedSearch search = example("Mine", 3);
  const std::string line = study::to_line(search, "study");
  CHECK(line.find('\n') == line.size() - 1);
  study::FinishedSearch read;
  std::string study;
  study::from_line(line.substr(0, line.size() - 1), read, study);
  CHECK(read == search);
  CHECK(study == "study");
  for (std::size_t length = 0; length + 2 < line.size(); ++length)
    CHECK_THROWS_AS(study::from_line(line.substr(0, length), read, study), FormatError);
  CHECK_THROWS_AS(study::from_line("{\"study\": \"s\"}", read, study), FormatError);
  const std::string whole = line.substr(0, line.size() - 1);
  for (const std::string name :
       {"study", "recipe", "problem", "seed", "conditions", "trials", "failed", "elapsed_s", "improvements"}) {
    CAPTURE(name);
    std::string other = whole;
    other.replace(other.find('"' + name + '"') + 1, name.size(), "another");
    const std::string missing = "expected a finished search with a member '" + name + "'";
    CHECK_THROWS_WITH_AS(study::from_line(other, read, study), doctest::Contains(missing.c_str()), FormatError);
  }
  // A member that is there twice does not stand in for a missing one.
  for (const std::string name : {"seed", "imprecise", "unknown"}) {
    CAPTURE(name);
    std::string other = whole;
    other.replace(other.find("\"trials\""), 8, "\"another\"");
    other.insert(1, "\"" + name + "\": 1, " + (name == "unknown" ? "\"unknown\": 1, " : ""));
    const std::string twice = "expected a finished search with '" + name + "' once";
    CHECK_THROWS_WITH_AS(study::from_line(other, read, study), doctest::Contains(twice.c_str()), FormatError);
  }
}

TEST_CASE("a line of a search that cannot have gone like that is none") {
  const std::string whole = study::to_line(example("Mine", 3), "study");
  for (const auto& [from, to] : {std::pair{"\"trials\": 3", "\"trials\": 18446744073709551615"},
                                 {"\"trials\": 3", "\"trials\": 2"},
                                 {"\"failed\": 1", "\"failed\": 4"},
                                 {"\"imprecise\": 2", "\"imprecise\": 4"},
                                 {"\"elapsed_s\": 1000", "\"elapsed_s\": NaN"},
                                 {"\"elapsed_s\": 1000", "\"elapsed_s\": Infinity"},
                                 {"\"elapsed_s\": 1000", "\"elapsed_s\": 2"},
                                 {"[2, 1.25,", "[0, 1.25,"},
                                 {"[2, 1.25,", "[2, -1,"},
                                 {"[2, 1.25,", "[2, NaN,"},
                                 {"[3, 1000, 2e-07]", "[3, 1000, 1]"},
                                 {"[3, 1000, 2e-07]", "[3, 1000, 0]"},
                                 {"[3, 1000, 2e-07]", "[1, 1000, 2e-07]"},
                                 {"[3, 1000, 2e-07]", "[3, 1, 2e-07]"},
                                 {"[3, 1000, 2e-07]", "[3, 1000, NaN]"}}) {
    CAPTURE(to);
    std::string line = whole;
    REQUIRE(line.find(from) != std::string::npos);
    line.replace(line.find(from), std::string_view(from).size(), to);
    study::FinishedSearch read;
    std::string study;
    CHECK_THROWS_WITH_AS(study::from_line(line, read, study), doctest::Contains("in order of trials"), FormatError);
  }
}

TEST_CASE("processes that share a folder see each other's searches, whatever was cut short") {
  const support::TemporaryFolder folder;
  const std::filesystem::path path = std::filesystem::path(folder.path()) / "deep" / "er";
  {
    study::FinishedSearches first(path, "s", 1, 2), second(path, "s", 2, 2);
    first.add(example("A", 1));
    second.add(example("B", 1));
    CHECK(first.all().size() == 1);
  }
  std::ofstream(path / "finished.1-of-2.jsonl", std::ios::app) << "{\"study\": \"s\", \"rec";
  study::FinishedSearches again(path, "s", 1, 2);
  CHECK(again.all().size() == 2);
  REQUIRE(again.bad().size() == 1);
  CHECK(again.bad()[0].second.number == 2);
  CHECK(again.find("A", "p \"q\"", 1, 0xffffffffffffffff) != nullptr);
  CHECK(again.find("A", "p \"q\"", 2, 0xffffffffffffffff) == nullptr);
  again.add(example("A", 2));
  const study::FinishedSearches last(path, "s");
  CHECK(last.all().size() == 3);
  CHECK(last.bad().size() == 1);
}

TEST_CASE("a folder that cannot be made is named, and the option that names another") {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("file")) << "text";
  const std::string refused =
      test::refusal<std::runtime_error>([&] { study::FinishedSearches(folder.file("file") + "/deep", "one"); });
  CHECK(refused.find("the folder '" + folder.file("file") + "/deep' cannot be made") != std::string::npos);
  CHECK(refused.find("--out=DIR") != std::string::npos);
}

TEST_CASE("of several lines about a search the first counts, whichever were read and whichever written since") {
  const support::TemporaryFolder folder;
  study::FinishedSearch second = example("A", 1);
  second.course.trials += 1;
  study::FinishedSearches(folder.path(), "s").add(example("A", 1));
  study::FinishedSearches searches(folder.path(), "s");
  searches.add(second);
  CHECK(*searches.find("A", "p \"q\"", 1) == example("A", 1));
  searches.add(example("B", 1));
  CHECK(*searches.find("B", "p \"q\"", 1) == example("B", 1));
  CHECK(*study::FinishedSearches(folder.path(), "s").find("A", "p \"q\"", 1) == example("A", 1));
}

TEST_CASE("searches of another study or under other conditions are refused") {
  const support::TemporaryFolder folder;
  study::FinishedSearches(folder.path(), "one").add(example("A", 1));
  CHECK(test::refusal<std::exception>([&] {
          study::FinishedSearches(folder.path(), "two");
        }).find("belongs to study 'one', not to 'two'") != std::string::npos);
  const study::FinishedSearches searches(folder.path(), "one");
  REQUIRE(searches.find("A", "p \"q\"", 1) != nullptr);
  CHECK(*searches.find("A", "p \"q\"", 1) == example("A", 1));
  CHECK(searches.find("B", "p \"q\"", 1) == nullptr);
  CHECK(searches.find("A", "q", 1) == nullptr);
  CHECK(searches.find("A", "p \"q\"", 2) == nullptr);
  CHECK(test::refusal<std::exception>([&] {
          (void)searches.find("A", "p \"q\"", 1, 5);
        }).find("another task, budget or option") != std::string::npos);
}

TEST_CASE("searches to come fit those that are finished, or are refused ahead of them") {
  const std::vector<study::FinishedSearch> searches{{.recipe = "A", .problem = "p", .conditions = 5},
                                                    {.recipe = "guest", .problem = "p", .conditions = 0},
                                                    {.recipe = "A", .problem = "q", .conditions = 6}};
  CHECK_NOTHROW(study::check_conditions(searches));
  CHECK_NOTHROW(study::check_conditions(searches, {{"p", 5}, {"r", 7}}));
  const std::string refused =
      test::refusal<std::invalid_argument>([&] { study::check_conditions(searches, {{"q", 5}}); });
  CHECK(refused.find("of q by A with seed 0") != std::string::npos);
  CHECK(refused.find("than those to come; name another folder by --out=DIR") != std::string::npos);
}

TEST_CASE("a search whose line could not be written whole does not spoil the next one") {
  const support::TemporaryFolder folder;
  study::FinishedSearches searches(folder.path(), "s");
  // The disk is full after 100 bytes.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit full = before;
  full.rlim_cur = 100;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  CHECK_THROWS_AS(searches.add(example("A", 1)), std::runtime_error);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  searches.add(example("A", 2));
  const study::FinishedSearches again(folder.path(), "s");
  REQUIRE(again.all().size() == 1);
  CHECK(again.all()[0].seed == 2);
  CHECK(again.bad().size() == 1);
}

}  // namespace
