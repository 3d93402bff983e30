// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::nn {

/// The loss function. y is the label, s the score, n the number of programs of a mini-batch.
enum class Loss : std::uint8_t {
  LambdaRank,           ///< pairs in wrong order, weighted by the change of the discounted cumulative gain
  Pairwise,             ///< RankNet: mean of -log2 sigmoid(s_i - s_j) over pairs with y_i > y_j
  MeanSquared,          ///< sum (s - y)^2 / n
  WeightedMeanSquared,  ///< sum y (s - y)^2 / n: fast programs weigh more, failed ones nothing (Ansor)
  Quantile,             ///< sum max(q (y - s), (q - 1) (y - s)) / n, minimal at the quantile q of y
};

enum class Optimiser : std::uint8_t {
  Adam,  ///< beta 0.9 and 0.999, epsilon 1e-8
  Sgd,   ///< stochastic gradient descent, with `Training::momentum`
};

/// The learning rate in epoch e, from 0 to the last.
enum class Schedule : std::uint8_t {
  Constant,
  Step,    ///< multiplied by `step_factor` every `step_epochs`
  Cosine,  ///< multiplied by (1 + cos(pi e / epochs)) / 2
};

/// How a network is trained. The defaults are those of TenSet's multilayer perceptron, also used by Pruner and TLP,
/// except for `least_steps` and for `patience_epochs`: TenSet waits 8 epochs, Pruner 16.
struct Training {
  Loss loss = Loss::LambdaRank;
  float quantile = 0.5F;       ///< for Loss::Quantile, in (0, 1)
  bool across_tasks = true;    ///< ranking losses compare all pairs of a mini-batch; false: only pairs of one task
  unsigned epochs = 50;        ///< passes over the data, at least 1
  unsigned least_steps = 300;  ///< more epochs if few programs give few mini-batches per epoch
  std::size_t batch_programs = 512;  ///< per mini-batch, at least 1, or 2 for a loss that compares programs
  Optimiser optimiser = Optimiser::Adam;
  float learning_rate = 7e-4F;   ///< positive, finite
  float momentum = 0;            ///< for Optimiser::Sgd, in [0, 1)
  float weight_decay = 1e-6F;    ///< times the weight is added to its gradient; at least 0
  bool decoupled_decay = false;  ///< subtract learning_rate * weight_decay * weight instead (AdamW)
  float clip_norm = 0.5F;        ///< maximum Euclidean norm of the gradient; 0: no limit
  Schedule schedule = Schedule::Constant;
  unsigned step_epochs = 3;      ///< for Schedule::Step, at least 1
  float step_factor = 0.5F;      ///< for Schedule::Step, in (0, 1]
  unsigned patience_epochs = 0;  ///< stop after as many without a new minimum of the smoothed loss; 0: never

  /// Throws `std::invalid_argument` for values out of range; `who` is named in the message.
  void check(const char* who) const;

  /// Number of epochs for `batches` mini-batches per epoch, from `epochs` and `least_steps`.
  [[nodiscard]] unsigned epochs_of(std::size_t batches) const;

  [[nodiscard]] float learning_rate_in(unsigned epoch, unsigned all_epochs) const;

  /// Whether the loss compares programs.
  [[nodiscard]] bool ranks() const noexcept { return loss == Loss::LambdaRank || loss == Loss::Pairwise; }
};

/// Whether the loss of programs with labels `y` ([n], NaN: unknown) in the tasks `group` ([n], or empty for one task)
/// has a gradient. A ranking loss needs two different labels that it compares, WeightedMeanSquared a label above 0, any
/// loss a known label. Where there is none, training steps would be weight decay alone, which Adam turns into steps of
/// full length towards 0: networks do not take them.
template <class T>
[[nodiscard]] bool has_gradient(const Training& training, std::span<const T> y, std::span<const std::uint32_t> group) {
  const bool by_task = training.ranks() && !training.across_tasks && !group.empty();
  std::unordered_map<std::uint32_t, T> first_of_task;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::isnan(y[i])) continue;
    if (training.ranks()) {
      const T gain = training.loss == Loss::LambdaRank ? std::exp2(y[i]) : y[i];
      if (first_of_task.try_emplace(by_task ? group[i] : 0U, gain).first->second != gain) return true;
    } else if (training.loss != Loss::WeightedMeanSquared || y[i] > 0) {
      return true;
    }
  }
  return false;
}

/// The same of programs [n] that have rows; the others are ignored in training.
[[nodiscard]] bool has_gradient(const Training& training, const FeatureBatch& x, std::span<const float> y,
                                std::span<const std::uint32_t> group);

/// What a network keeps when it continues to learn.
struct Continuation {
  std::vector<std::string> frozen{};  ///< layers whose names begin with one of these are not changed
  bool refit_input_scale = false;     ///< compute the input scale from the new data; false: keep the old one
};

/// TenSet's early stopping: stops if the smoothed loss l <- 0.95 l + 0.05 loss has no new minimum at the ends of
/// `patience` consecutive epochs.
class EarlyStopping {
 public:
  explicit EarlyStopping(unsigned patience) : patience_(patience) {}

  void batch(double loss);
  /// Ends an epoch; returns whether to stop.
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
  require(batch_programs > (ranks() ? 1U : 0U), who, "batch_programs", static_cast<double>(batch_programs),
          ranks() ? "at least 2, for a loss that compares programs" : "at least 1");
  require(std::isfinite(learning_rate) && learning_rate > 0, who, "learning_rate", static_cast<double>(learning_rate),
          "a finite value above 0");
  require(momentum >= 0 && momentum < 1, who, "momentum", static_cast<double>(momentum), "a value in [0, 1)");
  require(std::isfinite(weight_decay) && weight_decay >= 0, who, "weight_decay", static_cast<double>(weight_decay),
          "a finite value of at least 0");
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

TUNEWRIGHT_INLINE bool has_gradient(const Training& training, const FeatureBatch& x, std::span<const float> y,
                                    std::span<const std::uint32_t> group) {
  std::vector<float> known(y.begin(), y.end());
  for (std::size_t p = 0; p < known.size(); ++p) {
    if (x.program(p).empty()) known[p] = std::numeric_limits<float>::quiet_NaN();
  }
  return has_gradient<float>(training, known, group);
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
