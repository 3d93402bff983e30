// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::program::operators {

struct LayerNormOptions {
  double epsilon = 1e-5;  ///< added to the variance
  std::string name = "layer_norm";
};

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last dimension, as three operators: sum, sum of
/// squared deviations, normalise. The variance uses deviations, not squares, to avoid cancellation. All is computed in
/// float32 where elements have 16 bits, and rounded once.
///
/// Paper: Ba et al., arXiv 1607.06450. Shapes: x [.., c], gamma and beta [c]; result as x. Throws
///        `std::invalid_argument` if gamma or beta do not have the length of the last dimension, and unless the tensor
///        has floating-point elements.
Tensor layer_norm(ComputeGraph& graph, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                  const LayerNormOptions& options = {});

/// Parameters of a batch normalisation, each with one number per channel.
struct BatchNormParameters {
  Tensor gamma;
  Tensor beta;
  Tensor mean;
  Tensor variance;
};

struct BatchNormOptions {
  int axis = -1;          ///< dimension of the channels; 1 for channels first
  double epsilon = 1e-5;  ///< added to the variance
  std::string name = "batch_norm";
};

/// Batch normalisation at inference, with constant mean and variance: (x - mean) / sqrt(variance + epsilon) * gamma +
/// beta. One elementwise operator, computed in float32 where elements have 16 bits, and rounded once.
///
/// Paper: Ioffe and Szegedy, arXiv 1502.03167. Shapes: x any with c channels, parameters [c]; result as x. Throws
///        `std::invalid_argument` if a parameter does not have one number per channel, and unless the tensor has
///        floating-point elements.
Tensor batch_norm(ComputeGraph& graph, const Tensor& x, const BatchNormParameters& parameters,
                  const BatchNormOptions& options = {});

}  // namespace tunewright::program::operators

#if TUNEWRIGHT_DEFINES(program)

#include "tunewright/program/operators/checks.hpp"

namespace tunewright::program::operators {

TUNEWRIGHT_INLINE Tensor layer_norm(ComputeGraph& graph, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    const LayerNormOptions& options) {
  const std::size_t along = detail::dimension(options.name, -1, x.shape.size());
  detail::require_floating_point(options.name, "the input", x);
  const std::int64_t count = x.shape[along];
  for (const Tensor* parameter : {&gamma, &beta}) {
    detail::require_rank(options.name, "parameter", *parameter, 1, "[channels]");
    detail::require_extent(options.name, "length of a parameter", parameter->shape[0], count,
                           "give one number a channel");
  }
  std::vector<Axis> outer = detail::axes_over(x.shape);
  const std::vector<Axis> full = outer;
  outer.pop_back();
  const double per_element = 1.0 / static_cast<double>(count);
  const auto row = [&](auto i) {
    return std::vector<IndexExpr>(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(along));
  };
  const auto element = [&](auto i, const IndexExpr& k) {
    std::vector<IndexExpr> indices = row(i);
    indices.push_back(k);
    return widened(x.at(std::move(indices)));
  };
  const Tensor sum = graph.reduce(options.name + "_sum", outer, {{"k", count}}, Combiner::Sum,
                                  [&](auto i, auto r) { return element(i, r[0]); });
  const Tensor squares =
      graph.reduce(options.name + "_squares", outer, {{"k", count}}, Combiner::Sum, [&](auto i, auto r) {
        const Expr deviation = element(i, r[0]) - sum.at(row(i)) * per_element;
        return deviation * deviation;
      });
  return graph.compute(options.name, full, [&](auto i) {
    const Expr deviation = element(i, i[along]) - sum.at(row(i)) * per_element;
    const Expr normal = deviation / sqrt(squares.at(row(i)) * per_element + options.epsilon);
    return cast(normal * widened(gamma(i[along])) + widened(beta(i[along])), x.type);
  });
}

TUNEWRIGHT_INLINE Tensor batch_norm(ComputeGraph& graph, const Tensor& x, const BatchNormParameters& parameters,
                                    const BatchNormOptions& options) {
  const std::size_t channel = detail::dimension(options.name, options.axis, x.shape.size());
  detail::require_floating_point(options.name, "the input", x);
  for (const Tensor* parameter : {&parameters.gamma, &parameters.beta, &parameters.mean, &parameters.variance}) {
    detail::require_rank(options.name, "parameter", *parameter, 1, "[channels]");
    detail::require_extent(options.name, "length of a parameter", parameter->shape[0], x.shape[channel],
                           "give one number a channel");
  }
  return graph.compute(options.name, detail::axes_over(x.shape), [&](auto i) {
    const IndexExpr& c = i[channel];
    const Expr deviation = widened(x.at({i.begin(), i.end()})) - widened(parameters.mean(c));
    const Expr normal = deviation / sqrt(widened(parameters.variance(c)) + options.epsilon);
    return cast(normal * widened(parameters.gamma(c)) + widened(parameters.beta(c)), x.type);
  });
}

}  // namespace tunewright::program::operators

#endif
