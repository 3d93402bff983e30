// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/study.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.hpp"
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
/// The same on a machine whose time is computed.
struct Clocked : Counted {
  Clock clock = [] { return Seconds(1); };
};
/// The same, and measures finalists in turns.
struct Confirming : Counted {
  std::vector<Outcome> confirm(const Task& task, std::span<const toy::Program> programs) {
    return Counted::measure(task, programs, {});
  }
};
/// The same, with Ctrl-C pressed meanwhile.
struct Interrupted : Confirming {
  std::vector<Outcome> confirm(const Task& task, std::span<const toy::Program> programs) {
    std::raise(SIGINT);
    return Confirming::confirm(task, programs);
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

template <class Measurer>
void compare_tasks(study::Study& study) {
  study.compare<Random<Measurer>, Evolution<Measurer>>(problems<Measurer>(), {.trials = 20, .batch = 10});
}
template <class Measurer>
void compare_networks(study::Study& study) {
  const std::vector<study::NetworkProblem<toy::Space, Measurer>> networks{
      {.name = "n", .tasks = {{toy::task("a", 1), 3}, {toy::task("b", 2), 1}}},
      {.name = "m", .tasks = {{toy::task("b", 2), 2}, {toy::task("c", 3), 1}}}};
  study.compare<Random<Measurer>, Evolution<Measurer>>(networks, {.trials = 20, .batch = 5});
}

struct Ended {
  int code = 0;              ///< of the process
  std::size_t measured = 0;  ///< by it
};

/// Calls `work()`, which returns the exit code, in a process of its own, as Google Benchmark runs once in one.
template <class Work>
Ended in_process(const Work& work) {
  const support::TemporaryFolder folder;
  const std::string count = folder.file("measured");
  const pid_t child = ::fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    const int code = work();
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

/// Runs a study of two recipes, two problems and three seeds with 20 trials each.
template <class Measurer = Counted>
Ended run(std::vector<std::string> options, std::size_t kills_after = 0, const char* name = "toy",
          void (*compare)(study::Study&) = compare_tasks<Measurer>, std::vector<std::string> folders = {}) {
  const support::TemporaryFolder folder;
  options.insert(options.begin(), "program");
  options.push_back("--benchmark_out=" + folder.file("benchmarks.json"));
  std::vector<char*> words;
  for (std::string& option : options) words.push_back(option.data());
  return in_process([&] {
    Counted::kills_after = kills_after;
    const study::Plan plan{
        .name = name, .seeds = 3, .folders = folders, .options = {"pool=8", "set=all"}, .choosing = {"set"}};
    return study::run(static_cast<int>(words.size()), words.data(), plan, compare);
  });
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
      others += study::to_line(
          {.recipe = "guest", .problem = problem, .seed = seed, .course = {{{1, 1, 1e-3}}, 20, 0, 0, 1}}, "toy");
  std::ofstream(folder.file("finished.guest.jsonl")) << others;
  CHECK(run({"--out=" + folder.path(), "--report"}).measured == 0);
  CHECK(text(folder.file("toy.md")).find("| guest |") != std::string::npos);
  CHECK(run({"--out=" + folder.path(), "--report", "--reference=guest"}).code == 0);
  CHECK(text(folder.file("toy.md")).find("## Against guest") != std::string::npos);
  CHECK(run({"--out=" + folder.path(), "--report", "--reference=nobody"}).code == 1);

  // A name that scripts and tables cannot have.
  const support::TemporaryFolder odd;
  std::ofstream(odd.file("finished.guest.jsonl"))
      << study::to_line({.recipe = "it's", .problem = "a", .course = {{{1, 1, 1e-3}}, 20, 0, 0, 1}}, "toy");
  const Ended misnamed = run({"--out=" + odd.path()});
  CHECK(misnamed.code == 1);
  CHECK(misnamed.measured == 0);

  // Those that are chosen are compared, and no others.
  CHECK(run({"--out=" + folder.path(), "--report", "--recipes=Random,guest", "--problems=b"}).code == 0);
  const std::string two = text(folder.file("toy.md"));
  CHECK(two.find("6 searches are finished, 6 of them") != std::string::npos);
  CHECK(two.find("| guest |") != std::string::npos);
  CHECK(two.find("Evolution") == std::string::npos);
  CHECK(two.find("| a | 3 |") == std::string::npos);
  CHECK(two.find("| b | 3 |") != std::string::npos);
  CHECK(run({"--out=" + folder.path(), "--report", "--recipes=Random,guest", "--reference=Evolution"}).code == 1);

  const support::TemporaryFolder some;
  CHECK(run({"--out=" + some.path(), "--recipes=Evolution", "--problems=b"}).measured == 3 * 20);
  CHECK(run({"--out=" + some.path(), "--report"}).measured == 0);
  CHECK(run({"--out=" + some.path() + "/misspelt", "--report"}).code == 1);

  // A reference that nobody knows is refused ahead of the searches.
  const support::TemporaryFolder untouched;
  const Ended refused = run({"--out=" + untouched.path(), "--reference=nobody"});
  CHECK(refused.code == 1);
  CHECK(refused.measured == 0);
  CHECK(run({"--out=" + untouched.path(), "--reference=Evolution"}).measured == all_trials);
}

TEST_CASE("a search that was stopped goes on from its journal") {
  struct Stopped {
    void (*compare)(study::Study&);
    std::size_t after;
  };
  // The search of a network is the same again only if it was stopped between its rounds of 5 trials.
  for (const auto [compare, after] : {Stopped{compare_tasks<Counted>, 33}, Stopped{compare_networks<Counted>, 35}}) {
    const support::TemporaryFolder whole, stopped;
    CHECK(run({"--out=" + whole.path()}, 0, "toy", compare).code == 0);
    const Ended first = run({"--out=" + stopped.path()}, after, "toy", compare);
    CHECK(first.code == 1);
    CHECK(first.measured == after);
    const Ended second = run({"--out=" + stopped.path()}, 0, "toy", compare);
    CHECK(second.code == 0);
    CHECK(second.measured == all_trials - after);  // no measurement is made twice
    const auto ends = [](const std::string& path) {
      std::map<std::string, std::pair<double, std::string>> of_search;
      const study::FinishedSearches searches(path, "toy");
      for (const study::FinishedSearch& one : searches.all())
        of_search[one.recipe + one.problem + std::to_string(one.seed)] = {one.course.best_s(), one.best_config};
      return of_search;
    };
    CHECK(ends(whole.path()) == ends(stopped.path()));
    CHECK(ends(whole.path()).size() == 12);
  }
}

/// Another budget, for the same searches.
void compare_longer(study::Study& study) {
  study.compare<Random<Counted>, Evolution<Counted>>(problems<Counted>(), {.trials = 30, .batch = 10});
}

TEST_CASE("searches by another budget or option are not compared with those that are finished, nor made") {
  const support::TemporaryFolder folder;
  const std::string out = "--out=" + folder.path();
  CHECK(run({out, "--recipes=Random"}).code == 0);
  const std::string tables = text(folder.file("toy.md"));
  for (const bool longer : {false, true}) {
    const Ended refused = longer ? run({out}, 0, "toy", compare_longer) : run({out, "--pool=9"});
    CHECK(refused.code == 1);
    CHECK(refused.measured == 0);
    CHECK(text(folder.file("toy.md")) == tables);
  }
  // Recipes alone may be searched by it, but not compared with the others.
  CHECK(run({out, "--pool=9", "--recipes=Evolution"}).measured == all_trials / 2);
  CHECK(run({out, "--report"}).code == 1);
  CHECK(run({out, "--report", "--recipes=Evolution"}).code == 0);

  const support::TemporaryFolder same;
  CHECK(run({"--out=" + same.path(), "--pool=8", "--problems=a"}).code == 0);
  CHECK(run({"--out=" + same.path(), "--set=few"}).measured == all_trials / 2);  // of b
}

TEST_CASE("a real search by more threads is another one, a simulated one is the same") {
  const support::TemporaryFolder real, simulated;
  const std::string out = "--out=" + real.path();
  CHECK(run({out, "--problems=a"}).measured == all_trials / 2);
  CHECK(run({out, "--problems=a", "--threads=1"}).measured == 0);
  const Ended refused = run({out, "--problems=a", "--threads=2"});
  CHECK(refused.code == 1);
  CHECK(refused.measured == 0);

  CHECK(run<Clocked>({"--out=" + simulated.path()}).measured == all_trials);
  const Ended again = run<Clocked>({"--out=" + simulated.path(), "--threads=2"});
  CHECK(again.code == 0);
  CHECK(again.measured == 0);
}

/// Recipes that differ in their names.
template <char letter>
struct Named : recipes::Random<toy::Space, Counted> {
  static constexpr char text[] = {letter, '\0'};
  static constexpr std::string_view name = text;
};
void compare_four(study::Study& study) {
  study.compare<Named<'A'>, Named<'B'>, Named<'C'>, Named<'D'>>(problems<Counted>(), {.trials = 2, .batch = 2});
}

TEST_CASE("recipes search in another order with every problem and seed, also if few of them are chosen") {
  const support::TemporaryFolder folder;
  const std::string out = "--out=" + folder.path();
  CHECK(run({out, "--recipes=A,C", "--seeds=12"}, 0, "toy", compare_four).measured == 2 * 2 * 12 * 2);
  const study::FinishedSearches searches(folder.path(), "toy");
  std::map<std::string, std::size_t> ahead;  // how often A is, by problem
  REQUIRE(searches.all().size() == 2 * 2 * 12);
  for (std::size_t i = 0; i < searches.all().size(); i += 2) {
    const study::FinishedSearch &first = searches.all()[i], &second = searches.all()[i + 1];
    CHECK(first.problem == second.problem);  // they are searched behind each other
    CHECK(first.seed == second.seed);
    if (first.recipe == "A") ++ahead[first.problem];
  }
  for (const char* problem : {"a", "b"}) {
    CAPTURE(problem);
    CHECK(ahead[problem] >= 3);
    CHECK(ahead[problem] <= 9);
  }
  CHECK(run({out, "--recipes=A,C", "--seeds=12"}, 0, "toy", compare_four).measured == 0);
  CHECK(run({out, "--seeds=12"}, 0, "toy", compare_four).measured == 2 * 2 * 12 * 2);  // of the other two
}

TEST_CASE("a search that was stopped does not go on under other conditions") {
  const support::TemporaryFolder folder;
  CHECK(run({"--out=" + folder.path()}, 15).measured == 15);  // of the first search
  CHECK(run({"--out=" + folder.path(), "--pool=9"}).measured == all_trials);
}

TEST_CASE("recipes are compared on networks, whose finalists are measured task by task") {
  const support::TemporaryFolder folder;
  constexpr std::size_t in_turns = 2 * 2 * 3 * (2 + 1);  // two recipes and one of them again, by task, network and seed
  const auto compare = compare_networks<Confirming>;
  CHECK(run<Confirming>({"--out=" + folder.path()}, 0, "toy", compare).measured == all_trials + in_turns);
  const study::FinishedSearches searches(folder.path(), "toy");
  for (const study::FinishedSearch& one : searches.all()) {
    CHECK(one.course.trials == 20);
    CHECK(lines(one.best_config) == 1);  // between the configurations of two tasks
    REQUIRE(!one.course.improvements.empty());
    CHECK(one.course.improvements.front().trial > 5);  // the first round is of one task alone
  }
  CHECK(text(folder.file("toy.md")).find("## Finalists, measured in turns") != std::string::npos);
  CHECK(run<Confirming>({"--out=" + folder.path()}, 0, "toy", compare).measured == 0);
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

TEST_CASE("after Ctrl-C no finalists are measured, and a later run goes on with them") {
  const support::TemporaryFolder folder;
  constexpr std::size_t once = 2 + 1;  // two recipes and one of them again
  constexpr std::size_t in_turns = 2 * 3 * once;
  const std::string out = "--out=" + folder.path();
  CHECK(run<Confirming>({out}).measured == all_trials + in_turns);
  std::ofstream(folder.file("finalists.1-of-1.jsonl"), std::ios::trunc);
  const Ended stopped = run<Interrupted>({out});
  CHECK(stopped.code == 0);
  CHECK(stopped.measured == once);
  CHECK(run<Confirming>({out}).measured == in_turns - once);
}

TEST_CASE("once its minutes are over a study begins no search and measures no finalists, and it may go on later") {
  const support::TemporaryFolder folder;
  const auto run_after = [&](Seconds elapsed, const std::string& reference = {}) {
    study::Options options{.out = folder.path(), .seeds = 3, .reference = reference};
    options.others["minutes"] = "1";
    options.began -= elapsed;
    return in_process([&] {
      std::string program = "program";
      char* words[] = {program.data(), nullptr};
      int count = 1;
      benchmark::Initialize(&count, words);
      study::Study study({.name = "toy"}, options);
      compare_tasks<Confirming>(study);
      return study.run() ? 0 : 1;
    });
  };
  for (const char* reference : {"", "Evolution"}) {
    const Ended late = run_after(Seconds(61), reference);
    CHECK(late.code == 0);
    CHECK(late.measured == 0);
  }
  constexpr std::size_t in_turns = 2 * 3 * (2 + 1);  // two recipes and one of them again, by problem and seed
  CHECK(run_after(Seconds(0)).measured == all_trials + in_turns);
  const std::string tables = text(folder.file("toy.md"));
  CHECK(tables.find("12 searches are finished, 12 of them") != std::string::npos);
  // What is known is told nevertheless.
  CHECK(run_after(Seconds(61)).measured == 0);
  CHECK(text(folder.file("toy.md")) == tables);
  std::ofstream(folder.file("finalists.1-of-1.jsonl"), std::ios::trunc);
  CHECK(run_after(Seconds(61)).measured == 0);
  CHECK(run_after(Seconds(0)).measured == in_turns);
}

TEST_CASE("what cannot be studied is said, and the exit code tells") {
  const support::TemporaryFolder folder;
  const std::string out = "--out=" + folder.path();
  CHECK(run({out, "--seeds=2"}).code == 1);
  CHECK(run({out, "--recipes=Nobody"}).code == 1);
  CHECK(run({out, "--problems=Nothing"}).code == 1);
  CHECK(run({out, "--shard=3/2"}).code == 1);
  CHECK(run({out, "--nonsense"}).code == 1);
  const auto run_without_data = [&](const std::string& option) {
    return run({out, option}, 0, "toy", compare_tasks<Counted>, {"recorded"});
  };
  CHECK(run_without_data("--nonsense").code == 1);
  CHECK(run_without_data("--nonsense=1").code == 1);
  CHECK(run_without_data("--seeds=1").code == 0);
  CHECK(run_without_data("--seeds=1").measured == 0);
  CHECK(run_without_data("--help").code == 0);
  CHECK(run({out, "--benchmark_filter=nothing"}).code == 1);
  CHECK(run({out, "--benchmark_list_tests=true"}).code == 0);
  CHECK(run({out, "--benchmark_list_tests=true"}).measured == 0);
  CHECK(run({out, "--shard=9/9"}).code == 0);  // of six groups of searches
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

TEST_CASE("runs that are no searches: one that throws is told by the exit code, and none begins after Ctrl-C") {
  const support::TemporaryFolder folder;
  const auto run_all = [&](const std::vector<std::function<void()>>& runs, std::string option) {
    std::string program = "study", out = "--out=" + folder.path();
    std::vector<char*> words{program.data(), out.data(), option.data(), nullptr};
    return study::run(3, words.data(), {.name = "runs"}, [&](study::Study&) {
      for (std::size_t i = 0; i < runs.size(); ++i)
        study::add("subject" + std::to_string(i), "data", 0, [run = runs[i]](benchmark::State&) { run(); });
    });
  };
  int made = 0;
  const std::function<void()> works = [&] { ++made; };
  const auto fails = [&] { ++made, throw std::runtime_error("broken"); };
  const auto interrupts = [&] { ++made, std::raise(SIGINT); };
  // In a process of its own: the exit code, and how many runs were made.
  const auto ended = [&](const std::vector<std::function<void()>>& runs, const char* option = "--seeds=1") {
    const pid_t child = ::fork();
    if (child == 0) {
      const int code = run_all(runs, option);
      ::_exit(10 * made + code);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return std::pair{WEXITSTATUS(status) % 10, WEXITSTATUS(status) / 10};
  };
  CHECK(ended({works, works}) == std::pair{0, 2});
  CHECK(ended({works, fails, works}) == std::pair{1, 3});
  CHECK(ended({interrupts, works, works}) == std::pair{0, 1});
  // A run that its search left without a result is no failure.
  const auto is_cut = [&] {
    interrupts();
    if (study::StopsOnRequest{}.should_stop()) throw study::Stopped();
  };
  CHECK(ended({works, is_cut, works}) == std::pair{0, 2});
  // Nothing to run is no success, and neither is a choice among searches where there are none.
  CHECK(ended({}) == std::pair{1, 0});
  CHECK(ended({works}, "--benchmark_filter=nothing") == std::pair{1, 0});
  CHECK(ended({works}, "--benchmark_list_tests=true") == std::pair{0, 0});
  for (const char* option :
       {"--recipes=subject0", "--problems=data", "--reference=subject0", "--shard=1/2", "--report"})
    CHECK(ended({works}, option) == std::pair{1, 0});
}

TEST_CASE("a study that could not be filed, or of a shard that there is not, is refused before anything is searched") {
  const support::TemporaryFolder folder;
  const auto refused = [&](const char* name, unsigned shard, unsigned shards) {
    return test::refusal(
        [&] { const study::Study study({.name = name}, {.out = folder.path(), .shard = shard, .shards = shards}); });
  };
  CHECK(refused("", 1, 1).find("a study is called ''") == 0);
  CHECK(refused("a/b", 1, 1).find("a study is called 'a/b'") == 0);
  CHECK(refused("a", 1, 0).find("shard 1 of 0 was asked for") == 0);
  CHECK(refused("a", 0, 2).find("shard 0 of 2") == 0);
  CHECK(refused("a", 3, 2).find("give one from 1 to") != std::string::npos);
}

TEST_CASE("a space that cannot be scored is refused with its name, before anything is searched") {
  const support::TemporaryFolder folder;
  const auto compare = [&](std::vector<double> latencies_s, std::vector<double> costs_s = {}) {
    study::Study study({.name = "spaces"}, {.out = folder.path()});
    std::vector<study::Problem<toy::Space, Counted>> known{problems<Counted>().front()};
    known[0].latencies_s = std::move(latencies_s);
    known[0].costs_s = std::move(costs_s);
    study.compare<Evolution<Counted>>(known, {.trials = 9});
  };
  CHECK_THROWS_WITH_AS(compare({2, 2, 2}), doctest::Contains("problem 'a': all 3 valid configurations take"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(compare({1, 2}), doctest::Contains("problem 'a': random search is expected at the optimum"),
                       std::invalid_argument);
  std::vector<double> squares, costs_s(100, 1.0);
  for (int i = 1; i <= 100; ++i) squares.push_back(i * i);
  CHECK_NOTHROW(compare(squares, costs_s));
  costs_s.pop_back();
  CHECK_THROWS_WITH_AS(compare(squares, costs_s), doctest::Contains("problem 'a': 99 costs for 100 latencies"),
                       std::invalid_argument);
}

TEST_CASE("a network that cannot be searched is refused with its name, before anything is searched") {
  const support::TemporaryFolder folder;
  using Network = study::NetworkProblem<toy::Space, Counted>;
  const auto compare = [&](const Network& network, std::size_t trials) {
    study::Study study({.name = "networks"}, {.out = folder.path()});
    study.compare<Evolution<Counted>>(std::vector{network}, {.trials = trials});
  };
  const WeightedTask a{toy::task("a", 1), 1}, b{toy::task("b", 2), 1};
  CHECK_THROWS_WITH_AS(compare({.name = "none"}, 9), doctest::Contains("network 'none': "), std::invalid_argument);
  CHECK_THROWS_WITH_AS(compare({.name = "twice", .tasks = {a, a}}, 9), doctest::Contains("network 'twice': "),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(compare({.name = "few", .tasks = {a, b}}, 1),
                       doctest::Contains("network 'few': 1 trials for 2 tasks"), std::invalid_argument);
}

}  // namespace
