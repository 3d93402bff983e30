// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/task.hpp"
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

}  // namespace tunewright
