// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::models::gbdt {

/// Trees in a layout for prediction: one array, eight bytes per node.
///
/// An inner node sends a row to `left` or, if its feature is above the threshold, to `left + 1`. A leaf is its own left
/// child; its threshold is its value and its feature a slot with minus infinity, so that rows stay in the leaf. Every
/// row then takes the same number of steps through a tree, without mispredicted branches, and eight rows advance
/// together to hide each other's load latency.
struct Ensemble {
  static constexpr unsigned most_depth = 15;  ///< keeps node numbers within a tree in 16 bits
  static constexpr std::size_t most_columns = 65535;

  struct Node {
    float threshold = 0;
    std::uint16_t feature = 0;  ///< place in `used_columns`; used_columns.size() marks a leaf
    std::uint16_t left = 0;     ///< within the tree
    bool operator==(const Node&) const = default;
  };
  struct Tree {
    std::uint32_t first = 0;  ///< root, in `nodes`
    std::uint32_t depth = 0;  ///< steps from the root to the deepest leaf
    bool operator==(const Tree&) const = default;
  };

  std::size_t columns = 0;                  ///< D of the batches trained on; 0: never trained
  std::vector<std::uint32_t> used_columns;  ///< ascending
  std::vector<Tree> trees;
  std::vector<Node> nodes;

  bool operator==(const Ensemble&) const = default;

  /// Scores of programs [first, last) of `x`: sum over their rows of the sum over trees. score [last - first]. Scores
  /// do not depend on the other programs.
  void predict(const FeatureBatch& x, std::size_t first, std::size_t last, std::span<float> score) const;

  /// The leaves that rows [first, last) of `x` reach: positions in `nodes`, leaves (last - first, trees).
  void reach(const FeatureBatch& x, std::size_t first, std::size_t last, std::span<std::uint32_t> leaves) const;
};

namespace ensemble_detail {

inline constexpr std::size_t lanes = 8;

// The leaves of eight rows with distance `stride`.
template <std::size_t... Lane>
inline std::array<std::uint32_t, lanes> walk(const Ensemble::Node* nodes, std::uint32_t depth, const float* rows,
                                             std::size_t stride, std::index_sequence<Lane...>) {
  std::array<std::uint32_t, lanes> at{};
  for (; depth != 0; --depth) {
    ((at[Lane] = nodes[at[Lane]].left +
                 static_cast<std::uint32_t>(rows[Lane * stride + nodes[at[Lane]].feature] > nodes[at[Lane]].threshold)),
     ...);
  }
  return at;
}

// Memory for a block of rows with only the used columns, and one slot for leaves. With some 100 used columns it stays
// in the first-level cache next to a tree.
class RowBlock {
 public:
  static constexpr std::size_t rows = 64;

  explicit RowBlock(const Ensemble& ensemble);

  void fill(const FeatureBatch& x, std::size_t begin, std::size_t count);
  // Leaves of eight rows from `first` on, numbered within the tree.
  std::array<std::uint32_t, lanes> walk(const Ensemble::Tree& tree, std::size_t first) const;

 private:
  const Ensemble* ensemble_;
  std::size_t stride_;
  std::vector<float> values_;  // (rows, used columns + 1)
};

}  // namespace ensemble_detail

inline void Ensemble::predict(const FeatureBatch& x, std::size_t first, std::size_t last,
                              std::span<float> score) const {
  using ensemble_detail::lanes;
  constexpr std::size_t block = ensemble_detail::RowBlock::rows;
  ensemble_detail::RowBlock packed(*this);
  std::array<float, block> sums;

  std::size_t program = first;  // the one the next finished row belongs to
  for (; program < last && x.offsets()[program] == x.offsets()[program + 1]; ++program) {
    score[program - first] = -std::numeric_limits<float>::infinity();
  }
  float total = 0;
  const std::size_t rows_end = x.offsets()[last];
  for (std::size_t begin = x.offsets()[first]; begin < rows_end; begin += block) {
    const std::size_t rows = std::min(block, rows_end - begin);
    packed.fill(x, begin, rows);
    sums.fill(0);
    for (const Tree& tree : trees) {
      const Node* of_tree = nodes.data() + tree.first;
      for (std::size_t r = 0; r < rows; r += lanes) {
        const auto at = packed.walk(tree, r);
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[r + lane] += of_tree[at[lane]].threshold;
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      total += sums[r];
      if (begin + r + 1 != x.offsets()[program + 1]) continue;
      score[program++ - first] = total;
      total = 0;
      for (; program < last && x.offsets()[program] == x.offsets()[program + 1]; ++program) {
        score[program - first] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

inline void Ensemble::reach(const FeatureBatch& x, std::size_t first, std::size_t last,
                            std::span<std::uint32_t> leaves) const {
  using ensemble_detail::lanes;
  constexpr std::size_t block = ensemble_detail::RowBlock::rows;
  ensemble_detail::RowBlock packed(*this);
  for (std::size_t begin = first; begin < last; begin += block) {
    const std::size_t rows = std::min(block, last - begin);
    packed.fill(x, begin, rows);
    for (std::size_t t = 0; t < trees.size(); ++t) {
      for (std::size_t r = 0; r < rows; r += lanes) {
        const auto at = packed.walk(trees[t], r);
        for (std::size_t lane = 0; lane < lanes && r + lane < rows; ++lane)
          leaves[(begin - first + r + lane) * trees.size() + t] = trees[t].first + at[lane];
      }
    }
  }
}

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

namespace tunewright::models::gbdt::ensemble_detail {

TUNEWRIGHT_INLINE RowBlock::RowBlock(const Ensemble& ensemble)
    : ensemble_(&ensemble),
      stride_(ensemble.used_columns.size() + 1),
      values_(rows * stride_, -std::numeric_limits<float>::infinity()) {}

TUNEWRIGHT_INLINE void RowBlock::fill(const FeatureBatch& x, std::size_t begin, std::size_t count) {
  for (std::size_t r = 0; r < count; ++r) {
    const float* row = x.values().data() + (begin + r) * x.columns();
    float* out = values_.data() + r * stride_;
    for (std::size_t f = 0; f + 1 < stride_; ++f) out[f] = row[ensemble_->used_columns[f]];
  }
}

TUNEWRIGHT_INLINE std::array<std::uint32_t, lanes> RowBlock::walk(const Ensemble::Tree& tree, std::size_t first) const {
  return ensemble_detail::walk(ensemble_->nodes.data() + tree.first, tree.depth, values_.data() + first * stride_,
                               stride_, std::make_index_sequence<lanes>{});
}

}  // namespace tunewright::models::gbdt::ensemble_detail

#endif
