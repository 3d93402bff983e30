// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/explorers/archive.hpp"
#include "tunewright/explorers/candidate_factor.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/spaces/draw.hpp"

namespace tunewright::explorers {

/// Simulated annealing on many chains at once.
///
///   T(i)                    = first_temperature + (last_temperature - first_temperature) * i / steps
///   P(accept new after old) = 1 if new >= old, else exp((new - old) / (T + 1e-5))
///   result                  = the best unmeasured candidates any chain has seen, but for those scored below
///                             `least_score`; then random ones, also where these leave fewer than are wanted
///
/// Chains continue in the next round where they ended. A round ends early once `patience_steps` consecutive steps add
/// nothing to the result.
///
/// Paper:       Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018; parameters of AutoTVM.
/// Models:      ExplorerFor<S> for every SearchSpace S, BoundedExplorer.
/// Shapes:      C = chains. Result [(`elite_factor` + `random_immigrant_factor`) * wanted] at most, distinct, best
///              first.
/// Cost:        at most C * (steps + 1) rankings, usually far fewer: what is met again is not ranked again.
/// Determinism: every chain has a generator for every step: same result at any number of threads. A session
///              resumed from a journal starts its chains anew.
/// Errors:      `std::invalid_argument` for options out of their range.
/// Deviates:    the default of `least_score` keeps candidates of negative score, which AutoTVM drops, because scores of
///              some models are ranks around zero. What it measures at random is not part of its annealing; here it
///              ends the pool, for a sampler that takes its random part from there.
struct Annealing {
  std::size_t chains = 128;         ///< at least 1
  std::size_t steps = 500;          ///< steps per round, at least 1
  std::size_t patience_steps = 50;  ///< at least 1
  double first_temperature = 1;     ///< in units of the score
  double last_temperature = 0;
  double elite_factor = 2;             ///< candidates returned for each one wanted, 1 to `max_candidate_factor`
  double random_immigrant_factor = 0;  ///< random candidates returned for each one wanted, from 0
  double least_score = -std::numeric_limits<double>::infinity();  ///< of what the chains bring; not a NaN

  std::vector<std::string> chain_ends{};  ///< run-time state: encoded configurations, [C] after the first round

  [[nodiscard]] PoolBound pool_bound(std::size_t wanted) const {
    check_options();
    return {bounded_sum(scaled_count(elite_factor, wanted), scaled_count(random_immigrant_factor, wanted)),
            "elite_factor"};
  }

  template <SearchSpace S>
  [[nodiscard]] std::vector<config_t<S>> explore(const S& space, const Task& task,
                                                 const Guidance<config_t<S>>& guidance, Rng& rng) {
    check_options();
    Archive<S> archive(space, guidance);
    std::vector<std::size_t> chain = start(space, task, archive, guidance, rng.split(0));  // positions, [C]
    if (chain.empty()) return {};
    archive.score_added();

    const std::size_t wanted = scaled_count(elite_factor, guidance.wanted);
    std::vector<std::size_t> elite = archive.best(wanted);
    std::size_t barren = 0;
    for (std::size_t step = 0; step < steps && barren < patience_steps; ++step) {
      const std::size_t known = archive.size();
      const std::vector<std::size_t> proposal =
          propose(space, task, archive, chain, guidance.threads, rng.split(2 * step + 1));
      archive.score_added();
      accept(archive, chain, proposal, temperature(step), rng.split(2 * step + 2));
      if (archive.size() == known) {
        ++barren;
        continue;
      }
      std::vector<std::size_t> among = elite;
      for (std::size_t added = known; added < archive.size(); ++added) among.push_back(added);
      std::vector<std::size_t> better = archive.best(wanted, std::move(among));
      barren = better == elite ? barren + 1 : 0;
      elite = std::move(better);
    }

    chain_ends.clear();
    for (const std::size_t end : chain) chain_ends.push_back(space.encode(archive.config(end)));
    const std::size_t poor =
        std::erase_if(elite, [&](std::size_t position) { return double{archive.score(position)} < least_score; });
    const std::size_t lacking = std::min(poor, guidance.wanted - std::min(guidance.wanted, elite.size()));
    const std::size_t random = scaled_count(random_immigrant_factor, guidance.wanted) + lacking;
    add_random(space, task, archive, guidance, random, rng.split(2 * steps + 1), elite);
    return std::move(archive).release(elite);
  }

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    constexpr const char* policy = "Annealing";
    require(chains >= 1, policy, "chains", static_cast<double>(chains), "at least 1");
    require(steps >= 1, policy, "steps", static_cast<double>(steps), "at least 1");
    require(patience_steps >= 1, policy, "patience_steps", static_cast<double>(patience_steps), "at least 1");
    require(std::isfinite(first_temperature) && first_temperature >= 0, policy, "first_temperature", first_temperature,
            "finite, 0 or more");
    require(std::isfinite(last_temperature) && last_temperature >= 0, policy, "last_temperature", last_temperature,
            "finite, 0 or more");
    require_candidate_factor(policy, "elite_factor", elite_factor, 1);
    require_candidate_factor(policy, "random_immigrant_factor", random_immigrant_factor, 0);
    require(!std::isnan(least_score), policy, "least_score", least_score, "a number, or an infinity");
  }

 private:
  [[nodiscard]] double temperature(std::size_t step) const {
    return first_temperature +
           (last_temperature - first_temperature) * static_cast<double>(step) / static_cast<double>(steps);
  }

  template <SearchSpace S>
  std::vector<std::size_t> start(const S& space, const Task& task, Archive<S>& archive,
                                 const Guidance<config_t<S>>& guidance, const Rng& rng) const {
    std::vector<std::size_t> chain;
    for (const std::string& text : chain_ends) {
      if (auto config = space.decode(task, text); config && chain.size() < chains)
        chain.push_back(archive.add(*std::move(config)));
    }
    for (auto& config : spaces::draw(space, task, chains - chain.size(), guidance.measured, guidance.threads, rng)) {
      chain.push_back(archive.add(std::move(config)));
    }
    return chain;
  }

  // One neighbour per chain; a chain with an illegal mutation stays.
  template <SearchSpace S>
  static std::vector<std::size_t> propose(const S& space, const Task& task, Archive<S>& archive,
                                          const std::vector<std::size_t>& chain, unsigned threads, const Rng& rng) {
    std::vector<std::optional<config_t<S>>> moved(chain.size());
    parallel_parts(threads, chain.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t c = begin; c < end; ++c) {
        Rng own = rng.split(c);
        moved[c] = space.mutate(task, archive.config(chain[c]), own);
      }
    });
    std::vector<std::size_t> proposal = chain;
    for (std::size_t c = 0; c < chain.size(); ++c) {
      if (moved[c]) proposal[c] = archive.add(*std::move(moved[c]));
    }
    return proposal;
  }

  /// Adds candidates that are neither measured, in the pool nor refused by the ranking.
  template <SearchSpace S>
  static void add_random(const S& space, const Task& task, Archive<S>& archive, const Guidance<config_t<S>>& guidance,
                         std::size_t count, const Rng& rng, std::vector<std::size_t>& pool) {
    if (count == 0) return;
    KeySet known = guidance.measured;
    for (const std::size_t position : pool) known.insert(space.key(archive.config(position)));
    std::vector<std::size_t> drawn;
    for (auto& config : spaces::draw(space, task, count, known, guidance.threads, rng))
      drawn.push_back(archive.add(std::move(config)));
    archive.score_added();
    for (const std::size_t position : drawn)
      if (archive.eligible(position)) pool.push_back(position);
  }

  template <SearchSpace S>
  static void accept(const Archive<S>& archive, std::vector<std::size_t>& chain,
                     const std::vector<std::size_t>& proposal, double temperature, Rng rng) {
    for (std::size_t c = 0; c < chain.size(); ++c) {
      const double gain = double{archive.score(proposal[c])} - double{archive.score(chain[c])};
      const double luck = rng.uniform();
      const bool lost = !std::isfinite(double{archive.score(chain[c])});  // started on a refused candidate
      if (lost || luck < std::exp(std::min(gain / (temperature + 1e-5), 0.0))) chain[c] = proposal[c];
    }
  }
};

}  // namespace tunewright::explorers
