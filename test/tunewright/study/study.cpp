// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/study.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/toy_recipes.hpp"

namespace {

using namespace tunewright;

/// Counts what is measured, by all searches of a process.
struct Counted : toy::Measurer {
  static inline std::size_t measured = 0, kills_after = 0;
  std::vector<Outcome> measure(const Task& task, std::span<const toy::Program> programs, const OutcomeSink& sink = {}) {
    const auto outcomes = toy::Measurer::measure(task, programs, {});
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (kills_after != 0 && measured == kills_after) throw std::runtime_error("killed");
      ++measured;
      if (sink) sink(i, outcomes[i]);
    }
    return outcomes;
  }
};
/// The same, and measures finalists in turns.
struct Confirming : Counted {
  std::vector<Outcome> confirm(const Task& task, std::span<const toy::Program> programs) {
    return Counted::measure(task, programs, {});
  }
};
template <class Measurer>
struct Random : recipes::Random<toy::Space, Measurer> {
  static constexpr std::string_view name = "Random";
};
template <class Measurer>
struct Evolution : toy::Evolution {
  using measurer = Measurer;
  static constexpr std::string_view name = "Evolution";
};

template <class Measurer>
std::vector<study::Problem<toy::Space, Measurer>> problems() {
  return {{.name = "a", .task = toy::task("a", 1)}, {.name = "b", .task = toy::task("b", 2)}};
}

struct Ended {
  int code = 0;              ///< of the process
  std::size_t measured = 0;  ///< by it
};

/// Runs a study of two recipes, two problems and three seeds with 20 trials each, in a process of its own, as Google
/// Benchmark runs once in one.
template <class Measurer = Counted>
Ended run(std::vector<std::string> options, std::size_t kills_after = 0, const char* name = "toy") {
  const support::TemporaryFolder folder;
  const std::string count = folder.file("measured");
  const pid_t child = ::fork();
  if (child == 0) {
    options.insert(options.begin(), "program");
    options.push_back("--benchmark_out=" + folder.file("benchmarks.json"));
    std::vector<char*> words;
    for (std::string& option : options) words.push_back(option.data());
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    Counted::kills_after = kills_after;
    const int code =
        study::run(static_cast<int>(words.size()), words.data(), {.name = name, .seeds = 3}, [](study::Study& study) {
          study.compare<Random<Measurer>, Evolution<Measurer>>(problems<Measurer>(), {.trials = 20, .batch = 10});
        });
    std::ofstream(count) << Counted::measured;
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  Ended ended{.code = WEXITSTATUS(status)};
  std::ifstream(count) >> ended.measured;
  return ended;
}
std::string text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

constexpr std::size_t all_trials = 2 * 2 * 3 * 20;

TEST_CASE("a study makes every search once, and none again") {
  const support::TemporaryFolder folder;
  const Ended first = run({"--out=" + folder.path()});
  CHECK(first.code == 0);
  CHECK(first.measured == all_trials);
  CHECK(lines(text(folder.file("finished.1-of-1.jsonl"))) == 12);
  const std::string tables = text(folder.file("toy.md"));
  CHECK(tables.find("12 searches are finished, 12 of them") != std::string::npos);
  CHECK(tables.find("| Evolution |") != std::string::npos);
  const Ended again = run({"--out=" + folder.path()});
  CHECK(again.code == 0);
  CHECK(again.measured == 0);
  CHECK(text(folder.file("toy.md")) == tables);
}

TEST_CASE("parts of a study come together in one folder, and problems and recipes may be chosen") {
  const support::TemporaryFolder folder;
  CHECK(run({"--out=" + folder.path(), "--shard=1/2"}).measured == all_trials / 2);
  CHECK(text(folder.file("toy.md")).find("6 searches are finished, 6 of them") != std::string::npos);
  CHECK(run({"--out=" + folder.path(), "--shard=2/2"}).measured == all_trials / 2);
  CHECK(text(folder.file("toy.md")).find("12 searches are finished, 12 of them") != std::string::npos);

  // Another program's search of the same problem and seeds.
  std::string others;
  for (const char* problem : {"a", "b"})
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      others +=
          study::to_line({.recipe = "guest", .problem = problem, .seed = seed, .course = {{{1, 1, 1e-3}}, 20}}, "toy");
  std::ofstream(folder.file("finished.guest.jsonl")) << others;
  CHECK(run({"--out=" + folder.path(), "--report"}).measured == 0);
  CHECK(text(folder.file("toy.md")).find("| guest |") != std::string::npos);
  CHECK(run({"--out=" + folder.path(), "--report", "--reference=guest"}).code == 0);
  CHECK(text(folder.file("toy.md")).find("## Against guest") != std::string::npos);
  CHECK(run({"--out=" + folder.path(), "--report", "--reference=nobody"}).code == 1);

  const support::TemporaryFolder some;
  CHECK(run({"--out=" + some.path(), "--recipes=Evolution", "--problems=b"}).measured == 3 * 20);
  CHECK(run({"--out=" + some.path(), "--report"}).measured == 0);
}

TEST_CASE("a search that was stopped goes on from its journal") {
  const support::TemporaryFolder whole, stopped;
  CHECK(run({"--out=" + whole.path()}).code == 0);
  const Ended first = run({"--out=" + stopped.path()}, 33);
  CHECK(first.code == 1);
  CHECK(first.measured == 33);
  const Ended second = run({"--out=" + stopped.path()});
  CHECK(second.code == 0);
  CHECK(second.measured == all_trials - 33);  // no measurement is made twice
  const auto best = [](const std::string& path) {
    std::map<std::string, double> best_s;
    const study::FinishedSearches searches(path, "toy");
    for (const study::FinishedSearch& one : searches.all())
      best_s[one.recipe + one.problem + std::to_string(one.seed)] = one.course.best_s();
    return best_s;
  };
  CHECK(best(whole.path()) == best(stopped.path()));
}

TEST_CASE("what recipes ended with is measured in turns, once") {
  const support::TemporaryFolder folder;
  constexpr std::size_t in_turns = 2 * 3 * (2 + 1);  // two recipes and one of them again, by problem and seed
  CHECK(run<Confirming>({"--out=" + folder.path()}).measured == all_trials + in_turns);
  CHECK(lines(text(folder.file("finalists.1-of-1.jsonl"))) == 6);
  const std::string tables = text(folder.file("toy.md"));
  CHECK(tables.find("## Finalists, measured in turns") != std::string::npos);
  CHECK(tables.find("lies apart by 0.0 % (median)") != std::string::npos);
  CHECK(run<Confirming>({"--out=" + folder.path()}).measured == 0);
  // One recipe alone has its own finalists, and those of both stand for it later.
  const support::TemporaryFolder one;
  CHECK(run<Confirming>({"--out=" + one.path(), "--recipes=Random"}).measured == all_trials / 2 + 6 * 2);
  CHECK(run<Confirming>({"--out=" + one.path()}).measured == all_trials / 2 + in_turns);
  CHECK(run<Confirming>({"--out=" + one.path(), "--recipes=Random"}).measured == 0);
}

TEST_CASE("what cannot be studied is said, and the exit code tells") {
  const support::TemporaryFolder folder;
  const std::string out = "--out=" + folder.path();
  CHECK(run({out, "--seeds=2"}).code == 1);
  CHECK(run({out, "--recipes=Nobody"}).code == 1);
  CHECK(run({out, "--problems=Nothing"}).code == 1);
  CHECK(run({out, "--shard=3/2"}).code == 1);
  CHECK(run({out, "--nonsense"}).code == 1);
  CHECK(run({out, "--problems=a"}).code == 0);
  CHECK(run({out}, 0, "other").code == 1);  // the folder has another study's searches

  study::Study study({.name = "names"}, {.out = folder.file("names")});
  CHECK_THROWS_WITH_AS((study.compare<Random<Counted>, Random<Counted>>(problems<Counted>(), {.trials = 20})),
                       doctest::Contains("two recipes are called 'Random'"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((study.compare<toy::Evolution>(
                           std::vector<study::Problem<toy::Space, toy::Measurer>>{{.name = "a/b"}}, {.trials = 20})),
                       doctest::Contains("a problem is called 'a/b'"), std::invalid_argument);
  CHECK_THROWS_AS((study.compare<Evolution<Counted>>(problems<Counted>(), {.trials = 0})), std::invalid_argument);
}

}  // namespace
