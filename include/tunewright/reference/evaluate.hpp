// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/reference/array.hpp"
#include "tunewright/reference/body_program.hpp"

/// Direct evaluation of compute graphs, the reference for every kernel.
namespace tunewright::reference {

using program::ComputeGraph;
using program::TensorId;

/// One array per tensor of a graph, by tensor number. Those of computed tensors are placeholders before evaluation.
using Tensors = std::vector<Array>;

struct EvaluateOptions {
  unsigned threads = 1;  ///< 0: all hardware threads; does not affect the result
};

namespace detail {

double combine(program::Combiner combiner, ScalarType type, double a, double b);

/// Evaluates elements of one operator whose producers are available. Each thread has its own.
class Evaluator {
 public:
  Evaluator(const BodyProgram& program, std::span<const Array* const> tensors);

  /// The element with row-major number `flat`.
  double element(std::int64_t flat);

  /// Calls `store(i, value)` for all elements of one row along the last spatial axis. Requires rank 1 or more.
  template <class Store>
  void row(std::int64_t number, const Store& store) {
    const std::size_t last = rank_ - 1;
    set_spatial(number, last);
    for_each_block(last, [&](std::size_t begin, std::size_t count) {
      if (!op_->has_reduction()) {
        const double* const values = machine_.run(axis_, last, count);
        for (std::size_t l = 0; l < count; ++l) store(begin + l, values[l]);
        return;
      }
      std::fill_n(totals_, count, identity(op_->combiner, op_->type));
      for_each_reduction(axis_.size(), [&] {
        const double* const values = machine_.run(axis_, last, count);
        if (op_->combiner == program::Combiner::Sum) {
          for (std::size_t l = 0; l < count; ++l) totals_[l] += values[l];
        } else {
          for (std::size_t l = 0; l < count; ++l) totals_[l] = combine(op_->combiner, op_->type, totals_[l], values[l]);
        }
      });
      for (std::size_t l = 0; l < count; ++l) store(begin + l, totals_[l]);
    });
  }

 private:
  /// Sets the first `count` axes to the coordinates of row-major number `flat`.
  void set_spatial(std::int64_t flat, std::size_t count);
  template <class F>
  void for_each_block(std::size_t axis, const F& f) {
    const auto extent = static_cast<std::size_t>(op_->axes[axis].extent);
    for (std::size_t begin = 0; begin < extent; begin += Machine::lanes) {
      axis_[axis] = static_cast<std::int64_t>(begin);
      f(begin, std::min(Machine::lanes, extent - begin));
    }
  }
  /// Calls `f` for all values of the reduction axes except `skipped`.
  template <class F>
  void for_each_reduction(std::size_t skipped, const F& f) {
    std::fill(axis_.begin() + static_cast<std::ptrdiff_t>(rank_), axis_.end(), 0);
    while (true) {
      f();
      std::size_t a = axis_.size();
      for (; a > rank_; --a) {
        if (a - 1 == skipped) continue;
        if (++axis_[a - 1] < op_->axes[a - 1].extent) break;
        axis_[a - 1] = 0;
      }
      if (a == rank_) return;
    }
  }

  const program::Operator* op_;
  Machine machine_;
  std::vector<std::int64_t> axis_;
  std::size_t rank_;
  std::size_t long_axis_ = 0;
  double totals_[Machine::lanes] = {};
};

/// Throws `std::invalid_argument` unless every input and constant has an array of the right type and shape.
void check_inputs(const ComputeGraph& graph, std::span<const Array> tensors);

/// All elements of tensor `id`, whose producers are in `tensors`.
[[nodiscard]] Array evaluate_all(const ComputeGraph& graph, TensorId id, std::span<const Array* const> tensors,
                                 unsigned threads);

}  // namespace detail

/// Evaluates every tensor of `graph`; `tensors` has the inputs and constants, and is returned complete.
///
/// Sums are accumulated in double and every result is rounded once, when it is stored, so that differences are errors
/// of the kernel; operations of types narrower than float32 are rounded individually. Cost: about a nanosecond per node
/// of the body and point of the iteration space. Determinism: independent of the number of threads. Throws
/// `std::invalid_argument` for missing or mismatched inputs.
[[nodiscard]] Tensors evaluate(const ComputeGraph& graph, Tensors tensors, const EvaluateOptions& options = {});

}  // namespace tunewright::reference

#if TUNEWRIGHT_DEFINES(reference)

#include "tunewright/core/parallel.hpp"

namespace tunewright::reference::detail {

TUNEWRIGHT_INLINE double combine(program::Combiner combiner, ScalarType type, double a, double b) {
  switch (combiner) {
    case program::Combiner::Product: return is_float(type) ? a * b : program::product(a, b, type);
    case program::Combiner::Max: return a < b || b != b ? b : a;
    case program::Combiner::Min: return b < a || b != b ? b : a;
    case program::Combiner::None:
    case program::Combiner::Sum: break;
  }
  return a + b;
}

TUNEWRIGHT_INLINE Evaluator::Evaluator(const BodyProgram& program, std::span<const Array* const> tensors)
    : op_(program.op), machine_(program, tensors), axis_(op_->axes.size(), 0), rank_(op_->rank()) {
  // A single element is evaluated along its longest reduction axis.
  for (std::size_t a = rank_; a < axis_.size(); ++a) {
    if (long_axis_ < rank_ || op_->axes[a].extent > op_->axes[long_axis_].extent) long_axis_ = a;
  }
}

TUNEWRIGHT_INLINE double Evaluator::element(std::int64_t flat) {
  set_spatial(flat, rank_);
  if (!op_->has_reduction()) return machine_.run(axis_, 0, 1)[0];
  double total = identity(op_->combiner, op_->type);
  for_each_reduction(long_axis_, [&] {
    for_each_block(long_axis_, [&](std::size_t, std::size_t count) {
      const double* const values = machine_.run(axis_, long_axis_, count);
      for (std::size_t l = 0; l < count; ++l) total = combine(op_->combiner, op_->type, total, values[l]);
    });
  });
  return total;
}

TUNEWRIGHT_INLINE void Evaluator::set_spatial(std::int64_t flat, std::size_t count) {
  for (std::size_t a = count; a-- > 0;) {
    axis_[a] = flat % op_->axes[a].extent;
    flat /= op_->axes[a].extent;
  }
}

TUNEWRIGHT_INLINE void check_inputs(const ComputeGraph& graph, std::span<const Array> tensors) {
  if (tensors.size() != graph.size()) {
    throw std::invalid_argument(std::to_string(tensors.size()) + " arrays were given for a graph of " +
                                std::to_string(graph.size()) + " tensors; give one a tensor, as random_inputs does");
  }
  for (TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.role == program::Role::Computed) continue;
    if (tensors[id].type() != op.type || tensors[id].shape() != op.shape()) {
      throw std::invalid_argument("the array for tensor " + std::to_string(id) + " ('" + op.name + "') has " +
                                  std::to_string(tensors[id].size()) + " elements of " +
                                  std::string(program::name(tensors[id].type())) + "; give it the type " +
                                  std::string(program::name(op.type)) + " and the shape of the tensor");
    }
  }
}

TUNEWRIGHT_INLINE Array evaluate_all(const ComputeGraph& graph, TensorId id, std::span<const Array* const> tensors,
                                     unsigned threads) {
  const program::Operator& op = graph.op(id);
  const std::vector<std::int64_t> shape = op.shape();
  Array result(op.type, shape);
  const BodyProgram program(graph, op);
  const std::size_t width = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
  const bool by_row = !shape.empty() && (width >= 16 || !op.has_reduction());
  const std::size_t units = by_row ? result.size() / width : result.size();
  parallel_parts(threads, units, [&](std::size_t begin, std::size_t end) {
    Evaluator evaluator(program, tensors);
    for (std::size_t unit = begin; unit < end; ++unit) {
      if (by_row) {
        evaluator.row(static_cast<std::int64_t>(unit),
                      [&](std::size_t i, double value) { result.set(unit * width + i, value); });
      } else {
        result.set(unit, evaluator.element(static_cast<std::int64_t>(unit)));
      }
    }
  });
  return result;
}

}  // namespace tunewright::reference::detail

namespace tunewright::reference {

TUNEWRIGHT_INLINE Tensors evaluate(const ComputeGraph& graph, Tensors tensors, const EvaluateOptions& options) {
  detail::check_inputs(graph, tensors);
  std::vector<const Array*> known;
  for (const Array& array : tensors) known.push_back(&array);
  for (TensorId id = 0; id < graph.size(); ++id) {
    if (graph.op(id).role == program::Role::Computed) {
      tensors[id] = detail::evaluate_all(graph, id, known, options.threads);
    }
  }
  return tensors;
}

}  // namespace tunewright::reference

#endif
