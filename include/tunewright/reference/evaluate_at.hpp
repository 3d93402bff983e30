// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/reference/evaluate.hpp"

namespace tunewright::reference {

/// Row-major numbers of about `count` distinct elements at which to check a kernel, sorted: all corners; random
/// elements at the first and last position of each dimension and around powers of two and multiples of 8, where tiles
/// begin and end; and uniformly drawn elements. All elements if there are at most `count`.
///
/// Determinism: a function of the arguments; `rng` is not advanced.
[[nodiscard]] std::vector<std::int64_t> sample_points(const std::vector<std::int64_t>& shape, std::size_t count,
                                                      const Rng& rng);

namespace detail {

/// The elements of all tensors that the evaluation of some elements needs.
class Demand {
 public:
  explicit Demand(const ComputeGraph& graph);

  void add(TensorId id, std::span<const std::int64_t> points) {
    for (const std::int64_t point : points) flags(id)[static_cast<std::size_t>(point)] = 1;
  }
  [[nodiscard]] bool any(TensorId id) const { return everything_[id] || !wanted_[id].empty(); }
  [[nodiscard]] bool everything(TensorId id) const { return everything_[id]; }
  /// The needed elements in ascending order, unless all are needed.
  [[nodiscard]] std::vector<std::int64_t> points(TensorId id) const;

  /// Adds the elements that the needed elements of `id` read. Call it for consumers before their producers.
  void trace(TensorId id);

 private:
  std::vector<std::uint8_t>& flags(TensorId id);

  void trace(const program::Operator& op, const Access& access, std::span<const std::int64_t> points);

  const ComputeGraph& graph_;
  std::vector<std::vector<std::uint8_t>> wanted_;
  std::vector<bool> everything_;
  std::vector<bool> plain_;
};

/// Tensor `id` with the elements numbered `points` computed, and zeros elsewhere.
[[nodiscard]] Array evaluate_some(const ComputeGraph& graph, TensorId id, std::span<const std::int64_t> points,
                                  std::span<const Array* const> tensors, unsigned threads);

}  // namespace detail

/// Values of tensor `id` at the elements with row-major numbers `points`, rounded to its type. Computes only the
/// elements of other tensors that these need: 4096 elements of a 2048 x 2048 x 2048 matrix product cost 4096 dot
/// products.
///
/// `inputs` are as for `evaluate`. Determinism: equal to `evaluate` up to the summation order in double, and
/// independent of the number of threads. Throws `std::invalid_argument` for invalid inputs or a point out of bounds.
[[nodiscard]] std::vector<double> evaluate_at(const ComputeGraph& graph, const Tensors& inputs, TensorId id,
                                              std::span<const std::int64_t> points,
                                              const EvaluateOptions& options = {});

}  // namespace tunewright::reference

#if TUNEWRIGHT_DEFINES(reference)

#include "tunewright/core/parallel.hpp"

namespace tunewright::reference {

TUNEWRIGHT_INLINE std::vector<std::int64_t> sample_points(const std::vector<std::int64_t>& shape, std::size_t count,
                                                          const Rng& rng) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  std::vector<std::int64_t> points;
  if (static_cast<std::uint64_t>(elements) <= count) {
    points.resize(static_cast<std::size_t>(elements));
    std::iota(points.begin(), points.end(), 0);
    return points;
  }
  Rng draws = rng;
  const auto draw = [&](const auto& coordinate_of) {
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + coordinate_of(d);
    points.push_back(flat);
  };
  const auto anywhere = [&](std::size_t d) {
    return static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(shape[d])));
  };
  // Corners first; for many dimensions, at most a quarter of the sample.
  for (std::uint64_t corner = 0; corner < std::uint64_t{1} << std::min<std::size_t>(shape.size(), 20); ++corner) {
    if (points.size() * 4 >= count) break;
    draw([&](std::size_t d) { return (corner >> std::min<std::size_t>(d, 20) & 1U) != 0 ? shape[d] - 1 : 0; });
  }
  while (points.size() < count) {
    const std::size_t border = points.size() % (shape.size() + 1);
    const bool aligned = draws.below(2) == 0;
    draw([&](std::size_t d) -> std::int64_t {
      if (d == border) return draws.below(3) == 0 ? 0 : shape[d] - 1;
      if (!aligned) return anywhere(d);
      const std::int64_t unit = std::int64_t{8} << draws.below(4);
      const std::int64_t edge = anywhere(d) / unit * unit - static_cast<std::int64_t>(draws.below(2));
      return std::max<std::int64_t>(edge, 0);
    });
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

}  // namespace tunewright::reference

namespace tunewright::reference::detail {

TUNEWRIGHT_INLINE Demand::Demand(const ComputeGraph& graph)
    : graph_(graph), wanted_(graph.size()), everything_(graph.size(), false) {
  // Producers without sums cost no more than a copy, so all of their elements are computed.
  for (TensorId id = 0; id < graph.size(); ++id) {
    bool plain = !graph.op(id).has_reduction();
    for (const TensorId producer : graph.producers(id)) plain = plain && plain_[producer];
    plain_.push_back(plain);
  }
}

TUNEWRIGHT_INLINE std::vector<std::int64_t> Demand::points(TensorId id) const {
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < wanted_[id].size(); ++i) {
    if (wanted_[id][i] != 0) found.push_back(static_cast<std::int64_t>(i));
  }
  return found;
}

TUNEWRIGHT_INLINE void Demand::trace(TensorId id) {
  const program::Operator& op = graph_.op(id);
  std::vector<std::int64_t> points = this->points(id);
  // Whole rows are several times cheaper than single elements.
  if (points.size() * 2 > wanted_[id].size()) everything_[id] = true;
  const BodyProgram program(graph_, op);
  for (const Access& access : program.accesses) {
    if (graph_.op(access.tensor).role != program::Role::Computed || everything_[access.tensor]) continue;
    if (plain_[access.tensor] || everything_[id]) {
      everything_[access.tensor] = true;
    } else {
      trace(op, access, points);
    }
  }
}

TUNEWRIGHT_INLINE std::vector<std::uint8_t>& Demand::flags(TensorId id) {
  if (wanted_[id].empty()) wanted_[id].resize(static_cast<std::size_t>(graph_.op(id).elements()), 0);
  return wanted_[id];
}

TUNEWRIGHT_INLINE void Demand::trace(const program::Operator& op, const Access& access,
                                     std::span<const std::int64_t> points) {
  std::vector<std::uint8_t>& wanted = flags(access.tensor);
  const std::size_t rank = op.rank();
  // An axis may cancel out of the row-major number and still decide whether the indices are inside.
  const auto depends_on = [&access](Var axis) {
    return access.flat.expression.uses(axis) ||
           (!access.in_bounds &&
            std::any_of(access.indices.begin(), access.indices.end(),
                        [axis](const AxisFunction& index) { return index.expression.uses(axis); }));
  };
  std::vector<std::size_t> used;  // reduction axes on which the read depends
  for (std::size_t a = rank; a < op.axes.size(); ++a) {
    if (depends_on(static_cast<Var>(a))) used.push_back(a);
  }
  std::vector<std::int64_t> axis(op.axes.size(), 0);
  for (std::int64_t point : points) {
    for (std::size_t a = rank; a-- > 0;) {
      axis[a] = point % op.axes[a].extent;
      point /= op.axes[a].extent;
    }
    for (std::size_t turn = 0; turn <= used.size();) {
      // A read out of bounds is one that a select prevents.
      if (access.in_bounds || !access.is_outside(axis)) wanted[static_cast<std::size_t>(access.flat.at(axis))] = 1;
      for (turn = 0; turn < used.size(); ++turn) {
        if (++axis[used[turn]] < op.axes[used[turn]].extent) break;
        axis[used[turn]] = 0;
      }
      if (turn == used.size()) break;
    }
  }
}

TUNEWRIGHT_INLINE Array evaluate_some(const ComputeGraph& graph, TensorId id, std::span<const std::int64_t> points,
                                      std::span<const Array* const> tensors, unsigned threads) {
  const program::Operator& op = graph.op(id);
  Array result(op.type, op.shape());
  const BodyProgram program(graph, op);
  parallel_parts(threads, points.size(), [&](std::size_t begin, std::size_t end) {
    Evaluator evaluator(program, tensors);
    for (std::size_t p = begin; p < end; ++p)
      result.set(static_cast<std::size_t>(points[p]), evaluator.element(points[p]));
  });
  return result;
}

}  // namespace tunewright::reference::detail

namespace tunewright::reference {

TUNEWRIGHT_INLINE std::vector<double> evaluate_at(const ComputeGraph& graph, const Tensors& inputs, TensorId id,
                                                  std::span<const std::int64_t> points,
                                                  const EvaluateOptions& options) {
  detail::check_inputs(graph, inputs);
  if (id >= graph.size()) {
    throw std::invalid_argument("tensor " + std::to_string(id) + " was asked for in a graph of " +
                                std::to_string(graph.size()) + "; give the number of one of its tensors");
  }
  const std::int64_t size = graph.op(id).elements();
  for (const std::int64_t point : points) {
    if (point < 0 || point >= size) {
      throw std::invalid_argument("element " + std::to_string(point) + " was asked for of tensor " +
                                  std::to_string(id) + ", which has " + std::to_string(size) +
                                  "; give row-major numbers");
    }
  }
  detail::Demand demand(graph);
  demand.add(id, points);
  for (TensorId t = id + 1; t-- > 0;) {
    if (graph.op(t).role == program::Role::Computed && demand.any(t)) demand.trace(t);
  }
  Tensors computed(graph.size());
  std::vector<const Array*> known;
  for (const Array& array : inputs) known.push_back(&array);
  for (TensorId t = 0; t <= id; ++t) {
    if (graph.op(t).role != program::Role::Computed || !demand.any(t)) continue;
    computed[t] = demand.everything(t) ? detail::evaluate_all(graph, t, known, options.threads)
                                       : detail::evaluate_some(graph, t, demand.points(t), known, options.threads);
    known[t] = &computed[t];
  }
  std::vector<double> values;
  values.reserve(points.size());
  for (const std::int64_t point : points) values.push_back(known[id]->get(static_cast<std::size_t>(point)));
  return values;
}

}  // namespace tunewright::reference

#endif
