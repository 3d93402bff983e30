// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/call.hpp"

namespace tunewright::networks::onnx {

/// Operators that sum over dimensions: MatMul, Gemm, Softmax, LayerNormalization, ReduceMean, ..
void add_matrices(Operators& operators);

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <algorithm>
#include <cmath>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/softmax.hpp"

namespace tunewright::networks::onnx::detail {

/// The value with its dimensions permuted, without copying.
TUNEWRIGHT_INLINE Value permuted(const Value& value, const std::vector<std::size_t>& source) {
  Value result = value;
  std::vector<int> place(source.size());
  for (std::size_t d = 0; d < source.size(); ++d) {
    result.shape[d] = value.shape[source[d]];
    place[source[d]] = static_cast<int>(d);
  }
  for (int& d : result.order) d = d == Value::none ? d : place[static_cast<std::size_t>(d)];
  return result;
}

/// The value broadcast to a shape without copying.
TUNEWRIGHT_INLINE Value stretched(const Value& value, const Shape& shape) {
  Value result = value;
  const int missing = static_cast<int>(shape.size() - value.shape.size());
  for (int& d : result.order) {
    if (d == Value::none) continue;
    const bool repeats =
        value.shape[static_cast<std::size_t>(d)] == 1 && shape[static_cast<std::size_t>(d + missing)] != 1;
    d = repeats ? Value::none : d + missing;
  }
  result.shape = shape;
  return result;
}

/// Whether a value of `shape` broadcasts to `wanted`, which stays as it is.
TUNEWRIGHT_INLINE bool broadcasts_to(const Shape& shape, const Shape& wanted) {
  return shape.size() <= wanted.size() &&
         std::equal(shape.rbegin(), shape.rend(), wanted.rbegin(),
                    [](std::int64_t extent, std::int64_t other) { return extent == 1 || extent == other; });
}

/// The type that both factors of a product have, which is that of the result in the file.
TUNEWRIGHT_INLINE ScalarType type_of_factors(const Call& call) {
  return program::common_type(call.input(0).type, call.input(1).type);
}

/// The matrix product in the accumulator of `type_of_factors`.
TUNEWRIGHT_INLINE Value product(Emitter& emitter, const Call& call, Value a, Value b) {
  const bool row = a.shape.size() == 1;
  const bool column = b.shape.size() == 1;
  if (a.shape.empty() || b.shape.empty()) call.refuse("a factor is a single number; use Mul");
  Value rows = a;
  Value columns = b;
  if (row) rows = emitter.reshape(a, {1, a.shape[0]});
  if (column) columns = emitter.reshape(b, {b.shape[0], 1});
  const std::int64_t k = rows.shape.back();
  if (columns.shape[columns.shape.size() - 2] != k) {
    call.refuse("shapes " + program::operators::detail::shape_text(a.shape) + " and " +
                program::operators::detail::shape_text(b.shape) + " do not multiply: the second has " +
                std::to_string(columns.shape[columns.shape.size() - 2]) + " rows where the first has " +
                std::to_string(k) + " columns; is it the weight of another layer?");
  }
  Value batch_a = rows;
  Value batch_b = columns;
  batch_a.shape.resize(batch_a.shape.size() - 2);
  batch_b.shape.resize(batch_b.shape.size() - 2);
  Shape shape = Emitter::broadcast_shape("matmul", {batch_a, batch_b});
  shape.push_back(rows.shape[rows.shape.size() - 2]);
  shape.push_back(columns.shape.back());
  const std::size_t rank = shape.size();
  std::vector<int> order;
  for (std::size_t d = 0; d < rank; ++d)
    if (shape[d] != 1 || d + 2 >= rank) order.push_back(static_cast<int>(d));
  const std::string name = order.size() > 2 ? "batch_matmul" : "matmul";
  const auto read = [&](const Value& factor, std::span<const IndexExpr> i, const IndexExpr& m, const IndexExpr& n) {
    Indices indices(i.begin(), i.end());
    indices[rank - 2] = m;
    indices[rank - 1] = n;
    Shape wider = shape;
    std::copy(factor.shape.end() - 2, factor.shape.end(), wider.end() - 2);
    return emitter.element(factor, indices, wider);
  };
  Value result = emitter.reduce(name, shape, order, {k}, program::Combiner::Sum, [&](auto i, auto r) {
    return program::widened(read(rows, i, i[rank - 2], r[0])) * program::widened(read(columns, i, r[0], i[rank - 1]));
  });
  Shape wanted = shape;
  if (column) wanted.pop_back();
  if (row) wanted.erase(wanted.end() - (column ? 1 : 2));
  return emitter.reshape(result, wanted);
}

TUNEWRIGHT_INLINE std::vector<Value> matmul(Emitter& emitter, const Call& call) {
  return {emitter.narrowed(product(emitter, call, call.input(0), call.input(1)), type_of_factors(call))};
}

TUNEWRIGHT_INLINE std::vector<Value> gemm(Emitter& emitter, const Call& call) {
  Value a = call.input(0);
  Value b = call.input(1);
  if (a.shape.size() != 2 || b.shape.size() != 2) call.refuse("A and B are not both matrices; use MatMul");
  if (call.whole("transA", 0) != 0) a = permuted(a, {1, 0});
  if (call.whole("transB", 0) != 0) b = permuted(b, {1, 0});
  const double alpha = call.attribute<double>("alpha", 1);
  const double beta = call.attribute<double>("beta", 1);
  const auto require_whole = [&](const std::string& name, double factor) {
    if (is_float(type_of_factors(call)) || std::trunc(factor) == factor) return;
    call.unsupported(name, "it is " + number_text(factor) + ", and the matrices hold integers",
                     "use a whole number, or cast the matrices to float");
  };
  require_whole("alpha", alpha);
  if (call.has(2)) require_whole("beta", beta);
  Value result = product(emitter, call, a, b);
  const auto scaled = [&](const Value& x, double factor) {
    if (factor == 1) return x;
    return emitter.elementwise("scale", {x}, [&](auto e) { return e[0] * Expr(factor); });
  };
  result = scaled(result, alpha);
  if (call.has(2) && beta != 0) {
    if (const Shape& shape = call.input(2).shape; !broadcasts_to(shape, result.shape)) {
      call.refuse("C has shape " + program::operators::detail::shape_text(shape) + ", which does not broadcast to " +
                  program::operators::detail::shape_text(result.shape) +
                  ", the shape of the product; is it the bias of another layer?");
    }
    result = emitter.elementwise("bias_add", {result, scaled(call.input(2), beta)}, [](auto e) { return e[0] + e[1]; });
  }
  return {emitter.narrowed(result, type_of_factors(call))};
}

/// A storage order of `value` with all dimensions of extent above 1 and `d`, and the position of `d` in it.
TUNEWRIGHT_INLINE std::pair<std::vector<int>, std::size_t> order_with(const Value& value, std::size_t d) {
  std::vector<int> order = Emitter::order_of(value.shape, {value});
  const auto found = std::find(order.begin(), order.end(), static_cast<int>(d));
  if (found == order.end()) order = natural_order(value.shape.size());
  const auto place = std::find(order.begin(), order.end(), static_cast<int>(d));
  return {order, static_cast<std::size_t>(place - order.begin())};
}

TUNEWRIGHT_INLINE std::vector<Value> softmax(Emitter& emitter, const Call& call) {
  const Value& given = call.input(0);
  const std::size_t axis = call.dimension(call.whole("axis", call.opset < 13 ? 1 : -1), given.shape.size());
  Value x = given;
  if (call.opset < 13) {  // old versions normalise over all dimensions from the axis on
    Shape flat(given.shape.begin(), given.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    flat.push_back(1);
    for (std::size_t d = axis; d < given.shape.size(); ++d) flat.back() *= given.shape[d];
    x = emitter.reshape(x, flat);
  }
  const auto [order, place] = order_with(x, axis);
  const Tensor tensor =
      program::operators::softmax(emitter.graph(), emitter.stored(x, order), {.axis = static_cast<int>(place)});
  return {emitter.reshape(Value{x.shape, tensor.type, order, nullptr, tensor}, given.shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> layer_normalization(Emitter& emitter, const Call& call) {
  const Value& given = call.input(0);
  const std::size_t axis = call.dimension(call.whole("axis", -1), given.shape.size());
  Shape rows(given.shape.begin(), given.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const Shape normalised(given.shape.begin() + static_cast<std::ptrdiff_t>(axis), given.shape.end());
  std::int64_t columns = 1;
  for (std::size_t d = axis; d < given.shape.size(); ++d) columns *= given.shape[d];
  rows.push_back(columns);
  const Value x = emitter.reshape(given, rows);
  const auto parameter = [&](std::size_t i, double otherwise) {
    if (!call.has(i)) {
      emitter.budget().charge(static_cast<double>(columns) * static_cast<double>(program::size_in_bytes(given.type)));
      reference::Array array(given.type, {columns});
      for (std::size_t c = 0; c < array.size(); ++c) array.set(c, otherwise);
      return emitter.natural(known_value(call.node.name + ".bias", std::move(array)));
    }
    // Leading dimensions of extent 1 are those of rows, which all have the same parameters.
    Shape shape = call.input(i).shape;
    while (shape.size() > normalised.size() && shape.front() == 1) shape.erase(shape.begin());
    if (!broadcasts_to(shape, normalised)) {
      call.refuse("scale or bias has shape " + program::operators::detail::shape_text(call.input(i).shape) +
                  ", which does not broadcast to " + program::operators::detail::shape_text(normalised) +
                  ", the dimensions that are normalised");
    }
    const Value repeated = stretched(emitter.reshape(call.input(i), shape), normalised);
    return emitter.natural(emitter.reshape(repeated, {columns}));
  };
  // The operator normalises along the last stored dimension.
  std::vector<int> order;
  for (const int d : Emitter::order_of(x.shape, {x}))
    if (d != static_cast<int>(axis)) order.push_back(d);
  order.push_back(static_cast<int>(axis));
  const Tensor tensor =
      program::operators::layer_norm(emitter.graph(), emitter.stored(x, order), parameter(1, 1), parameter(2, 0),
                                     {.epsilon = call.attribute<double>("epsilon", 1e-5)});
  return {emitter.reshape(Value{x.shape, tensor.type, order, nullptr, tensor}, given.shape)};
}

/// Combines elements over dimensions; `mean` divides by their number.
TUNEWRIGHT_INLINE Operator reduction(const std::string& name, program::Combiner combiner, bool mean = false) {
  return [=](Emitter& emitter, const Call& call) -> std::vector<Value> {
    const Value& x = call.input(0);
    std::vector<bool> reduced(x.shape.size(), false);
    const auto axes = call.integers("axes", 1);
    if (!axes || axes->empty()) {
      if (call.whole("noop_with_empty_axes", 0) != 0) return {x};
      reduced.assign(reduced.size(), true);
    } else {
      for (const std::int64_t axis : *axes) reduced[call.dimension(axis, reduced.size())] = true;
    }
    Shape kept = x.shape;
    Shape shorter;
    Shape over;
    std::vector<int> order;
    for (std::size_t d = 0; d < reduced.size(); ++d) {
      if (reduced[d]) over.push_back(x.shape[d]);
      if (reduced[d]) kept[d] = 1;
      if (!reduced[d]) shorter.push_back(x.shape[d]);
    }
    for (const int d : Emitter::order_of(x.shape, {x}))
      if (!reduced[static_cast<std::size_t>(d)]) order.push_back(d);
    if (over.empty()) return {x};
    const bool picks = combiner == program::Combiner::Max || combiner == program::Combiner::Min;
    const bool keeps = call.whole("keepdims", 1) != 0;
    if (x.elements() == 0) {
      const Shape& shape = keeps ? kept : shorter;
      if (checked_elements(shape) == 0) return {known_value(call.node.name, reference::Array(x.type, shape))};
      if (mean || picks) call.unsupported("data", "it is empty", "give it at least one element, or leave the node out");
      reference::Array identity(x.type, {});
      identity.set(0, program::identity(combiner, x.type));
      return {stretched(known_value(call.node.name, std::move(identity)), shape)};
    }
    Value result = emitter.reduce(mean ? name + "_sum" : name, kept, order, over, combiner, [&](auto i, auto r) {
      Indices indices(i.begin(), i.end());
      std::size_t next = 0;
      for (std::size_t d = 0; d < reduced.size(); ++d)
        if (reduced[d]) indices[d] = r[next++];
      const Expr element = emitter.element(x, indices);
      return picks ? element : program::widened(element);
    });
    if (mean) {
      const double each = static_cast<double>(x.elements()) / static_cast<double>(result.elements());
      // A share of one is no integer, so sums of integers are divided.
      result = emitter.elementwise(
          name, {result}, [&](auto e) { return is_float(x.type) ? e[0] * Expr(1 / each) : e[0] / Expr(each); });
    }
    result = emitter.narrowed(result, x.type);
    if (!keeps) result = emitter.reshape(result, shorter);
    return {result};
  };
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE void add_matrices(Operators& operators) {
  operators["MatMul"] = detail::matmul;
  operators["Gemm"] = detail::gemm;
  operators["Softmax"] = detail::softmax;
  operators["LayerNormalization"] = detail::layer_normalization;
  operators["ReduceMean"] = detail::reduction("mean", program::Combiner::Sum, true);
  operators["ReduceSum"] = detail::reduction("sum", program::Combiner::Sum);
  operators["ReduceMax"] = detail::reduction("max", program::Combiner::Max);
  operators["ReduceMin"] = detail::reduction("min", program::Combiner::Min);
  operators["ReduceProd"] = detail::reduction("product", program::Combiner::Product);
}

}  // namespace tunewright::networks::onnx

#endif
