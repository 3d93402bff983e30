// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tunewright/detail/config.hpp"
#include "tunewright/networks/onnx/call.hpp"

namespace tunewright::networks::onnx {

/// Operators on images [n, c, h, w]: Conv, pooling, BatchNormalization, Pad. Images are stored channels last.
void add_images(Operators& operators);

}  // namespace tunewright::networks::onnx

#if TUNEWRIGHT_DEFINES(onnx_operators)

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/pool.hpp"

namespace tunewright::networks::onnx::detail {

inline const std::vector<int>& channels_last() {
  static const std::vector<int> order{0, 2, 3, 1};
  return order;
}

/// An image of the graph as a value with a channels-first shape.
TUNEWRIGHT_INLINE Value image(const Tensor& stored) {
  const Shape& s = stored.shape;
  return {{s[0], s[3], s[1], s[2]}, stored.type, channels_last(), nullptr, stored};
}

TUNEWRIGHT_INLINE const Value& image_input(const Call& call) {
  const Value& x = call.input(0);
  if (x.shape.size() != 4) {
    call.unsupported("X", "it has " + std::to_string(x.shape.size()) + " dimensions",
                     "images have four here, [n, c, h, w]; add one of extent 1 in the model");
  }
  return x;
}

/// Window parameters of convolutions and poolings, from their attributes.
struct Windows {
  std::array<std::int64_t, 2> kernel{};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::array<std::int64_t, 2> before{0, 0};  ///< padding, heights first
  std::array<std::int64_t, 2> after{0, 0};

  [[nodiscard]] bool symmetric() const { return before == after; }
};

TUNEWRIGHT_INLINE std::array<std::int64_t, 2> pair_of(const Call& call, const std::string& name,
                                                      std::array<std::int64_t, 2> otherwise, std::int64_t least) {
  if (!call.has(name)) return otherwise;
  const auto numbers = call.attribute<std::vector<std::int64_t>>(name, {});
  if (numbers.size() != 2) {
    call.refuse("attribute '" + name + "' has " + std::to_string(numbers.size()) + " numbers; give 2, for h and w");
  }
  for (const std::int64_t number : numbers) {
    if (number < least || number > 1 << 20) {
      call.refuse("attribute '" + name + "' has a " + std::to_string(number) + "; give numbers of at least " +
                  std::to_string(least) + ", and no huge ones");
    }
  }
  return {numbers[0], numbers[1]};
}

/// The windows of a call on an image of extents `image`; `round_up` allows one more that extends over the end.
TUNEWRIGHT_INLINE Windows windows_of(const Call& call, std::array<std::int64_t, 2> image,
                                     std::array<std::int64_t, 2> kernel, bool round_up = false) {
  Windows w;
  w.kernel = kernel;
  w.stride = pair_of(call, "strides", {1, 1}, 1);
  w.dilation = pair_of(call, "dilations", {1, 1}, 1);
  const auto placing = call.attribute<std::string>("auto_pad", "NOTSET");
  const auto pads = call.attribute<std::vector<std::int64_t>>("pads", {});
  if (placing == "NOTSET" && !pads.empty()) {
    if (pads.size() != 4) call.refuse("attribute 'pads' has " + std::to_string(pads.size()) + " numbers; give 4");
    for (const std::int64_t pad : pads) {
      if (pad < 0 || pad > 1 << 20) {
        call.refuse("attribute 'pads' has a " + std::to_string(pad) + "; give small numbers of at least 0");
      }
    }
    w.before = {pads[0], pads[1]};
    w.after = {pads[2], pads[3]};
  }
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t span = w.dilation[d] * (kernel[d] - 1) + 1;
    if (placing == "SAME_UPPER" || placing == "SAME_LOWER") {
      const std::int64_t positions = (image[d] + w.stride[d] - 1) / w.stride[d];
      const std::int64_t total = std::max<std::int64_t>(0, (positions - 1) * w.stride[d] + span - image[d]);
      const std::int64_t less = total / 2;
      w.before[d] = placing == "SAME_UPPER" ? less : total - less;
      w.after[d] = total - w.before[d];
    } else if (placing != "NOTSET" && placing != "VALID") {
      call.unsupported("auto_pad", "'" + placing + "' is no way of padding", "use NOTSET with pads");
    }
    if (round_up) {
      const std::int64_t room = image[d] + w.before[d] + w.after[d] - span;
      const std::int64_t rest = room < 0 ? 0 : room % w.stride[d];
      // A window that would start in the padding after the image is omitted.
      const bool begins_inside = (room / w.stride[d] + 1) * w.stride[d] < image[d] + w.before[d];
      if (rest != 0 && begins_inside) w.after[d] += w.stride[d] - rest;
    }
  }
  return w;
}

TUNEWRIGHT_INLINE Tensor padded(Emitter& emitter, const Tensor& x, const Windows& w, double value,
                                const std::string& name) {
  return program::operators::pad(emitter.graph(), x,
                                 {.before = {0, w.before[0], w.before[1], 0},
                                  .after = {0, w.after[0], w.after[1], 0},
                                  .value = value,
                                  .name = name + "_pad"});
}

TUNEWRIGHT_INLINE std::vector<Value> convolution(Emitter& emitter, const Call& call) {
  namespace op = program::operators;
  const Value& x = image_input(call);
  const Value& weight = call.input(1);
  if (weight.shape.size() != 4) {
    call.refuse("its weight has shape " + op::detail::shape_text(weight.shape) + "; give [co, ci / group, kh, kw]");
  }
  const std::int64_t groups = call.whole("group", 1);
  const std::int64_t ci = x.shape[1];
  const std::int64_t co = weight.shape[0];
  if (groups < 1 || ci % groups != 0 || co % groups != 0 || weight.shape[1] != ci / groups) {
    call.refuse("a weight of shape " + op::detail::shape_text(weight.shape) + " with group " + std::to_string(groups) +
                " does not fit an image of " + std::to_string(ci) + " channels; is it the weight of another layer?");
  }
  const auto kernel = pair_of(call, "kernel_shape", {weight.shape[2], weight.shape[3]}, 1);
  if (kernel[0] != weight.shape[2] || kernel[1] != weight.shape[3]) {
    call.refuse("attribute 'kernel_shape' differs from the weight's shape " + op::detail::shape_text(weight.shape));
  }
  const Windows w = windows_of(call, {x.shape[2], x.shape[3]}, kernel);
  const bool depthwise = groups > 1 && groups == ci;
  const std::string name = depthwise ? "depthwise_conv2d" : "conv2d";
  Tensor data = emitter.stored(x, channels_last());
  if (!w.symmetric()) data = padded(emitter, data, w, 0, name);
  const op::PerDimension<2> padding = w.symmetric() ? op::PerDimension<2>{w.before[0], w.before[1]} : 0;
  const op::PerDimension<2> stride{w.stride[0], w.stride[1]};
  const op::PerDimension<2> dilation{w.dilation[0], w.dilation[1]};
  Tensor result;
  if (depthwise) {
    result = op::depthwise_conv2d(
        emitter.graph(), data, emitter.stored(weight, {2, 3, 0}),
        {.stride = stride, .padding = padding, .dilation = dilation, .accumulator = program::accumulator_type(x.type)});
  } else {
    result = op::conv2d(emitter.graph(), data, emitter.stored(weight, {2, 3, 1, 0}),
                        {.stride = stride, .padding = padding, .dilation = dilation, .groups = groups});
  }
  if (call.has(2)) {
    if (call.input(2).shape != Shape{co}) {
      call.refuse("its bias has shape " + op::detail::shape_text(call.input(2).shape) + "; give [" +
                  std::to_string(co) + "], one number a channel");
    }
    result = op::bias_add(emitter.graph(), result, emitter.natural(call.input(2)));
  }
  return {emitter.narrowed(image(result), program::common_type(x.type, weight.type))};
}

TUNEWRIGHT_INLINE std::vector<Value> pooling(Emitter& emitter, const Call& call) {
  namespace op = program::operators;
  const bool largest = call.node.op == "MaxPool";
  const Value& x = image_input(call);
  if (!call.has("kernel_shape")) call.refuse("attribute 'kernel_shape' is missing");
  const Windows w = windows_of(call, {x.shape[2], x.shape[3]}, pair_of(call, "kernel_shape", {1, 1}, 1),
                               call.whole("ceil_mode", 0) != 0);
  for (std::size_t d = 0; d < 2; ++d) {
    if (w.before[d] >= w.kernel[d] || w.after[d] >= w.kernel[d]) {
      call.refuse("attribute 'pads' adds " + std::to_string(std::max(w.before[d], w.after[d])) +
                  " elements on a side where the window has " + std::to_string(w.kernel[d]) +
                  ", so that some windows would hold none of the image; give fewer");
    }
  }
  if (w.dilation != std::array<std::int64_t, 2>{1, 1}) {
    call.unsupported("dilations", "the window has holes", "pool without dilation");
  }
  const bool counts_padding = call.whole("count_include_pad", 0) != 0;
  op::Pool2dOptions options{.kernel = {w.kernel[0], w.kernel[1]},
                            .stride = {w.stride[0], w.stride[1]},
                            .count_padding = counts_padding,
                            .name = largest ? "max_pool2d" : "avg_pool2d"};
  const auto stored = [&](const Value& elements) { return emitter.stored(elements, channels_last()); };
  // What a window has behind the padding of the file is not counted as padding.
  const Windows unrounded = windows_of(call, {x.shape[2], x.shape[3]}, w.kernel);
  if (w.symmetric() && (!counts_padding || w.after == unrounded.after)) {
    options.padding = {w.before[0], w.before[1]};
    return {image(largest ? op::max_pool2d(emitter.graph(), stored(x), options)
                          : op::avg_pool2d(emitter.graph(), stored(x), options))};
  }
  if (largest) {
    const Tensor data = padded(emitter, stored(x), w, -std::numeric_limits<double>::infinity(), options.name);
    return {image(op::max_pool2d(emitter.graph(), data, options))};
  }
  // The mean over whole windows, corrected by the number of counted elements before it is rounded.
  const Value exact = emitter.cast(x, program::accumulator_type(x.type));
  const Tensor data = padded(emitter, stored(exact), w, 0, options.name);
  const Value mean = image(op::avg_pool2d(emitter.graph(), data, options));
  emitter.budget().charge(static_cast<double>(mean.shape[2]) * static_cast<double>(mean.shape[3]) *
                          static_cast<double>(program::size_in_bytes(mean.type)));
  reference::Array share(mean.type, {mean.shape[2], mean.shape[3]});
  for (std::size_t place = 0; place < share.size(); ++place) {
    double counted = 1;
    for (std::size_t d = 0; d < 2; ++d) {
      const auto columns = static_cast<std::size_t>(mean.shape[3]);
      const auto position = static_cast<std::int64_t>(d == 0 ? place / columns : place % columns);
      const std::int64_t begin = position * w.stride[d] - w.before[d];
      const std::int64_t first = counts_padding ? -w.before[d] : 0;
      const std::int64_t last = x.shape[d + 2] + (counts_padding ? unrounded.after[d] : 0);
      counted *= static_cast<double>(std::min(begin + w.kernel[d], last) - std::max(begin, first));
    }
    share.set(place, static_cast<double>(w.kernel[0] * w.kernel[1]) / counted);
  }
  const Value factor = known_value(call.node.name + ".window_share", std::move(share));
  const Value result = emitter.elementwise(options.name, {mean, factor}, [](auto e) { return e[0] * e[1]; });
  return {emitter.narrowed(result, x.type)};
}

/// One reduction over h and w, which remain with extent 1.
TUNEWRIGHT_INLINE std::vector<Value> global_pooling(Emitter& emitter, const Call& call) {
  namespace op = program::operators;
  const Value& x = image_input(call);
  const bool largest = call.node.op == "GlobalMaxPool";
  const Tensor data = emitter.stored(x, channels_last());
  const Tensor result =
      largest ? op::global_max_pool2d(emitter.graph(), data) : op::global_avg_pool2d(emitter.graph(), data);
  return {Value{{x.shape[0], x.shape[1], 1, 1}, result.type, {0, 1}, nullptr, result}};
}

/// A scale and a shift per channel. Normalisations after a convolution are already folded into its weights.
TUNEWRIGHT_INLINE std::vector<Value> batch_normalization(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  if (x.shape.size() < 2) call.refuse("its input has no channels; give [n, c, ..]");
  if (call.whole("training_mode", 0) != 0) {
    call.unsupported("training_mode", "networks run inference only", "export the model in evaluation mode");
  }
  constexpr std::array names{"scale", "B", "input_mean", "input_var"};
  std::array<std::vector<double>, 4> parameters;
  for (std::size_t p = 0; p < 4; ++p) {
    if (!call.input(p + 1).known) {
      call.unsupported(names[p], "depends on what the network is given", "make it a constant in the model");
    }
    parameters[p] = known_elements(call.input(p + 1));
    if (static_cast<std::int64_t>(parameters[p].size()) != x.shape[1]) {
      call.refuse(std::string(names[p]) + " has " + std::to_string(parameters[p].size()) +
                  " elements where the input has " + std::to_string(x.shape[1]) + " channels");
    }
  }
  const double epsilon = call.attribute<double>("epsilon", 1e-5);
  Shape shape(x.shape.size() - 1, 1);
  shape[0] = x.shape[1];
  const ScalarType exact = program::accumulator_type(x.type);
  reference::Array scale(exact, {x.shape[1]});
  reference::Array shift(exact, {x.shape[1]});
  for (std::size_t c = 0; c < scale.size(); ++c) {
    const double factor = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    scale.set(c, factor);
    shift.set(c, parameters[1][c] - parameters[2][c] * factor);
  }
  const Value factor = emitter.reshape(known_value(call.node.name + ".scale", std::move(scale)), shape);
  const Value summand = emitter.reshape(known_value(call.node.name + ".shift", std::move(shift)), shape);
  // The scale of a single channel becomes a constant, which has the type of the other factor.
  const Value exact_x = emitter.cast(x, exact);
  const Value scaled = emitter.elementwise("scale", {exact_x, factor}, [](auto e) { return e[0] * e[1]; });
  const Value shifted = emitter.elementwise("shift", {scaled, summand}, [](auto e) { return e[0] + e[1]; });
  return {emitter.narrowed(shifted, x.type)};
}

TUNEWRIGHT_INLINE std::vector<Value> pad(Emitter& emitter, const Call& call) {
  const Value& x = call.input(0);
  const auto mode = call.attribute<std::string>("mode", "constant");
  if (mode != "constant") call.unsupported("mode", "'" + mode + "' is not constant", "pad with a constant");
  if (call.has(3)) call.unsupported("axes", "it is given", "give pads for all dimensions");
  const auto pads = call.integers("pads", 1).value_or(std::vector<std::int64_t>{});
  const std::size_t rank = x.shape.size();
  if (pads.size() != 2 * rank) call.refuse("it has " + std::to_string(pads.size()) + " pads; give two a dimension");
  for (const std::int64_t amount : pads) {
    if (amount < 0) call.unsupported("pads", "a number is negative", "use Slice to cut");
    if (amount > 1 << 20) call.refuse("a pad is " + std::to_string(amount) + "; give no huge ones");
  }
  std::vector<int> order = Emitter::order_of(x.shape, {x});
  for (std::size_t d = 0; d < rank; ++d) {
    const bool grows = pads[d] + pads[d + rank] > 0;
    if (grows && std::find(order.begin(), order.end(), static_cast<int>(d)) == order.end()) order = natural_order(rank);
  }
  program::operators::PadOptions options{.before = {}, .after = {}};
  options.value = call.has(2) ? call.known_number(2, "constant_value") : call.attribute<double>("value", 0);
  Shape shape = x.shape;
  for (const int dimension : order) {
    const auto d = static_cast<std::size_t>(dimension);
    options.before.push_back(pads[d]);
    options.after.push_back(pads[d + rank]);
    shape[d] += pads[d] + pads[d + rank];
  }
  const Tensor result = program::operators::pad(emitter.graph(), emitter.stored(x, order), options);
  return {Value{shape, result.type, order, nullptr, result}};
}

}  // namespace tunewright::networks::onnx::detail

namespace tunewright::networks::onnx {

TUNEWRIGHT_INLINE void add_images(Operators& operators) {
  operators["Conv"] = detail::convolution;
  operators["MaxPool"] = detail::pooling;
  operators["AveragePool"] = detail::pooling;
  operators["GlobalAveragePool"] = detail::global_pooling;
  operators["GlobalMaxPool"] = detail::global_pooling;
  operators["BatchNormalization"] = detail::batch_normalization;
  operators["Pad"] = detail::pad;
}

}  // namespace tunewright::networks::onnx

#endif
