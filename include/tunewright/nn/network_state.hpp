// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The learned state of a model that is a network, and the operations common to such models. `Shape` has the arguments
/// from which the network is constructed; it is stored with the weights.
template <class Network>
class NetworkState {
 public:
  using T = typename Network::Scalar;

  /// How to train; `who` is named in error messages.
  struct How {
    const char* who;
    const Training& training;
    float dropout;
    std::uint64_t seed;
    unsigned threads;
  };

  [[nodiscard]] bool trained() const noexcept { return network_.has_value(); }
  [[nodiscard]] std::span<T> parameters() noexcept { return weights_.parameters; }
  [[nodiscard]] std::span<T> statistics() noexcept { return weights_.statistics; }
  [[nodiscard]] std::span<const ParameterBlock> blocks() const noexcept {
    return network_ ? network_->layout().blocks() : std::span<const ParameterBlock>{};
  }
  [[nodiscard]] const Network* network() const noexcept { return network_ ? &*network_ : nullptr; }
  [[nodiscard]] const Weights<T>& weights() const noexcept { return weights_; }
  [[nodiscard]] const InputScale& scale() const noexcept { return scale_; }

  /// Trains from new initial weights on `labels` (P, heads of `network`), NaN if unknown. If none has a gradient, the
  /// state becomes that before the first fit: initial weights would rank at random.
  void fit(const How& how, Network network, const FeatureBatch& x, std::span<const T> labels,
           std::span<const std::uint32_t> group) {
    NetworkState next;
    next.network_ = std::move(network);
    next.scale_ = InputScale::fit(x);
    next.weights_ = next.network_->initial(Rng(how.seed).split(0));
    if (!next.go_on(how, x, labels, group, {})) next = {};
    *this = std::move(next);
  }

  /// Continues training from the current weights. Changes nothing if no label has a gradient.
  void continue_fit(const How& how, const FeatureBatch& x, std::span<const T> labels,
                    std::span<const std::uint32_t> group, const Continuation& from) {
    check_width(how.who, "train_from_current", x);
    NetworkState next = *this;
    if (from.refit_input_scale && x.rows() > 0) next.scale_ = InputScale::fit(x);
    if (next.go_on(how, x, labels, group, from.frozen)) *this = std::move(next);
  }

  /// Sets the state read from a file. Throws `std::runtime_error` for numbers that the network cannot have.
  void restore(Network network, InputScale scale, Weights<T> weights) {
    if (weights.parameters.size() != network.layout().size() || weights.statistics.size() != network.statistics())
      throw std::runtime_error("the weights do not fit the shape of the network");
    network.check_statistics(weights.statistics);
    network_ = std::move(network);
    scale_ = std::move(scale);
    weights_ = std::move(weights);
  }

  /// Scores of one head, with dropout if `pass` has it.
  void predict(const char* who, const FeatureBatch& x, std::size_t head, const Pass& pass, unsigned threads,
               std::span<float> score) const {
    require(pass.dropout >= 0 && pass.dropout < 1, who, "dropout", static_cast<double>(pass.dropout),
            "a value in [0, 1)");
    std::fill(score.begin(), score.end(), -std::numeric_limits<float>::infinity());
    run(who, "predict", x, pass, threads, [&](const auto& trace, std::uint32_t p, std::size_t row) {
      score[p] = static_cast<float>(trace.score.row(row)[head]);
    });
    if (network_) return;
    for (const std::uint32_t p : described(x)) score[p] = 0;
  }

  /// The last hidden layer, one row per program. Before the first fit: the sums of the program's rows.
  [[nodiscard]] FeatureBatch embed(const char* who, const FeatureBatch& x, unsigned threads) const {
    const std::size_t width = network_ ? network_->embedding_width() : x.columns();
    std::vector<float> values(x.programs() * width, 0.0F);
    run(who, "embed", x, Pass{}, threads, [&](const auto& trace, std::uint32_t p, std::size_t row) {
      std::copy_n(trace.embedding().row(row), width, values.begin() + static_cast<std::ptrdiff_t>(p * width));
    });
    FeatureBatch out(width);
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const auto row = out.append_row();
      if (network_)
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(p * width), width, row.begin());
      else
        for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r)
          for (std::size_t c = 0; c < width; ++c) row[c] += x.row(r)[c];
      out.close_program();
    }
    return out;
  }

  /// Throws `std::invalid_argument` for rows of another width than the network learned from.
  void check_width(const char* who, const char* what, const FeatureBatch& x) const {
    if (!network_ || x.rows() == 0 || x.columns() == scale_.magnitude.size()) return;
    throw std::invalid_argument(std::string(who) + "::" + what + ": rows of " + std::to_string(x.columns()) +
                                " features, but the model was trained on " + std::to_string(scale_.magnitude.size()) +
                                "; use the featurizer it was trained with");
  }

 private:
  static std::vector<std::uint32_t> described(const FeatureBatch& x) {
    std::vector<std::uint32_t> programs;
    for (std::uint32_t p = 0; p < x.programs(); ++p) {
      if (x.offsets()[p] != x.offsets()[p + 1]) programs.push_back(p);
    }
    return programs;
  }

  bool go_on(const How& how, const FeatureBatch& x, std::span<const T> labels, std::span<const std::uint32_t> group,
             std::span<const std::string> frozen) {
    Trainer<Network> trainer(*network_, how.training, how.dropout, how.seed, how.threads);
    return trainer.train(Lesson<T>{&x, &scale_, described(x), labels, group}, frozen, weights_);
  }

  // Calls use(trace, program, row) for every program that has rows, in parts of fixed size.
  template <class Use>
  void run(const char* who, const char* what, const FeatureBatch& x, const Pass& pass, unsigned threads,
           Use&& use) const {
    check_width(who, what, x);
    if (!network_) return;
    const auto programs = described(x);
    constexpr std::size_t part_size = 64;
    const std::size_t parts = (programs.size() + part_size - 1) / part_size;
    const std::size_t wanted = threads == 0 ? hardware_threads() : threads;
    // A thread is worth starting for about a millisecond of work.
    const std::size_t helpers = std::min(wanted, parts / 2 + 1);
    std::vector<typename Network::Trace> traces(helpers);
    ThreadTeam team(static_cast<unsigned>(helpers));
    team.for_each(parts, [&](std::size_t part, unsigned worker) {
      const std::size_t first = part * part_size, last = std::min(first + part_size, programs.size());
      auto& trace = traces[worker];
      const auto here = std::span(programs).subspan(first, last - first);
      trace.first_program = first;
      network_->load(Programs{&x, here, &scale_}, trace);
      network_->forward(weights_.parameters.data(), weights_.statistics.data(), pass, trace);
      for (std::size_t i = 0; i < here.size(); ++i) use(trace, here[i], i);
    });
  }

  std::optional<Network> network_;
  Weights<T> weights_;
  InputScale scale_;
};

}  // namespace tunewright::nn
