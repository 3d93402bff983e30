// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/nn/dropout.hpp"
#include "tunewright/nn/input.hpp"
#include "tunewright/nn/losses.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/optimiser.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/training.hpp"

namespace tunewright::nn {

/// A training set. Programs without rows are not listed in `programs`.
template <class T>
struct Lesson {
  const FeatureBatch* x = nullptr;
  const InputScale* scale = nullptr;
  std::vector<std::uint32_t> programs;   ///< positions in x
  std::span<const T> labels;             ///< (P, heads); NaN: unknown
  std::span<const std::uint32_t> group;  ///< [P] or empty
};

/// The weights of a network, and the numbers it collects outside of gradient descent (statistics of batches).
template <class T>
struct Weights {
  Numbers<T> parameters;
  Numbers<T> statistics;
};

/// Trains any network by mini-batches of whole programs.
///
/// A mini-batch is divided into shards of programs; their number depends on its size, not on the number of threads.
/// Every layer processes all rows of a shard at once; each shard has its own gradient, and the gradients are added in
/// the order of the shards.
///
/// A mini-batch whose loss has no gradient (see `has_gradient`) is left out, and a head for which that holds in the
/// whole lesson keeps its weights: optimisers would let them decay. So is one whose gradient is infinite or NaN, after
/// which no weight would ever be a number again.
///
/// A network N is a `LayeredNetwork` with `weights_of_head` and a `Trace`, which stores the state of one shard between
///   load(programs, trace)                                reads features
///   forward(parameters, statistics, pass, trace)         writes trace.score (P padded, heads)
///   backward(parameters, gradient, pass, trace)          reads trace.d_score, adds to gradient
/// where `trace.first_program` is the position of the shard in its mini-batch. A network with layers that depend on the
/// whole mini-batch also has `join`, called between the halves `forward_lower` and `forward_upper`, and
/// `join_backward`, called between `backward_upper` and `backward_lower`.
///
/// Determinism: bit-identical for equal data, options and seed at any number of threads.
template <class Network>
class Trainer {
 public:
  using T = typename Network::Scalar;
  using Trace = typename Network::Trace;

  Trainer(const Network& network, const Training& training, float dropout, std::uint64_t seed, unsigned threads)
      : network_(network), training_(training), dropout_(dropout), rng_(seed), team_(threads) {}

  /// Changes all `weights` outside the frozen layers. If no mini-batch has a gradient, or if it diverges (some weights
  /// are infinite or NaN in the end), returns false and changes nothing.
  bool train(const Lesson<T>& lesson, std::span<const std::string> frozen, Weights<T>& weights) {
    const std::size_t n = lesson.programs.size();
    const auto pieces = pieces_of(network_.layout().without(frozen));
    if (!has_gradient(lesson, lesson.programs)) return false;
    const Weights<T> before = weights;
    Stepper<T> stepper(training_, network_.layout().size());
    EarlyStopping patience(training_.patience_epochs);
    const std::size_t batches = (n - 1) / training_.batch_programs + 1;  // the sum may overflow
    const unsigned epochs = training_.epochs_of(batches);
    std::vector<std::uint32_t> order = lesson.programs;
    std::uint64_t step = 0;
    bool ever_stepped = false;
    for (unsigned epoch = 0; epoch < epochs; ++epoch) {
      rng_.split(2 * std::uint64_t{epoch}).shuffle(std::span(order));
      const float rate = training_.learning_rate_in(epoch, epochs);
      bool stepped = false;
      for (std::size_t b = 0; b < batches; ++b) {
        const std::size_t first = b * n / batches, last = (b + 1) * n / batches;
        const auto batch = std::span<const std::uint32_t>(order).subspan(first, last - first);
        const Pass pass{true, dropout_, rng_.split(2 * step + 1)};
        ++step;
        if (!has_gradient(lesson, batch)) continue;
        const Numbers<T> statistics = weights.statistics;
        const double loss = gradient_of(lesson, batch, pass, weights);
        const double norm = add_shards(pieces);
        if (!std::isfinite(norm)) {
          weights.statistics = statistics;
          continue;
        }
        stepped = true;
        patience.batch(loss);
        stepper.begin(rate, norm);
        team_.for_each(pieces.size(),
                       [&](std::size_t i, unsigned) { stepper.step(pieces[i], gradients_[0], weights.parameters); });
      }
      ever_stepped = ever_stepped || stepped;
      if (stepped && patience.epoch()) break;
    }
    if (!array(std::as_const(weights.parameters).data(), weights.parameters.size()).allFinite() ||
        !array(std::as_const(weights.statistics).data(), weights.statistics.size()).allFinite()) {
      weights = before;
      return false;
    }
    put_back_what_stays(lesson, frozen, before, weights);
    return ever_stepped;
  }

  /// Forward and backward pass over `batch`; afterwards `gradient()` is the gradient of the returned loss.
  double gradient_of(const Lesson<T>& lesson, std::span<const std::uint32_t> batch, const Pass& pass,
                     Weights<T>& weights) {
    constexpr std::size_t programs_a_shard = 64, most_shards = 8;
    shards_ = std::clamp(batch.size() / programs_a_shard, std::size_t{1}, most_shards);
    if (traces_.size() < shards_) traces_.resize(shards_);
    if (gradients_.size() < shards_) gradients_.resize(shards_);
    const T* parameters = weights.parameters.data();
    const auto begin = [&](std::size_t s) { return s * batch.size() / shards_; };
    constexpr bool joined = requires(Network& net) { &Network::join; };
    team_.for_each(shards_, [&](std::size_t s, unsigned) {
      Trace& trace = traces_[s];
      trace.first_program = begin(s);
      network_.load(Programs{lesson.x, batch.subspan(begin(s), begin(s + 1) - begin(s)), lesson.scale}, trace);
      if constexpr (joined)
        network_.forward_lower(parameters, pass, trace);
      else
        network_.forward(parameters, weights.statistics.data(), pass, trace);
    });
    if constexpr (joined) {
      network_.join(std::span(traces_).first(shards_), weights.statistics.data());
      team_.for_each(shards_, [&](std::size_t s, unsigned) {
        network_.forward_upper(parameters, weights.statistics.data(), pass, traces_[s]);
      });
    }
    const double loss = losses_of(lesson, batch);
    team_.for_each(shards_, [&](std::size_t s, unsigned) {
      gradients_[s].assign(weights.parameters.size(), T{0});
      if constexpr (joined)
        network_.backward_upper(parameters, gradients_[s].data(), pass, traces_[s]);
      else
        network_.backward(parameters, gradients_[s].data(), pass, traces_[s]);
    });
    if constexpr (joined) {
      network_.join_backward(std::span(traces_).first(shards_));
      team_.for_each(shards_, [&](std::size_t s, unsigned) {
        network_.backward_lower(parameters, gradients_[s].data(), pass, traces_[s]);
      });
    }
    return loss;
  }

  /// The gradient of the last `gradient_of`.
  [[nodiscard]] std::span<const T> gradient() {
    const ParameterRange all[]{{0, gradients_[0].size()}};
    add_shards(pieces_of(all));
    shards_ = 1;
    return gradients_[0];
  }

 private:
  [[nodiscard]] bool has_gradient(const Lesson<T>& lesson, std::span<const std::uint32_t> programs) {
    for (std::size_t head = 0; head < network_.heads(); ++head) {
      if (has_gradient(lesson, programs, head)) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_gradient(const Lesson<T>& lesson, std::span<const std::uint32_t> programs, std::size_t head) {
    label_.clear();
    group_.clear();
    for (const std::uint32_t p : programs) {
      label_.push_back(lesson.labels[p * network_.heads() + head]);
      if (!lesson.group.empty()) group_.push_back(lesson.group[p]);
    }
    return nn::has_gradient<T>(training_, label_, group_);
  }

  // Neither the weights of a head without a gradient nor statistics influence the steps of other weights.
  void put_back_what_stays(const Lesson<T>& lesson, std::span<const std::string> frozen, const Weights<T>& before,
                           Weights<T>& weights) {
    for (std::size_t head = 0; head < network_.heads(); ++head) {
      if (has_gradient(lesson, lesson.programs, head)) continue;
      for (const auto& [first, last] : network_.weights_of_head(head))
        std::copy(before.parameters.data() + first, before.parameters.data() + last, weights.parameters.data() + first);
    }
    if (network_.statistics_frozen(frozen)) weights.statistics = before.statistics;
  }

  // Adds up the shards' gradients in the first one; returns the Euclidean norm of the sum.
  double add_shards(std::span<const ParameterRange> pieces) {
    squares_.assign(pieces.size(), 0.0);
    team_.for_each(pieces.size(), [&](std::size_t i, unsigned) {
      const std::size_t first = pieces[i].first, count = pieces[i].last - first;
      auto sum = array(gradients_[0].data() + first, count);
      for (std::size_t s = 1; s < shards_; ++s) sum += array(std::as_const(gradients_[s]).data() + first, count);
      squares_[i] = static_cast<double>(sum.square().sum());
      // Squares of floats above 1.8e19 are infinite.
      if (!std::isfinite(squares_[i])) squares_[i] = sum.template cast<double>().square().sum();
    });
    return std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0));
  }

  // Computes d_score of every shard; returns the loss.
  double losses_of(const Lesson<T>& lesson, std::span<const std::uint32_t> batch) {
    const std::size_t n = batch.size(), heads = network_.heads();
    score_.resize(n);
    label_.resize(n);
    group_.clear();
    for (const std::uint32_t p : batch) {
      if (!lesson.group.empty()) group_.push_back(lesson.group[p]);
    }
    for (std::size_t s = 0; s < shards_; ++s) {
      traces_[s].d_score.resize(traces_[s].score.rows(), heads);
      traces_[s].d_score.fill(T{0});
    }
    double loss = 0;
    for (std::size_t head = 0; head < heads; ++head) {
      each_program(n, [&](std::size_t i, Trace& trace, std::size_t row) {
        score_[i] = trace.score.row(row)[head];
        label_[i] = lesson.labels[batch[i] * heads + head];
      });
      slope_.assign(n, T{0});
      loss += static_cast<double>(loss_of<T>(training_, score_, label_, group_, slope_));
      each_program(n, [&](std::size_t i, Trace& trace, std::size_t row) { trace.d_score.row(row)[head] = slope_[i]; });
    }
    return loss;
  }

  template <class F>
  void each_program(std::size_t n, F&& f) {
    for (std::size_t s = 0; s < shards_; ++s) {
      const std::size_t first = s * n / shards_, last = (s + 1) * n / shards_;
      for (std::size_t i = first; i < last; ++i) f(i, traces_[s], i - first);
    }
  }

  const Network& network_;
  Training training_;
  float dropout_;
  Rng rng_;
  ThreadTeam team_;
  std::size_t shards_ = 1;
  std::vector<Trace> traces_;
  std::vector<Numbers<T>> gradients_;
  std::vector<double> squares_;
  std::vector<T> score_, label_, slope_;
  std::vector<std::uint32_t> group_;
};

}  // namespace tunewright::nn
