// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tunewright/core/require.hpp"
#include "tunewright/core/scaled_count.hpp"
#include "tunewright/explorers/adaptive_exploration/policy_loss.hpp"
#include "tunewright/explorers/adaptive_exploration/policy_network.hpp"
#include "tunewright/explorers/archive.hpp"
#include "tunewright/explorers/candidate_factor.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/nn/optimiser.hpp"
#include "tunewright/spaces/draw.hpp"

namespace tunewright::explorers {

/// Explores by reinforcement learning: an agent moves every knob by one value up, down or not at all, and the rank
/// score of the reached configuration is its reward. Policies that lead to better candidates become more likely.
///
///   episode       at most `steps` moves from a random configuration; it ends when at least `settled_share` of the
///                 knobs stay
///   after each    `updates` steps of Adam on `batch` of its moves, by `PolicyLoss`; advantages are standardised
///   result        the best unmeasured candidates of all episodes
///
/// The agent continues to learn in the next round.
///
/// Paper:       Ahn et al., Chameleon: Adaptive Code Optimization for Expedited Deep Neural Network Compilation, ICLR
///              2020; constants of its released code; the paper has a clip of 0.3 and an entropy of 0.1.
/// Models:      ExplorerFor<S> for every SettableKnobSpace S, BoundedExplorer.
/// Shapes:      result [`elite_factor` * wanted] at most, distinct, best first.
/// Cost:        at most episodes * (steps + 1) rankings, one call per episode, usually far fewer, because repeated
///              candidates are not ranked again. A move takes some microseconds.
/// Determinism: episodes run sequentially: the same result at any number of threads. A session resumed from a journal
///              starts with an untrained agent.
/// Errors:      `std::invalid_argument` for options out of range, and for a knob with unknown values.
/// Deviates:    a move to a missing configuration is made knob by knob, as far as configurations exist, while
///              Chameleon's spaces have no holes; candidates that the ranking rejects have reward 0; Adam's epsilon is
///              1e-8, in the released code 1e-5.
struct AdaptiveExploration {
  std::size_t episodes = 128;   ///< episodes per round, at least 1
  std::size_t steps = 500;      ///< maximum moves of an episode, at least 1
  double settled_share = 0.75;  ///< of the knobs, in (0, 1]
  double temperature = 0.1;     ///< of the policy, above 0
  double discount = 0.9;        ///< of later rewards, in [0, 1)
  double lambda = 0.99;         ///< of later advantages, in [0, 1]
  std::size_t updates = 3;
  std::size_t batch = 32;  ///< moves, drawn from the episode, at least 1
  double learning_rate = 1e-3;
  PolicyLoss loss{};
  double elite_factor = 2;  ///< pool size per wanted candidate, 1 to `max_candidate_factor`

  /// Run-time state: the trained agent.
  struct Agent {
    PolicyNetwork<float> network;
    nn::Numbers<float> parameters;
    nn::Stepper<float> stepper;
  };
  std::optional<Agent> agent{};

  [[nodiscard]] PoolBound pool_bound(std::size_t wanted) const {
    check_options();
    return {scaled_count(elite_factor, wanted), "elite_factor"};
  }

  template <SettableKnobSpace S>
  [[nodiscard]] std::vector<config_t<S>> explore(const S& space, const Task& task,
                                                 const Guidance<config_t<S>>& guidance, Rng& rng) {
    check_options();
    const std::vector<Knob> knobs = space.knobs();
    for (const Knob& knob : knobs) {
      if (knob.values.empty())
        throw std::invalid_argument("AdaptiveExploration: the values of knob '" + knob.name +
                                    "' are not known; name them in the space's knobs()");
    }
    if (!agent || agent->network.knobs() != knobs.size()) start_agent(knobs.size(), rng.split(0));

    Archive<S> archive(space, guidance);
    std::vector<std::size_t> starts;  // as many as are wanted at least, however short the episodes
    for (auto& config : spaces::draw(space, task, std::max(episodes, guidance.wanted), guidance.measured,
                                     guidance.threads, rng.split(1)))
      starts.push_back(archive.add(std::move(config)));
    for (std::size_t e = 0; e < std::min(episodes, starts.size()); ++e) {
      Rng own = rng.split(2).split(e);
      Episode walked = walk(space, task, knobs, archive, starts[e], own);
      archive.score_added();
      learn(walked, archive, own);
    }
    return std::move(archive).release(archive.best(scaled_count(elite_factor, guidance.wanted)));
  }

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    constexpr const char* policy = "AdaptiveExploration";
    require(episodes >= 1, policy, "episodes", static_cast<double>(episodes), "at least 1");
    require(steps >= 1, policy, "steps", static_cast<double>(steps), "at least 1");
    require(settled_share > 0 && settled_share <= 1, policy, "settled_share", settled_share, "above 0, at most 1");
    require(std::isfinite(temperature) && temperature > 0, policy, "temperature", temperature, "finite, above 0");
    require(discount >= 0 && discount < 1, policy, "discount", discount, "0 or more, below 1");
    require(lambda >= 0 && lambda <= 1, policy, "lambda", lambda, "0 to 1");
    require(batch >= 1, policy, "batch", static_cast<double>(batch), "at least 1");
    require(std::isfinite(learning_rate) && learning_rate > 0, policy, "learning_rate", learning_rate,
            "finite, above 0");
    require(loss.clip > 0 && loss.clip < 1, policy, "loss.clip", loss.clip, "above 0, below 1");
    require(std::isfinite(loss.entropy) && loss.entropy >= 0, policy, "loss.entropy", loss.entropy,
            "finite, 0 or more");
    require(std::isfinite(loss.value) && loss.value >= 0, policy, "loss.value", loss.value, "finite, 0 or more");
    require_candidate_factor(policy, "elite_factor", elite_factor, 1);
  }

 private:
  using Places = std::vector<std::size_t>;  // [K] of a configuration's values among those of each knob

  // T moves.
  struct Episode {
    nn::Matrix<float> state;           // (T, K) that moves start from
    Transitions moves;                 // without advantages and targets
    std::vector<std::size_t> reached;  // [T] positions in the archive
  };

  void start_agent(std::size_t knobs, const Rng& rng) {
    PolicyNetwork<float> network(knobs, temperature);
    nn::Training training;
    training.optimiser = nn::Optimiser::Adam;
    training.clip_norm = 0;
    training.weight_decay = 0;
    auto parameters = network.initial(rng);
    nn::Stepper<float> stepper(training, parameters.size());
    agent = Agent{std::move(network), std::move(parameters), std::move(stepper)};
  }

  static Places places_of(std::span<const Knob> knobs, std::span<const double> values) {
    Places places(knobs.size());
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      const std::vector<double>& known = knobs[k].values;
      const auto at = std::lower_bound(known.begin(), known.end(), values[k]);
      places[k] = std::min(static_cast<std::size_t>(at - known.begin()), known.size() - 1);
    }
    return places;
  }

  // The configuration at `to`, or the one reached from `at` by moving as many of the first knobs as possible.
  template <class S>
  static std::optional<config_t<S>> moved(const S& space, const Task& task, std::span<const Knob> knobs, Places& at,
                                          const Places& to) {
    const auto config_at = [&](const Places& places) {
      std::vector<double> values(places.size());
      for (std::size_t k = 0; k < places.size(); ++k) values[k] = knobs[k].values[places[k]];
      return space.at_knobs(task, values);
    };
    if (auto whole = config_at(to)) {
      at = to;
      return whole;
    }
    std::optional<config_t<S>> last;
    for (std::size_t k = 0; k < at.size(); ++k) {
      if (at[k] == to[k]) continue;
      Places next = at;
      next[k] = to[k];
      if (auto config = config_at(next)) {
        last = std::move(config);
        at = std::move(next);
      }
    }
    return last;
  }

  template <class S>
  Episode walk(const S& space, const Task& task, std::span<const Knob> knobs, Archive<S>& archive, std::size_t position,
               Rng& rng) const {
    constexpr std::size_t actions = PolicyNetwork<float>::actions;
    const std::size_t count = knobs.size();
    Places at = places_of(knobs, space.knob_values(archive.config(position)));
    PolicyNetwork<float>::Trace trace;
    trace.state.resize(1, count);
    std::vector<float> states;
    Episode episode;
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t k = 0; k < count; ++k)
        trace.state.row(0)[k] = static_cast<float>(at[k]) / static_cast<float>(knobs[k].values.size());
      states.insert(states.end(), trace.state.row(0), trace.state.row(0) + count);
      agent->network.forward_policy(agent->parameters.data(), trace);
      Places to = at;
      for (std::size_t k = 0; k < count; ++k) {
        const float* p = trace.probability.row(0) + actions * k;
        const auto luck = static_cast<float>(rng.uniform());
        const std::size_t action = luck < p[0] ? 0 : luck < p[0] + p[1] ? 1 : 2;
        if (action == 0 && at[k] > 0) --to[k];
        if (action == 2 && at[k] + 1 < knobs[k].values.size()) ++to[k];
        episode.moves.action.push_back(static_cast<std::uint8_t>(action));
        episode.moves.old_probability.push_back(static_cast<double>(p[action]));
      }
      const Places before = at;
      if (auto config = moved(space, task, knobs, at, to)) position = archive.add(*std::move(config));
      episode.reached.push_back(position);
      std::size_t stayed = 0;
      for (std::size_t k = 0; k < count; ++k) stayed += at[k] == before[k] ? 1 : 0;
      if (static_cast<double>(stayed) >= settled_share * static_cast<double>(count)) break;
    }
    episode.state.resize(episode.reached.size(), count);
    std::copy(states.begin(), states.end(), episode.state.data());
    return episode;
  }

  template <class S>
  void learn(Episode& episode, const Archive<S>& archive, Rng& rng) {
    const std::size_t moves = episode.reached.size(), count = agent->network.knobs();
    PolicyNetwork<float>::Trace trace;
    trace.state = episode.state;
    agent->network.forward(agent->parameters.data(), trace);
    std::vector<double> reward(moves), value(moves);
    for (std::size_t t = 0; t < moves; ++t) {
      const auto score = static_cast<double>(archive.score(episode.reached[t]));
      reward[t] = std::isfinite(score) ? score : 0;
      value[t] = static_cast<double>(*trace.value.row(t));
    }
    const std::vector<double> target = value_targets(reward, value, discount);
    std::vector<double> advantage = advantages(reward, value, discount, lambda);
    standardise(advantage);

    nn::Numbers<float> gradient(agent->parameters.size());
    for (std::size_t update = 0; update < updates; ++update) {
      Transitions drawn;
      trace.state.resize(batch, count);
      for (std::size_t b = 0; b < batch; ++b) {
        const auto t = static_cast<std::size_t>(rng.below(moves));
        std::copy_n(episode.state.row(t), count, trace.state.row(b));
        drawn.advantage.push_back(advantage[t]);
        drawn.target.push_back(target[t]);
        for (std::size_t k = 0; k < count; ++k) {
          drawn.action.push_back(episode.moves.action[t * count + k]);
          drawn.old_probability.push_back(episode.moves.old_probability[t * count + k]);
        }
      }
      agent->network.forward(agent->parameters.data(), trace);
      policy_loss<float>(loss, drawn, trace);
      std::fill(gradient.begin(), gradient.end(), 0.0F);
      agent->network.backward(agent->parameters.data(), gradient.data(), trace);
      agent->stepper.begin(static_cast<float>(learning_rate), 0);
      agent->stepper.step({0, gradient.size()}, gradient, agent->parameters);
    }
  }
};

}  // namespace tunewright::explorers
