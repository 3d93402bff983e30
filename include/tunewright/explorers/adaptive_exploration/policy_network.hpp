// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"

namespace tunewright::explorers {

/// The policy and the value function of an agent of `AdaptiveExploration`.
///
///   state (R, K) -> 2 x Linear-tanh-> (R, 20) -> for each knob 2 x Linear-tanh-> (R, 3)
///                -> softmax(. / temperature)   probabilities of one value down, none, one value up
///   state (R, K) -> 3 x Linear-tanh-> (R, 20) -Linear-> (R, 1)   value
///
/// Paper: Ahn et al., Chameleon, ICLR 2020, widths of its released code.
/// Shapes: K knobs, R states.
template <class T>
class PolicyNetwork {
 public:
  static constexpr std::size_t actions = 3;
  static constexpr std::size_t width = 20;

  /// Values of all layers; `state` is given.
  struct Trace {
    nn::Matrix<T> state;
    std::array<nn::Matrix<T>, 2> shared;
    std::vector<std::array<nn::Matrix<T>, 2>> heads;  // [K]
    nn::Matrix<T> probability;                        // (R, 3 K), knob by knob
    std::array<nn::Matrix<T>, 3> critic;
    nn::Matrix<T> value;    // (R, 1)
    nn::Matrix<T> d_logit;  // (R, 3 K) dL / d of what softmax takes, after the temperature
    nn::Matrix<T> d_value;  // (R, 1)
  };

  PolicyNetwork(std::size_t knobs, double temperature) : temperature_(static_cast<T>(temperature)) {
    const auto layer = [this](const std::string& name, std::size_t in, std::size_t out) {
      return nn::Linear(layout_, name, in, out);
    };
    shared_ = {layer("policy.0", knobs, width), layer("policy.1", width, width)};
    for (std::size_t k = 0; k < knobs; ++k) {
      const std::string name = "knob." + std::to_string(k);
      heads_.push_back({layer(name + ".0", width, actions), layer(name + ".1", actions, actions)});
    }
    critic_ = {layer("value.0", knobs, width), layer("value.1", width, width), layer("value.2", width, width)};
    value_ = layer("value.3", width, 1);
  }

  [[nodiscard]] std::size_t knobs() const noexcept { return heads_.size(); }
  [[nodiscard]] const nn::ParameterLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] nn::Numbers<T> initial(const Rng& rng) const {
    nn::Numbers<T> parameters(layout_.size());
    layout_.initialise(rng, std::span<T>(parameters));
    return parameters;
  }

  void forward(const T* w, Trace& t) const {
    forward_policy(w, t);
    for (std::size_t i = 0; i < critic_.size(); ++i)
      forward_tanh(critic_[i], w, i == 0 ? t.state : t.critic[i - 1], t.critic[i]);
    value_.forward(w, t.critic.back(), t.value);
  }

  /// Computes only the probabilities.
  void forward_policy(const T* w, Trace& t) const {
    forward_tanh(shared_[0], w, t.state, t.shared[0]);
    forward_tanh(shared_[1], w, t.shared[0], t.shared[1]);
    t.heads.resize(knobs());
    t.probability.resize(t.state.rows(), actions * knobs());
    for (std::size_t k = 0; k < knobs(); ++k) {
      forward_tanh(heads_[k][0], w, t.shared[1], t.heads[k][0]);
      forward_tanh(heads_[k][1], w, t.heads[k][0], t.heads[k][1]);
      for (std::size_t r = 0; r < t.state.rows(); ++r) {
        auto p = nn::array(t.probability.row(r) + actions * k, actions);
        const auto out = nn::array(t.heads[k][1].row(r), actions);
        p = ((out - out.maxCoeff()) / temperature_).exp();
        p /= p.sum();
      }
    }
  }

  /// Adds dL/dw to `g`, from `d_logit` and `d_value`.
  void backward(const T* w, T* g, Trace& t) const {
    const std::size_t rows = t.state.rows();
    nn::Matrix<T> d_shared(rows, width), d_head(rows, actions), d_inner, d_below;
    nn::array(d_shared.data(), d_shared.size()).setZero();
    for (std::size_t k = 0; k < knobs(); ++k) {
      for (std::size_t r = 0; r < rows; ++r)
        nn::array(d_head.row(r), actions) = nn::array(t.d_logit.row(r) + actions * k, actions) / temperature_;
      backward_tanh(heads_[k][1], w, g, t.heads[k][0], t.heads[k][1], d_head, &d_inner);
      backward_tanh(heads_[k][0], w, g, t.shared[1], t.heads[k][0], d_inner, &d_below);
      nn::array(d_shared.data(), d_shared.size()) += nn::array(d_below.data(), d_below.size());
    }
    backward_tanh(shared_[1], w, g, t.shared[0], t.shared[1], d_shared, &d_below);
    backward_tanh(shared_[0], w, g, t.state, t.shared[0], d_below, nullptr);

    value_.backward(w, g, t.critic[2], t.d_value, &d_inner);
    backward_tanh(critic_[2], w, g, t.critic[1], t.critic[2], d_inner, &d_below);
    backward_tanh(critic_[1], w, g, t.critic[0], t.critic[1], d_below, &d_inner);
    backward_tanh(critic_[0], w, g, t.state, t.critic[0], d_inner, nullptr);
  }

 private:
  static void forward_tanh(const nn::Linear& layer, const T* w, const nn::Matrix<T>& x, nn::Matrix<T>& y) {
    layer.forward(w, x, y);
    nn::array(y.data(), y.size()) = nn::array(y.data(), y.size()).tanh();
  }
  /// `d` is dL/dy and is overwritten.
  static void backward_tanh(const nn::Linear& layer, const T* w, T* g, const nn::Matrix<T>& x, const nn::Matrix<T>& y,
                            nn::Matrix<T>& d, nn::Matrix<T>* dx) {
    nn::array(d.data(), d.size()) *= 1 - nn::array(y.data(), y.size()).square();
    layer.backward(w, g, x, d, dx);
  }

  T temperature_;
  nn::ParameterLayout layout_;
  std::array<nn::Linear, 2> shared_;
  std::vector<std::array<nn::Linear, 2>> heads_;  // [K]
  std::array<nn::Linear, 3> critic_;
  nn::Linear value_;
};

}  // namespace tunewright::explorers
