// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/attention.hpp"
#include "tunewright/nn/dropout.hpp"
#include "tunewright/nn/input.hpp"
#include "tunewright/nn/layered_network.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/segments.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The network of models::PrimitiveAttention, for width W.
///
///   rows (R, D) -Linear-ReLU, four times-> W / 4, W / 2, W, W = e;  a = e + SelfAttention(e);  2 Residual
///   each head: -Linear-ReLU, three times-> W, W / 2, W / 4 -Linear-> (R, 1) -sum of each program-> (P, 1)
///
/// The last linear layer is applied after the sum, to the sum of its inputs and the number of rows, which gives the
/// same result. The embedding is that sum of the first head, [W / 4].
///
/// Layers: "encoder.0" to "encoder.3", "attention", "trunk.0", "trunk.1", "head.<h>.0" to "head.<h>.3".
template <class T>
class PrimitiveNetwork : public LayeredNetwork<T> {
 public:
  struct HeadTrace {
    std::array<Matrix<T>, 3> hidden;
    Matrix<T> summed;
  };
  struct Trace {
    std::size_t first_program = 0;
    std::vector<std::uint32_t> offsets;
    Matrix<T> rows;
    std::array<Matrix<T>, 4> encoded;
    SelfAttention::Trace<T> attention;
    Matrix<T> attended;
    std::array<Matrix<T>, 2> active, after;
    Matrix<T> mask;
    std::vector<HeadTrace> heads;
    Matrix<T> score, d_score, d, d_trunk, scratch;
    [[nodiscard]] const Matrix<T>& embedding() const noexcept { return heads[0].summed; }
  };

  PrimitiveNetwork(std::size_t columns, std::size_t width, std::size_t attention_heads, std::size_t heads)
      : LayeredNetwork<T>(columns, heads), width_(width), attention_heads_(attention_heads) {
    this->check_size(width > 0 && width % 4 == 0, "width", width, "a positive multiple of 4");
    const std::array<std::size_t, 5> encoder{columns, width / 4, width / 2, width, width};
    for (std::size_t i = 0; i < 4; ++i)
      encoder_[i] = Linear(layout_, "encoder." + std::to_string(i), encoder[i], encoder[i + 1]);
    attention_ = SelfAttention(layout_, "attention", width, attention_heads);
    for (std::size_t i = 0; i < 2; ++i) trunk_[i] = Residual(layout_, "trunk." + std::to_string(i), width);
    const std::array<std::size_t, 5> head{width, width, width / 2, width / 4, 1};
    for (std::size_t h = 0; h < heads; ++h) {
      auto& layers = head_.emplace_back();
      for (std::size_t i = 0; i < 4; ++i)
        layers[i] = Linear(layout_, "head." + std::to_string(h) + "." + std::to_string(i), head[i], head[i + 1]);
    }
  }

  [[nodiscard]] NetworkShape shape() const {
    return {{"columns", columns_}, {"width", width_}, {"attention_heads", attention_heads_}, {"heads", heads_}};
  }
  template <class ByName>
  [[nodiscard]] static PrimitiveNetwork of_shape(ByName&& by) {
    return PrimitiveNetwork(by("columns"), by("width"), by("attention_heads"), by("heads"));
  }
  [[nodiscard]] std::vector<ParameterRange> weights_of_head(std::size_t head) const {
    return {{head_[head].front().weight, head_[head].back().bias + 1}};  // added one after the other; one output
  }
  [[nodiscard]] std::size_t embedding_width() const noexcept { return width_ / 4; }

  void load(const Programs& programs, Trace& t) const {
    gather(programs, 0, columns_, [](std::span<const float>) { return true; }, t.rows, t.offsets);
  }

  void forward(const T* w, const T*, const Pass& pass, Trace& t) const {
    for (std::size_t i = 0; i < 4; ++i) encoder_[i].forward_relu(w, i == 0 ? t.rows : t.encoded[i - 1], t.encoded[i]);
    attention_.forward(w, t.encoded[3], t.offsets, t.attention, t.attended);
    array(t.attended.data(), t.attended.size()) += array(t.encoded[3].data(), t.encoded[3].size());
    for (std::size_t i = 0; i < 2; ++i) trunk_[i].forward(w, i == 0 ? t.attended : t.after[0], t.active[i], t.after[i]);
    thin_rows(pass, t);
    const std::size_t programs = t.offsets.size() - 1;
    t.heads.resize(heads_);
    t.score.resize(padded(programs), heads_);
    for (std::size_t h = 0; h < heads_; ++h) {
      HeadTrace& head = t.heads[h];
      for (std::size_t i = 0; i < 3; ++i)
        head_[h][i].forward_relu(w, i == 0 ? t.after[1] : head.hidden[i - 1], head.hidden[i]);
      segment_sum<T>(head.hidden[2], t.offsets, head.summed);
      const Linear& last = head_[h][3];
      for (std::size_t p = 0; p < t.score.rows(); ++p) {
        t.score.row(p)[h] = matrix_detail::dot(std::as_const(head.summed).row(p), w + last.weight, last.in) +
                            w[last.bias] * rows_of(t, p);
      }
    }
  }

  void backward(const T* w, T* g, const Pass& pass, Trace& t) const {
    t.d_trunk.resize(t.rows.rows(), width_);
    t.d_trunk.fill(T{0});
    for (std::size_t h = 0; h < heads_; ++h) {
      HeadTrace& head = t.heads[h];
      const Linear& last = head_[h][3];
      t.scratch.resize(t.score.rows(), last.in);
      for (std::size_t p = 0; p < t.score.rows(); ++p) {
        const T d = t.d_score.row(p)[h];
        g[last.bias] += d * rows_of(t, p);
        array(g + last.weight, last.in) += d * array(std::as_const(head.summed).row(p), last.in);
        array(t.scratch.row(p), last.in) = d * array(w + last.weight, last.in);
      }
      segment_spread<T>(t.scratch, t.offsets, t.rows.rows(), t.d);
      for (std::size_t i = 3; i-- > 0;) {
        relu_backward(head.hidden[i], t.d);
        head_[h][i].backward(w, g, i == 0 ? t.after[1] : head.hidden[i - 1], t.d, &t.scratch);
        std::swap(t.d, t.scratch);
      }
      array(t.d_trunk.data(), t.d_trunk.size()) += array(t.d.data(), t.d.size());
    }
    if (pass.dropout > 0) array(t.d_trunk.data(), t.d_trunk.size()) *= array(t.mask.data(), t.mask.size());
    for (std::size_t i = 2; i-- > 0;)
      trunk_[i].backward(w, g, i == 0 ? t.attended : t.after[0], t.active[i], t.d_trunk, t.scratch);
    attention_.backward(w, g, t.encoded[3], t.offsets, t.attention, t.d_trunk, t.d);
    array(t.d.data(), t.d.size()) += array(t.d_trunk.data(), t.d_trunk.size());
    for (std::size_t i = 4; i-- > 0;) {
      relu_backward(t.encoded[i], t.d);
      encoder_[i].template backward<T>(w, g, i == 0 ? t.rows : t.encoded[i - 1], t.d, i == 0 ? nullptr : &t.scratch);
      std::swap(t.d, t.scratch);
    }
  }

 private:
  static T rows_of(const Trace& t, std::size_t p) {
    return p + 1 < t.offsets.size() ? static_cast<T>(t.offsets[p + 1] - t.offsets[p]) : T{0};
  }

  // All rows of a program drop the same units.
  void thin_rows(const Pass& pass, Trace& t) const {
    if (pass.dropout <= 0) return;
    const std::size_t programs = t.offsets.size() - 1;
    t.scratch.resize(programs, width_);
    t.scratch.fill(T{1});
    dropout(pass, 0, t.first_program, t.scratch, t.d);  // scratch becomes the dropout factors
    segment_spread<T>(t.scratch, t.offsets, t.rows.rows(), t.mask);
    array(t.after[1].data(), t.after[1].size()) *= array(t.mask.data(), t.mask.size());
  }

  using LayeredNetwork<T>::columns_;
  using LayeredNetwork<T>::heads_;
  using LayeredNetwork<T>::layout_;

  std::size_t width_, attention_heads_;
  std::array<Linear, 4> encoder_;
  SelfAttention attention_;
  std::array<Residual, 2> trunk_;
  std::vector<std::array<Linear, 4>> head_;
};

}  // namespace tunewright::nn
