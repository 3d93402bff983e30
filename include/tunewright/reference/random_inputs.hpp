// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/reference/evaluate.hpp"

namespace tunewright::reference {

struct RandomInputs {
  double low = -1;
  double high = 1;
  /// Bounds for tensors whose elements are direct arguments of a square root, a logarithm or a denominator, such as
  /// variances.
  double positive_low = 0.5;
  double positive_high = 2;
  std::int64_t integer_low = -8;  ///< for int32 and int64 tensors, both ends included
  std::int64_t integer_high = 8;
};

namespace detail {

/// Marks the tensors that are read inside a square root, logarithm or denominator.
void mark_positive(const program::Expr& e, bool inside, std::vector<bool>& positive);

}  // namespace detail

/// Values for all inputs and constants of `graph`, for `evaluate`. Floating-point tensors are uniform; about one in
/// sixteen elements is exactly 0, 1, -1 or 1/2, which reveals errors that averages hide. 16-bit tensors have the
/// nearest representable numbers. 8-bit integers take all values, so that lost signs and saturated sums are detected;
/// sums of up to 33025 products of them are exact in int32.
///
/// Determinism: a function of the graph's shapes and of `rng`, which is not advanced; each tensor has its own random
///              stream.
[[nodiscard]] Tensors random_inputs(const ComputeGraph& graph, const Rng& rng, const RandomInputs& options = {});

}  // namespace tunewright::reference

#if TUNEWRIGHT_DEFINES(reference)

namespace tunewright::reference::detail {

TUNEWRIGHT_INLINE void mark_positive(const program::Expr& e, bool inside, std::vector<bool>& positive) {
  if (e->op == program::Op::Load && inside) positive[e->tensor] = true;
  for (std::size_t a = 0; a < e->args.size(); ++a) {
    const bool enters =
        e->op == program::Op::Sqrt || e->op == program::Op::Log || (e->op == program::Op::Divide && a == 1);
    // Exponentials are positive for any argument.
    mark_positive(e->args[a], (inside || enters) && e->op != program::Op::Exp, positive);
  }
}

}  // namespace tunewright::reference::detail

namespace tunewright::reference {

TUNEWRIGHT_INLINE Tensors random_inputs(const ComputeGraph& graph, const Rng& rng, const RandomInputs& options) {
  std::vector<bool> positive(graph.size(), false);
  for (TensorId id = 0; id < graph.size(); ++id) {
    if (graph.op(id).body) detail::mark_positive(graph.op(id).body, false, positive);
  }
  Tensors tensors(graph.size());
  for (TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.role == program::Role::Computed) continue;
    tensors[id] = Array(op.type, op.shape());
    Rng stream = rng.split(id);
    const double low = positive[id] ? options.positive_low : options.low;
    const double high = positive[id] ? options.positive_high : options.high;
    tensors[id].visit([&](const auto& array) {
      using T = typename std::decay_t<decltype(array)>::value_type;
      for (T* element = array.data(); element != array.data() + array.size(); ++element) {
        if (op.type == ScalarType::Bool) {
          *element = static_cast<T>(static_cast<double>(stream.below(2)));
        } else if (op.type == ScalarType::Int8 || op.type == ScalarType::UInt8) {
          *element = static_cast<T>(program::lowest(op.type) + static_cast<double>(stream.below(256)));
        } else if (!is_float(op.type)) {
          const auto count = static_cast<std::uint64_t>(options.integer_high - options.integer_low + 1);
          *element =
              static_cast<T>(static_cast<double>(options.integer_low + static_cast<std::int64_t>(stream.below(count))));
        } else {
          const std::uint64_t bits = stream();
          const double uniform = low + (high - low) * static_cast<double>(bits >> 11) * 0x1.0p-53;
          constexpr double exact[] = {0.0, 1.0, -1.0, 0.5};
          *element = static_cast<T>((bits & 15U) == 0 && !positive[id] ? exact[(bits >> 4) & 3U] : uniform);
        }
      }
    });
  }
  return tensors;
}

}  // namespace tunewright::reference

#endif
