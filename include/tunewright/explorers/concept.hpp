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

/// Non-owning reference to the function that ranks configurations: the draft, or else featurizer and cost model.
/// `rank(configs, score)` writes one number per configuration: larger is better; -infinity marks configurations that
/// must not be returned (rejected by the filter, or impossible to describe). The callable must outlive the reference.
template <class Config>
class Ranker {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Ranker> &&
             std::invocable<const F&, std::span<const Config>, std::span<float>>)
  Ranker(const F& rank)  // implicit, so that lambdas can be passed directly
      : object_(std::addressof(rank)),
        call_([](const void* object, std::span<const Config> configs, std::span<float> score) {
          (*static_cast<const F*>(object))(configs, score);
        }) {}

  void operator()(std::span<const Config> configs, std::span<float> score) const { call_(object_, configs, score); }

 private:
  const void* object_;
  void (*call_)(const void*, std::span<const Config>, std::span<float>);
};

/// The inputs of an explorer besides the space.
template <class Config>
struct Guidance {
  Ranker<Config> rank;
  std::span<const Config> seeds;  ///< measured configurations to start from, best first
  const KeySet& measured;         ///< keys that must not be returned
  std::size_t wanted = 64;        ///< size of the next batch; a useful pool is larger
  unsigned threads = 1;           ///< for `sample` and `mutate`; must not change the result
};

/// Proposes candidates.
///
/// `explore(space, task, guidance, rng)` returns configurations with distinct keys. None of them is measured or was
/// ranked -infinity. There may be fewer than `guidance.wanted`; a session then adds random ones. An empty result means
/// that nothing new was found.
///
/// An explorer may keep state between rounds, such as annealing chains: each session works on its own copy. Semantics
/// the compiler cannot see: the same arguments and state give the same pool at any number of threads.
template <class E, class S>
concept ExplorerFor =
    SearchSpace<S> && std::copyable<E> &&
    requires(E& explorer, const S& space, const Task& task, const Guidance<config_t<S>>& guidance, Rng& rng) {
      { explorer.explore(space, task, guidance, rng) } -> std::same_as<std::vector<config_t<S>>>;  // [P]
    };

namespace explorers {

/// The largest pool that an explorer returns.
struct PoolBound {
  std::size_t most = 0;   ///< candidates
  const char* raised_by;  ///< the option that allows more, e.g. "elite_factor"
};

}  // namespace explorers

/// Refinement, detected: an explorer that knows the largest pool it returns for a batch of `wanted`. A session rejects
/// a pool no larger than the batch, because no sampler could then choose.
template <class E>
concept BoundedExplorer = requires(const E& explorer, std::size_t wanted) {
  { explorer.pool_bound(wanted) } -> std::same_as<explorers::PoolBound>;
};

namespace explorers {

/// Throws `std::invalid_argument` if a pool within `bound` leaves no choice for a batch of `wanted`.
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
