// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

/// Non-owning reference to whatever ranks configurations: the cost model behind its featurizer, or the draft.
/// `rank(configs, score)` writes one number a configuration, larger is better; -infinity marks what must not
/// be returned (rejected by the filter, or impossible to describe). The callable must outlive the reference.
template <class Config>
class Ranker {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Ranker> &&
             std::invocable<const F&, std::span<const Config>, std::span<float>>)
  Ranker(const F& rank)  // implicit, so that lambdas can be passed as they are
      : object_(std::addressof(rank)),
        call_([](const void* object, std::span<const Config> configs, std::span<float> score) {
          (*static_cast<const F*>(object))(configs, score);
        }) {}

  void operator()(std::span<const Config> configs, std::span<float> score) const { call_(object_, configs, score); }

 private:
  const void* object_;
  void (*call_)(const void*, std::span<const Config>, std::span<float>);
};

/// What an explorer is given besides the space.
template <class Config>
struct Guidance {
  Ranker<Config> rank;
  std::span<const Config> seeds;  ///< measured configurations worth starting from, best first
  const KeySet& measured;         ///< keys that must not be returned
  std::size_t wanted = 64;        ///< size of the coming batch; a useful pool is larger
  unsigned threads = 1;           ///< may be used for `sample` and `mutate`; must not change the result
};

/// Decides which candidates are considered.
///
/// `explore(space, task, guidance, rng)` returns configurations with distinct keys, none of them measured,
/// none ranked -infinity, at least `guidance.wanted` of them unless the space gives no more. An empty result
/// means that nothing new was found.
///
/// An explorer may keep state between rounds (annealing chains): a session works on a copy of its own.
/// Semantics the compiler cannot see: the same arguments and state give the same pool at any number of
/// threads.
template <class E, class S>
concept ExplorerFor =
    SearchSpace<S> && std::copyable<E> &&
    requires(E& explorer, const S& space, const Task& task, const Guidance<config_t<S>>& guidance, Rng& rng) {
      { explorer.explore(space, task, guidance, rng) } -> std::same_as<std::vector<config_t<S>>>;  // [P]
    };

namespace explorers {

/// How large a pool can get.
struct PoolBound {
  std::size_t most = 0;   ///< candidates
  const char* raised_by;  ///< the option that allows more, e.g. "elite_factor"
};

}  // namespace explorers

/// Refinement, found by detection: an explorer that knows how many candidates it returns at most where `wanted` are. A
/// session refuses one whose pool is no larger than the batch, because no sampler could then choose.
template <class E>
concept BoundedExplorer = requires(const E& explorer, std::size_t wanted) {
  { explorer.pool_bound(wanted) } -> std::same_as<explorers::PoolBound>;
};

namespace explorers {

/// Throws `std::invalid_argument` where a pool within `bound` leaves nothing to choose for a batch of `wanted`.
void check_choice(const PoolBound& bound, std::size_t wanted);

}  // namespace explorers
}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::explorers {

TUNEWRIGHT_INLINE void check_choice(const PoolBound& bound, std::size_t wanted) {
  if (bound.most > wanted) return;
  throw std::invalid_argument("the explorer returns at most " + std::to_string(bound.most) +
                              " candidates for a batch of " + std::to_string(wanted) +
                              ", so the sampler has nothing to choose; raise explorer." + bound.raised_by +
                              ", ask for smaller batches, or take samplers::Random");
}

}  // namespace tunewright::explorers

#endif
