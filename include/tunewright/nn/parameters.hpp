// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::nn {

/// One weight matrix (or, with one row, a vector) and its offset in the vector of all parameters.
struct ParameterBlock {
  std::string name;  ///< "<layer>.<what>", e.g. "encoder.0.weight"
  std::size_t first = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  float low = 0;  ///< initial values are uniform in [low, high]
  float high = 0;

  [[nodiscard]] std::size_t size() const noexcept { return rows * columns; }
};

/// The numbers from which a network is constructed, by name.
using NetworkShape = std::vector<std::pair<std::string, std::size_t>>;

/// Positions [first, last) of the vector of all parameters.
struct ParameterRange {
  std::size_t first = 0;
  std::size_t last = 0;

  bool operator==(const ParameterRange&) const = default;
};

/// The layout of a network's weights. All of them are in one vector, in the order of `add`, so that copying, averaging,
/// clipping and storing a network are loops over numbers; layers store only offsets.
class ParameterLayout {
 public:
  /// Returns the offset of the new block.
  std::size_t add(std::string name, std::size_t rows, std::size_t columns, float low, float high);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<const ParameterBlock> blocks() const noexcept { return blocks_; }

  /// All ranges except the blocks whose names begin with one of `frozen`; adjacent ranges are merged. Throws
  /// `std::invalid_argument` for a prefix that matches no block.
  [[nodiscard]] std::vector<ParameterRange> without(std::span<const std::string> frozen) const;

  /// Whether the names of all blocks of a layer begin with one of `frozen`.
  [[nodiscard]] bool is_frozen(const std::string& layer, std::span<const std::string> frozen) const;

  /// Draws all parameters. Each block has its own random stream, so its values do not depend on other blocks.
  template <class T>
  void initialise(const Rng& rng, std::span<T> parameters) const {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const ParameterBlock& block = blocks_[b];
      const double low = static_cast<double>(block.low), width = static_cast<double>(block.high) - low;
      Rng draw = rng.split(b);
      for (T& value : parameters.subspan(block.first, block.size()))
        value = static_cast<T>(width == 0 ? low : low + width * draw.uniform());
    }
  }

 private:
  static bool begins_with_one_of(const std::string& name, std::span<const std::string> prefixes);
  void check_prefix(std::string_view prefix) const;

  std::vector<ParameterBlock> blocks_;
  std::size_t size_ = 0;
};

}  // namespace tunewright::nn

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::nn {

TUNEWRIGHT_INLINE std::size_t ParameterLayout::add(std::string name, std::size_t rows, std::size_t columns, float low,
                                                   float high) {
  const std::size_t first = size_;
  size_ += rows * columns;
  blocks_.push_back({std::move(name), first, rows, columns, low, high});
  return first;
}

TUNEWRIGHT_INLINE std::vector<ParameterRange> ParameterLayout::without(std::span<const std::string> frozen) const {
  for (const std::string& prefix : frozen) check_prefix(prefix);
  std::vector<ParameterRange> kept;
  for (const ParameterBlock& block : blocks_) {
    if (begins_with_one_of(block.name, frozen)) continue;
    if (!kept.empty() && kept.back().last == block.first)
      kept.back().last += block.size();
    else
      kept.push_back({block.first, block.first + block.size()});
  }
  return kept;
}

TUNEWRIGHT_INLINE bool ParameterLayout::is_frozen(const std::string& layer, std::span<const std::string> frozen) const {
  return std::all_of(blocks_.begin(), blocks_.end(), [&](const ParameterBlock& block) {
    return !block.name.starts_with(layer + ".") || begins_with_one_of(block.name, frozen);
  });
}

TUNEWRIGHT_INLINE bool ParameterLayout::begins_with_one_of(const std::string& name,
                                                           std::span<const std::string> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

TUNEWRIGHT_INLINE void ParameterLayout::check_prefix(std::string_view prefix) const {
  std::string names;
  for (const ParameterBlock& block : blocks_) {
    if (block.name.starts_with(prefix)) return;
    names += (names.empty() ? "" : ", ") + block.name;
  }
  throw std::invalid_argument("nn: no layer is called '" + std::string(prefix) + "...'; the network has " + names);
}

}  // namespace tunewright::nn

#endif
