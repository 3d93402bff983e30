// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/onnx/folding_budget.hpp"
#include "tunewright/networks/onnx/model.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/operators/checks.hpp"

namespace tunewright::networks::onnx {

using program::ComputeGraph;
using program::Expr;
using program::IndexExpr;
using program::Tensor;

using Shape = std::vector<std::int64_t>;
using Indices = std::vector<IndexExpr>;

/// A tensor of the model. Its shape is that of the file, but its storage may have another order of dimensions, so that
/// images are channels last and transpositions cost nothing if the reader can index accordingly.
struct Value {
  static constexpr int none = -1;

  Shape shape;
  ScalarType type = ScalarType::Float32;
  /// For each stored dimension, the dimension of `shape` that it is, or `none` for one of extent 1 without a
  /// counterpart. Elements do not depend on dimensions of `shape` that do not occur.
  std::vector<int> order;
  SharedArray known;  ///< elements, where they do not depend on inputs
  Tensor tensor;      ///< otherwise

  [[nodiscard]] Shape stored_shape() const { return known ? known->array.shape() : tensor.shape; }
  /// Throws `std::invalid_argument` for a shape that `checked_elements` refuses.
  [[nodiscard]] std::int64_t elements() const;
};

/// Operators take memory for each dimension, and a file of a few bytes can ask for any number of them.
inline constexpr std::size_t most_dimensions = 64;
/// Throws `std::invalid_argument` for a shape of more than `most_dimensions`.
void check_dimensions(const Shape& shape);

/// 0, 1, .., rank - 1.
[[nodiscard]] std::vector<int> natural_order(std::size_t rank);
/// The dimensions in `order` whose extent is above 1, in that order: the others move no element.
[[nodiscard]] std::vector<int> long_dimensions(const Shape& shape, const std::vector<int>& order);

/// A known value, stored in the order of its shape.
[[nodiscard]] Value known_value(SharedArray array);
[[nodiscard]] Value known_value(std::string name, reference::Array array);
/// Integers as a value of rank 1, or of rank 0 for a `scalar`.
[[nodiscard]] Value known_ints(std::string name, const std::vector<std::int64_t>& numbers, bool scalar = false);

/// The elements of a known value in row-major order of its shape. Throws `std::invalid_argument` for more than `most`.
[[nodiscard]] std::vector<double> known_elements(const Value& value, std::int64_t most = 1 << 20);

/// Builds a compute graph from values.
class Emitter {
 public:
  /// The bytes that known values take when they are written out are charged to `budget`, which must live as long.
  Emitter(std::shared_ptr<ComputeGraph> graph, FoldingBudget& budget) : graph_(std::move(graph)), budget_(&budget) {}

  [[nodiscard]] ComputeGraph& graph() noexcept { return *graph_; }
  [[nodiscard]] FoldingBudget& budget() noexcept { return *budget_; }

  /// Element of a value at `indices` of its own shape, or of a `wider` one to which it broadcasts.
  [[nodiscard]] Expr element(const Value& value, std::span<const IndexExpr> indices) {
    return element(value, indices, value.shape);
  }
  [[nodiscard]] Expr element(const Value& value, std::span<const IndexExpr> indices, const Shape& wider);

  /// The elements of a known value in row-major order of its shape: the stored array if it has them so, else a copy.
  /// Throws `std::invalid_argument` for a copy beyond the budget.
  [[nodiscard]] SharedArray in_natural_order(const Value& value);

  /// A graph tensor with exactly the dimensions of `order`: the existing one, one that shares its memory, or a copy,
  /// made once for all readers.
  [[nodiscard]] Tensor stored(const Value& value, const std::vector<int>& order);
  [[nodiscard]] Tensor natural(const Value& value) { return stored(value, natural_order(value.shape.size())); }

  /// A value computed by the graph: `body(i, r)` gets the indices of `shape` and of the reduction axes. It is stored in
  /// `order`; dimensions that do not occur there have extent 1.
  template <class Body>
  Value reduce(const std::string& name, const Shape& shape, const std::vector<int>& order, const Shape& reduction,
               program::Combiner combiner, const Body& body) {
    std::vector<program::Axis> axes;
    for (std::size_t p = 0; p < order.size(); ++p)
      axes.push_back({"i" + std::to_string(p), shape[static_cast<std::size_t>(order[p])]});
    const Tensor tensor = graph_->reduce(name, std::move(axes), program::operators::detail::axes_over(reduction, "r"),
                                         combiner, [&](auto i, auto r) {
                                           Indices indices(shape.size(), IndexExpr(0));
                                           for (std::size_t p = 0; p < order.size(); ++p)
                                             indices[static_cast<std::size_t>(order[p])] = i[p];
                                           return body(std::span<const IndexExpr>(indices), r);
                                         });
    return {shape, tensor.type, order, nullptr, tensor};
  }
  template <class Body>
  Value compute(const std::string& name, const Shape& shape, const std::vector<int>& order, const Body& body) {
    return reduce(name, shape, order, {}, program::Combiner::None, [&](auto i, auto) { return body(i); });
  }

  /// f of elements of all operands, broadcast to one shape; stored like the first operand that has all of it.
  template <class F>
  Value elementwise(const std::string& name, const std::vector<Value>& operands, const F& f) {
    const Shape shape = broadcast_shape(name, operands);
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {  // a list of extents or axes may have no elements
      std::vector<Expr> elements;
      for (const Value& operand : operands) elements.push_back(program::load(0, operand.type, {}));
      const ScalarType type = f(std::span<const Expr>(elements))->type;
      return known_value(name, reference::Array(type, shape));
    }
    return compute(name, shape, order_of(shape, operands), [&](auto i) {
      std::vector<Expr> elements;
      for (const Value& operand : operands) elements.push_back(element(operand, i, shape));
      return f(std::span<const Expr>(elements));
    });
  }

  /// The value with its elements cast to `type`; itself if they have it.
  [[nodiscard]] Value cast(const Value& value, ScalarType type) {
    if (value.type == type) return value;
    return elementwise("cast", {value}, [&](auto e) { return program::cast(e[0], type); });
  }
  /// A value computed in the accumulator of elements of `type`, such as a sum of them, in `type`; any other unchanged.
  [[nodiscard]] Value narrowed(const Value& value, ScalarType type) {
    return value.type == program::accumulator_type(type) ? cast(value, type) : value;
  }

  /// The value with another shape of equal size, without a copy if the storage allows it. Throws
  /// `std::invalid_argument` for one of another size, or that `checked_elements` or `check_dimensions` refuses.
  [[nodiscard]] Value reshape(const Value& value, const Shape& shape);

  /// Rows of a table of known values selected by an input of the network; see `Lookup`.
  Value lookup(const Value& table, TensorId ids, const Shape& ids_shape);

  /// The graph's tensor for an array, always the same one. Throws `std::invalid_argument` for an empty array.
  [[nodiscard]] Tensor constant(const SharedArray& array);
  [[nodiscard]] const std::map<TensorId, SharedArray>& constants() const noexcept { return constants_; }
  [[nodiscard]] const std::vector<Lookup>& lookups() const noexcept { return lookups_; }

  /// The shape to which all operands broadcast. Throws `std::invalid_argument` with `name` if there is none, or one
  /// that `checked_elements` or `check_dimensions` refuses.
  [[nodiscard]] static Shape broadcast_shape(const std::string& name, const std::vector<Value>& operands);
  /// Dimensions in the storage order of the first operand that has all of them, else in natural order.
  [[nodiscard]] static std::vector<int> order_of(const Shape& shape, const std::vector<Value>& operands);

 private:
  std::shared_ptr<ComputeGraph> graph_;
  FoldingBudget* budget_;
  std::map<TensorId, SharedArray> constants_;
  std::map<const NamedArray*, TensorId> constant_of_;
  std::map<std::pair<TensorId, std::vector<int>>, Tensor> stored_;
  /// The array and its copy, by array, shape, and orders before and after; storing the array keeps its address valid.
  std::map<std::tuple<const NamedArray*, Shape, std::vector<int>, std::vector<int>>,
           std::pair<SharedArray, SharedArray>>
      stored_known_;
  std::vector<Lookup> lookups_;
};

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <numeric>
#include <stdexcept>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/program/operators/layout.hpp"

namespace tunewright::networks::onnx::detail {

/// Row-major position in storage of the element at row-major position `flat` of the shape.
TUNEWRIGHT_INLINE std::size_t stored_place(const Value& value, const Shape& stored, std::int64_t flat) {
  Shape index(value.shape.size());
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = flat % value.shape[d];
    flat /= value.shape[d];
  }
  std::int64_t place = 0;
  for (std::size_t p = 0; p < stored.size(); ++p) {
    place = place * stored[p] + (value.order[p] == Value::none ? 0 : index[static_cast<std::size_t>(value.order[p])]);
  }
  return static_cast<std::size_t>(place);
}

/// Groups of dimensions of two shapes with the same elements: their ends, exclusive.
TUNEWRIGHT_INLINE std::vector<std::pair<std::size_t, std::size_t>> common_stretches(const Shape& a, const Shape& b) {
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    std::int64_t left = a[i++];
    std::int64_t right = b[j++];
    while (left != right) {
      if (left < right && i < a.size()) {
        left *= a[i++];
      } else if (right < left && j < b.size()) {
        right *= b[j++];
      } else {
        break;
      }
    }
    ends.emplace_back(i, j);
  }
  return ends;
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE std::int64_t Value::elements() const { return checked_elements(shape, "a value"); }

TUNEWRIGHT_INLINE void check_dimensions(const Shape& shape) {
  if (shape.size() <= most_dimensions) return;
  throw std::invalid_argument("a tensor has " + std::to_string(shape.size()) + " dimensions, and at most " +
                              std::to_string(most_dimensions) + " are possible; merge some of them in the model");
}

TUNEWRIGHT_INLINE std::vector<int> natural_order(std::size_t rank) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TUNEWRIGHT_INLINE std::vector<int> long_dimensions(const Shape& shape, const std::vector<int>& order) {
  std::vector<int> found;
  for (const int d : order)
    if (d != Value::none && shape[static_cast<std::size_t>(d)] != 1) found.push_back(d);
  return found;
}

TUNEWRIGHT_INLINE Value known_value(SharedArray array) {
  const reference::Array& elements = array->array;
  return {elements.shape(), elements.type(), natural_order(elements.shape().size()), std::move(array), {}};
}

TUNEWRIGHT_INLINE Value known_value(std::string name, reference::Array array) {
  return known_value(std::make_shared<const NamedArray>(NamedArray{std::move(name), std::move(array)}));
}

TUNEWRIGHT_INLINE Value known_ints(std::string name, const std::vector<std::int64_t>& numbers, bool scalar) {
  reference::Array array(ScalarType::Int64, scalar ? Shape{} : Shape{static_cast<std::int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), array.elements<std::int64_t>().begin());
  return known_value(std::move(name), std::move(array));
}

TUNEWRIGHT_INLINE std::vector<double> known_elements(const Value& value, std::int64_t most) {
  const std::int64_t count = value.elements();
  if (count > most) {
    throw std::invalid_argument("'" + value.known->name + "' has " + std::to_string(count) +
                                " elements where at most " + std::to_string(most) + " make sense");
  }
  const Shape stored = value.stored_shape();
  std::vector<double> elements;
  for (std::int64_t flat = 0; flat < count; ++flat)
    elements.push_back(value.known->array.get(detail::stored_place(value, stored, flat)));
  return elements;
}

TUNEWRIGHT_INLINE SharedArray Emitter::in_natural_order(const Value& value) {
  const reference::Array& from = value.known->array;
  if (from.shape() == value.shape && value.order == natural_order(value.shape.size())) return value.known;
  budget_->charge(static_cast<double>(value.elements()) * static_cast<double>(program::size_in_bytes(value.type)));
  reference::Array result(value.type, value.shape);
  const Shape stored = from.shape();
  from.visit([&](const auto& elements) {
    using T = typename std::decay_t<decltype(elements)>::value_type;
    const auto to = result.elements<std::remove_const_t<T>>();
    for (std::size_t flat = 0; flat < to.size(); ++flat)
      to[flat] = elements[detail::stored_place(value, stored, static_cast<std::int64_t>(flat))];
  });
  return std::make_shared<const NamedArray>(NamedArray{value.known->name, std::move(result)});
}

TUNEWRIGHT_INLINE Shape Emitter::broadcast_shape(const std::string& name, const std::vector<Value>& operands) {
  Shape shape;
  for (const Value& operand : operands) {
    if (operand.shape.size() > shape.size()) shape.insert(shape.begin(), operand.shape.size() - shape.size(), 1);
    const std::size_t missing = shape.size() - operand.shape.size();
    for (std::size_t d = 0; d < operand.shape.size(); ++d) {
      std::int64_t& extent = shape[d + missing];
      if (extent == 1) extent = operand.shape[d];
      if (operand.shape[d] != 1 && operand.shape[d] != extent) {
        program::operators::detail::refuse(name, "shape " + program::operators::detail::shape_text(operand.shape) +
                                                     " does not broadcast with the others; dimensions, counted from "
                                                     "the last, must be equal or 1");
      }
    }
  }
  check_dimensions(shape);
  // Repeats take no memory, so that nothing else limits how often a file repeats what is repeated already.
  (void)checked_elements(shape, name + ": a result");
  return shape;
}

TUNEWRIGHT_INLINE std::vector<int> Emitter::order_of(const Shape& shape, const std::vector<Value>& operands) {
  const std::size_t needed = long_dimensions(shape, natural_order(shape.size())).size();
  for (const Value& operand : operands) {
    if (operand.known && operands.size() > 1) continue;
    const int missing = static_cast<int>(shape.size() - operand.shape.size());
    std::vector<int> order;
    for (const int d : operand.order)
      if (d != Value::none) order.push_back(d + missing);
    bool same_extents = true;
    for (const int d : order) {
      same_extents =
          same_extents && operand.shape[static_cast<std::size_t>(d - missing)] == shape[static_cast<std::size_t>(d)];
    }
    if (same_extents && long_dimensions(shape, order).size() == needed) return order;
  }
  return natural_order(shape.size());
}

TUNEWRIGHT_INLINE Tensor Emitter::constant(const SharedArray& array) {
  if (array->array.size() == 0) {
    throw std::invalid_argument("'" + array->name +
                                "' is empty, and the operator needs at least one element; leave it out of the model");
  }
  const auto [place, is_new] = constant_of_.try_emplace(array.get(), 0);
  if (is_new) {
    place->second = graph_->constant(array->name, array->array.shape(), array->array.type()).id;
    constants_[place->second] = array;
  }
  return graph_->tensor(place->second);
}

TUNEWRIGHT_INLINE Expr Emitter::element(const Value& value, std::span<const IndexExpr> indices, const Shape& wider) {
  if (value.known && value.known->array.size() == 1) {
    const double number = value.known->array.get(0);
    // A constant takes the type of the other operand: int32 does not hold all integers of the file.
    const bool fits = value.type != ScalarType::Int64 ||
                      (number >= program::lowest(ScalarType::Int32) && number <= program::highest(ScalarType::Int32));
    if (fits) return program::constant(number, value.type);
  }
  const Tensor tensor = value.known ? constant(value.known) : value.tensor;
  const std::size_t missing = indices.size() - value.shape.size();
  Indices places;
  for (const int d : value.order) {
    const auto at = static_cast<std::size_t>(std::max(d, 0));
    const bool repeats = d == Value::none || value.shape[at] != wider[at + missing];
    places.push_back(repeats ? IndexExpr(0) : indices[at + missing]);
  }
  return tensor.at(std::move(places));
}

TUNEWRIGHT_INLINE Tensor Emitter::stored(const Value& value, const std::vector<int>& order) {
  if (value.known) {
    if (value.order == order) return constant(value.known);
    const auto key = std::tuple(value.known.get(), value.shape, value.order, order);
    const auto found = stored_known_.find(key);
    if (found != stored_known_.end()) return constant(found->second.second);
    Value wanted = value;
    wanted.shape.clear();
    std::vector<int> place(value.shape.size(), Value::none);
    for (std::size_t p = 0; p < order.size(); ++p) {
      wanted.shape.push_back(value.shape[static_cast<std::size_t>(order[p])]);
      place[static_cast<std::size_t>(order[p])] = static_cast<int>(p);
    }
    for (int& d : wanted.order) d = d == Value::none ? d : place[static_cast<std::size_t>(d)];
    const SharedArray array = in_natural_order(wanted);
    stored_known_[key] = {value.known, array};
    return constant(array);
  }
  if (value.order == order) return value.tensor;
  Shape shape;
  for (const int d : order) shape.push_back(value.shape[static_cast<std::size_t>(d)]);
  std::vector<int> key = order;  // two values may share a tensor and differ in what its dimensions mean
  key.push_back(Value::none);
  key.insert(key.end(), value.order.begin(), value.order.end());
  for (const std::int64_t extent : shape) key.push_back(static_cast<int>(extent));
  const auto found = stored_.find({value.tensor.id, key});
  if (found != stored_.end()) return found->second;
  const std::vector<int> needed = long_dimensions(value.shape, order);
  Tensor tensor;
  if (needed == long_dimensions(value.shape, value.order)) {
    tensor = program::operators::reshape(*graph_, value.tensor, shape);
  } else {
    tensor = graph_->compute("transpose", program::operators::detail::axes_over(shape), [&](auto i) {
      Indices indices(value.shape.size(), IndexExpr(0));
      for (std::size_t p = 0; p < order.size(); ++p) indices[static_cast<std::size_t>(order[p])] = i[p];
      return element(value, indices);
    });
  }
  stored_[{value.tensor.id, key}] = tensor;
  return tensor;
}

TUNEWRIGHT_INLINE Value Emitter::reshape(const Value& value, const Shape& shape) {
  if (value.shape == shape) return value;
  check_dimensions(shape);
  if (checked_elements(shape, "reshape: a result") != value.elements()) {
    program::operators::detail::refuse("reshape", program::operators::detail::shape_text(value.shape) + " and " +
                                                      program::operators::detail::shape_text(shape) +
                                                      " differ in their number of elements");
  }
  // Dimensions of extent 1 are free; the others keep their position if each new one consists of neighbours.
  const std::vector<int> before = long_dimensions(value.shape, natural_order(value.shape.size()));
  const std::vector<int> after = long_dimensions(shape, natural_order(shape.size()));
  Shape old_extents;
  Shape new_extents;
  for (const int d : before) old_extents.push_back(value.shape[static_cast<std::size_t>(d)]);
  for (const int d : after) new_extents.push_back(shape[static_cast<std::size_t>(d)]);
  if (old_extents == new_extents) {
    Value relabelled = value;
    relabelled.shape = shape;
    for (int& d : relabelled.order) {
      const auto place = std::find(before.begin(), before.end(), d);
      d = place == before.end() ? Value::none : after[static_cast<std::size_t>(place - before.begin())];
    }
    return relabelled;
  }
  const std::vector<int> stored_order = long_dimensions(value.shape, value.order);
  std::vector<int> moved;  // dimensions of `shape`, as they will be stored
  bool in_place = stored_order.size() == before.size() && !value.known;
  std::vector<std::pair<std::size_t, std::vector<int>>> stretches;  // where each begins in what is stored
  std::size_t i = 0;
  std::size_t j = 0;
  for (const auto& [old_end, new_end] : detail::common_stretches(old_extents, new_extents)) {
    const auto first = std::find(stored_order.begin(), stored_order.end(), before[i]);
    in_place = in_place && static_cast<std::size_t>(stored_order.end() - first) >= old_end - i &&
               std::equal(before.begin() + static_cast<std::ptrdiff_t>(i),
                          before.begin() + static_cast<std::ptrdiff_t>(old_end), first);
    stretches.emplace_back(static_cast<std::size_t>(first - stored_order.begin()),
                           std::vector<int>(after.begin() + static_cast<std::ptrdiff_t>(j),
                                            after.begin() + static_cast<std::ptrdiff_t>(new_end)));
    i = old_end;
    j = new_end;
  }
  in_place = in_place && i == before.size() && j == after.size();
  if (!in_place) {
    if (value.known) {
      const SharedArray elements = in_natural_order(value);
      reference::Array result(value.type, shape);
      std::copy_n(static_cast<const std::byte*>(elements->array.data()), elements->array.size_in_bytes(),
                  static_cast<std::byte*>(result.data()));
      return known_value(value.known->name, std::move(result));
    }
    const Tensor tensor = program::operators::reshape(*graph_, natural(value), shape);
    return {shape, value.type, natural_order(shape.size()), nullptr, tensor};
  }
  std::sort(stretches.begin(), stretches.end());
  for (const auto& stretch : stretches) moved.insert(moved.end(), stretch.second.begin(), stretch.second.end());
  Shape stored_shape;
  for (const int d : moved) stored_shape.push_back(shape[static_cast<std::size_t>(d)]);
  return {shape, value.type, moved, nullptr, program::operators::reshape(*graph_, value.tensor, stored_shape)};
}

TUNEWRIGHT_INLINE Value Emitter::lookup(const Value& table, TensorId ids, const Shape& ids_shape) {
  Shape shape = ids_shape;
  shape.push_back(table.shape[1]);
  std::vector<int> order;
  Shape stored_shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && d + 2 < shape.size()) continue;  // one sequence: tokens are the rows of a matrix
    order.push_back(static_cast<int>(d));
    stored_shape.push_back(shape[d]);
  }
  const Tensor entries = natural(table);
  const Tensor rows = graph_->input(table.known->name + ".rows", stored_shape, table.type);
  lookups_.push_back({rows.id, entries.id, ids});
  return {shape, table.type, order, nullptr, rows};
}

}  // namespace tunewright::networks::onnx

#endif
