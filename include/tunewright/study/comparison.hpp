// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/number_text.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/study/course.hpp"
#include "tunewright/study/finalists.hpp"
#include "tunewright/study/finished_search.hpp"
#include "tunewright/study/intervals.hpp"
#include "tunewright/study/performance_score.hpp"
#include "tunewright/study/random_search.hpp"
#include "tunewright/study/running_time.hpp"
#include "tunewright/study/trial_costs.hpp"

namespace tunewright::study {

/// The results of a study so far.
struct Results {
  std::vector<std::string> recipes{}, problems{};  ///< as they were registered; the first recipe is the reference
  std::map<std::string, RandomSearch> spaces{};    ///< of the problems whose every configuration was measured
  std::map<std::string, TrialCosts> costs{};       ///< of such problems, where it is known
  std::vector<FinishedSearch> searches{};
  std::vector<Finalists> finalists{};  ///< of those that hold all recipes the last one counts
  /// The searches of all problems with one seed begin with one training, as `Plan::one_training_a_seed` says.
  bool one_training_a_seed = false;
};

/// Searches of a problem that are not compared, because not all recipes have searched it with the same seeds.
struct NotCompared {
  std::string problem;
  std::vector<std::vector<Course>> courses{};  ///< [recipe][search]
};

/// Recipes held against each other on the problems and seeds that all of them have searched.
///
/// Intervals are those of `bootstrap`, over problems and over seeds within each, or, with one training a seed, those of
/// `bootstrap_of_trainings`; comparisons of two recipes are paired. With too few samples, the ends of an interval are
/// NaN.
///
/// Cost: an interval resamples 2000 times. All of a report take some seconds for ten recipes on ten problems with 25
/// seeds, and half a minute with scores over trials and over seconds. Determinism: a pure function of the results.
/// Errors: `std::out_of_range` for positions beyond `recipes` and `problems`, and `std::invalid_argument` for scores
/// and finalists that the results lack.
class Comparison {
 public:
  /// Throws `std::invalid_argument` as `check_conditions` does, and as `ScoredRuns` for what a space cannot score.
  explicit Comparison(const Results& results) : one_training_a_seed_(results.one_training_a_seed) {
    check_conditions(results.searches);
    std::map<std::string, std::map<std::string, BySeed>> found;  // by problem and recipe
    std::set<std::string> searching;
    for (const FinishedSearch& search : results.searches) {
      // The first of several, as `FinishedSearches::find` has it for finalists.
      found[search.problem][search.recipe].emplace(search.seed, &search);
      searching.insert(search.recipe);
    }
    for (const std::string& recipe : results.recipes)
      if (searching.contains(recipe)) recipes_.push_back(recipe);
    courses_.resize(recipes_.size());
    std::map<std::string, std::map<std::uint64_t, const Finalists*>> finalists;
    for (const Finalists& of : results.finalists)
      if (has_all_that_found(of, found[of.problem])) finalists[of.problem][of.seed] = &of;
    for (const std::string& problem : results.problems) {
      const std::vector<std::uint64_t> seeds = common_seeds(found[problem]);
      if (!seeds.empty()) {
        add_problem(problem, seeds, found[problem], results);
        add_finalists(seeds, finalists[problem]);
      }
      add_others(problem, seeds, found[problem]);
    }
  }

  [[nodiscard]] const std::vector<std::string>& recipes() const noexcept { return recipes_; }
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }
  /// Searches that are left out, problem by problem; those problems that have some.
  [[nodiscard]] const std::vector<NotCompared>& not_compared() const noexcept { return not_compared_; }
  /// Searches of each recipe that are compared.
  [[nodiscard]] std::size_t searches() const {
    std::size_t sum = 0;
    for (const auto& of_problem : seeds_) sum += of_problem.size();
    return sum;
  }
  /// The searches of recipe r on problem p, by seed.
  [[nodiscard]] std::span<const Course> courses(std::size_t r, std::size_t p) const {
    check_recipe(r);
    check_problem(p);
    return courses_[r][p];
  }
  /// Latency of the best known configuration of problem p: of its space, or else of the searches that are compared;
  /// infinite where they found nothing.
  [[nodiscard]] double best_known_s(std::size_t p) const {
    check_problem(p);
    return best_known_s_[p];
  }
  /// Whether every problem has a known space, so that searches have scores.
  [[nodiscard]] bool has_scores(Effort over = Effort::Trials) const {
    const Scored& scored = scored_over(over);
    return !scored.empty() &&
           std::all_of(scored.begin(), scored.end(), [](const auto& of_problem) { return of_problem.has_value(); });
  }

  /// Performance score over all problems, or on one of them alone; see `ScoredRuns`.
  [[nodiscard]] Interval score(std::size_t r, std::optional<std::size_t> problem = {},
                               Effort over = Effort::Trials) const {
    check_recipe(r);
    check_scores(over, problem);
    return interval([&](std::span<const DrawnTask> drawn) { return mean_score(r, drawn, over); }, problem);
  }
  /// Score of recipe r minus that of recipe q.
  [[nodiscard]] Interval score_difference(std::size_t r, std::size_t q, Effort over = Effort::Trials) const {
    check_recipe(r);
    check_recipe(q);
    check_scores(over, {});
    return interval(
        [&](std::span<const DrawnTask> drawn) { return mean_score(r, drawn, over) - mean_score(q, drawn, over); });
  }

  /// Speed on one problem of what a search has found within `effort` trials or seconds, otherwise as `speed`. Throws
  /// `std::invalid_argument` for an effort below 0 or NaN.
  [[nodiscard]] Interval speed_within(std::size_t r, std::size_t problem, double effort, Effort over) const {
    check_recipe(r);
    check_problem(problem);
    if (!(effort >= 0)) {
      throw std::invalid_argument("the speed within " + number_text(effort) +
                                  " trials or seconds was asked for; give 0 or more");
    }
    const std::size_t trials = effort < 1e18 ? static_cast<std::size_t>(effort) : all_trials;
    std::vector<double> speeds;  // [seed]
    for (const Course& course : courses_[r][problem]) {
      const double best_s = over == Effort::Seconds ? course.best_at(effort) : course.best_after(trials);
      speeds.push_back(share_of_best_known(problem, best_s));
    }
    return interval(
        [&](std::span<const DrawnTask> drawn) {
          return intervals_detail::mean_of(drawn, [&](std::size_t, std::size_t seed) { return speeds[seed]; });
        },
        problem);
  }

  /// Speed of the best program of a search after `trials` (default: all), as a share of that of the best known program;
  /// the mean over problems of the mean over seeds. 0 for a search without a valid program.
  [[nodiscard]] Interval speed(std::size_t r, std::size_t trials = all_trials) const {
    check_recipe(r);
    const Speeds speeds = speeds_after(r, trials);
    return interval([&](std::span<const DrawnTask> drawn) { return mean(speeds, drawn); });
  }
  [[nodiscard]] Interval speed_difference(std::size_t r, std::size_t q) const {
    check_recipe(r);
    check_recipe(q);
    const Speeds speeds = speeds_after(r, all_trials), others = speeds_after(q, all_trials);
    return interval([&](std::span<const DrawnTask> drawn) { return mean(speeds, drawn) - mean(others, drawn); });
  }

  /// Whether the final programs of all searches were measured again, alternately.
  [[nodiscard]] bool has_finalists() const {
    return !problems_.empty() &&
           std::all_of(finalist_speeds_.begin(), finalist_speeds_.end(), [](const auto& of_problem) {
             return std::none_of(of_problem.begin(), of_problem.end(), [](const auto& one) { return one.empty(); });
           });
  }
  /// Speed of the final program of a search, as a share of that of the fastest one of `recipes()` for the same problem
  /// and seed, all measured alternately; the mean over problems of the mean over seeds. 0 without a program, and if it
  /// now fails.
  [[nodiscard]] Interval finalist_speed(std::size_t r) const {
    check_recipe(r);
    check_finalists();
    return interval([&](std::span<const DrawnTask> drawn) { return mean_finalist_speed(r, drawn); });
  }
  [[nodiscard]] Interval finalist_difference(std::size_t r, std::size_t q) const {
    check_recipe(r);
    check_recipe(q);
    check_finalists();
    return interval([&](std::span<const DrawnTask> drawn) {
      return mean_finalist_speed(r, drawn) - mean_finalist_speed(q, drawn);
    });
  }
  /// Difference of two alternating measurements of one program: |ln(second / first)| for every problem and seed.
  [[nodiscard]] const std::vector<double>& noise() const { return noise_; }

  /// Speedup of recipe r to the final result of recipe q: for each problem, the mean effort of q's whole searches over
  /// the expected running time of r, where each search of r must reach the final result of q's search with the same
  /// seed, or, where that ended without a valid program, find one; the geometric mean over problems. 0 if r never does
  /// on some problem, not a number if a search of either knew a result after no time: nothing can be told from such
  /// seconds.
  [[nodiscard]] Interval speedup(std::size_t r, std::size_t q, Effort effort) const {
    check_recipe(r);
    check_recipe(q);
    if (!takes_effort(r, effort) || !takes_effort(q, effort)) return unknown;
    return geometric_mean([&](const DrawnTask& one) {
      double whole = 0;
      for (const std::size_t seed : one.seeds) whole += effort_of(courses_[q][one.task][seed], effort);
      return whole / static_cast<double>(one.seeds.size()) / expected_to_end_of(r, q, one, effort);
    });
  }
  /// How many times shorter recipe r takes to where recipe q ends than q itself does, otherwise as `speedup`: the time
  /// that q searches on without finding anything faster does not count. 0 where, on some problem, r never does;
  /// infinite otherwise if q finds nothing on some problem.
  [[nodiscard]] Interval speedup_over_itself(std::size_t r, std::size_t q, Effort effort) const {
    check_recipe(r);
    check_recipe(q);
    if (!takes_effort(r, effort) || !takes_effort(q, effort)) return unknown;
    return geometric_mean([&](const DrawnTask& one) {
      const double expected = expected_to_end_of(r, q, one, effort);
      return expected < Course::infinity ? expected_to_end_of(q, q, one, effort) / expected : 0;
    });
  }

  /// Share of the trials that failed.
  [[nodiscard]] double failed_share(std::size_t r) const { return share_of_trials(r, &Course::failed); }
  /// Share of the trials with an imprecise latency.
  [[nodiscard]] double imprecise_share(std::size_t r) const { return share_of_trials(r, &Course::imprecise); }
  /// Mean over all searches.
  [[nodiscard]] double seconds_a_search(std::size_t r) const {
    check_recipe(r);
    double sum = 0;
    for (const auto& of_problem : courses_[r])
      for (const Course& course : of_problem) sum += course.elapsed_s;
    return sum / static_cast<double>(std::max<std::size_t>(searches(), 1));
  }
  /// Trials of the longest search.
  [[nodiscard]] std::size_t most_trials() const {
    std::size_t most = 0;
    for (const auto& of_recipe : courses_)
      for (const auto& of_problem : of_recipe)
        for (const Course& course : of_problem) most = std::max(most, course.trials);
    return most;
  }

  static constexpr std::size_t all_trials = std::numeric_limits<std::size_t>::max();

 private:
  using BySeed = std::map<std::uint64_t, const FinishedSearch*>;
  using Scored = std::vector<std::optional<std::vector<ScoredRuns>>>;  // [problem][recipe]
  using Speeds = std::vector<std::vector<double>>;                     // [problem][seed]

  static constexpr Interval unknown{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::quiet_NaN()};

  [[nodiscard]] const Scored& scored_over(Effort over) const {
    return over == Effort::Trials ? scored_ : scored_over_seconds_;
  }

  void check_recipe(std::size_t r) const { check_position(r, recipes_.size(), "recipe"); }
  void check_problem(std::size_t p) const { check_position(p, problems_.size(), "problem"); }
  static void check_position(std::size_t at, std::size_t count, const char* what) {
    if (at < count) return;
    throw std::out_of_range(std::string(what) + " " + std::to_string(at) + " of " + std::to_string(count) +
                            " was asked for; give a position in " + what + "s()");
  }
  /// Throws unless `problem`, or by default every problem, has scores.
  void check_scores(Effort over, std::optional<std::size_t> problem) const {
    if (problem) check_problem(*problem);
    for (std::size_t p = 0; p < problems_.size(); ++p) {
      if ((problem && p != *problem) || scored_over(over)[p]) continue;
      throw std::invalid_argument("problem '" + problems_[p] + "' has no scores over " +
                                  (over == Effort::Trials ? "trials" : "seconds") +
                                  "; ask has_scores first, or give its space in Results::spaces" +
                                  (over == Effort::Trials ? "" : " and Results::costs"));
    }
  }
  void check_finalists() const {
    if (problems_.empty() || has_finalists()) return;
    throw std::invalid_argument(
        "the final programs of some searches were not measured together; ask has_finalists "
        "first, or let the study measure them");
  }

  [[nodiscard]] double share_of_trials(std::size_t r, std::size_t Course::* count) const {
    check_recipe(r);
    double counted = 0, trials = 0;
    for (const auto& of_problem : courses_[r]) {
      for (const Course& course : of_problem) {
        counted += static_cast<double>(course.*count);
        trials += static_cast<double>(course.trials);
      }
    }
    return trials > 0 ? counted / trials : 0;
  }

  /// Whether every recipe that found a program with that seed is among the finalists, with that program.
  [[nodiscard]] bool has_all_that_found(const Finalists& finalists, const std::map<std::string, BySeed>& found) const {
    return std::all_of(recipes_.begin(), recipes_.end(), [&](const std::string& recipe) {
      const auto of_recipe = found.find(recipe);
      if (of_recipe == found.end() || !of_recipe->second.contains(finalists.seed)) return true;
      const FinishedSearch& search = *of_recipe->second.at(finalists.seed);
      if (search.course.best_s() == Course::infinity) return true;
      const auto entered = finalists.entrants.find(recipe);
      if (entered == finalists.entrants.end()) return false;
      return search.best_config.empty() || entered->second == hash_of(Entrant{recipe, search.best_config});
    });
  }
  /// Seeds that all recipes have searched with.
  [[nodiscard]] std::vector<std::uint64_t> common_seeds(const std::map<std::string, BySeed>& found) const {
    std::vector<std::uint64_t> common;
    if (recipes_.empty()) return common;
    const auto first = found.find(recipes_.front());
    if (first != found.end())
      for (const auto& [seed, search] : first->second) common.push_back(seed);
    for (const std::string& recipe : recipes_) {
      const auto of_recipe = found.find(recipe);
      std::erase_if(common,
                    [&](std::uint64_t seed) { return of_recipe == found.end() || !of_recipe->second.contains(seed); });
    }
    return common;
  }

  void add_problem(const std::string& problem, const std::vector<std::uint64_t>& common,
                   const std::map<std::string, BySeed>& found, const Results& results) {
    problems_.push_back(problem);
    seeds_.push_back(common);
    double best_s = Course::infinity;
    for (std::size_t r = 0; r < recipes_.size(); ++r) {
      std::vector<Course>& courses = courses_[r].emplace_back();
      for (const std::uint64_t seed : common) {
        courses.push_back(found.at(recipes_[r]).at(seed)->course);
        best_s = std::min(best_s, courses.back().best_s());
      }
    }
    std::optional<std::vector<ScoredRuns>>& scored = scored_.emplace_back();
    std::optional<std::vector<ScoredRuns>>& over_seconds = scored_over_seconds_.emplace_back();
    if (const auto space = results.spaces.find(problem); space != results.spaces.end()) {
      best_s = space->second.optimum_s();
      const TrialRange range = space->second.range();
      scored.emplace();
      for (const auto& of_recipe : courses_) scored->emplace_back(space->second, of_recipe.back(), range);
      if (const auto costs = results.costs.find(problem); costs != results.costs.end()) {
        over_seconds.emplace();
        for (const auto& of_recipe : courses_)
          over_seconds->emplace_back(space->second, costs->second, of_recipe.back(), costs->second.range(range));
      }
    }
    best_known_s_.push_back(best_s);
  }

  void add_others(const std::string& problem, const std::vector<std::uint64_t>& common,
                  const std::map<std::string, BySeed>& found) {
    NotCompared others{.problem = problem, .courses = std::vector<std::vector<Course>>(recipes_.size())};
    bool any = false;
    for (std::size_t r = 0; r < recipes_.size(); ++r) {
      const auto of_recipe = found.find(recipes_[r]);
      if (of_recipe == found.end()) continue;
      for (const auto& [seed, search] : of_recipe->second) {
        if (std::find(common.begin(), common.end(), seed) != common.end()) continue;
        others.courses[r].push_back(search->course);
        any = true;
      }
    }
    if (any) not_compared_.push_back(std::move(others));
  }

  void add_finalists(const std::vector<std::uint64_t>& common, const std::map<std::uint64_t, const Finalists*>& found) {
    std::vector<std::vector<double>>& of_problem = finalist_speeds_.emplace_back();
    for (const std::uint64_t seed : common) {
      const auto finalists = found.find(seed);
      std::vector<double>& speeds = of_problem.emplace_back();
      if (finalists == found.end()) continue;
      const Finalists& of = *finalists->second;
      double best_s = Course::infinity;  // of the recipes that are compared
      for (const std::string& recipe : recipes_) {
        const auto latency_s = of.latencies_s.find(recipe);
        speeds.push_back(latency_s == of.latencies_s.end() ? Course::infinity : latency_s->second);
        best_s = std::min(best_s, speeds.back());
      }
      for (double& speed : speeds) speed = speed < Course::infinity ? best_s / speed : 0;
      if (!of.twice.empty()) noise_.push_back(std::abs(std::log(of.again_s / of.latencies_s.at(of.twice))));
    }
  }

  /// Expected running time of recipe r where each search has to reach what that of q with the same seed ended with;
  /// infinite where none does. Where q ended without a valid program, the first one of r is ahead of it, and the search
  /// of q itself has not got there.
  [[nodiscard]] double expected_to_end_of(std::size_t r, std::size_t q, const DrawnTask& drawn, Effort effort) const {
    double spent = 0, reached = 0;
    for (const std::size_t seed : drawn.seeds) {
      const Course& course = courses_[r][drawn.task][seed];
      const double target_s = courses_[q][drawn.task][seed].best_s();
      const std::optional<double> success = effort_to(course, target_s, effort);
      if (success) ++reached;
      spent += success ? *success : effort_of(course, effort);
    }
    return reached > 0 ? spent / reached : Course::infinity;
  }

  /// Whether every search of recipe r had spent something when it first found a program.
  [[nodiscard]] bool takes_effort(std::size_t r, Effort effort) const {
    return std::all_of(courses_[r].begin(), courses_[r].end(), [&](const std::vector<Course>& of_problem) {
      return std::all_of(of_problem.begin(), of_problem.end(), [&](const Course& course) {
        return effort_to(course, Course::infinity, effort).value_or(1) > 0;
      });
    });
  }

  /// The geometric mean of `ratio(drawn)` over the problems, with its interval; 0 if one ratio is, whatever the others.
  template <class Ratio>
  [[nodiscard]] Interval geometric_mean(const Ratio& ratio) const {
    return interval([&](std::span<const DrawnTask> drawn) {
      double logarithms = 0;
      for (const DrawnTask& one : drawn) {
        const double of_problem = ratio(one);
        if (of_problem == 0) return 0.0;
        logarithms += std::log(of_problem);
      }
      return std::exp(logarithms / static_cast<double>(drawn.size()));
    });
  }

  template <class Statistic>
  [[nodiscard]] Interval interval(const Statistic& statistic, std::optional<std::size_t> problem = {}) const {
    if (problems_.empty()) return unknown;
    std::span<const std::vector<std::uint64_t>> seeds = seeds_;
    if (problem) seeds = seeds.subspan(*problem, 1);
    const auto of_problem = [&](std::span<const DrawnTask> drawn) {
      std::vector<DrawnTask> moved(drawn.begin(), drawn.end());
      if (problem)
        for (DrawnTask& one : moved) one.task = *problem;
      return statistic(std::span<const DrawnTask>(moved));
    };
    static_assert(fewest_trainings == 3, "as many as a single task needs seeds");
    if (seeds.size() >= 2 || seeds[0].size() >= fewest_trainings) {
      if (one_training_a_seed_) return bootstrap_of_trainings(seeds, of_problem, Rng(0));
      std::vector<std::size_t> counts;
      for (const auto& one : seeds) counts.push_back(one.size());
      return bootstrap(counts, of_problem, Rng(0));
    }
    std::vector<std::size_t> all(seeds[0].size());
    for (std::size_t s = 0; s < all.size(); ++s) all[s] = s;
    const DrawnTask only{.task = 0, .seeds = all};
    return {of_problem(std::span(&only, 1)), unknown.low, unknown.high};
  }

  [[nodiscard]] double mean_score(std::size_t r, std::span<const DrawnTask> drawn, Effort over) const {
    double sum = 0;
    for (const DrawnTask& one : drawn) sum += (*scored_over(over)[one.task])[r].score(one.seeds);
    return sum / static_cast<double>(drawn.size());
  }
  [[nodiscard]] double mean_finalist_speed(std::size_t r, std::span<const DrawnTask> drawn) const {
    return intervals_detail::mean_of(
        drawn, [&](std::size_t problem, std::size_t seed) { return finalist_speeds_[problem][seed][r]; });
  }
  /// What the searches of recipe r had found after so many trials, once for all resamples.
  [[nodiscard]] Speeds speeds_after(std::size_t r, std::size_t trials) const {
    Speeds speeds(problems_.size());
    for (std::size_t p = 0; p < problems_.size(); ++p)
      for (const Course& course : courses_[r][p])
        speeds[p].push_back(share_of_best_known(p, course.best_after(trials)));
    return speeds;
  }
  [[nodiscard]] static double mean(const Speeds& speeds, std::span<const DrawnTask> drawn) {
    return intervals_detail::mean_of(drawn, [&](std::size_t p, std::size_t seed) { return speeds[p][seed]; });
  }
  /// Speed of a program of problem p that takes `latency_s`; 0 for none, also where no search has found any.
  [[nodiscard]] double share_of_best_known(std::size_t p, double latency_s) const {
    return latency_s < Course::infinity ? best_known_s_[p] / latency_s : 0;
  }

  std::vector<std::string> recipes_, problems_;
  std::vector<std::vector<std::vector<double>>> finalist_speeds_;  // [problem][seed][recipe]; none if not measured
  std::vector<double> noise_;                                      // [problem and seed]
  std::vector<std::vector<std::vector<Course>>> courses_;          // [recipe][problem][seed]
  std::vector<std::vector<std::uint64_t>> seeds_;                  // [problem]
  bool one_training_a_seed_ = false;
  std::vector<double> best_known_s_;  // [problem]
  Scored scored_, scored_over_seconds_;
  std::vector<NotCompared> not_compared_;
};

}  // namespace tunewright::study
