// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/attention.hpp"
#include "tunewright/nn/dropout.hpp"
#include "tunewright/nn/input.hpp"
#include "tunewright/nn/layered_network.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/normalisation.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/segments.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The network of models::PatternAware, for hidden = H.
///
///   statement rows (S columns) -Linear-ReLU-Linear-ReLU-> H -sum of each program-> (P, H)
///   dataflow rows (F columns) -Linear-ReLU-> H / 4 -Linear-ReLU-> H / 2 = t
///   t + SelfAttention(t) -sum of each program-> (P, H / 2)
///   both concatenated -Linear-ReLU-> H -BatchNorm-> -2 Residual-> -Linear-> (P, heads)
///
/// Column 0 of a row is its kind (0: statement, 1: dataflow), columns 1 to S are those of statements, and the last F
/// columns those of dataflow.
///
/// Layers: "statements.0", "statements.1", "dataflow.0", "dataflow.1", "dataflow.attention", "fuse", "norm",
/// "trunk.0", "trunk.1", "output".
template <class T>
class PatternNetwork : public LayeredNetwork<T> {
 public:
  static constexpr std::size_t attention_heads = 4;
  struct Trace {
    std::size_t first_program = 0, programs = 0;
    std::array<std::vector<std::uint32_t>, 2> offsets;
    std::array<Matrix<T>, 2> rows, hidden, encoded, summed;
    SelfAttention::Trace<T> attention;
    Matrix<T> attended, joined, fused, normed;
    BatchNorm::Trace<T> norm;
    std::array<Matrix<T>, 2> active, after, mask;
    Matrix<T> score, d_score, d, d_rows, scratch;
    [[nodiscard]] const Matrix<T>& embedding() const noexcept { return after[1]; }
  };

  PatternNetwork(std::size_t columns, std::size_t dataflow_columns, std::size_t hidden, std::size_t heads)
      : LayeredNetwork<T>(columns, heads), dataflow_columns_(dataflow_columns), hidden_(hidden) {
    this->check_size(hidden > 0 && hidden % 8 == 0, "hidden", hidden, "a multiple of 8");
    this->check_size(dataflow_columns > 0, "dataflow_columns", dataflow_columns, "at least 1");
    this->check_size(columns > dataflow_columns + 1, "columns", columns, "at least dataflow_columns + 2");
    const std::size_t statement_columns = columns - 1 - dataflow_columns, token = hidden / 2;
    statements_ = {Linear(layout_, "statements.0", statement_columns, hidden),
                   Linear(layout_, "statements.1", hidden, hidden)};
    dataflow_ = {Linear(layout_, "dataflow.0", dataflow_columns, hidden / 4),
                 Linear(layout_, "dataflow.1", hidden / 4, token)};
    attention_ = SelfAttention(layout_, "dataflow.attention", token, attention_heads);
    fuse_ = Linear(layout_, "fuse", hidden + token, hidden);
    norm_ = BatchNorm(layout_, "norm", hidden);
    for (std::size_t i = 0; i < 2; ++i) trunk_[i] = Residual(layout_, "trunk." + std::to_string(i), hidden);
    output_ = Linear(layout_, "output", hidden, heads);
  }

  [[nodiscard]] NetworkShape shape() const {
    return {{"columns", columns_}, {"dataflow_columns", dataflow_columns_}, {"hidden", hidden_}, {"heads", heads_}};
  }
  template <class ByName>
  [[nodiscard]] static PatternNetwork of_shape(ByName&& by) {
    return PatternNetwork(by("columns"), by("dataflow_columns"), by("hidden"), by("heads"));
  }
  [[nodiscard]] std::vector<ParameterRange> weights_of_head(std::size_t head) const {
    return output_.weights_of_output(head);
  }
  [[nodiscard]] std::size_t statistics() const noexcept { return norm_.statistics(); }
  [[nodiscard]] bool statistics_frozen(std::span<const std::string> frozen) const {
    return layout_.is_frozen("norm", frozen);
  }
  void check_statistics(std::span<const T> statistics) const {
    for (const T variance : statistics.subspan(hidden_)) {
      if (!(variance >= 0)) throw std::runtime_error("'statistics' holds a variance that is negative");
    }
  }
  [[nodiscard]] std::size_t embedding_width() const noexcept { return hidden_; }
  [[nodiscard]] Weights<T> initial(const Rng& rng) const {
    Weights<T> weights = LayeredNetwork<T>::initial(rng);
    weights.statistics = Numbers<T>(statistics(), T{0});
    std::fill(weights.statistics.begin() + static_cast<std::ptrdiff_t>(hidden_), weights.statistics.end(), T{1});
    return weights;
  }

  void load(const Programs& programs, Trace& t) const {
    t.programs = programs.size();
    const auto of_part = [](float part) { return [part](std::span<const float> row) { return row[0] == part; }; };
    gather(programs, 1, columns_ - 1 - dataflow_columns_, of_part(0), t.rows[0], t.offsets[0]);
    gather(programs, columns_ - dataflow_columns_, dataflow_columns_, of_part(1), t.rows[1], t.offsets[1]);
  }

  void forward_lower(const T* w, const Pass&, Trace& t) const {
    for (std::size_t branch = 0; branch < 2; ++branch) {
      const auto& layers = branch == 0 ? statements_ : dataflow_;
      layers[0].forward_relu(w, t.rows[branch], t.hidden[branch]);
      layers[1].forward_relu(w, t.hidden[branch], t.encoded[branch]);
    }
    attention_.forward(w, t.encoded[1], t.offsets[1], t.attention, t.attended);
    array(t.attended.data(), t.attended.size()) += array(t.encoded[1].data(), t.encoded[1].size());
    segment_sum<T>(t.encoded[0], t.offsets[0], t.summed[0]);
    segment_sum<T>(t.attended, t.offsets[1], t.summed[1]);
    t.joined.resize(t.summed[0].rows(), hidden_ + hidden_ / 2);
    for (std::size_t p = 0; p < t.joined.rows(); ++p) {
      std::copy_n(t.summed[0].row(p), hidden_, t.joined.row(p));
      std::copy_n(t.summed[1].row(p), hidden_ / 2, t.joined.row(p) + hidden_);
    }
    fuse_.forward_relu(w, t.joined, t.fused);
    norm_.moments(t.fused, t.programs, t.norm);
  }

  void join(std::span<Trace> shards, T* statistics) const {
    const auto norms = norms_of(shards);
    norm_.template join<T>(norms, statistics);
  }

  void forward_upper(const T* w, const T* statistics, const Pass& pass, Trace& t) const {
    if (!pass.training) norm_.use_running(statistics, t.norm);
    norm_.forward(w, t.fused, t.norm, t.normed);
    for (std::size_t i = 0; i < 2; ++i) {
      trunk_[i].forward(w, i == 0 ? t.normed : t.after[0], t.active[i], t.after[i]);
      dropout(pass, i, t.first_program, t.after[i], t.mask[i]);
    }
    output_.forward(w, t.after[1], t.score);
  }

  /// Both halves, as prediction needs them.
  void forward(const T* w, const T* statistics, const Pass& pass, Trace& t) const {
    forward_lower(w, pass, t);
    forward_upper(w, statistics, pass, t);
  }

  void backward_upper(const T* w, T* g, const Pass& pass, Trace& t) const {
    output_.backward(w, g, t.after[1], t.d_score, &t.d);
    for (std::size_t i = 2; i-- > 0;) {
      dropout_backward(pass, t.mask[i], t.d);
      trunk_[i].backward(w, g, i == 0 ? t.normed : t.after[0], t.active[i], t.d, t.scratch);
    }
    norm_.sums(g, t.d, t.norm);
  }

  void join_backward(std::span<Trace> shards) const {
    const auto norms = norms_of(shards);
    norm_.template join_backward<T>(norms);
  }

  void backward_lower(const T* w, T* g, const Pass&, Trace& t) const {
    norm_.backward(w, t.norm, t.d);
    relu_backward(t.fused, t.d);
    fuse_.backward(w, g, t.joined, t.d, &t.scratch);  // (P, H + H / 2)
    for (std::size_t branch = 0; branch < 2; ++branch) {
      const std::size_t width = branch == 0 ? hidden_ : hidden_ / 2;
      t.d.resize(t.scratch.rows(), width);
      for (std::size_t p = 0; p < t.d.rows(); ++p)
        std::copy_n(t.scratch.row(p) + (branch == 0 ? 0 : hidden_), width, t.d.row(p));
      segment_spread<T>(t.d, t.offsets[branch], t.rows[branch].rows(), t.d_rows);
      if (branch == 1) {
        attention_.backward(w, g, t.encoded[1], t.offsets[1], t.attention, t.d_rows, t.d);
        array(t.d_rows.data(), t.d_rows.size()) += array(t.d.data(), t.d.size());
      }
      const auto& layers = branch == 0 ? statements_ : dataflow_;
      relu_backward(t.encoded[branch], t.d_rows);
      layers[1].backward(w, g, t.hidden[branch], t.d_rows, &t.d);
      relu_backward(t.hidden[branch], t.d);
      layers[0].template backward<T>(w, g, t.rows[branch], t.d, nullptr);
    }
  }

 private:
  static std::vector<BatchNorm::Trace<T>*> norms_of(std::span<Trace> shards) {
    std::vector<BatchNorm::Trace<T>*> norms;
    for (Trace& shard : shards) norms.push_back(&shard.norm);
    return norms;
  }

  using LayeredNetwork<T>::columns_;
  using LayeredNetwork<T>::heads_;
  using LayeredNetwork<T>::layout_;

  std::size_t dataflow_columns_, hidden_;
  std::array<Linear, 2> statements_, dataflow_;
  SelfAttention attention_;
  Linear fuse_;
  BatchNorm norm_;
  std::array<Residual, 2> trunk_;
  Linear output_;
};

}  // namespace tunewright::nn
