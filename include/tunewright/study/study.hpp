// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/budget.hpp"
#include "tunewright/core/clock.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/json/utf8.hpp"
#include "tunewright/session/network_tasks.hpp"
#include "tunewright/study/finalists.hpp"
#include "tunewright/study/finished_search.hpp"
#include "tunewright/study/network_problem.hpp"
#include "tunewright/study/options.hpp"
#include "tunewright/study/problem.hpp"
#include "tunewright/study/recipe_name.hpp"
#include "tunewright/study/report.hpp"
#include "tunewright/study/search.hpp"
#include "tunewright/study/shared_lines.hpp"

/// Studies: programs of Google Benchmark that compare recipes.
///
///   int main(int argc, char** argv) {
///     return study::run(argc, argv, {.name = "draft"}, [](study::Study& study) {
///       study.compare<Pruner, WithoutDraft>(problems, {.trials = 200, .batch = 10});
///     });
///   }
///
/// An ablation is a list of recipes that derive from one and change a slot or a setting. The others are compared with
/// the first.
namespace tunewright::study {

/// What is said of a run that did not begin after Ctrl-C, or has no result because of it.
inline constexpr const char* stopped = "stopped on request";

/// What is said of a run that did not begin because `--minutes` were over.
inline constexpr const char* out_of_time = "out of time; start it again to go on";

/// Ends a run that Ctrl-C cut short and that so has no result; it does not count among `failed_runs`.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error(stopped) {}
};

/// Observer of a search that a run of a study makes by itself: ends it after Ctrl-C, for which the study waits. The run
/// throws `Stopped` if the search ended so.
struct StopsOnRequest {
  [[nodiscard]] bool should_stop() const noexcept { return Interrupt::requested(); }
};

/// Runs of this process that ended with an exception.
inline std::size_t& failed_runs() {
  static std::size_t count = 0;
  return count;
}

/// Registers a benchmark named subject/data/seed:N that calls `measure(state)` once. Its exceptions become errors of
/// the benchmark and, but for `Stopped`, count as `failed_runs`.
template <class F>
benchmark::internal::Benchmark* register_once(const std::string& subject, const std::string& data, std::uint64_t seed,
                                              F measure) {
  const auto once = [measure = std::move(measure)](benchmark::State& state) {
    for (auto _ : state) {
      try {
        measure(state);
      } catch (const Stopped&) {
        state.SkipWithError(stopped);
      } catch (const std::exception& error) {
        ++failed_runs();
        state.SkipWithError(json::repaired(error.what()).c_str());
      }
      if (state.error_occurred()) break;
    }
  };
  // Google Benchmark writes names and errors as they are, and readers refuse JSON that is not UTF-8.
  const std::string name = json::repaired(subject + "/" + data + "/seed:" + std::to_string(seed));
  return benchmark::RegisterBenchmark(name.c_str(), once)->Iterations(1)->Unit(benchmark::kMillisecond);
}

/// The searches of a study, each a benchmark named recipe/problem/seed:N, and their results.
///
/// All recipes search every problem with one seed, then with the next, each time in an order of its own that problem
/// and seed decide, so that changes of the machine affect all of them alike. Finished searches are not repeated.
class Study {
 public:
  /// Throws `std::invalid_argument` for a name that cannot be part of file names, and for a shard out of range.
  Study(Plan plan, Options options) : plan_(std::move(plan)), options_(std::move(options)) {
    check_name(plan_.name, "study");
    if (options_.shard < 1 || options_.shard > options_.shards) {
      throw std::invalid_argument("shard " + std::to_string(options_.shard) + " of " + std::to_string(options_.shards) +
                                  " was asked for; give one from 1 to the number of shards");
    }
    results_.one_training_a_seed = plan_.one_training_a_seed;
  }
  Study(const Study&) = delete;  // benchmarks refer to it
  Study& operator=(const Study&) = delete;

  [[nodiscard]] const Options& options() const noexcept { return options_; }

  /// Registers the searches of `problems`, each a `Problem` or each a `NetworkProblem`, by all recipes.
  /// `prepare(parts)`, if given, is called for each search with the `Parts` of its recipe. Throws
  /// `std::invalid_argument` for repeated names, names that cannot be part of file names, for fewer seeds than an
  /// interval needs, and for a network that cannot be searched and a space that cannot be scored, with its name.
  template <class... Recipes, class P, class Prepare = AsTheyAre>
  void compare(const std::vector<P>& problems, const Budget& budget, Prepare prepare = {}) {
    check(budget);
    if (options_.seeds < fewest_seeds) {
      throw std::invalid_argument("--seeds=" + std::to_string(options_.seeds) + ": an interval needs at least " +
                                  std::to_string(fewest_seeds) + " searches for each recipe and problem");
    }
    open_folder();
    const std::array<std::string, sizeof...(Recipes)> names{std::string(recipe_name<Recipes>())...};
    for (const std::string& name : names) note(results_.recipes, name, "recipe");
    for (const P& each : problems) {
      const auto problem = std::make_shared<const P>(each);  // its searches share it
      note(results_.problems, problem->name, "problem");
      if constexpr (requires { problem->tasks; }) check_network(*problem, budget);
      if constexpr (requires { problem->latencies_s; })
        note_space(problem->name, problem->latencies_s, problem->costs_s);
      Budget own = budget;
      if (problem->trials != 0) own.trials = problem->trials;
      std::string chosen = options_.conditions();
      // With other threads a real search is another one; what a simulated one finds does not depend on them.
      if (const unsigned threads = options_.threads_or(1); !HasOwnClock<measurer_of<P>> && threads != 1)
        chosen += " threads=" + std::to_string(threads);
      const std::uint64_t conditions = conditions_of(problem->weighted_tasks(), own, chosen);
      planned_conditions_.emplace(problem->name, conditions);
      for (const std::uint64_t seed : options_.all_seeds()) {
        if (!of_this_shard() || !wanted(options_.problems, problem->name)) continue;
        std::vector<std::function<void()>> searches;
        const auto choose = [&]<class Recipe>(std::type_identity<Recipe>) {
          if (wanted(options_.recipes, std::string(recipe_name<Recipe>())))
            searches.emplace_back([&] { add_search<Recipe>(problem, seed, own, conditions, prepare); });
        };
        (choose(std::type_identity<Recipes>()), ...);
        Rng(seed).split(StableHash{}.add(std::string_view(problem->name)).value()).shuffle(std::span(searches));
        for (const auto& add : searches) add();
        if constexpr (MeasuredInTurns<P>) add_finalists(problem, seed, conditions, {names.begin(), names.end()});
      }
    }
  }

  /// Runs the registered searches and writes tables and figures of all finished ones of the chosen recipes and
  /// problems, including recipes that are not registered: other programs may add searches to the folder. Returns false
  /// if a run ended with an error. Throws `std::invalid_argument` for chosen names that nobody has, for `--report` and
  /// what chooses among searches where there are none, if nothing was chosen to run or, by `--report`, to tell of, and
  /// as `check_conditions` does.
  bool run() {
    // Ahead of the searches: hours of them would end without a report.
    if (finished_)
      read_finished();
    else
      refuse_choice_of_searches();
    check_names("problems", options_.problems, results_.problems);
    check_names("recipes", options_.recipes, results_.recipes);
    keep_chosen();
    if (!options_.reference.empty()) check_names("reference", {options_.reference}, results_.recipes);
    failed_runs() = 0;
    if (!options_.report_only) {
      check_conditions(results_.searches, planned_conditions_);
      start_ = steady_seconds()();
      // There may be more shards than groups of searches.
      if (benchmark::RunSpecifiedBenchmarks() == 0 && options_.shards == 1) {
        throw std::invalid_argument(
            "nothing was chosen to run; give --seeds=1 or more, and a --benchmark_filter and options of the study's "
            "own, such as --only, that match some of the runs that --benchmark_list_tests names");
      }
    }
    if (!finished_) return failed_runs() == 0;
    // Other processes may have finished searches in the meantime.
    read_finished();
    keep_chosen();
    if (options_.report_only && results_.searches.empty()) {
      throw std::invalid_argument("--report: '" + options_.out.string() + "' has no finished search of " + plan_.name +
                                  " that was chosen; give --out the folder of a run");
    }
    results_.finalists = SharedLines<Finalists>(options_.out, finalists_files, plan_.name, 1, 1).all();
    if (!options_.reference.empty()) {
      if (!is_cut() && std::none_of(results_.searches.begin(), results_.searches.end(),
                                    [&](const auto& search) { return search.recipe == options_.reference; })) {
        throw std::invalid_argument("--reference=" + options_.reference +
                                    ": no search of it is finished, so nothing can be compared with it");
      }
      const auto reference = std::find(results_.recipes.begin(), results_.recipes.end(), options_.reference);
      std::rotate(results_.recipes.begin(), reference, reference + 1);
    }
    write_report(results_, options_.out, plan_.name);
    std::fprintf(stderr, "%s: %s\n", is_cut() ? "stopped; start it again to go on. So far" : "results",
                 (options_.out / (plan_.name + ".md")).string().c_str());
    return failed_runs() == 0;
  }

 private:
  static constexpr unsigned fewest_seeds = 3;

  /// Reads the finished searches of all programs that share the folder, and the recipes that only others have.
  void read_finished() {
    results_.searches = FinishedSearches(options_.out, plan_.name).all();
    for (const FinishedSearch& search : results_.searches) {
      if (contains(results_.recipes, search.recipe)) continue;
      check_name(search.recipe, "recipe");
      results_.recipes.push_back(search.recipe);
    }
  }

  /// Leaves the recipes, the problems and their searches that the command line chooses: of all, where it names none.
  void keep_chosen() {
    std::erase_if(results_.recipes, [&](const std::string& recipe) { return !wanted(options_.recipes, recipe); });
    std::erase_if(results_.problems, [&](const std::string& problem) { return !wanted(options_.problems, problem); });
    std::erase_if(results_.searches, [&](const FinishedSearch& search) {
      return !contains(results_.recipes, search.recipe) || !contains(results_.problems, search.problem);
    });
  }

  void open_folder() {
    if (finished_) return;
    finished_.emplace(options_.out, plan_.name, options_.shard, options_.shards);
    finalists_.emplace(options_.out, finalists_files, plan_.name, options_.shard, options_.shards);
    const auto tell = [](const auto& bad) {
      for (const auto& [file, line] : bad)
        std::fprintf(stderr, "%s:%zu is left out: %s\n", file.c_str(), line.number, line.reason.c_str());
    };
    tell(finished_->bad());
    tell(finalists_->bad());
  }

  [[nodiscard]] static bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  [[nodiscard]] static bool wanted(const std::vector<std::string>& chosen, const std::string& name) {
    return chosen.empty() || contains(chosen, name);
  }

  /// Whether something was left out that the study could still make.
  [[nodiscard]] bool is_cut() const noexcept { return Interrupt::requested() || is_left_out_; }
  /// Whether nothing may begin any more; what asks is then left out.
  [[nodiscard]] bool ran_out_of_time() { return is_left_out_ = is_left_out_ || options_.is_out_of_time(); }

  // Searches of one problem and seed stay together, because they are compared with each other.
  [[nodiscard]] bool of_this_shard() { return groups_++ % options_.shards == options_.shard - 1; }

  /// Refuses options that choose among searches, or tell of them, in a study that compares none.
  void refuse_choice_of_searches() const {
    const auto refuse = [](const char* option, const std::string& value) {
      throw std::invalid_argument(std::string("--") + option + "=" + value +
                                  ": the study compares no searches of recipes; choose what runs by "
                                  "--benchmark_filter=REGEX");
    };
    if (options_.report_only) {
      throw std::invalid_argument(
          "--report: the study compares no searches of recipes, so it has no tables and figures of them; leave it out");
    }
    if (!options_.recipes.empty()) refuse("recipes", options_.recipes.front());
    if (!options_.problems.empty()) refuse("problems", options_.problems.front());
    if (!options_.reference.empty()) refuse("reference", options_.reference);
    if (options_.shards > 1) refuse("shard", std::to_string(options_.shard) + "/" + std::to_string(options_.shards));
  }

  static void check_names(const char* option, const std::vector<std::string>& chosen,
                          const std::vector<std::string>& known) {
    for (const std::string& name : chosen) {
      if (contains(known, name)) continue;
      std::string all;
      for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
      throw std::invalid_argument(std::string("--") + option + ": there is no '" + name + "'; there are " + all);
    }
  }

  // Scripts and tables have names as they are, whoever gave them.
  static void check_name(const std::string& name, const char* what) {
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-@") !=
                            std::string::npos) {
      throw std::invalid_argument(std::string("a ") + what + " is called '" + name +
                                  "'; results are filed under names of letters, digits and _.+-@");
    }
  }
  static void note(std::vector<std::string>& names, const std::string& name, const char* what) {
    check_name(name, what);
    if (contains(names, name)) {
      throw std::invalid_argument(std::string("two ") + what + "s are called '" + name +
                                  "'; give one another name, a recipe by `static constexpr std::string_view name`");
    }
    names.push_back(name);
  }
  template <class P>
  static void check_network(const P& network, const Budget& budget) {
    try {
      const std::size_t trials = network.trials != 0 ? network.trials : budget.trials;
      if (const std::size_t tasks = network_tasks(network.tasks).size(); trials < tasks) {
        throw std::invalid_argument(std::to_string(trials) + " trials for " + std::to_string(tasks) +
                                    " tasks; give at least 1 a task");
      }
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("network '" + network.name + "': " + error.what());
    }
  }

  /// Refuses what could not be scored once all searches are made.
  void note_space(const std::string& name, const std::vector<double>& latencies_s, const std::vector<double>& costs_s) {
    if (latencies_s.empty() && costs_s.empty()) return;
    try {
      const RandomSearch& space = results_.spaces.emplace(name, RandomSearch(latencies_s)).first->second;
      const std::vector<Course> any(1);
      static_cast<void>(ScoredRuns(space, any, space.range()));
      if (costs_s.empty()) return;
      const TrialCosts& costs = results_.costs.emplace(name, TrialCosts(latencies_s, costs_s)).first->second;
      static_cast<void>(ScoredRuns(space, costs, any, costs.range(space.range())));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("problem '" + name + "': " + error.what());
    }
  }

  template <class Recipe, class P, class Prepare>
  void add_search(const std::shared_ptr<const P>& problem, std::uint64_t seed, const Budget& budget,
                  std::uint64_t conditions, const Prepare& prepare) {
    const std::string recipe(recipe_name<Recipe>());
    ++planned_;
    const FinishedSearch* known = finished_->find(recipe, problem->name, seed);
    if (known != nullptr && known->conditions == conditions) ++known_;
    const auto once = [this, recipe, problem, seed, budget, conditions, prepare](benchmark::State& state) {
      const Course* course = find_or_search<Recipe>(recipe, *problem, seed, budget, conditions, prepare);
      if (course == nullptr)
        state.SkipWithError(Interrupt::requested() ? stopped : out_of_time);
      else
        show(state, *course, problem->name);
    };
    register_once(recipe, problem->name, seed, once)->UseManualTime();
  }

  template <class Recipe, class P, class Prepare>
  const Course* find_or_search(const std::string& recipe, const P& problem, std::uint64_t seed, const Budget& budget,
                               std::uint64_t conditions, const Prepare& prepare) {
    if (const FinishedSearch* known = finished_->find(recipe, problem.name, seed, conditions)) return &known->course;
    if (Interrupt::requested() || ran_out_of_time()) return nullptr;
    // A stopped search under other conditions is another search: this one does not go on from its journal.
    const std::filesystem::path journal =
        options_.out / "journals" / recipe /
        (problem.name + "." + std::to_string(seed) + "." + std::to_string(conditions) + ".jsonl");
    std::optional<Searched> searched =
        search<Recipe>(problem, seed, budget, options_.threads_or(1), journal, interrupt_, prepare);
    if (!searched) return nullptr;
    const FinishedSearch& kept = finished_->add(
        {recipe, problem.name, seed, conditions, std::move(searched->course), std::move(searched->best_config)});
    ++made_;
    tell_progress(kept);
    return &kept.course;
  }

  /// Registers the alternating measurement of the recipes' final programs, after all recipes have searched.
  template <class P>
  void add_finalists(const std::shared_ptr<const P>& problem, std::uint64_t seed, std::uint64_t conditions,
                     std::vector<std::string> recipes) {
    std::erase_if(recipes, [&](const std::string& recipe) { return !wanted(options_.recipes, recipe); });
    const auto once = [this, problem, seed, conditions, recipes = std::move(recipes)](benchmark::State& state) {
      const Finalists* finalists = find_or_measure_finalists(*problem, seed, conditions, recipes);
      if (finalists == nullptr) {
        state.SkipWithError(Interrupt::requested() ? stopped
                            : is_left_out_         ? out_of_time
                                                   : "not all searches are finished");
        return;
      }
      for (const auto& [recipe, latency_s] : finalists->latencies_s) state.counters[recipe + "_us"] = 1e6 * latency_s;
    };
    register_once("finalists", problem->name, seed, once);
  }

  template <class P>
  const Finalists* find_or_measure_finalists(const P& problem, std::uint64_t seed, std::uint64_t conditions,
                                             const std::vector<std::string>& recipes) {
    std::vector<Entrant> entrants;
    for (const std::string& recipe : recipes) {
      const FinishedSearch* search = finished_->find(recipe, problem.name, seed, conditions);
      if (search == nullptr) return nullptr;
      if (!search->best_config.empty()) entrants.push_back({recipe, search->best_config});
    }
    const auto has_entered = [&](const Finalists& known, const Entrant& entrant) {
      const auto entered = known.entrants.find(entrant.recipe);
      return entered != known.entrants.end() && entered->second == hash_of(entrant);
    };
    for (const Finalists& known : finalists_->all()) {
      if (known.seed == seed && known.problem == problem.name && known.conditions == conditions &&
          std::all_of(entrants.begin(), entrants.end(), [&](const Entrant& one) { return has_entered(known, one); }))
        return &known;
    }
    if (Interrupt::requested() || ran_out_of_time()) return nullptr;
    return &finalists_->add(measure_finalists(problem, seed, conditions, std::move(entrants)));
  }

  void show(benchmark::State& state, const Course& course, const std::string& problem) const {
    state.SetIterationTime(course.elapsed_s);
    // Infinity is no number of JSON.
    if (course.best_s() < Course::infinity) state.counters["best_us"] = 1e6 * course.best_s();
    state.counters["trials"] = static_cast<double>(course.trials);
    state.counters["failed"] = static_cast<double>(course.failed);
    if (const auto space = results_.spaces.find(problem); space != results_.spaces.end())
      state.counters["score"] = performance_score(space->second, std::span(&course, 1));
  }

  void tell_progress(const FinishedSearch& search) const {
    const double elapsed_s = (steady_seconds()() - start_).count();
    const auto left = static_cast<double>(planned_ - known_ - made_);
    std::fprintf(stderr, "%zu of %zu searches | %s %s seed %llu: %.4g us, %zu of %zu failed | %.0f s, %.0f s left\n",
                 known_ + made_, planned_, search.recipe.c_str(), search.problem.c_str(),
                 static_cast<unsigned long long>(search.seed), 1e6 * search.course.best_s(), search.course.failed,
                 search.course.trials, elapsed_s, elapsed_s / static_cast<double>(made_) * left);
  }

  Plan plan_;
  Options options_;
  static constexpr const char* finalists_files = "finalists";

  std::optional<FinishedSearches> finished_;  // opened by the first comparison, like the next
  std::optional<SharedLines<Finalists>> finalists_;
  Results results_;
  std::map<std::string, std::uint64_t> planned_conditions_;  // by problem
  Interrupt interrupt_;
  Seconds start_{0};
  std::size_t planned_ = 0, known_ = 0, made_ = 0, groups_ = 0;
  bool is_left_out_ = false;  // something, because time was over
};

/// Registers a benchmark that is not a search: one (subject, data, seed), which runs once. Its counters are the result;
/// its time is the wall time of `measure(state)`. After Ctrl-C none begins. `--minutes` is for `measure` to keep to, by
/// `Options::is_out_of_time`, because it knows whether there is a result of an earlier run.
template <class F>
void add(const std::string& subject, const std::string& data, std::uint64_t seed, F measure) {
  const auto unless_stopped = [measure = std::move(measure)](benchmark::State& state) {
    if (Interrupt::requested())
      state.SkipWithError(stopped);
    else
      measure(state);
  };
  register_once(subject, data, seed, unless_stopped)->UseRealTime();
}

/// The complete `main`. Without the data it says so and succeeds, so that scripts continue.
template <class Setup>
int run(int argc, char** argv, const Plan& plan, const Setup& setup) {
  try {
    std::string line;
    for (int i = 1; i < argc; ++i) {
      // Folders of this machine mean nothing to readers of the report.
      const std::string_view word = argv[i];
      if (!word.starts_with("--data=") && !word.starts_with("--out=") && !word.starts_with("--benchmark_"))
        line += std::string(line.empty() ? "" : " ") + std::string(word);
    }
    const std::span<char* const> words(argv, static_cast<std::size_t>(argc));
    if (std::ranges::find(words, std::string_view("--help")) != words.end()) std::fputs(usage(plan).c_str(), stdout);
    Options options = take_options(argc, argv, plan);
    // With its default filter Google Benchmark makes room for one run at a time and moves those before it, which takes
    // long for thousands. A filter that all runs match comes ahead of the user's, which has precedence.
    std::string all_runs = "--benchmark_filter=.*";
    std::vector<char*> own(argv, argv + argc);
    if (std::getenv("BENCHMARK_FILTER") == nullptr) own.insert(own.begin() + std::min(argc, 1), all_runs.data());
    auto count = static_cast<int>(own.size());
    benchmark::Initialize(&count, own.data());
    if (benchmark::ReportUnrecognizedArguments(count, own.data())) return 1;
    for (const std::string& folder : plan.folders) {
      if (!options.data.empty() && std::filesystem::is_directory(options.data / folder)) continue;
      std::fprintf(stderr, "skipped: no folder '%s' in the data; name their folder by --data=DIR, see docs/studies\n",
                   folder.c_str());
      return 0;
    }
    benchmark::AddCustomContext("seeds", std::to_string(options.seeds));
    benchmark::AddCustomContext("options", line);
    Study study(plan, std::move(options));
    setup(study);
    const bool works = study.run();
    benchmark::ClearRegisteredBenchmarks();  // they refer to the study
    return works ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace tunewright::study
