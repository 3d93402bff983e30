// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/report.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "tunewright/json/scanner.hpp"

namespace {

using namespace tunewright;

std::string text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

study::Results results() {
  study::Results results{.recipes = {"Slow", "Fast"}, .problems = {"p", "q"}};
  for (const char* problem : {"p", "q"}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      for (const bool fast : {false, true}) {
        study::Course course;
        for (int trial = 1; trial <= 8; ++trial)
          course.add(fast ? 1e-3 / trial : 2e-3 / trial, static_cast<double>(trial));
        results.searches.push_back(
            {.recipe = fast ? "Fast" : "Slow", .problem = problem, .seed = seed, .conditions = 0, .course = course});
      }
    }
  }
  return results;
}

TEST_CASE("tables name what is better and by how much") {
  const support::TemporaryFolder folder;
  study::write_report(results(), folder.path(), "s");
  const std::string tables = text(folder.file("s.md"));
  CAPTURE(tables);
  CHECK(tables.find("12 searches are finished, 12 of them") != std::string::npos);
  CHECK(tables.find("| Fast | 100.0 [100.0, 100.0] | 0.0 | 0.0 | 8 |") != std::string::npos);
  // Fast reaches in 4 trials what Slow has after 8.
  CHECK(tables.find("| Fast | 50.0 [50.0, 50.0] | 2.00 [2.00, 2.00] | 2.00 [2.00, 2.00] | 2.00 [2.00, 2.00] | "
                    "better |") != std::string::npos);
  CHECK(tables.find("| p | 3 | 125 | 250 | 125 |") != std::string::npos);
}

TEST_CASE("where single measurements and finalists in turns disagree, a sentence by the table says so") {
  const auto tables = [](double slow_s, double fast_s, const study::Results& searched) {
    study::Results measured = searched;
    for (const char* problem : {"p", "q"}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        measured.finalists.push_back({.problem = problem,
                                      .seed = seed,
                                      .entrants = {{"Slow", 1}, {"Fast", 2}},
                                      .latencies_s = {{"Slow", slow_s}, {"Fast", fast_s}}});
      }
    }
    const support::TemporaryFolder folder;
    study::write_report(measured, folder.path(), "s");
    return text(folder.file("s.md"));
  };
  const auto has = [](const std::string& all, const char* part) { return all.find(part) != std::string::npos; };
  CHECK_FALSE(has(tables(2, 1, results()), "Trust the latter"));
  CHECK(
      has(tables(1, 1, results()),
          "| better |\n\nFast: better by single measurements, during the searches; not told apart where the finalists "
          "are measured in turns, below. Trust the latter.\n\n## Finalists"));
  CHECK(has(tables(1, 2, results()), "Fast: better by single measurements, during the searches; worse where"));
  study::Results alike = results();
  for (study::FinishedSearch& search : alike.searches) search.course = alike.searches.front().course;
  CHECK_FALSE(has(tables(1, 1, alike), "Trust the latter"));
  CHECK(has(tables(2, 1, alike), "Fast: not told apart by single measurements, during the searches; better where"));

  // A score judges the whole course of a search, which finalists cannot contradict.
  study::Results scored = results();
  std::vector<double> latencies;
  for (int i = 1; i <= 8; ++i) latencies.insert(latencies.end(), {1e-3 / i, 2e-3 / i});
  for (int i = 1; i <= 84; ++i) latencies.push_back(2e-3 + 1e-4 * i);
  for (const char* problem : {"p", "q"}) scored.spaces.emplace(problem, study::RandomSearch(latencies));
  const std::string with_scores = tables(1, 1, scored);
  CHECK(has(with_scores, "| recipe | score |"));
  CHECK_FALSE(has(with_scores, "Trust the latter"));
}

TEST_CASE("the numbers are JSON, the figures have a block a recipe") {
  const support::TemporaryFolder folder;
  study::write_report(results(), folder.path(), "s");
  const std::string json = text(folder.file("s.results.json"));
  json::Scanner in(json);
  std::size_t recipes = 0;
  in.object([&](std::string_view key) {
    if (key == "reference")
      CHECK(in.string() == "Slow");
    else
      in.array([&] {
        ++recipes;
        in.skip_value();
      });
  });
  in.expect_end();
  CHECK(recipes == 2);
  const std::string curves = text(folder.file("s.curves.dat"));
  CHECK(curves.find("# Slow\n# trials speed low high\n1 6.25 6.25 6.25\n") == 0);
  CHECK(curves.find("# Fast\n") != std::string::npos);
  CHECK(text(folder.file("s.targets.dat")).find("# seconds reached\n") != std::string::npos);
  CHECK(text(folder.file("s.gp")).find("'s.curves.dat' index 1") != std::string::npos);
}

TEST_CASE("what is unknown or infinite is null in JSON, which has no such numbers") {
  const support::TemporaryFolder folder;
  study::Results few{.recipes = {"Slow", "Fast"}, .problems = {"p"}};
  for (const study::FinishedSearch& search : results().searches)
    if (search.problem == "p" && search.seed < 2) few.searches.push_back(search);
  study::write_report(few, folder.path(), "s");  // two seeds of a problem make no interval
  const std::string json = text(folder.file("s.results.json"));
  CAPTURE(json);
  CHECK(json.find("\"speed\": [1, null, null]") != std::string::npos);
  CHECK(json.find("NaN") == std::string::npos);
  CHECK(json.find("Infinity") == std::string::npos);
}

/// Blocks as gnuplot counts them: rows that two blank lines part, whatever the number of blank lines, and comments none.
std::vector<std::vector<std::string>> blocks(const std::string& data) {
  std::vector<std::vector<std::string>> found;
  std::istringstream in(data);
  std::size_t blank = 2;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    if (line.empty()) {
      ++blank;
      continue;
    }
    if (blank >= 2) found.emplace_back();
    blank = 0;
    found.back().push_back(line);
  }
  return found;
}

TEST_CASE("a recipe that reaches nothing has blocks of its own, so that the others keep their names in figures") {
  const support::TemporaryFolder folder;
  study::Results some = results();
  some.recipes = {"Lost", "Slow", "Fast"};
  study::Course nothing;
  for (int trial = 1; trial <= 8; ++trial) nothing.add(study::Course::infinity, trial);
  for (const char* problem : {"p", "q"})
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      some.searches.push_back({.recipe = "Lost", .problem = problem, .seed = seed, .course = nothing});
  study::write_report(some, folder.path(), "s");
  const auto targets = blocks(text(folder.file("s.targets.dat")));
  REQUIRE(targets.size() == 3);
  CHECK(targets[0] == std::vector<std::string>{"1 0 0 0"});
  CHECK(targets[2].back().ends_with(" 100"));  // Fast reaches the best known
  CHECK(blocks(text(folder.file("s.curves.dat"))).size() == 3);
  CHECK(blocks(text(folder.file("s.problems.dat"))).size() == 3 * 2 * 2);
}

TEST_CASE("a study in which every search failed has a report") {
  const support::TemporaryFolder folder;
  study::Results some = results();
  study::Course nothing;
  nothing.add(study::Course::infinity, 1);
  for (study::FinishedSearch& search : some.searches) search.course = nothing;
  study::write_report(some, folder.path(), "s");
  const std::string tables = text(folder.file("s.md"));
  CAPTURE(tables);
  CHECK(tables.find("| Fast | 0.0 [0.0, 0.0] | 100.0 | 0.0 | 1 |") != std::string::npos);
  CHECK(tables.find("| p | 3 | inf | inf | inf |") != std::string::npos);
  CHECK(blocks(text(folder.file("s.targets.dat"))).size() == 2);
  CHECK(blocks(text(folder.file("s.problems.dat"))).size() == 8);
}

TEST_CASE("what was known after no time is in the curves over trials, and those over seconds begin later") {
  const support::TemporaryFolder folder;
  study::Results some = results();
  for (study::FinishedSearch& search : some.searches) search.course.improvements.front().elapsed_s = 0;
  study::write_report(some, folder.path(), "s");
  const auto curves = blocks(text(folder.file("s.problems.dat")));
  REQUIRE(curves.size() == 8);
  CHECK(curves[0][0] == "1 6.25 6.25 6.25");  // p, Slow, trials: 125 us of 2000
  CHECK(curves[4][0] == "2 12.5 12.5 12.5");  // p, Slow, seconds: 125 us of 1000

  // Where that is all, targets are a level.
  study::Course at_once;
  at_once.add(1e-3, 0);
  for (study::FinishedSearch& search : some.searches) search.course = at_once;
  study::write_report(some, folder.path(), "t");
  CHECK(blocks(text(folder.file("t.targets.dat"))) == std::vector<std::vector<std::string>>{{"1 100"}, {"1 100"}});
}

TEST_CASE("single problems have curves over trials and over seconds") {
  const support::TemporaryFolder folder;
  study::write_report(results(), folder.path(), "s");
  const std::string curves = text(folder.file("s.problems.dat"));
  CHECK(curves.find("# p, Slow\n# trials speed low high\n1 6.25 6.25 6.25\n2 12.5 12.5 12.5\n") == 0);
  CHECK(curves.find("# q, Fast\n# seconds speed low high\n1 12.5 12.5 12.5\n") != std::string::npos);
  std::size_t blocks = 0;
  for (std::size_t at = curves.find("speed low high"); at != std::string::npos;
       at = curves.find("speed low high", at + 1))
    ++blocks;
  CHECK(blocks == 8);  // 2 recipes, 2 problems, trials and seconds
  const std::string script = text(folder.file("s.problems.gp"));
  CHECK(script.find("set multiplot layout 2,2") != std::string::npos);
  CHECK(script.find("'s.problems.dat' index 7 using 1:2") != std::string::npos);
  CHECK(script.find("index 8") == std::string::npos);
}

TEST_CASE("scores over seconds are beside those over trials where costs are known") {
  const support::TemporaryFolder folder;
  study::Results known{.recipes = {"A"}, .problems = {"p"}};
  std::vector<double> latencies;
  for (int i = 1; i <= 100; ++i) latencies.push_back(i * i / 100.0);
  known.spaces.emplace("p", study::RandomSearch(latencies));
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    study::Course course;
    course.add(0.01, 1);
    known.searches.push_back({.recipe = "A", .problem = "p", .seed = seed, .conditions = 0, .course = course});
  }
  study::write_report(known, folder.path(), "s");
  CHECK(text(folder.file("s.md")).find("seconds |") != std::string::npos);
  CHECK(text(folder.file("s.md")).find("score over seconds") == std::string::npos);
  known.costs.emplace("p", study::TrialCosts(latencies, std::vector<double>(100, 1.0)));
  study::write_report(known, folder.path(), "s");
  const std::string tables = text(folder.file("s.md"));
  CHECK(tables.find("| recipe | score | score over seconds |") != std::string::npos);
  CHECK(tables.find("| A | 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] |") != std::string::npos);
  CHECK(tables.find("## Scores over seconds, problem by problem") != std::string::npos);
  CHECK(text(folder.file("s.results.json")).find("\"score_over_seconds\": [") != std::string::npos);
}

TEST_CASE("problems that not all recipes have searched are in a table of their own") {
  const support::TemporaryFolder folder;
  study::Results some = results();
  CHECK(some.problems.size() == 2);
  study::write_report(some, folder.path(), "s");
  CHECK(text(folder.file("s.md")).find("## Not compared") == std::string::npos);
  some.problems.push_back("r");
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    study::Course course;
    course.add(1e-3 * static_cast<double>(seed + 1), 1);
    some.searches.push_back({.recipe = "Fast", .problem = "r", .seed = seed, .conditions = 0, .course = course});
  }
  study::write_report(some, folder.path(), "s");
  const std::string tables = text(folder.file("s.md"));
  CHECK(tables.find("15 searches are finished, 12 of them") != std::string::npos);
  CHECK(tables.find("| problem | Slow | Fast |\n| --- | --- | --- |\n| r | none | 3; 2000 |") != std::string::npos);

  // Also where no problem is left to compare on.
  std::erase_if(some.searches, [](const study::FinishedSearch& search) {
    return (search.problem == "p" && search.recipe == "Fast") || (search.problem == "q" && search.recipe == "Slow");
  });
  study::write_report(some, folder.path(), "t");
  CHECK(text(folder.file("t.md")).find("| p | 3; 250 | none |\n| q | none | 3; 125 |") != std::string::npos);
}

TEST_CASE("nothing that could be compared is said, and a folder that is none refused") {
  const support::TemporaryFolder folder;
  study::Results none{.recipes = {"A"}, .problems = {"p"}};
  study::write_report(none, folder.path(), "s");
  CHECK(text(folder.file("s.md")).find("0 searches are finished") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.file("s.gp")));
  CHECK_THROWS_WITH_AS(study::write_report(none, folder.file("missing"), "s"), doctest::Contains("name another folder"),
                       std::runtime_error);
}

}  // namespace
