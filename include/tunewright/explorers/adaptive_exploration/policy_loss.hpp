// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/explorers/adaptive_exploration/policy_network.hpp"

namespace tunewright::explorers {

/// The objective of proximal policy optimisation for a step from a state of value V to a state of value V' with reward
/// R, where the agent chose the action a of each knob with the probability p_old:
///
///   sum over knobs of  min(r A, clip(r, 1 - clip, 1 + clip) A) + entropy H(p)   -   value (R + discount V' - V)^2
///   with r = p(a) / p_old(a)
///
/// Paper: Schulman et al., Proximal Policy Optimization Algorithms, arXiv 1707.06347, equations 7 and 9.
struct PolicyLoss {
  double clip = 0.2;
  double entropy = 0.3;
  double value = 1;
};

/// Advantages of the steps of an episode, by generalised advantage estimation:
///
///   d_t = R_t + discount V_{t+1} - V_t,   A_t = d_t + discount lambda A_{t+1};   after the last step V = A = 0
///
/// Paper:  Schulman et al., High-Dimensional Continuous Control Using Generalized Advantage Estimation, ICLR 2016.
/// Shapes: reward [T], value [T] of the states that steps start from; result [T].
inline std::vector<double> advantages(std::span<const double> reward, std::span<const double> value, double discount,
                                      double lambda) {
  std::vector<double> advantage(reward.size());
  double next = 0, next_value = 0;
  for (std::size_t t = reward.size(); t-- > 0;) {
    next = reward[t] + discount * next_value - value[t] + discount * lambda * next;
    next_value = value[t];
    advantage[t] = next;
  }
  return advantage;
}

/// What the values of an episode's states are compared with, R_t + discount V_{t+1}; after the last step V = 0.
/// Shapes: as of `advantages`.
inline std::vector<double> value_targets(std::span<const double> reward, std::span<const double> value,
                                         double discount) {
  std::vector<double> target(reward.begin(), reward.end());
  for (std::size_t t = 0; t + 1 < target.size(); ++t) target[t] += discount * value[t + 1];
  return target;
}

/// Subtracts the mean and divides by the standard deviation; equal numbers become zeros.
inline void standardise(std::vector<double>& numbers) {
  if (numbers.empty()) return;
  double mean = 0, variance = 0;
  for (const double x : numbers) mean += x / static_cast<double>(numbers.size());
  for (const double x : numbers) variance += (x - mean) * (x - mean) / static_cast<double>(numbers.size());
  const double deviation = std::sqrt(variance);
  for (double& x : numbers) x = deviation > 1e-12 ? (x - mean) / deviation : 0;
}

/// The data of an update about the states of a trace, [R] or (R, K).
struct Transitions {
  std::vector<double> advantage{};        // [R]
  std::vector<double> target{};           // [R] R + discount V'
  std::vector<std::uint8_t> action{};     // (R, K), 0 to 2
  std::vector<double> old_probability{};  // (R, K) of the action
};

/// The mean loss over the states, the negative of `PolicyLoss`. Writes its gradient to `d_logit` and `d_value` of the
/// trace.
template <class T>
double policy_loss(const PolicyLoss& options, const Transitions& of, typename PolicyNetwork<T>::Trace& t) {
  constexpr std::size_t actions = PolicyNetwork<T>::actions;
  const std::size_t rows = t.state.rows(), knobs = t.heads.size();
  const double share = 1 / static_cast<double>(rows);
  t.d_logit.resize(rows, actions * knobs);
  t.d_value.resize(rows, 1);
  double loss = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const double advantage = of.advantage[r];
    for (std::size_t k = 0; k < knobs; ++k) {
      const T* p = t.probability.row(r) + actions * k;
      T* d = t.d_logit.row(r) + actions * k;
      const std::size_t action = of.action[r * knobs + k];
      const double ratio = static_cast<double>(p[action]) / of.old_probability[r * knobs + k];
      const double clipped = std::clamp(ratio, 1 - options.clip, 1 + options.clip);
      double entropy = 0;
      for (std::size_t j = 0; j < actions; ++j)
        entropy -= p[j] > 0 ? static_cast<double>(p[j]) * std::log(static_cast<double>(p[j])) : 0;
      const bool follows = ratio * advantage <= clipped * advantage;  // else the loss does not depend on the policy
      for (std::size_t j = 0; j < actions; ++j) {
        const double own = static_cast<double>(p[j]);
        const double gain = follows ? advantage * ratio * ((j == action ? 1 : 0) - own) : 0;
        const double spread = own > 0 ? -own * (std::log(own) + entropy) : 0;
        d[j] = static_cast<T>(-share * (gain + options.entropy * spread));
      }
      loss -= share * (std::min(ratio * advantage, clipped * advantage) + options.entropy * entropy);
    }
    const double error = static_cast<double>(*t.value.row(r)) - of.target[r];
    *t.d_value.row(r) = static_cast<T>(share * 2 * options.value * error);
    loss += share * options.value * error * error;
  }
  return loss;
}

}  // namespace tunewright::explorers
