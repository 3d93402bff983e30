// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/explorers/archive.hpp"
#include "tunewright/explorers/candidate_factor.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/spaces/draw.hpp"

namespace tunewright::explorers {

/// Evolves better-ranked candidates from measured and random ones by mutation.
///
///   population_0     = the best measured (at most `measured_share`, rounded up) + random samples
///   P(parent i)      = max(score_i, 0) / sum of max(score, 0)        uniform, but for rejected ones, if no score is
///                                                                    positive
///   population_{g+1} = mutate(parent) with `mutation_probability`, else the parent itself; with `one_copy_each` what
///                      would be the second copy of a parent draws parent and mutation anew, up to `max_tries` in all
///   result           = the best unmeasured candidates of all generations, then random ones
///
/// Paper:       Zheng et al., Ansor, OSDI 2020, section 5.1; parameters of its released code.
/// Models:      ExplorerFor<S> for every SearchSpace S, BoundedExplorer.
/// Shapes:      result [`elite_factor` * wanted + `random_immigrant_factor` * wanted] at most, distinct, best first.
/// Cost:        at most population * (generations + 1) rankings and as many mutations; repeated candidates are not
///              ranked again.
/// Determinism: every slot of every generation has its own generator: the same result at any number of threads.
/// Errors:      `std::invalid_argument` for options out of range.
/// Deviates:    the default population is MetaSchedule's 512 instead of Ansor's 2048, a quarter of the cost. Ansor
///              passes its random candidates to the final choice separately, here they are at the end of the pool. Its
///              paper also crosses two parents, operator by operator; neither its code nor MetaSchedule's does.
struct Evolutionary {
  std::size_t population = 512;           ///< candidates per generation, at least 2
  unsigned generations = 4;               ///< replacements of the population
  double mutation_probability = 0.85;     ///< in [0, 1]
  double measured_share = 0.2;            ///< of the first population, in [0, 1]
  double elite_factor = 2;                ///< evolved candidates per wanted one, 1 to `max_candidate_factor`
  double random_immigrant_factor = 0.15;  ///< random candidates per wanted one, from 0
  unsigned max_tries = 10;                ///< parents tried for a legal mutation, at least 1
  bool one_copy_each = false;             ///< copies a parent at most once a generation, as MetaSchedule does

  [[nodiscard]] PoolBound pool_bound(std::size_t wanted) const {
    check_options();
    return {bounded_sum(scaled_count(elite_factor, wanted), scaled_count(random_immigrant_factor, wanted)),
            "elite_factor"};
  }

  template <SearchSpace S>
  [[nodiscard]] std::vector<config_t<S>> explore(const S& space, const Task& task,
                                                 const Guidance<config_t<S>>& guidance, Rng& rng) const {
    check_options();
    Archive<S> archive(space, guidance);
    std::vector<std::size_t> current;  // positions in the archive, [population]
    const auto seeds = std::min(guidance.seeds.size(), scaled_count(measured_share, population));
    for (std::size_t i = 0; i < seeds; ++i) current.push_back(archive.add(guidance.seeds[i]));
    const std::size_t first_random = archive.size();
    for (auto& config :
         spaces::draw(space, task, population - seeds, guidance.measured, guidance.threads, rng.split(0))) {
      current.push_back(archive.add(std::move(config)));
    }
    const std::size_t end_random = archive.size();
    archive.score_added();
    for (unsigned generation = 1; generation <= generations && !current.empty(); ++generation) {
      current = breed(space, task, archive, current, guidance.threads, rng.split(generation));
      archive.score_added();
    }

    std::vector<std::size_t> result = archive.best(scaled_count(elite_factor, guidance.wanted));
    std::vector<bool> taken(archive.size());
    for (const std::size_t position : result) taken[position] = true;
    std::size_t unbred = scaled_count(random_immigrant_factor, guidance.wanted);
    for (std::size_t i = first_random; i < end_random && unbred > 0; ++i) {
      if (taken[i] || !archive.eligible(i)) continue;
      result.push_back(i);
      --unbred;
    }
    return std::move(archive).release(result);
  }

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    constexpr const char* policy = "Evolutionary";
    require(population >= 2, policy, "population", static_cast<double>(population), "at least 2");
    require(mutation_probability >= 0 && mutation_probability <= 1, policy, "mutation_probability",
            mutation_probability, "0 to 1");
    require(measured_share >= 0 && measured_share <= 1, policy, "measured_share", measured_share, "0 to 1");
    require_candidate_factor(policy, "elite_factor", elite_factor, 1);
    require_candidate_factor(policy, "random_immigrant_factor", random_immigrant_factor, 0);
    require(max_tries >= 1, policy, "max_tries", max_tries, "at least 1");
  }

 private:
  template <SearchSpace S>
  std::vector<std::size_t> breed(const S& space, const Task& task, Archive<S>& archive,
                                 const std::vector<std::size_t>& parents, unsigned threads, const Rng& rng) const {
    std::vector<double> wheel;  // running sums of max(score, 0), [parents]
    double sum = 0;
    for (const std::size_t parent : parents) {
      const double score = archive.score(parent);
      if (std::isfinite(score)) sum += std::max(score, 0.0);
      wheel.push_back(sum);
    }
    std::vector<std::size_t> alike;  // the parents of equal chance, if no score is positive
    if (!(sum > 0)) {
      alike = parents;
      std::erase_if(alike, [&](std::size_t parent) {
        return !(archive.score(parent) > -std::numeric_limits<float>::infinity());
      });
      if (alike.empty()) alike = parents;
    }
    const auto pick = [&](Rng& own) {
      if (!alike.empty()) return alike[own.below(alike.size())];
      const auto slot = std::upper_bound(wheel.begin(), wheel.end(), own.uniform() * sum) - wheel.begin();
      return parents[std::min(static_cast<std::size_t>(slot), parents.size() - 1)];
    };

    std::vector<std::size_t> next(population);  // where the child is a copy
    std::vector<std::optional<config_t<S>>> child(population);
    std::vector<std::uint8_t> copied(population);  // whether a slot decided to copy
    parallel_parts(threads, population, [&](std::size_t begin, std::size_t end) {
      for (std::size_t slot = begin; slot < end; ++slot) {
        Rng own = rng.split(slot);
        next[slot] = pick(own);
        copied[slot] = own.uniform() >= mutation_probability ? 1 : 0;
        for (unsigned attempt = 0; copied[slot] == 0 && attempt < max_tries && !child[slot]; ++attempt) {
          if (attempt > 0) next[slot] = pick(own);
          child[slot] = space.mutate(task, archive.config(next[slot]), own);
        }
      }
    });
    std::unordered_set<std::size_t> once;  // parents with a copy; slots take turns, so that threads do not matter
    for (std::size_t slot = 0; one_copy_each && slot < population; ++slot) {
      if (copied[slot] == 0 || once.insert(next[slot]).second) continue;
      Rng own = rng.split(population + slot);
      for (unsigned attempt = 1; attempt < max_tries && !child[slot]; ++attempt) {
        next[slot] = pick(own);
        if (own.uniform() < mutation_probability)
          child[slot] = space.mutate(task, archive.config(next[slot]), own);
        else if (once.insert(next[slot]).second)
          break;
      }
    }
    for (std::size_t slot = 0; slot < population; ++slot) {
      if (child[slot]) next[slot] = archive.add(*std::move(child[slot]));
    }
    return next;
  }
};

}  // namespace tunewright::explorers
