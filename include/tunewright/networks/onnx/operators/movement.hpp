// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/call.hpp"

namespace tunewright::networks::onnx {

/// Operators that move elements or return shapes: Reshape, Transpose, Concat, Split, Slice, Gather, Shape, ..
void add_movement(Operators& operators);

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <algorithm>
#include <cmath>
#include <limits>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/core/number_text.hpp"
#include "tunewright/networks/onnx/operators/matrices.hpp"
#include "tunewright/program/operators/layout.hpp"

namespace tunewright::networks::onnx::detail {

TUNEWRIGHT_INLINE std::vector<Value> reshape(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  Shape shape = call.integers("shape", 1).value_or(Shape{});
  const bool zeros_are_extents = call.whole("allowzero", 0) != 0;
  const std::int64_t elements = x.elements();
  std::int64_t* open = nullptr;
  std::int64_t rest = 1;  // the product of the extents that are given; of an empty list, 0 if one of them is
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !zeros_are_extents) {
      if (d >= x.shape.size()) call.refuse("dimension " + std::to_string(d) + " is to be kept, which does not exist");
      shape[d] = x.shape[d];
    }
    if (shape[d] == -1 && open == nullptr) {
      open = &shape[d];
      continue;
    }
    const bool fits = elements == 0 ? shape[d] >= 0 : shape[d] >= 1 && shape[d] <= elements / rest;
    if (!fits) {
      call.refuse("a shape of " + program::operators::detail::shape_text(shape) + " does not hold the " +
                  std::to_string(elements) + " elements of its input");
    }
    rest *= elements == 0 ? std::min<std::int64_t>(shape[d], 1) : shape[d];
  }
  if (open != nullptr) {
    if (rest == 0) {
      call.refuse("a shape of " + program::operators::detail::shape_text(shape) +
                  " leaves an extent open beside one of 0, so that any number fits; give it as a number");
    }
    *open = elements / rest;
  }
  return {emitter.reshape(x, shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> flatten(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const std::int64_t wanted = call.whole("axis", 1);
  const std::size_t axis =
      wanted == static_cast<std::int64_t>(x.shape.size()) ? x.shape.size() : call.dimension(wanted, x.shape.size());
  Shape shape{1, 1};
  for (std::size_t d = 0; d < x.shape.size(); ++d) shape[d < axis ? 0 : 1] *= x.shape[d];
  return {emitter.reshape(x, shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> transpose(Emitter&, const Call& call) {
  const Value& x = call.input(0);
  const std::size_t rank = x.shape.size();
  std::vector<std::size_t> source;
  for (const std::int64_t d : call.attribute<std::vector<std::int64_t>>("perm", {}))
    source.push_back(call.dimension(d, rank));
  if (source.empty())
    for (std::size_t d = rank; d-- > 0;) source.push_back(d);
  std::vector<std::size_t> sorted = source;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < rank; ++d) {
    if (sorted.size() != rank || sorted[d] != d) call.refuse("attribute 'perm' is no permutation of all dimensions");
  }
  return {permuted(x, source)};
}

TUNEWRIGHT_INLINE std::vector<Value> squeeze(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  std::vector<bool> goes(x.shape.size(), false);
  // An empty list is as good as none, as in onnxruntime.
  if (const auto axes = call.integers("axes", 1); axes && !axes->empty()) {
    for (const std::int64_t axis : *axes) goes[call.dimension(axis, goes.size())] = true;
  } else {
    for (std::size_t d = 0; d < goes.size(); ++d) goes[d] = x.shape[d] == 1;
  }
  Shape shape;
  for (std::size_t d = 0; d < goes.size(); ++d)
    if (!goes[d]) shape.push_back(x.shape[d]);
  return {emitter.reshape(x, shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> unsqueeze(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const auto axes = call.integers("axes", 1).value_or(std::vector<std::int64_t>{});
  const std::size_t rank = x.shape.size() + axes.size();
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t axis : axes) is_new[call.dimension(axis, rank)] = true;
  if (std::count(is_new.begin(), is_new.end(), true) != static_cast<std::ptrdiff_t>(axes.size()))
    call.refuse("a dimension is added twice");
  Shape shape;
  std::size_t next = 0;
  for (std::size_t d = 0; d < rank; ++d) shape.push_back(is_new[d] ? 1 : x.shape[next++]);
  return {emitter.reshape(x, shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> expand(Emitter&, const Call& call) {
  const Value& x = call.input(0);
  Value wanted;
  wanted.shape = call.known_integers(1, "shape");
  for (const std::int64_t extent : wanted.shape)
    if (extent < 1) call.refuse("the shape has an extent of " + std::to_string(extent) + "; give at least 1");
  return {stretched(x, Emitter::broadcast_shape("expand", {x, wanted}))};
}

/// Casts int32 to int64 where both occur: int64 of the file is int32 if it depends on an input.
TUNEWRIGHT_INLINE void widen_integers(Emitter& emitter, std::vector<Value>& parts) {
  const auto has = [&](ScalarType type) {
    return std::any_of(parts.begin(), parts.end(), [&](const Value& part) { return part.type == type; });
  };
  if (!has(ScalarType::Int32) || !has(ScalarType::Int64)) return;
  for (Value& part : parts) {
    if (part.type == ScalarType::Int32) part = emitter.cast(part, ScalarType::Int64);
  }
}

TUNEWRIGHT_INLINE std::vector<Value> concat(Emitter& emitter, const Call& call) {
  std::vector<Value> parts = call.all_inputs();
  const auto is_empty = [](const Value& part) { return part.elements() == 0; };
  const bool all_empty = std::all_of(parts.begin(), parts.end(), is_empty);
  if (!all_empty) std::erase_if(parts, is_empty);
  constexpr std::size_t most = 512;  // a kernel has as many arguments
  if (parts.size() > most) {
    call.unsupported("inputs", "there are " + std::to_string(parts.size()),
                     "concatenate at most " + std::to_string(most) + " at once");
  }
  if (parts.empty()) call.refuse("it has no inputs");
  widen_integers(emitter, parts);
  const std::size_t rank = parts[0].shape.size();
  const std::size_t axis = call.dimension(call.whole("axis", 0), rank);
  Shape shape = parts[0].shape;
  for (std::size_t p = 1; p < parts.size(); ++p) {
    Shape expected = parts[0].shape;
    if (parts[p].shape.size() == rank) expected[axis] = parts[p].shape[axis];
    if (parts[p].shape != expected) {
      call.refuse("input " + std::to_string(p) + " has shape " +
                  program::operators::detail::shape_text(parts[p].shape) + ", the first one " +
                  program::operators::detail::shape_text(parts[0].shape) + "; make all extents but that of dimension " +
                  std::to_string(axis) + " equal");
    }
    shape[axis] += parts[p].shape[axis];
  }
  if (all_empty) return {known_value(call.node.name, reference::Array(parts[0].type, shape))};
  std::vector<int> order;
  for (const Value& part : parts) {
    if (!part.known && order.empty()) order = order_with(part, axis).first;
  }
  const auto along = std::find(order.begin(), order.end(), static_cast<int>(axis));
  if (along == order.end()) order = natural_order(rank);
  const auto place = std::find(order.begin(), order.end(), static_cast<int>(axis)) - order.begin();
  std::vector<Tensor> tensors;
  for (const Value& part : parts) tensors.push_back(emitter.stored(part, order));
  const Tensor result = program::operators::concat(emitter.graph(), tensors, static_cast<int>(place));
  return {Value{shape, result.type, order, nullptr, result}};
}

/// Elements begin, begin + step, .. of each dimension.
struct Part {
  std::int64_t begin = 0;
  std::int64_t extent = 1;
  std::int64_t step = 1;
};

TUNEWRIGHT_INLINE Value part_of(Emitter& emitter, const Value& x, const std::vector<Part>& parts) {
  Shape shape;
  for (const Part& part : parts) shape.push_back(part.extent);
  if (shape == x.shape && std::all_of(parts.begin(), parts.end(), [](const Part& p) { return p.step == 1; })) return x;
  const std::vector<int> order = Emitter::order_of(x.shape, {x});
  // A dimension with one remaining element keeps its position unless it repeats.
  return emitter.compute("slice", shape, order, [&](auto i) {
    Indices indices(i.begin(), i.end());
    for (std::size_t d = 0; d < parts.size(); ++d) indices[d] = indices[d] * parts[d].step + parts[d].begin;
    return emitter.element(x, indices);
  });
}

TUNEWRIGHT_INLINE std::vector<Part> whole(const Value& x) {
  std::vector<Part> parts;
  for (const std::int64_t extent : x.shape) parts.push_back({0, extent, 1});
  return parts;
}

TUNEWRIGHT_INLINE std::vector<Value> slice(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const bool old = call.opset < 10;
  const auto numbers = [&](const std::string& name, std::size_t input) {
    return old               ? call.attribute<std::vector<std::int64_t>>(name, {})
           : call.has(input) ? call.known_integers(input, name)
                             : std::vector<std::int64_t>{};
  };
  const auto starts = numbers("starts", 1);
  const auto ends = numbers("ends", 2);
  auto axes = numbers("axes", 3);
  auto steps = old ? std::vector<std::int64_t>{} : numbers("steps", 4);
  for (std::size_t a = axes.size(); axes.size() < starts.size(); ++a) axes.push_back(static_cast<std::int64_t>(a));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.refuse("starts, ends, axes and steps differ in number");
  std::vector<Part> parts = whole(x);
  for (std::size_t a = 0; a < starts.size(); ++a) {
    const std::size_t d = call.dimension(axes[a], parts.size());
    const std::int64_t extent = x.shape[d];
    const std::int64_t step = steps[a];
    if (step == 0 || std::abs(step) > 1 << 30) call.refuse("a step is " + std::to_string(step) + "; give a small one");
    if (step < 0 && !x.known) {
      call.unsupported("steps", "a step is " + std::to_string(step), "go forwards, with steps of at least 1");
    }
    if (extent == 0) continue;  // whatever the bounds, nothing lies between them
    const auto place = [&](std::int64_t wanted, std::int64_t least, std::int64_t most) {
      return std::clamp(wanted < 0 ? wanted + extent : wanted, least, most);
    };
    const std::int64_t begin = step > 0 ? place(starts[a], 0, extent) : place(starts[a], 0, extent - 1);
    const std::int64_t end = step > 0 ? place(ends[a], 0, extent) : place(ends[a], -1, extent - 1);
    const std::int64_t count = step > 0 ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
    if (count < 1 && !x.known) {
      call.unsupported("starts", "nothing is left of dimension " + std::to_string(d),
                       "tensors have at least one element here; leave the node out");
    }
    parts[d] = {begin, std::max<std::int64_t>(count, 0), step};
  }
  if (std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.extent == 0; })) {
    // Lists of extents may be empty.
    Shape shape;
    for (const Part& part : parts) shape.push_back(part.extent);
    return {known_value(call.node.name, reference::Array(x.type, shape))};
  }
  return {part_of(emitter, x, parts)};
}

TUNEWRIGHT_INLINE std::vector<Value> split(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const std::size_t axis = call.dimension(call.whole("axis", 0), x.shape.size());
  std::vector<std::int64_t> extents;
  const std::int64_t count = static_cast<std::int64_t>(call.node.outputs.size());
  if (const auto given = call.integers("split", 1)) {
    extents = *given;
  } else {
    const std::int64_t each = (x.shape[axis] + count - 1) / count;
    for (std::int64_t o = 0; o < count; ++o) extents.push_back(std::min(each, x.shape[axis] - o * each));
  }
  std::int64_t begin = 0;
  std::vector<Value> parts;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > x.shape[axis] - begin) {
      call.refuse("its parts do not fit the " + std::to_string(x.shape[axis]) + " elements of dimension " +
                  std::to_string(axis));
    }
    std::vector<Part> where = whole(x);
    where[axis] = {begin, extent, 1};
    parts.push_back(part_of(emitter, x, where));
    begin += extent;
  }
  if (static_cast<std::int64_t>(parts.size()) != count || begin != x.shape[axis])
    call.refuse("its parts are not as many as its outputs, or leave a rest");
  return parts;
}

/// The input of the network behind a value, if the value is that input or a reshaped one.
TUNEWRIGHT_INLINE std::optional<TensorId> graph_input(Emitter& emitter, const Value& value) {
  TensorId id = value.tensor.id;
  while (program::operators::is_reshape(emitter.graph(), id)) id = emitter.graph().producers(id)[0];
  const std::vector<int> stored = long_dimensions(value.shape, value.order);
  const bool in_order = std::is_sorted(stored.begin(), stored.end());
  // Rows of a table are inputs of the graph, but nothing is in them when other rows are looked up.
  const auto is_rows = [&](const Lookup& lookup) { return lookup.rows == id; };
  const bool looked_up = std::any_of(emitter.lookups().begin(), emitter.lookups().end(), is_rows);
  if (!in_order || looked_up || emitter.graph().op(id).role != program::Role::Input ||
      emitter.graph().op(id).elements() != value.elements()) {
    return std::nullopt;
  }
  return id;
}

/// The known indices of a call into dimension `axis` of `x`, counted from its start. Throws `std::invalid_argument` for
/// those beyond it.
TUNEWRIGHT_INLINE std::vector<std::int64_t> known_places(const Call& call, const Value& x, std::size_t axis) {
  std::vector<std::int64_t> places = call.known_integers(1, "indices");
  for (std::int64_t& place : places) {
    if (place < -x.shape[axis] || place >= x.shape[axis]) {
      call.refuse("index " + std::to_string(place) + " is beyond the " + std::to_string(x.shape[axis]) +
                  " elements of dimension " + std::to_string(axis));
    }
    if (place < 0) place += x.shape[axis];
  }
  return places;
}

TUNEWRIGHT_INLINE Value gathered_parts(Emitter& emitter, const Call& call, const Value& x, std::size_t axis,
                                       const Value& picked) {
  const std::vector<std::int64_t> places = known_places(call, x, axis);
  if (places.empty()) {
    call.unsupported("indices", "there are none", "tensors have at least one element here; leave the node out");
  }
  const std::int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
  for (std::size_t p = 1; p < places.size(); ++p) {
    if (step < 1 || places[p] - places[p - 1] != step) {
      call.unsupported("indices", "they are not evenly spaced and ascending", "use Slice or Split");
    }
  }
  std::vector<Part> parts = whole(x);
  parts[axis] = {places[0], static_cast<std::int64_t>(places.size()), step};
  Shape shape = x.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), picked.shape.begin(), picked.shape.end());
  return emitter.reshape(part_of(emitter, x, parts), shape);
}

/// Elements of known values at known positions.
TUNEWRIGHT_INLINE Value gathered_known(Emitter& emitter, const Call& call, const Value& x, std::size_t axis,
                                       const Value& picked) {
  const SharedArray from = emitter.in_natural_order(x);
  const std::vector<std::int64_t> places = known_places(call, x, axis);
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  const std::int64_t outer = checked_elements(shape);
  shape.insert(shape.end(), picked.shape.begin(), picked.shape.end());
  const Shape behind(x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  shape.insert(shape.end(), behind.begin(), behind.end());
  const std::int64_t inner = checked_elements(behind);
  const double elements = static_cast<double>(outer) * static_cast<double>(places.size()) * static_cast<double>(inner);
  emitter.budget().require(elements * static_cast<double>(program::size_in_bytes(x.type)));
  reference::Array result(x.type, shape);
  std::size_t next = 0;
  for (std::int64_t o = 0; next < result.size(); ++o) {
    for (const std::int64_t place : places) {
      for (std::int64_t k = 0; k < inner; ++k)
        result.set(next++, from->array.get(static_cast<std::size_t>((o * x.shape[axis] + place) * inner + k)));
    }
  }
  return known_value(x.known->name, std::move(result));
}

/// One element of known values for each index: y[.., i, ..] = x[.., indices[.., i, ..], ..].
TUNEWRIGHT_INLINE std::vector<Value> gather_elements(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const Value& picked = call.input(1);
  if (!x.known || !picked.known) {
    call.unsupported("indices", "they, or the data, depend on what the network is given",
                     "only what is known while importing can be picked element by element");
  }
  if (x.shape.size() != picked.shape.size()) call.refuse("data and indices differ in rank");
  const std::size_t axis = call.dimension(call.whole("axis", 0), x.shape.size());
  const SharedArray from = emitter.in_natural_order(x);
  const std::vector<std::int64_t> places = known_places(call, x, axis);
  reference::Array result(x.type, picked.shape);
  for (std::size_t flat = 0; flat < places.size(); ++flat) {
    auto rest = static_cast<std::int64_t>(flat);
    std::int64_t place = 0;
    std::int64_t stride = 1;
    for (std::size_t d = x.shape.size(); d-- > 0;) {
      std::int64_t index = rest % picked.shape[d];
      rest /= picked.shape[d];
      if (d == axis) index = places[flat];
      if (index >= x.shape[d]) {
        call.refuse("index " + std::to_string(index) + " is beyond the " + std::to_string(x.shape[d]) +
                    " elements of dimension " + std::to_string(d));
      }
      place += index * stride;
      stride *= x.shape[d];
    }
    result.set(flat, from->array.get(static_cast<std::size_t>(place)));
  }
  return {known_value(x.known->name, std::move(result))};
}

TUNEWRIGHT_INLINE std::vector<Value> gather(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const Value& picked = call.input(1);
  const std::size_t axis = call.dimension(call.whole("axis", 0), x.shape.size());
  if (picked.known && x.known) return {gathered_known(emitter, call, x, axis, picked)};
  if (picked.known) return {gathered_parts(emitter, call, x, axis, picked)};
  const std::optional<TensorId> ids = graph_input(emitter, picked);
  if (!x.known || x.shape.size() != 2 || axis != 0 || !ids || picked.type != ScalarType::Int32) {
    call.unsupported("indices", "they are computed from what the network is given",
                     "only rows of a constant table can be picked, by an input itself: pass the indices in as one");
  }
  return {emitter.lookup(x, *ids, picked.shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> shape_of(Emitter&, const Call& call) {
  const Shape& shape = call.input(0).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto place = [&](std::int64_t wanted) {
    return std::clamp<std::int64_t>(wanted < 0 ? wanted + rank : wanted, 0, rank);
  };
  const std::int64_t begin = place(call.whole("start", 0));
  const std::int64_t end = std::max(begin, place(call.whole("end", rank)));
  return {known_ints(call.node.name, {shape.begin() + begin, shape.begin() + end})};
}

TUNEWRIGHT_INLINE std::vector<Value> size_of(Emitter&, const Call& call) {
  return {known_ints(call.node.name, {call.input(0).elements()}, true)};
}

TUNEWRIGHT_INLINE std::vector<Value> filled(Emitter&, const Call& call) {
  Shape shape = call.known_integers(0, "input");
  for (const std::int64_t extent : shape)
    if (extent < 1) call.unsupported("input", "an extent is " + std::to_string(extent), "leave the empty tensor out");
  (void)checked_elements(shape, "a result");
  const SharedArray given = call.attribute<SharedArray>("value", nullptr);
  reference::Array value(given ? given->array.type() : ScalarType::Float32, {});
  if (given && given->array.size() != 1) call.refuse("attribute 'value' has more than one element");
  if (given) value.set(0, given->array.get(0));
  return {stretched(known_value(call.node.name, std::move(value)), shape)};
}

TUNEWRIGHT_INLINE std::vector<Value> range(Emitter&, const Call& call) {
  const double start = call.known_number(0, "start");
  const double limit = call.known_number(1, "limit");
  const double delta = call.known_number(2, "delta");
  const double count = delta == 0 ? 0 : std::ceil((limit - start) / delta);
  if (!(count >= 1) || count > 0x1p24) {
    call.refuse("it has " + number_text(count) + " elements; from 1 to 2^24 are possible");
  }
  reference::Array array(call.input(0).type, {static_cast<std::int64_t>(count)});
  for (std::size_t i = 0; i < array.size(); ++i) array.set(i, start + static_cast<double>(i) * delta);
  return {known_value(call.node.name, std::move(array))};
}

/// Keeps one triangle of each matrix; zeros elsewhere.
TUNEWRIGHT_INLINE std::vector<Value> triangle(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const std::size_t rank = x.shape.size();
  if (rank < 2) call.refuse("its input is no matrix");
  const double given = call.has(1) ? call.known_number(1, "k") : 0;
  if (std::isnan(given)) call.refuse("'k' is no number");
  // Diagonals beyond the corners keep all or nothing, however far they are.
  const auto k = static_cast<std::int64_t>(
      std::clamp(given, -static_cast<double>(x.shape[rank - 2]), static_cast<double>(x.shape[rank - 1])));
  const bool upper = call.whole("upper", 1) != 0;
  return {emitter.compute("triangle", x.shape, Emitter::order_of(x.shape, {x}), [&](auto i) {
    const Expr diagonal = program::index_value(i[rank - 1] - i[rank - 2]);
    const Expr limit = program::index_value(IndexExpr(k));
    return program::select(upper ? limit <= diagonal : diagonal <= limit, emitter.element(x, i),
                           program::constant(0, x.type));
  })};
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE void add_movement(Operators& operators) {
  operators["Reshape"] = detail::reshape;
  operators["Flatten"] = detail::flatten;
  operators["Transpose"] = detail::transpose;
  operators["Squeeze"] = detail::squeeze;
  operators["Unsqueeze"] = detail::unsqueeze;
  operators["Expand"] = detail::expand;
  operators["Concat"] = detail::concat;
  operators["Slice"] = detail::slice;
  operators["Split"] = detail::split;
  operators["Gather"] = detail::gather;
  operators["GatherElements"] = detail::gather_elements;
  operators["Shape"] = detail::shape_of;
  operators["Size"] = detail::size_of;
  operators["ConstantOfShape"] = detail::filled;
  operators["Range"] = detail::range;
  operators["Trilu"] = detail::triangle;
}

}  // namespace tunewright::networks::onnx

#endif
