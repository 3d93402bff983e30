// SPDX-License-Identifier: Apache-2.0
#include "../../bench/study/study_results.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace tunewright;

namespace {

/// What two recipes found with seeds 0 and 1, of which B failed with 0.
std::string json_of_two_recipes() {
  const auto run = [](const std::string& name, const std::string& rest) {
    return "{\"name\": \"" + name + "/iterations:1\", " + rest + "}";
  };
  return "{\"context\": {\"options\": \"\"}, \"benchmarks\": [" + run("A/d/seed:0", "\"accuracy\": 0.5") + "," +
         run("A/d/seed:1", "\"accuracy\": 0.75") + "," +
         run("B/d/seed:0", "\"error_occurred\": true, \"error_message\": \"no\"") + "," +
         run("B/d/seed:1", "\"accuracy\": 1") + "]}";
}

std::string line_of(const char* recipe, int seed, double t, double u) {
  return std::string("{\"subject\": \"") + recipe + "\", \"data\": \"d\", \"seed\": " + std::to_string(seed) +
         ", \"counters\": {\"accuracy\": {\"t\": " + std::to_string(t) + ", \"u\": " + std::to_string(u) + "}}}\n";
}

}  // namespace

TEST_CASE("values of tasks are those of the seeds that the JSON tells of") {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("s.json")) << json_of_two_recipes();
  // Seed 7 of A is of an earlier study; B failed with seed 0.
  std::ofstream(folder.file("tasks.1-of-1.jsonl"))
      << line_of("A", 0, 0.25, 0.75) << line_of("A", 7, 0, 0) << line_of("A", 1, 0.5, 1) << line_of("B", 0, 0, 0)
      << line_of("B", 1, 1, 1);
  study::StudyResults results = study::read_study(folder.file("s.json"));
  study::read_tasks(folder.path(), results);
  const study::Samples& a = results.results.at({"d", "A"}).at("accuracy");
  CHECK(a.values == study::OfSeeds{{0, 0.5}, {1, 0.75}});
  CHECK(a.tasks.at("t") == study::OfSeeds{{0, 0.25}, {1, 0.5}});
  CHECK(a.interval().value == 0.625);  // ((0.25 + 0.5) / 2 + (0.75 + 1) / 2) / 2
  CHECK(results.results.at({"d", "B"}).at("accuracy").tasks.at("u") == study::OfSeeds{{1, 1.0}});
  CHECK(results.errors == std::vector<std::string>{"B/d/seed:0/iterations:1: no"});
}

TEST_CASE("what follows the @ of a recipe, and its seed, are numbers") {
  CHECK(study::number_of("size_8@100") == 100);
  CHECK(study::number_of("a@b@-0.5") == -0.5);
  CHECK_FALSE(study::number_of("A"));
  const support::TemporaryFolder folder;
  const auto refused = [&](const std::string& name) {
    std::ofstream(folder.file("s.json")) << R"({"context": {}, "benchmarks": [{"name": ")" << name << R"("}]})";
    return test::refusal([&] { (void)study::read_study(folder.file("s.json")); });
  };
  CHECK(refused("A@many/d/seed:0/iterations:1") ==
        "recipe 'A@many' has 'many' after its @, where figures have a number; call it name@number, or leave out the @");
  CHECK(refused("A@/d/seed:0").starts_with("recipe 'A@' has '' after its @"));
  CHECK(refused("A@1e999/d/seed:0").starts_with("recipe 'A@1e999' has '1e999' after its @"));
  CHECK(refused("A@7x/d/seed:0").starts_with("recipe 'A@7x' has '7x' after its @"));
  CHECK(refused("A/d/seed:x/iterations:1") ==
        "'x' was given for the seed of A/d/seed:x/iterations:1; give a whole number, at least 0");
}

TEST_CASE("two recipes are subtracted seed by seed, and not where they have other seeds") {
  study::Samples first, second;
  first.tasks = {{"t", {{0, 1}, {1, 2}}}, {"u", {{0, 3}, {2, 4}}}, {"v", {{0, 5}}}};
  second.tasks = {{"t", {{1, 20}, {0, 10}}}, {"u", {{0, 30}, {1, 40}}}};
  const auto all = study::differences(first, second);
  CHECK(all == std::vector<study::OfSeeds>{{{0, -9}, {1, -18}}});
  CHECK(study::count_of_seeds(all) == 2);
  CHECK(study::count_of_seeds({{{0, 1}, {2, 1}}, {{1, 1}, {2, 1}}}) == 3);
}

TEST_CASE("an interval needs two tasks, or one with three seeds") {
  CHECK_FALSE(study::has_interval({}));
  CHECK_FALSE(study::has_interval({{{0, 1}, {1, 2}}}));
  CHECK(study::has_interval({{{0, 1}, {1, 2}, {2, 3}}}));
  CHECK(study::has_interval({{{0, 1}}, {{0, 2}}}));
}

TEST_CASE("a pool has the tasks and the seeds of all of its data sets") {
  study::StudyResults results;
  for (const char* data : {"new", "old"}) results.recipes.push_back({data, {"A"}});
  results.results[{"new", "A"}]["accuracy"].tasks = {{"t", {{0, 1}, {1, 2}}}};
  results.results[{"old", "A"}]["accuracy"].tasks = {{"t", {{1, 3}, {2, 4}}}};
  results.seeds[{"new", "A"}] = {0, 1};
  results.seeds[{"old", "A"}] = {1, 2};
  study::add_pool(results, "both", std::regex("new|old"));
  CHECK(results.seeds.at({"both", "A"}) == std::set<std::uint64_t>{0, 1, 2});
  const auto& tasks = results.results.at({"both", "A"}).at("accuracy").tasks;
  CHECK(tasks.size() == 2);
  CHECK(tasks.at("old/t") == study::OfSeeds{{1, 3}, {2, 4}});
}

TEST_CASE("a seed is one training, whose luck all tasks share: few seeds make a wide interval, however many tasks") {
  study::Samples lucky, alone;
  for (const char* task : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    lucky.tasks[task] = {{0, 0}, {1, 0}, {2, 3}};
    alone.tasks[task] = {{2, 3}};
  }
  CHECK(lucky.interval() == study::Interval{1, 0, 3});  // of one task it is the same
  CHECK(alone.interval() == study::Interval{3, 3, 3});  // over tasks alone, which are alike
  study::Samples of_runs;
  of_runs.values = {{0, 0}, {1, 0}, {2, 3}};
  CHECK(of_runs.interval() == study::Interval{1, 0, 3});
  of_runs = {};
  of_runs.values = {{0, 0}, {1, 4}};
  CHECK(of_runs.interval() == study::Interval{2, 2, 2});  // two values make none
}
