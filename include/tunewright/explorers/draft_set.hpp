// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/explorers/candidate_factor.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/spaces/draw.hpp"

namespace tunewright::explorers {

/// Collects a set of candidates much larger than the batch, from which a model chooses, and keeps it for some rounds:
/// Pruner's latent schedule explorer.
///
///   every `refresh_rounds`-th round   set = the best `size` that `explorer` finds; sooner, if fewer than `wanted`
///                                     unmeasured members are left
///   every round                       pool = unmeasured members of the set, then random candidates, then
///                                     mutations of the fastest `wanted` measured ones
///
/// Meant for a recipe with a draft, which guides the search for the set, while the model ranks only the pool.
///
/// Paper:       Qiao et al., Pruner, ASPLOS 2025, algorithm 2; numbers of its released code.
/// Models:      ExplorerFor<S> wherever the inner explorer does, BoundedExplorer.
/// Shapes:      pool [size + (`random_factor` + `mutated_factor`) * wanted] at most, distinct, the set best first.
/// Cost:        that of the inner explorer, divided by `refresh_rounds`; by default population * (generations + 1) =
///              1536 * 3 rankings. What an inner explorer returns beyond `size` is ranked once more.
/// Determinism: that of the inner explorer. A session resumed from a journal drafts a new set. At the end of a set it
///              continues like a session that was not stopped, otherwise with other candidates.
/// Errors:      `std::invalid_argument` for a `size` or `refresh_rounds` of 0 and for factors that are negative, NaN or
///              above `max_candidate_factor`, 10,000.
/// Deviates:    the released code evolves drafts and measured candidates once by the model, which ranks some thousands
///              of programs; the paper says that it ranks the set. This follows the paper, unless `mutated_factor` adds
///              neighbours of the fastest: without them, a search finds only candidates that the draft ranks high.
///              Algorithm 2 begins with random programs; here, unless `measured_share` of `explorer` is 0, with some
///              of the fastest, too.
template <class Explorer = Evolutionary>
struct DraftSet {
  Explorer explorer = default_explorer();
  std::size_t size = 512;       ///< candidates in the set, at least 1 and at least the batch size
  unsigned refresh_rounds = 2;  ///< rounds per set, at least 1
  double random_factor = 1;     ///< random candidates per wanted one, 0 to `max_candidate_factor`
  double mutated_factor = 0;    ///< mutations of measured candidates per wanted one, likewise

  std::any drafts{};        ///< run-time state: the set, a `std::shared_ptr<const std::vector<configuration>>`
  unsigned rounds_old = 0;  ///< run-time state: rounds the set was used in

  [[nodiscard]] PoolBound pool_bound(std::size_t wanted) const {
    check_options();
    const std::size_t others = bounded_sum(scaled_count(random_factor, wanted), scaled_count(mutated_factor, wanted));
    return {bounded_sum(std::max(size, wanted), others), "size"};
  }

  template <SearchSpace S>
    requires ExplorerFor<Explorer, S>
  [[nodiscard]] std::vector<config_t<S>> explore(const S& space, const Task& task,
                                                 const Guidance<config_t<S>>& guidance, Rng& rng) {
    check_options();
    using Set = std::vector<config_t<S>>;
    std::vector<config_t<S>> pool;
    if (rounds_old < refresh_rounds) pool = unmeasured<S>(space, guidance);
    if (pool.size() < guidance.wanted) {
      Guidance<config_t<S>> inside = guidance;
      inside.wanted = std::max(size, guidance.wanted);
      Rng own = rng.split(0);
      drafts = std::make_shared<const Set>(best_of(explorer.explore(space, task, inside, own), inside));
      rounds_old = 0;
      pool = unmeasured<S>(space, guidance);
    }
    ++rounds_old;
    KeySet known = guidance.measured;
    for (const config_t<S>& config : pool) known.insert(space.key(config));
    add_random(space, task, guidance, rng.split(1), known, pool);
    add_mutated(space, task, guidance, rng.split(2), known, pool);
    return pool;
  }

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(size >= 1, "DraftSet", "size", static_cast<double>(size), "at least 1");
    require(refresh_rounds >= 1, "DraftSet", "refresh_rounds", refresh_rounds, "at least 1");
    require_candidate_factor("DraftSet", "random_factor", random_factor, 0);
    require_candidate_factor("DraftSet", "mutated_factor", mutated_factor, 0);
    check_options_of(explorer);
  }

 private:
  static Explorer default_explorer() {
    if constexpr (std::same_as<Explorer, Evolutionary>)
      return {
          .population = 1536, .generations = 2, .measured_share = 0.1, .elite_factor = 1, .random_immigrant_factor = 0};
    else
      return {};
  }

  /// The best that are wanted. An explorer may return more, in any order: then none that is rejected or has a score of
  /// NaN. Of no more, the session leaves out what is rejected.
  template <class Config>
  [[nodiscard]] static std::vector<Config> best_of(std::vector<Config> found, const Guidance<Config>& guidance) {
    if (found.size() <= guidance.wanted) return found;
    std::vector<float> score(found.size());
    guidance.rank(found, score);
    std::vector<std::size_t> possible = positions(found.size());
    // NaN goes, too: it has no place in an order.
    std::erase_if(possible, [&](std::size_t i) { return !(score[i] > -std::numeric_limits<float>::infinity()); });
    std::vector<Config> best;
    for (const std::size_t i : first_in_order(std::move(possible), guidance.wanted, [&](std::size_t a, std::size_t b) {
           return score[a] != score[b] ? score[a] > score[b] : a < b;
         }))
      best.push_back(std::move(found[i]));
    return best;
  }

  template <SearchSpace S>
  [[nodiscard]] std::vector<config_t<S>> unmeasured(const S& space, const Guidance<config_t<S>>& guidance) const {
    using Set = std::vector<config_t<S>>;
    std::vector<config_t<S>> left;
    const auto* set = std::any_cast<std::shared_ptr<const Set>>(&drafts);
    if (set == nullptr) return left;
    for (const config_t<S>& config : **set)
      if (guidance.measured.count(space.key(config)) == 0) left.push_back(config);
    return left;
  }

  template <SearchSpace S>
  void add_random(const S& space, const Task& task, const Guidance<config_t<S>>& guidance, const Rng& rng,
                  KeySet& known, std::vector<config_t<S>>& pool) const {
    const std::size_t count = scaled_count(random_factor, guidance.wanted);
    if (count == 0) return;
    std::vector<config_t<S>> drawn = spaces::draw(space, task, count, known, guidance.threads, rng);
    for (const config_t<S>& config : drawn) known.insert(space.key(config));
    add_possible(guidance, std::move(drawn), pool);
  }

  template <SearchSpace S>
  void add_mutated(const S& space, const Task& task, const Guidance<config_t<S>>& guidance, const Rng& rng,
                   KeySet& known, std::vector<config_t<S>>& pool) const {
    const std::size_t parents = std::min(guidance.seeds.size(), guidance.wanted);
    if (parents == 0) return;
    std::vector<config_t<S>> bred;
    for (std::size_t slot = 0; slot < scaled_count(mutated_factor, guidance.wanted); ++slot) {
      Rng own = rng.split(slot);
      auto child = space.mutate(task, guidance.seeds[own.below(parents)], own);
      if (child && known.insert(space.key(*child)).second) bred.push_back(*std::move(child));
    }
    add_possible(guidance, std::move(bred), pool);
  }

  /// Appends the `configs` that the ranking does not reject.
  template <class Config>
  static void add_possible(const Guidance<Config>& guidance, std::vector<Config> configs, std::vector<Config>& pool) {
    std::vector<float> score(configs.size());
    guidance.rank(configs, score);
    for (std::size_t i = 0; i < configs.size(); ++i)
      if (score[i] > -std::numeric_limits<float>::infinity()) pool.push_back(std::move(configs[i]));
  }
};

}  // namespace tunewright::explorers
