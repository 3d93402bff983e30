// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "suite.hpp"
#include "tunewright/core/rng.hpp"

/// Kernels that nobody chose.
namespace tunewright::bench {

namespace detail {

/// A whole number whose logarithm is uniform between those of `least` and `most`.
inline std::int64_t draw_extent(Rng& rng, std::int64_t least, std::int64_t most) {
  const double low = std::log(static_cast<double>(least)), high = std::log(static_cast<double>(most) + 1);
  return std::min(most, static_cast<std::int64_t>(std::exp(low + rng.uniform() * (high - low))));
}
/// An extent as `draw_extent` draws it; half of the time a multiple of `step`, as extents of networks are.
inline std::int64_t draw_width(Rng& rng, std::int64_t least, std::int64_t most, std::int64_t step) {
  const std::int64_t extent = draw_extent(rng, least, most);
  if (rng.below(2) == 0) return extent;
  return std::clamp((extent + step / 2) / step * step, (least + step - 1) / step * step, most / step * step);
}
inline bool draw_bool(Rng& rng) { return rng.below(2) == 0; }

inline SuiteEntry draw_entry(Rng& rng) {
  const auto entry = [](const Shape& shape, bool memory_bound = false) {
    return SuiteEntry{name_of(shape, "random_"), shape, memory_bound};
  };
  switch (rng.below(8)) {
    case 0:
    case 1: {
      const std::int64_t m = draw_width(rng, 16, 2048, 32), n = draw_width(rng, 16, 2048, 32);
      const std::int64_t k = draw_width(rng, 16, 2048, 32);
      const bool a = draw_bool(rng), b = draw_bool(rng);
      return entry(Product{1, m, n, k, a, b});
    }
    case 2: {
      const std::int64_t batch = draw_extent(rng, 2, 64), m = draw_width(rng, 16, 256, 16);
      const std::int64_t n = draw_width(rng, 16, 256, 16), k = draw_width(rng, 16, 256, 16);
      return entry(Product{batch, m, n, k, false, draw_bool(rng)});
    }
    case 3: {
      const std::int64_t m = draw_extent(rng, 1, 15), n = draw_width(rng, 256, 4096, 64);
      return entry(Product{1, m, n, draw_width(rng, 256, 4096, 64)}, true);
    }
    case 4:
    case 5: {
      const std::int64_t size = draw_extent(rng, 7, 56), in = draw_width(rng, 16, 512, 16);
      const std::int64_t out = draw_width(rng, 16, 512, 16);
      const std::int64_t kernel = std::int64_t{1} + 2 * static_cast<std::int64_t>(rng.below(3));
      const std::int64_t stride = 1 + static_cast<std::int64_t>(rng.below(2));
      return entry(ConvolutionShape{size, size, in, out, kernel, stride, kernel / 2});
    }
    case 6: {
      const std::int64_t size = draw_extent(rng, 7, 112), channels = draw_width(rng, 16, 960, 16);
      return entry(DepthwiseShape{size, channels, 1 + static_cast<std::int64_t>(rng.below(2))});
    }
    default: break;
  }
  const std::int64_t rows = draw_width(rng, 32, 4096, 32), columns = draw_width(rng, 32, 4096, 32);
  switch (rng.below(6)) {
    case 0: return entry(SoftmaxRows{rows, columns}, true);
    case 1: return entry(LayerNormRows{rows, columns}, true);
    case 2: return entry(AxisSum{{1, rows, columns}, 1 + static_cast<int>(rng.below(2))}, true);
    case 3: return entry(AddRelu{rows, columns, draw_bool(rng)}, true);
    case 4: return entry(BatchNormRows{rows, columns}, true);
    default: return entry(TransposeShape{rows, columns}, true);
  }
}

}  // namespace detail

/// `count` kernels that are not in `listed`, each once. Same seed, same kernels.
///
/// Distribution: of eight, two are matrix products (m, n, k from 16 to 2048, either operand transposed with probability
/// 1/2), one a batch of them (2 to 64 of 16 to 256), one a product of 1 to 15 rows (n, k from 256 to 4096), two are
/// convolutions (images of 7 to 56, 16 to 512 channels, kernels 1, 3, 5, strides 1, 2, "same" padding), one is a
/// depthwise convolution (7 to 112, 16 to 960 channels), and one is a softmax, layer norm, sum over an axis, addition
/// with relu, batch norm or transposition of 32 to 4096 rows and columns. Extents are log-uniform; half of the widths
/// are rounded to a multiple of 16, 32 or 64. Products and convolutions of more than 4 * 10^9 multiply-adds are drawn
/// again, so that a suite takes minutes.
[[nodiscard]] inline std::vector<SuiteEntry> random_shapes(std::uint64_t seed, const std::vector<SuiteEntry>& listed,
                                                           std::size_t count = 48) {
  constexpr double most_operations = 8e9;
  const auto operations = [](const Shape& shape) {
    if (const auto* p = std::get_if<Product>(&shape))
      return 2.0 * static_cast<double>(p->batch * p->m) * static_cast<double>(p->n * p->k);
    if (const auto* s = std::get_if<ConvolutionShape>(&shape)) {
      return 2.0 * static_cast<double>(s->height * s->width) / static_cast<double>(s->stride * s->stride) *
             static_cast<double>(s->in_channels * s->out_channels * s->kernel * s->kernel);
    }
    return 0.0;
  };
  Rng rng(seed);
  std::vector<SuiteEntry> drawn;
  while (drawn.size() < count) {
    SuiteEntry entry = detail::draw_entry(rng);
    const auto same = [&](const SuiteEntry& other) { return other.shape == entry.shape; };
    if (operations(entry.shape) > most_operations || std::any_of(listed.begin(), listed.end(), same) ||
        std::any_of(drawn.begin(), drawn.end(), same))
      continue;
    drawn.push_back(std::move(entry));
  }
  return drawn;
}

}  // namespace tunewright::bench
