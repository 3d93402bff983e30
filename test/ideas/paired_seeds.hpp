// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <type_traits>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/study/intervals.hpp"

/// Whether an idea beats its ablation, the same recipe or model with one part exchanged, by more than luck: both run on
/// the same seeds, and seeds are counted.
namespace tunewright::test {

/// What these tests judge on. Settings and thresholds were chosen on seeds 0 to 19, which are not used here.
inline constexpr std::uint64_t first_seed = 1000;

/// The error rate of every test in this folder: how often it would pass by luck if idea and ablation were worth the
/// same. Of 20 seeds that differ 16 must be won (0.6 %), of 12 seeds 11 (0.3 %).
inline constexpr double error_rate = 0.01;

/// Chance of at least `wins` heads in `tosses` of a fair coin: the one-sided sign test.
inline double sign_test(std::size_t wins, std::size_t tosses) {
  double term = std::exp2(-static_cast<double>(tosses)), tail = 0;  // term = C(tosses, k) / 2^tosses
  for (std::size_t k = 0; k <= tosses; ++k) {
    if (k >= wins) tail += term;
    term *= static_cast<double>(tosses - k) / static_cast<double>(k + 1);
  }
  return tail;
}

/// What an idea and its ablation came to, a pair a seed. Larger is better.
struct PairedSeeds {
  std::vector<double> idea{}, ablation{};

  [[nodiscard]] std::size_t wins() const { return count(idea, ablation); }
  [[nodiscard]] std::size_t losses() const { return count(ablation, idea); }
  /// How often an idea worth nothing would win so many of the seeds that differ.
  [[nodiscard]] double chance() const { return sign_test(wins(), wins() + losses()); }
  [[nodiscard]] bool idea_is_better() const { return chance() < error_rate; }
  /// Mean of idea - ablation over the seeds, with its interval at 95 %.
  [[nodiscard]] study::Interval gain() const {
    const std::vector<std::vector<double>> first{idea}, second{ablation};
    return study::paired_difference(first, second, Rng(1));
  }

 private:
  static std::size_t count(const std::vector<double>& more, const std::vector<double>& less) {
    std::size_t larger = 0;
    for (std::size_t i = 0; i < more.size(); ++i) larger += more[i] > less[i] ? 1 : 0;
    return larger;
  }
};

inline std::ostream& operator<<(std::ostream& out, const PairedSeeds& seeds) {
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  const study::Interval gain = seeds.gain();
  return out << mean(seeds.idea) << " against " << mean(seeds.ablation) << ", by " << gain.value << " [" << gain.low
             << ", " << gain.high << "]; " << seeds.wins() << " seeds won, " << seeds.losses()
             << " lost, by luck with a chance of " << seeds.chance();
}

/// Results of an idea and of its ablation, a pair a seed.
template <class Result>
struct Runs {
  std::vector<Result> idea{}, ablation{};

  /// One number of each result, which should be large, or small.
  template <class Number>
  [[nodiscard]] PairedSeeds more(Number number) const {
    return compared(number, 1);
  }
  template <class Number>
  [[nodiscard]] PairedSeeds less(Number number) const {
    return compared(number, -1);
  }

 private:
  template <class Number>
  [[nodiscard]] PairedSeeds compared(Number number, double sign) const {
    PairedSeeds pairs;
    for (const Result& result : idea) pairs.idea.push_back(sign * std::invoke(number, result));
    for (const Result& result : ablation) pairs.ablation.push_back(sign * std::invoke(number, result));
    return pairs;
  }
};

/// What `run(seed)` gives on each of the seeds that are judged on.
template <class Run>
auto each_of(std::size_t seeds, const Run& run) {
  std::vector<std::invoke_result_t<const Run&, std::uint64_t>> results;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) results.push_back(run(seed));
  return results;
}

template <class Idea, class Ablation>
auto on_seeds(std::size_t seeds, const Idea& idea, const Ablation& ablation) {
  return Runs<std::invoke_result_t<const Idea&, std::uint64_t>>{each_of(seeds, idea), each_of(seeds, ablation)};
}

}  // namespace tunewright::test
