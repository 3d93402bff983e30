// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/comparison.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace {

using namespace tunewright;

study::FinishedSearch search(const char* recipe, const char* problem, std::uint64_t seed, const study::Course& course) {
  return {.recipe = recipe, .problem = problem, .seed = seed, .conditions = 0, .course = course};
}

/// Finds `found_s` in trial `trial` of ten, one a second.
study::Course course(std::size_t trial, double found_s) {
  study::Course course;
  for (std::size_t t = 1; t <= 10; ++t) course.add(t < trial ? 8.0 : found_s, static_cast<double>(t));
  return course;
}

/// On two problems with three seeds: Slow ends at 2 s, Fast reaches that and 1 s in half the trials, Lost never does.
study::Results results() {
  study::Results results{.recipes = {"Slow", "Fast", "Lost", "Idle"}, .problems = {"p", "q"}};
  for (const char* problem : {"p", "q"}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      results.searches.push_back(search("Slow", problem, seed, course(10, 2)));
      results.searches.push_back(search("Fast", problem, seed, course(5, 1)));
      results.searches.push_back(search("Lost", problem, seed, course(1, 8)));
    }
  }
  return results;
}

TEST_CASE("recipes are compared on what all of them have searched") {
  study::Results some = results();
  some.searches.push_back(search("Slow", "p", 7, course(1, 0.5)));  // no other recipe has this seed
  const study::Comparison comparison(some);
  CHECK(comparison.recipes() == std::vector<std::string>{"Slow", "Fast", "Lost"});
  CHECK(comparison.problems() == std::vector<std::string>{"p", "q"});
  CHECK(comparison.searches() == 6);
  CHECK(comparison.best_known_s(0) == 1);
  CHECK_FALSE(comparison.has_scores());
  CHECK(study::Comparison(study::Results{}).problems().empty());
}

TEST_CASE("the luck of one training for all problems is drawn once for all of them") {
  // The training of one seed in three is bad: its searches end at 2 s on every problem, the others at 1 s. By hand: all
  // three draws are that seed in 1 of 27 resamples, so 0.5 is the low end, as if there were one problem.
  study::Results some{.recipes = {"A"}, .problems = {"p", "q", "r", "s"}};
  for (const std::string& problem : some.problems)
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      some.searches.push_back(search("A", problem.c_str(), seed, course(5, seed == 1 ? 2 : 1)));
  const study::Interval drawn_anew = study::Comparison(some).speed(0);
  some.one_training_a_seed = true;
  const study::Interval drawn_once = study::Comparison(some).speed(0);
  CHECK(drawn_once.value == doctest::Approx(5.0 / 6));
  CHECK(drawn_once.low == 0.5);
  CHECK(drawn_once.high == 1);
  CHECK(drawn_anew.value == doctest::Approx(5.0 / 6));
  CHECK(drawn_anew.low > 0.6);
  // On one problem a seed is the luck of that problem, whatever it is.
  CHECK(study::Comparison(some).speed_within(0, 2, 10, study::Effort::Trials).low == 0.5);
}

TEST_CASE("speed is a share of the best known, with an interval") {
  const study::Comparison comparison(results());
  CHECK(comparison.speed(0) == study::Interval{0.5, 0.5, 0.5});
  CHECK(comparison.speed(1, 4).value == 0.125);
  CHECK(comparison.speed(1, 5).value == 1);
  CHECK(comparison.speed_difference(1, 0) == study::Interval{0.5, 0.5, 0.5});
  CHECK(comparison.seconds_a_search(0) == 10);
  CHECK(comparison.failed_share(0) == 0);
}

TEST_CASE("where no search of a problem found anything its speeds are 0 and the other problems still count") {
  study::Course nothing;
  for (int t = 1; t <= 10; ++t) nothing.add(study::Course::infinity, t);
  study::Results some = results();
  for (study::FinishedSearch& one : some.searches)
    if (one.problem == "q") one.course = nothing;
  const study::Comparison comparison(some);
  CHECK(comparison.best_known_s(1) == study::Course::infinity);
  CHECK(comparison.speed(0).value == 0.25);  // (0.5 + 0) / 2
  CHECK(comparison.speed(1).value == 0.5);   // (1 + 0) / 2
  CHECK(comparison.speed_difference(1, 0).value == 0.25);
  CHECK(comparison.speed_within(1, 1, 10, study::Effort::Trials) == study::Interval{0, 0, 0});
  CHECK(comparison.speedup(1, 0, study::Effort::Trials).value == 0);
}

TEST_CASE("searches that were made under different conditions are refused, unknown ones fit all") {
  study::Results some = results();
  for (study::FinishedSearch& one : some.searches)
    if (one.recipe != "Lost") one.conditions = one.problem == "p" ? 5 : 6;
  CHECK(study::Comparison(some).searches() == 6);
  for (study::FinishedSearch& one : some.searches)
    if (one.recipe == "Fast" && one.problem == "q" && one.seed == 1) one.conditions = 7;
  CHECK_THROWS_WITH_AS(study::Comparison{some},
                       doctest::Contains("the search of q by Fast with seed 1 was made with another task, budget or "
                                         "option than that by Slow with seed 0"),
                       std::invalid_argument);
}

TEST_CASE("speed-up is the whole time of one over the expected time of the other, unfinished searches being that") {
  const study::Comparison comparison(results());
  CHECK(comparison.speedup(1, 0, study::Effort::Trials).value == doctest::Approx(2));
  CHECK(comparison.speedup(0, 0, study::Effort::Seconds).value == doctest::Approx(1));
  CHECK(comparison.speedup(2, 0, study::Effort::Trials).value == 0);
  // By hand: one of three searches on p does not get there: (5 + 5 + 10) / 2 trials instead of 5.
  study::Results some = results();
  for (study::FinishedSearch& one : some.searches)
    if (one.recipe == "Fast" && one.problem == "p" && one.seed == 0) one.course = course(1, 3);
  const study::Interval speedup = study::Comparison(some).speedup(1, 0, study::Effort::Trials);
  CHECK(speedup.value == doctest::Approx(std::sqrt(10.0 / 10 * 2)));
  CHECK(speedup.low < speedup.value);
  CHECK(speedup.high > speedup.value);
}

TEST_CASE("where a search ended without a program, another is ahead of it with its first one, and it itself is not") {
  study::Course nothing;
  for (int t = 1; t <= 10; ++t) nothing.add(study::Course::infinity, t);
  study::Results some{.recipes = {"A", "B"}, .problems = {"p"}};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    some.searches.push_back(search("A", "p", seed, seed == 0 ? nothing : course(10, 2)));
    some.searches.push_back(search("B", "p", seed, course(5, 1)));
  }
  const study::Comparison comparison(some);
  // Ten trials of A on average; B takes (1 + 5 + 5) / 3 to one success, as its first trial finds a program, A itself
  // (10 + 10 + 10) / 2.
  CHECK(comparison.speedup(1, 0, study::Effort::Trials).value == doctest::Approx(10 / (11.0 / 3)));
  CHECK(comparison.speedup(0, 0, study::Effort::Trials).value == doctest::Approx(10.0 / 15));
  CHECK(comparison.speedup_over_itself(1, 0, study::Effort::Trials).value == doctest::Approx(15 / (11.0 / 3)));
}

TEST_CASE("a reference that finds nothing on a problem never gets there itself, and whoever does not is behind it") {
  study::Course nothing;
  for (int t = 1; t <= 10; ++t) nothing.add(study::Course::infinity, t);
  study::Results some{.recipes = {"A", "B", "Half"}, .problems = {"p", "q"}};
  for (const char* problem : {"p", "q"}) {
    const bool is_p = problem[0] == 'p';
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      some.searches.push_back(search("A", problem, seed, is_p ? nothing : course(10, 2)));
      some.searches.push_back(search("B", problem, seed, course(5, 1)));
      some.searches.push_back(search("Half", problem, seed, course(1, 8)));  // not where A ends on q
    }
  }
  const study::Comparison comparison(some);
  CHECK(comparison.speedup(1, 0, study::Effort::Trials).value == doctest::Approx(std::sqrt(10.0 / 1 * 10.0 / 5)));
  CHECK(comparison.speedup_over_itself(1, 0, study::Effort::Trials).value == study::Course::infinity);
  CHECK(comparison.speedup_over_itself(2, 0, study::Effort::Trials).value == 0);
  CHECK(comparison.speedup_over_itself(0, 0, study::Effort::Trials).value == 0);
}

TEST_CASE("what a recipe searches on after its end does not count where it is compared to itself") {
  study::Results some = results();
  for (study::FinishedSearch& one : some.searches)
    if (one.recipe == "Slow") one.course.elapsed_s = 100;  // it ends at 2 s in the tenth second as before
  const study::Comparison comparison(some);
  CHECK(comparison.speedup(1, 0, study::Effort::Seconds).value == doctest::Approx(20));
  CHECK(comparison.speedup_over_itself(1, 0, study::Effort::Seconds).value == doctest::Approx(2));
  CHECK(comparison.speedup_over_itself(0, 0, study::Effort::Seconds) == study::Interval{1, 1, 1});
  CHECK(comparison.speedup_over_itself(2, 0, study::Effort::Trials).value == 0);

  study::Results failed{.recipes = {"A"}, .problems = {"p"}};
  study::Course nothing;
  nothing.add(study::Course::infinity, 1);
  for (std::uint64_t seed = 0; seed < 3; ++seed) failed.searches.push_back(search("A", "p", seed, nothing));
  CHECK(study::Comparison(failed).speedup_over_itself(0, 0, study::Effort::Seconds).value == 0);
}

TEST_CASE("of results that were known after no time no speed-up in seconds is told, and one in trials is") {
  study::Results some = results();
  for (study::FinishedSearch& one : some.searches) {
    if (one.recipe != "Fast") continue;
    one.course.elapsed_s = 0;
    for (study::Improvement& step : one.course.improvements) step.elapsed_s = 0;
  }
  const study::Comparison comparison(some);
  CHECK(std::isnan(comparison.speedup(1, 0, study::Effort::Seconds).value));
  CHECK(std::isnan(comparison.speedup(0, 1, study::Effort::Seconds).value));
  CHECK(std::isnan(comparison.speedup_over_itself(1, 1, study::Effort::Seconds).low));
  CHECK(comparison.speedup(0, 0, study::Effort::Seconds).value == doctest::Approx(1));
  CHECK(comparison.speedup(1, 0, study::Effort::Trials).value == doctest::Approx(2));
}

TEST_CASE("finalists are compared where those of every problem and seed were measured") {
  study::Results some = results();
  CHECK_FALSE(study::Comparison(some).has_finalists());
  for (const char* problem : {"p", "q"}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      CHECK_FALSE(study::Comparison(some).has_finalists());
      study::Finalists finalists{.problem = problem, .seed = seed};
      finalists.latencies_s = {{"Slow", 4}, {"Fast", 2}};
      finalists.entrants = {{"Slow", 1}, {"Fast", 2}, {"Lost", 3}};
      finalists.twice = "Slow";
      finalists.again_s = 4 * std::exp(seed == 2 ? -0.5 : 0.25);
      some.finalists.push_back(finalists);
    }
  }
  // Measured without the others later: does not stand for all.
  some.finalists.push_back({.problem = "p", .seed = 0, .entrants = {{"Lost", 4}}, .latencies_s = {{"Lost", 1}}});
  const study::Comparison comparison(some);
  REQUIRE(comparison.has_finalists());
  CHECK(comparison.finalist_speed(0).value == 0.5);
  CHECK(comparison.finalist_speed(1).value == 1);
  CHECK(comparison.finalist_speed(2).value == 0);
  CHECK(comparison.finalist_difference(1, 0) == study::Interval{0.5, 0.5, 0.5});
  REQUIRE(comparison.noise().size() == 6);
  CHECK(comparison.noise()[1] == doctest::Approx(0.25));
  CHECK(comparison.noise()[2] == doctest::Approx(0.5));
}

TEST_CASE("a finalist is held against the fastest of the recipes that are compared, not of all that were measured") {
  study::Results some = results();
  some.recipes = {"Slow", "Lost"};
  std::erase_if(some.searches, [](const study::FinishedSearch& one) { return one.recipe == "Fast"; });
  for (const char* problem : {"p", "q"}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      some.finalists.push_back({.problem = problem,
                                .seed = seed,
                                .entrants = {{"Slow", 1}, {"Fast", 2}, {"Lost", 3}},
                                .latencies_s = {{"Slow", 4}, {"Fast", 2}, {"Lost", 8}}});
    }
  }
  const study::Comparison comparison(some);
  REQUIRE(comparison.has_finalists());
  CHECK(comparison.finalist_speed(0).value == 1);
  CHECK(comparison.finalist_speed(1).value == 0.5);
}

TEST_CASE("finalists of programs that the searches did not end with do not stand for them") {
  study::Results some{.recipes = {"A"}, .problems = {"p"}};
  const study::Entrant now{"A", "new"}, before{"A", "old"};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    some.searches.push_back(search("A", "p", seed, course(5, 1)));
    some.searches.back().best_config = now.config;
    some.finalists.push_back(
        {.problem = "p", .seed = seed, .entrants = {{"A", study::hash_of(now)}}, .latencies_s = {{"A", 1}}});
  }
  CHECK(study::Comparison(some).has_finalists());
  some.finalists[1].entrants["A"] = study::hash_of(before);
  CHECK_FALSE(study::Comparison(some).has_finalists());
}

TEST_CASE("of several searches by one recipe with one seed the first counts") {
  study::Results some{.recipes = {"A"}, .problems = {"p"}};
  some.searches = {search("A", "p", 0, course(2, 1)), search("A", "p", 0, course(2, 4))};
  CHECK(study::Comparison(some).courses(0, 0)[0].best_s() == 1);
}

TEST_CASE("a search that found nothing needs no finalist, and is then infinitely slow") {
  study::Results some{.recipes = {"A", "B"}, .problems = {"p"}};
  study::Course nothing;
  nothing.add(study::Course::infinity, 1);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    some.searches.push_back(search("A", "p", seed, course(5, 1)));
    some.searches.push_back(search("B", "p", seed, seed == 1 ? nothing : course(5, 1)));
    study::Finalists finalists{.problem = "p", .seed = seed, .entrants = {{"A", 1}}, .latencies_s = {{"A", 1}}};
    if (seed != 1) finalists.entrants["B"] = 2, finalists.latencies_s["B"] = 2;
    some.finalists.push_back(finalists);
  }
  const study::Comparison comparison(some);
  REQUIRE(comparison.has_finalists());
  CHECK(comparison.finalist_speed(0).value == 1);
  CHECK(comparison.finalist_speed(1).value == doctest::Approx(1.0 / 3));  // (0.5 + 0 + 0.5) / 3
}

TEST_CASE("searches of known spaces have scores, and failed trials are counted") {
  std::vector<double> latencies;
  for (int i = 1; i <= 100; ++i) latencies.push_back(i * i / 100.0);
  study::Results known{.recipes = {"Best", "Worst"}, .problems = {"p"}};
  known.spaces.emplace("p", study::RandomSearch(latencies));
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    study::Course best, worst;
    best.add(0.01, 1);
    worst.add(study::Course::infinity, 1);
    worst.add(100, 2);
    known.searches.push_back(search("Best", "p", seed, best));
    known.searches.push_back(search("Worst", "p", seed, worst));
  }
  const study::Comparison comparison(known);
  REQUIRE(comparison.has_scores());
  CHECK(comparison.score(0).value == 1);
  CHECK(comparison.score(1).value < -10);
  CHECK(comparison.score(1, 0) == comparison.score(1));
  CHECK(comparison.score_difference(0, 1).value == comparison.score(0).value - comparison.score(1).value);
  CHECK(comparison.best_known_s(0) == 0.01);
  CHECK(comparison.failed_share(1) == 0.5);
  // The best known configuration is that of the space, also where no search finds it.
  study::Course second;
  second.add(0.04, 1);
  second.imprecise = 1;
  for (study::FinishedSearch& one : known.searches)
    if (one.recipe == "Best") one.course = second;
  CHECK(study::Comparison(known).best_known_s(0) == 0.01);
  CHECK(study::Comparison(known).speed(0).value == 0.25);
  CHECK(study::Comparison(known).imprecise_share(0) == 1);
  CHECK(study::Comparison(known).failed_share(0) == 0);
}

TEST_CASE("searches of spaces whose costs are known have scores over seconds, each problem counting the same") {
  std::vector<double> latencies;
  for (int i = 1; i <= 100; ++i) latencies.push_back(i * i / 100.0);
  const std::vector<double> costs(100, 1.0);
  study::Results known{.recipes = {"Soon", "Late"}, .problems = {"p", "q"}};
  for (const char* problem : {"p", "q"}) {
    known.spaces.emplace(problem, study::RandomSearch(latencies));
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      study::Course soon, late;  // the same trials, in other times
      soon.add(0.01, 1);
      late.add(0.01, 5);
      known.searches.push_back(search("Soon", problem, seed, soon));
      known.searches.push_back(search("Late", problem, seed, late));
    }
  }
  known.costs.emplace("p", study::TrialCosts(latencies, costs));
  CHECK(study::Comparison(known).has_scores());
  CHECK_FALSE(study::Comparison(known).has_scores(study::Effort::Seconds));  // q has none
  known.costs.emplace("q", study::TrialCosts(latencies, costs));
  const study::Comparison comparison(known);
  REQUIRE(comparison.has_scores(study::Effort::Seconds));
  CHECK(comparison.score(0, {}, study::Effort::Seconds).value == doctest::Approx(1));
  CHECK(comparison.score(1).value == 1);
  CHECK(comparison.score(1, {}, study::Effort::Seconds).value < 0);
  CHECK(comparison.score(1, 1, study::Effort::Seconds).value ==
        doctest::Approx(study::performance_score_over_seconds(known.spaces.at("q"), known.costs.at("q"),
                                                              comparison.courses(1, 1))));
  CHECK(comparison.score_difference(0, 1, study::Effort::Seconds).low > 1);
}

TEST_CASE("speed on one problem within trials or seconds") {
  const study::Comparison comparison(results());
  CHECK(comparison.speed_within(1, 0, 4, study::Effort::Trials).value == 0.125);
  CHECK(comparison.speed_within(1, 0, 5, study::Effort::Trials) == study::Interval{1, 1, 1});
  CHECK(comparison.speed_within(1, 1, 4.9, study::Effort::Seconds).value == 0.125);
  CHECK(comparison.speed_within(1, 1, 0.5, study::Effort::Seconds).value == 0);
  // A trial of another duration: found in trial 5, after 25 s.
  study::Course slow;
  for (std::size_t t = 1; t <= 5; ++t) slow.add(t < 5 ? 8.0 : 1.0, 5.0 * static_cast<double>(t));
  const study::Comparison alone({.recipes = {"A"}, .problems = {"p"}, .searches = {search("A", "p", 0, slow)}});
  CHECK(alone.speed_within(0, 0, 5, study::Effort::Trials).value == 1);
  CHECK(alone.speed_within(0, 0, 24, study::Effort::Seconds).value == 0.125);
}

TEST_CASE("what the results lack is named: recipes, problems, scores and finalists") {
  const study::Comparison comparison(results());
  const auto beyond = [](const auto& f) { return test::refusal<std::out_of_range>(f); };
  CHECK(beyond([&] { (void)comparison.courses(3, 0); }) == "recipe 3 of 3 was asked for; give a position in recipes()");
  CHECK(beyond([&] { (void)comparison.courses(0, 2); }).find("problem 2 of 2") == 0);
  CHECK(beyond([&] { (void)comparison.best_known_s(2); }).find("problem 2 of 2") == 0);
  CHECK(beyond([&] { (void)comparison.speed(3); }).find("recipe 3 of 3") == 0);
  CHECK(beyond([&] { (void)comparison.speedup(0, 3, study::Effort::Trials); }).find("recipe 3 of 3") == 0);
  CHECK(beyond([&] { (void)comparison.failed_share(3); }).find("recipe 3 of 3") == 0);
  CHECK(test::refusal([&] { (void)comparison.score(0); }).find("problem 'p' has no scores over trials") == 0);
  CHECK(test::refusal([&] { (void)comparison.score(0, 1, study::Effort::Seconds); }).find("Results::costs") !=
        std::string::npos);
  CHECK(test::refusal([&] { (void)comparison.finalist_speed(0); }).find("ask has_finalists first") !=
        std::string::npos);
  for (const double effort : {-1.0, std::nan("")}) {
    const auto within = [&] { (void)comparison.speed_within(0, 0, effort, study::Effort::Trials); };
    CHECK(test::refusal(within).find("give 0 or more") != std::string::npos);
  }
  CHECK(comparison.speed_within(1, 0, study::Course::infinity, study::Effort::Trials).value == 1);
}

TEST_CASE("one problem has its own searches, as many as there are") {
  study::Results some{.recipes = {"A"}, .problems = {"p", "q"}};
  for (std::uint64_t seed = 0; seed < 3; ++seed) some.searches.push_back(search("A", "p", seed, course(5, 4)));
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    some.searches.push_back(search("A", "q", seed, course(5, seed == 0 ? 1 : 2)));
  const study::Comparison comparison(some);
  CHECK(comparison.speed_within(0, 0, 10, study::Effort::Trials).value == 1);
  CHECK(comparison.speed_within(0, 1, 10, study::Effort::Trials).value == 0.625);  // (1 + 3 * 0.5) / 4
  CHECK(comparison.speed(0).value == doctest::Approx((1 + 0.625) / 2));
}

TEST_CASE("searches that not all recipes have are kept apart") {
  CHECK(study::Comparison(results()).not_compared().empty());
  study::Results some = results();
  some.problems.push_back("r");
  some.searches.push_back(search("Slow", "p", 7, course(1, 0.5)));
  some.searches.push_back(search("Fast", "r", 0, course(1, 0.5)));
  some.searches.push_back(search("Fast", "r", 1, course(1, 0.25)));
  const study::Comparison comparison(some);
  REQUIRE(comparison.not_compared().size() == 2);
  const auto& [p, r] = std::pair(comparison.not_compared()[0], comparison.not_compared()[1]);
  CHECK(p.problem == "p");
  REQUIRE(p.courses.size() == 3);
  CHECK(p.courses[0].size() == 1);
  CHECK(p.courses[1].empty());
  CHECK(r.problem == "r");
  REQUIRE(r.courses[1].size() == 2);
  CHECK(r.courses[1][1].best_s() == 0.25);
}

TEST_CASE("where there is too little to draw from the ends of an interval are not numbers") {
  study::Results one{.recipes = {"A"}, .problems = {"p"}, .searches = {search("A", "p", 0, course(2, 1))}};
  const study::Interval speed = study::Comparison(one).speed(0);
  CHECK(speed.value == 1);
  CHECK(std::isnan(speed.low));
}

}  // namespace
