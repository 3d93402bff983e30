// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/nn/dropout.hpp"
#include "tunewright/nn/input.hpp"
#include "tunewright/nn/layered_network.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/segments.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The network of models::Mlp.
///
///   rows (R, D) -Linear-ReLU-Linear-ReLU-> (R, H) -sum of each program-> (P, H) -2 Residual-> (P, H)
///        -Linear-> (P, heads)
///
/// Layers: "encoder.0", "encoder.1", "trunk.0", "trunk.1", "output".
template <class T>
class MlpNetwork : public LayeredNetwork<T> {
 public:
  struct Trace {
    std::size_t first_program = 0;
    std::vector<std::uint32_t> offsets;
    Matrix<T> rows, hidden, encoded, summed;
    std::array<Matrix<T>, 2> active, after, mask;
    Matrix<T> score, d_score, d, scratch;
    [[nodiscard]] const Matrix<T>& embedding() const noexcept { return after[1]; }
  };

  MlpNetwork(std::size_t columns, std::size_t hidden, std::size_t heads)
      : LayeredNetwork<T>(columns, heads), hidden_(hidden) {
    this->check_size(hidden > 0, "hidden", hidden, "at least 1");
    encoder_[0] = Linear(layout_, "encoder.0", columns, hidden);
    encoder_[1] = Linear(layout_, "encoder.1", hidden, hidden);
    for (std::size_t i = 0; i < 2; ++i) trunk_[i] = Residual(layout_, "trunk." + std::to_string(i), hidden);
    output_ = Linear(layout_, "output", hidden, heads);
  }

  /// The constructor's arguments by name; `of_shape` constructs the network from them.
  [[nodiscard]] NetworkShape shape() const { return {{"columns", columns_}, {"hidden", hidden_}, {"heads", heads_}}; }
  template <class ByName>
  [[nodiscard]] static MlpNetwork of_shape(ByName&& by) {
    return MlpNetwork(by("columns"), by("hidden"), by("heads"));
  }

  [[nodiscard]] std::vector<ParameterRange> weights_of_head(std::size_t head) const {
    return output_.weights_of_output(head);
  }
  [[nodiscard]] std::size_t embedding_width() const noexcept { return hidden_; }

  void load(const Programs& programs, Trace& t) const {
    gather(programs, 0, columns_, [](std::span<const float>) { return true; }, t.rows, t.offsets);
  }

  void forward(const T* w, const T*, const Pass& pass, Trace& t) const {
    encoder_[0].forward_relu(w, t.rows, t.hidden);
    encoder_[1].forward_relu(w, t.hidden, t.encoded);
    segment_sum<T>(t.encoded, t.offsets, t.summed);
    for (std::size_t i = 0; i < 2; ++i) {
      trunk_[i].forward(w, i == 0 ? t.summed : t.after[0], t.active[i], t.after[i]);
      dropout(pass, i, t.first_program, t.after[i], t.mask[i]);
    }
    output_.forward(w, t.after[1], t.score);
  }

  void backward(const T* w, T* g, const Pass& pass, Trace& t) const {
    output_.backward(w, g, t.after[1], t.d_score, &t.d);
    for (std::size_t i = 2; i-- > 0;) {
      dropout_backward(pass, t.mask[i], t.d);
      trunk_[i].backward(w, g, i == 0 ? t.summed : t.after[0], t.active[i], t.d, t.scratch);
    }
    segment_spread<T>(t.d, t.offsets, t.rows.rows(), t.scratch);
    relu_backward(t.encoded, t.scratch);
    encoder_[1].backward(w, g, t.hidden, t.scratch, &t.d);
    relu_backward(t.hidden, t.d);
    encoder_[0].backward<T>(w, g, t.rows, t.d, nullptr);
  }

 private:
  using LayeredNetwork<T>::columns_;
  using LayeredNetwork<T>::heads_;
  using LayeredNetwork<T>::layout_;

  std::size_t hidden_;
  std::array<Linear, 2> encoder_;
  std::array<Residual, 2> trunk_;
  Linear output_;
};

}  // namespace tunewright::nn
