// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/models/concept.hpp"

namespace tunewright::models {

/// A network that can predict with dropout.
template <class M>
concept DropoutCostModel = CostModel<M> && requires(const M model, M& own, const FeatureBatch& x, float share,
                                                    std::uint64_t pass, std::span<float> score) {
  { model.predict_with_dropout(x, share, pass, score) } -> std::same_as<void>;
  { own.dropout } -> std::convertible_to<float&>;
};

/// Estimates the uncertainty of a network by Monte Carlo dropout: it predicts several times with different dropout
/// masks.
///
///   score = mean over `passes` masks;   deviation = standard deviation over them
///
/// The network is trained with the same dropout rate.
///
/// Paper:       Gal and Ghahramani, Dropout as a Bayesian approximation, ICML 2016.
/// Models:      UncertainCostModel; ParametricCostModel, EmbeddingCostModel and PersistentCostModel if M is.
/// Cost:        predict takes `passes` times that of M.
/// Determinism: that of M; a pass uses the same mask for every program, so scores do not depend on the rest of the
///              batch.
/// Errors:      those of M, and `std::invalid_argument` for options out of range; `load` throws `std::runtime_error`
///              for them.
template <DropoutCostModel M>
struct WithDropout {
  template <class Featurizer>
  static constexpr bool reads_rows_of = ReadsRowsOf<M, Featurizer>;

  M model{};                ///< its `dropout` is replaced by the one below
  float dropout = 0.1F;     ///< dropout rate, in (0, 1)
  std::size_t passes = 10;  ///< dropout masks per prediction, at least 2

  void predict(const FeatureBatch& x, std::span<float> score) const {
    std::vector<float> deviation(score.size());
    predict_with_deviation(x, score, deviation);
  }

  /// Before the first fit every deviation is 1, because labels are in [0, 1].
  void predict_with_deviation(const FeatureBatch& x, std::span<float> score, std::span<float> deviation) const {
    check_options();
    check_predict_sizes(name, x, score.size());
    check_predict_sizes(name, x, deviation.size());
    std::vector<double> sum(score.size(), 0.0), square(score.size(), 0.0);
    std::vector<float> first(score.size());
    for (std::size_t pass = 0; pass < passes; ++pass) {
      model.predict_with_dropout(x, dropout, pass, score);
      if (pass == 0) first.assign(score.begin(), score.end());
      for (std::size_t p = 0; p < score.size(); ++p) {
        // Relative to the first score, because the squares of large equal scores would not cancel.
        const double off = static_cast<double>(score[p]) - static_cast<double>(first[p]);
        sum[p] += off;
        square[p] += off * off;
      }
    }
    bool taught = true;  // all masks of an untrained network agree
    if constexpr (requires { this->trained(); }) taught = trained();
    const double n = static_cast<double>(passes);
    for (std::size_t p = 0; p < score.size(); ++p) {
      if (std::isinf(first[p])) {
        score[p] = first[p];
        deviation[p] = std::numeric_limits<float>::infinity();
        continue;
      }
      const double mean = sum[p] / n, variance = (square[p] - n * mean * mean) / (n - 1);
      score[p] = static_cast<float>(static_cast<double>(first[p]) + mean);
      deviation[p] = taught ? static_cast<float>(std::sqrt(variance > 0 ? variance : 0.0)) : 1.0F;
    }
  }

  void fit(const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    M next = model;
    next.dropout = dropout;
    next.fit(x, y, group);
    model = std::move(next);
  }

  [[nodiscard]] bool trained() const noexcept
    requires requires(const M m) { m.trained(); }
  {
    return model.trained();
  }
  [[nodiscard]] std::span<float> parameters()
    requires ParametricCostModel<M>
  {
    return model.parameters();
  }
  [[nodiscard]] FeatureBatch embed(const FeatureBatch& x) const
    requires EmbeddingCostModel<M>
  {
    return model.embed(x);
  }
  /// See PersistentCostModel. The file is that of M, with the options that decide the masks as metadata; a file of M
  /// alone may be loaded and leaves these options as they are.
  void save(std::ostream& out, std::uint64_t feature_schema) const
    requires PersistentCostModel<M>
  {
    std::stringstream of_model;
    model.save(of_model, feature_schema);
    data::TensorFile file = data::read_safetensors(of_model);
    each_mask_option(*this, [&](const char* option, const auto& value) {
      std::array<char, 32> text;
      const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
      file.metadata[option] = std::string(std::as_const(text).data(), end);
    });
    data::write_safetensors(out, file.tensors, file.metadata);
  }
  void load(std::istream& in, std::uint64_t feature_schema)
    requires PersistentCostModel<M>
  {
    const data::TensorFile file = data::read_safetensors(in);
    std::stringstream of_model;
    data::write_safetensors(of_model, file.tensors, file.metadata);
    WithDropout next = *this;
    next.model.load(of_model, feature_schema);
    each_mask_option(next, [&](const char* option, auto& value) {
      const auto stored = file.metadata.find(option);
      if (stored == file.metadata.end()) return;
      const std::string& text = stored->second;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc{} || end != text.data() + text.size())
        throw std::runtime_error(std::string(name) + "::load: '" + text + "' is no " + option);
    });
    try {
      next.check_options();
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(error.what());
    }
    *this = std::move(next);
  }

 private:
  static constexpr const char* name = "models::WithDropout";

  // Calls f(name in a file, option) for the options that decide the masks of a prediction.
  template <class F>
  static void each_mask_option(auto& of, const F& f) {
    f("with_dropout.dropout", of.dropout);
    f("with_dropout.passes", of.passes);
    if constexpr (requires { of.model.seed; }) f("with_dropout.seed", of.model.seed);
  }

  void check_options() const {
    require(dropout > 0 && dropout < 1, name, "dropout", static_cast<double>(dropout), "a value in (0, 1)");
    require(passes >= 2, name, "passes", static_cast<double>(passes), "at least 2");
  }
};

}  // namespace tunewright::models
