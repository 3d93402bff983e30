// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/operators/checks.hpp"
#include "tunewright/program/operators/pad.hpp"

namespace tunewright::program::operators::detail {

/// Names of D image dimensions, outermost first.
template <std::size_t D>
[[nodiscard]] std::vector<std::string> image_names() {
  static_assert(D >= 1 && D <= 3, "images have one to three dimensions");
  constexpr std::array<std::string_view, 3> names{"d", "h", "w"};
  return std::vector<std::string>(names.end() - D, names.end());
}

/// Dimension numbers of an image tensor: [n, image.., c] or [n, c, image..].
template <std::size_t D>
struct ImageDimensions {
  Layout layout;
  [[nodiscard]] std::size_t channel() const noexcept { return layout == Layout::ChannelsLast ? D + 1 : 1; }
  [[nodiscard]] std::size_t image(std::size_t d) const noexcept { return d + (layout == Layout::ChannelsLast ? 1 : 2); }
  [[nodiscard]] std::string text() const {
    std::string text = layout == Layout::ChannelsLast ? "[n" : "[n, c";
    for (const std::string& name : image_names<D>()) text += ", " + name;
    return text + (layout == Layout::ChannelsLast ? ", c]" : "]");
  }
  /// Puts one entry per image dimension and one for the channels into the order of the layout, after that of the batch.
  template <class T>
  [[nodiscard]] std::vector<T> arrange(T batch, std::vector<T> image, T channel) const {
    std::vector<T> all{std::move(batch)};
    if (layout == Layout::ChannelsFirst) all.push_back(channel);
    for (T& entry : image) all.push_back(std::move(entry));
    if (layout == Layout::ChannelsLast) all.push_back(std::move(channel));
    return all;
  }
};

/// A window of `kernel` taps at distance `dilation`, moved by `stride` over a dimension padded on both sides.
struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  [[nodiscard]] std::int64_t span() const noexcept { return dilation * (kernel - 1) + 1; }
  /// Positions of the window over `extent` elements. Throws `std::invalid_argument` if it fits nowhere.
  [[nodiscard]] std::int64_t positions(std::string_view who, std::string_view dimension, std::int64_t extent) const;
};

/// Pads the image dimensions of `x` on both sides with `value`.
template <std::size_t D>
Tensor pad_image(ComputeGraph& graph, const Tensor& x, const ImageDimensions<D>& dims,
                 const std::array<Window, D>& windows, double value, std::string_view name) {
  std::vector<std::int64_t> amount(x.shape.size(), 0);
  for (std::size_t d = 0; d < D; ++d) amount[dims.image(d)] = windows[d].padding;
  return pad(graph, x, {.before = amount, .after = amount, .value = value, .name = std::string(name) + "_pad"});
}

}  // namespace tunewright::program::operators::detail

#if TUNEWRIGHT_DEFINES(program)

namespace tunewright::program::operators::detail {

TUNEWRIGHT_INLINE std::int64_t Window::positions(std::string_view who, std::string_view dimension,
                                                 std::int64_t extent) const {
  const std::string where = " of dimension " + std::string(dimension);
  require_number(who, "kernel" + where, kernel, 1);
  require_number(who, "stride" + where, stride, 1);
  require_number(who, "dilation" + where, dilation, 1);
  require_number(who, "padding" + where, padding, 0);
  if (extent + 2 * padding < span()) {
    refuse(who, "a window spanning " + std::to_string(span()) + " elements does not fit into the " +
                    std::to_string(extent) + " + 2*" + std::to_string(padding) + where +
                    "; enlarge the padding or shrink kernel or dilation");
  }
  return (extent + 2 * padding - span()) / stride + 1;
}

}  // namespace tunewright::program::operators::detail

#endif
