// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::nn {

/// What training makes small. y is the label, s the score, n the programs of a mini-batch.
enum class Loss : std::uint8_t {
  LambdaRank,           ///< wrong order counts by what it costs the discounted cumulative gain
  Pairwise,             ///< -log2 sigmoid(s_i - s_j) averaged over pairs with y_i > y_j (RankNet)
  MeanSquared,          ///< sum (s - y)^2 / n
  WeightedMeanSquared,  ///< sum y (s - y)^2 / n: fast programs count more, failed ones not at all (Ansor)
  Quantile,             ///< sum max(q (y - s), (q - 1) (y - s)) / n, minimal at the quantile q of y
};

enum class Optimiser : std::uint8_t {
  Adam,  ///< beta 0.9 and 0.999, epsilon 1e-8
  Sgd,   ///< stochastic gradient descent, with `Training::momentum`
};

/// How the learning rate changes from epoch e = 0 to the last.
enum class Schedule : std::uint8_t {
  Constant,
  Step,    ///< times `step_factor` every `step_epochs`
  Cosine,  ///< times (1 + cos(pi e / epochs)) / 2
};

/// How a network is trained. The values are those of TenSet's multilayer perceptron, which Pruner and TLP
/// took over; `least_steps` is ours.
struct Training {
  Loss loss = Loss::LambdaRank;
  float quantile = 0.5F;             ///< of Loss::Quantile, in (0, 1)
  bool across_tasks = true;          ///< ranking losses order the whole mini-batch; false: programs of one task only
  unsigned epochs = 50;              ///< passes over the data, at least 1
  unsigned least_steps = 300;        ///< few programs give few mini-batches an epoch: then more epochs
  std::size_t batch_programs = 512;  ///< in a mini-batch, at least 1
  Optimiser optimiser = Optimiser::Adam;
  float learning_rate = 7e-4F;   ///< above 0
  float momentum = 0;            ///< of Optimiser::Sgd, in [0, 1)
  float weight_decay = 1e-6F;    ///< this times the weight is added to its gradient, at least 0
  bool decoupled_decay = false;  ///< shrink the weight by learning_rate * weight_decay instead (AdamW)
  float clip_norm = 0.5F;        ///< longer gradients are shortened to this Euclidean norm; 0: never
  Schedule schedule = Schedule::Constant;
  unsigned step_epochs = 3;      ///< of Schedule::Step, at least 1
  float step_factor = 0.5F;      ///< of Schedule::Step, in (0, 1]
  unsigned patience_epochs = 0;  ///< stop after so many without a better smoothed loss; 0: never

  /// Throws `std::invalid_argument` for values out of range. `who` is named in the message.
  void check(const char* who) const;

  /// Epochs that `batches` mini-batches an epoch make of `epochs` and `least_steps`.
  [[nodiscard]] unsigned epochs_of(std::size_t batches) const;

  [[nodiscard]] float learning_rate_in(unsigned epoch, unsigned all_epochs) const;
};

/// What is kept of a network that goes on learning.
struct Continuation {
  std::vector<std::string> frozen{};  ///< layers whose names begin with one of these keep their bits
  bool refit_input_scale = false;     ///< scale inputs by the new data instead of what was learned from
};

/// Tells when a loss has stopped falling: its smoothed value l <- 0.95 l + 0.05 loss has no new minimum at
/// the ends of `patience` epochs in a row. (TenSet's rule.)
class EarlyStopping {
 public:
  explicit EarlyStopping(unsigned patience) : patience_(patience) {}

  void batch(double loss);
  /// Ends an epoch; whether to stop.
  bool epoch();

 private:
  unsigned patience_;
  unsigned waited_ = 0;
  double smoothed_ = 0, best_ = 0;
  bool first_ = true, any_ = false;
};

}  // namespace tunewright::nn

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/require.hpp"

namespace tunewright::nn {

TUNEWRIGHT_INLINE void Training::check(const char* who) const {
  require(quantile > 0 && quantile < 1, who, "quantile", static_cast<double>(quantile), "a value in (0, 1)");
  require(epochs > 0, who, "epochs", epochs, "at least 1");
  require(batch_programs > 0, who, "batch_programs", static_cast<double>(batch_programs), "at least 1");
  require(learning_rate > 0, who, "learning_rate", static_cast<double>(learning_rate), "a value above 0");
  require(momentum >= 0 && momentum < 1, who, "momentum", static_cast<double>(momentum), "a value in [0, 1)");
  require(weight_decay >= 0, who, "weight_decay", static_cast<double>(weight_decay), "at least 0");
  require(clip_norm >= 0, who, "clip_norm", static_cast<double>(clip_norm), "at least 0");
  require(step_epochs > 0, who, "step_epochs", step_epochs, "at least 1");
  require(step_factor > 0 && step_factor <= 1, who, "step_factor", static_cast<double>(step_factor),
          "a value in (0, 1]");
}

TUNEWRIGHT_INLINE unsigned Training::epochs_of(std::size_t batches) const {
  const std::size_t needed = (least_steps + batches - 1) / batches;
  return std::max(epochs, static_cast<unsigned>(needed));
}

TUNEWRIGHT_INLINE float Training::learning_rate_in(unsigned epoch, unsigned all_epochs) const {
  switch (schedule) {
    case Schedule::Constant: return learning_rate;
    case Schedule::Step: return learning_rate * std::pow(step_factor, static_cast<float>(epoch / step_epochs));
    case Schedule::Cosine:
      return learning_rate * 0.5F *
             (1 + std::cos(3.14159265F * static_cast<float>(epoch) / static_cast<float>(all_epochs)));
  }
  return learning_rate;
}

TUNEWRIGHT_INLINE void EarlyStopping::batch(double loss) {
  smoothed_ = first_ ? loss : 0.95 * smoothed_ + 0.05 * loss;
  first_ = false;
}

TUNEWRIGHT_INLINE bool EarlyStopping::epoch() {
  if (smoothed_ < best_ || !any_) {
    best_ = smoothed_;
    any_ = true;
    waited_ = 0;
    return false;
  }
  return ++waited_ >= patience_ && patience_ > 0;
}

}  // namespace tunewright::nn

#endif
