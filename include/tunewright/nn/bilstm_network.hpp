// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/nn/dropout.hpp"
#include "tunewright/nn/input.hpp"
#include "tunewright/nn/layered_network.hpp"
#include "tunewright/nn/linear.hpp"
#include "tunewright/nn/lstm.hpp"
#include "tunewright/nn/matrix.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/read_out.hpp"
#include "tunewright/nn/trainer.hpp"

namespace tunewright::nn {

/// The network of models::BiLstmAttention, for width d.
///
///   rows (R, D) -Linear-> e (R, d) -`layers` BidirectionalLstm with d cells per direction-> [f, b] (R, 2 d)
///   s = f + b + e -ReadOut, `steps` times-> (P, d) -Linear-> (P, heads)
///
/// Layers: "encoder.input", "encoder.lstm.<l>.forward", "encoder.lstm.<l>.backward", "attention", "output".
template <class T>
class BiLstmNetwork : public LayeredNetwork<T> {
 public:
  struct Trace {
    std::size_t first_program = 0;
    std::vector<std::uint32_t> offsets;
    TimeOrder order;
    Matrix<T> rows, in_time, embedded;
    std::vector<BidirectionalLstm::Trace<T>> lstm;
    std::vector<Matrix<T>> states;
    Matrix<T> sorted, skipped;
    ReadOut::Trace<T> read;
    Matrix<T> out, mask;
    Matrix<T> score, d_score, d, d_rows, d_skip, scratch;
    [[nodiscard]] const Matrix<T>& embedding() const noexcept { return out; }
  };

  struct Sizes {
    std::size_t width = 128, layers = 3, attention_heads = 2, steps = 2;
  };

  static constexpr std::size_t most_steps = 1024;

  BiLstmNetwork(std::size_t columns, Sizes sizes, std::size_t heads)
      : LayeredNetwork<T>(columns, heads), sizes_(sizes), input_(layout_, "encoder.input", columns, sizes.width) {
    this->check_size(sizes.width > 0, "width", sizes.width, "at least 1");
    this->check_size(sizes.layers > 0, "layers", sizes.layers, "at least 1");
    this->check_size(sizes.steps > 0 && sizes.steps <= most_steps, "steps", sizes.steps, "1 to 1024");
    for (std::size_t l = 0; l < sizes.layers; ++l) {
      lstm_.emplace_back(layout_, "encoder.lstm." + std::to_string(l), l == 0 ? sizes.width : 2 * sizes.width,
                         sizes.width);
    }
    read_out_ = ReadOut(layout_, "attention", sizes.width, sizes.attention_heads, sizes.steps);
    output_ = Linear(layout_, "output", sizes.width, heads);
  }

  [[nodiscard]] NetworkShape shape() const {
    return {{"columns", columns_},     {"width", sizes_.width},
            {"layers", sizes_.layers}, {"attention_heads", sizes_.attention_heads},
            {"steps", sizes_.steps},   {"heads", heads_}};
  }
  template <class ByName>
  [[nodiscard]] static BiLstmNetwork of_shape(ByName&& by) {
    return BiLstmNetwork(by("columns"), {by("width"), by("layers"), by("attention_heads"), by("steps")}, by("heads"));
  }
  [[nodiscard]] std::vector<ParameterRange> weights_of_head(std::size_t head) const {
    return output_.weights_of_output(head);
  }
  [[nodiscard]] std::size_t embedding_width() const noexcept { return sizes_.width; }

  void load(const Programs& programs, Trace& t) const {
    gather(programs, 0, columns_, [](std::span<const float>) { return true; }, t.rows, t.offsets);
    t.order.set(t.offsets);
    t.order.sort(t.rows, t.in_time);
  }

  void forward(const T* w, const T*, const Pass& pass, Trace& t) const {
    const std::size_t width = sizes_.width;
    input_.forward(w, t.in_time, t.embedded);
    t.lstm.resize(sizes_.layers);
    t.states.resize(sizes_.layers);
    for (std::size_t l = 0; l < sizes_.layers; ++l)
      lstm_[l].forward(w, l == 0 ? t.embedded : t.states[l - 1], t.order, t.lstm[l], t.states[l]);
    t.sorted = t.embedded;
    for (std::size_t r = 0; r < t.sorted.rows(); ++r) {
      array(t.sorted.row(r), width) +=
          array(t.states.back().row(r), width) + array(t.states.back().row(r) + width, width);
    }
    t.order.unsort(t.sorted, t.skipped);
    read_out_.forward(w, t.skipped, t.offsets, t.read, t.out);
    dropout(pass, 0, t.first_program, t.out, t.mask);
    output_.forward(w, t.out, t.score);
  }

  void backward(const T* w, T* g, const Pass& pass, Trace& t) const {
    const std::size_t width = sizes_.width;
    output_.backward(w, g, t.out, t.d_score, &t.d);
    dropout_backward(pass, t.mask, t.d);
    read_out_.backward(w, g, t.skipped, t.offsets, t.read, t.d, t.d_rows);
    t.order.sort(t.d_rows, t.d_skip);
    t.d.resize(t.d_skip.rows(), 2 * width);
    for (std::size_t r = 0; r < t.d.rows(); ++r) {
      std::copy_n(t.d_skip.row(r), width, t.d.row(r));
      std::copy_n(t.d_skip.row(r), width, t.d.row(r) + width);
    }
    for (std::size_t l = sizes_.layers; l-- > 0;) {
      lstm_[l].backward(w, g, l == 0 ? t.embedded : t.states[l - 1], t.order, t.lstm[l], t.d, t.scratch);
      std::swap(t.d, t.scratch);
    }
    array(t.d.data(), t.d.size()) += array(t.d_skip.data(), t.d_skip.size());
    input_.template backward<T>(w, g, t.in_time, t.d, nullptr);
  }

 private:
  using LayeredNetwork<T>::columns_;
  using LayeredNetwork<T>::heads_;
  using LayeredNetwork<T>::layout_;

  Sizes sizes_;
  Linear input_;
  std::vector<BidirectionalLstm> lstm_;
  ReadOut read_out_;
  Linear output_;
};

}  // namespace tunewright::nn
