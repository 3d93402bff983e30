// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::data {

/// Trees learned by XGBoost.
///
///   margin(x) = base_margin + sum over trees of the leaf that x reaches, added in the order of the trees
///   value(x)  = link(margin)
///
/// x goes left if its feature is *below* the threshold; for a NaN feature, each node has a default direction. The sums
/// are in single precision, so results equal XGBoost's bit for bit.
struct XgboostEnsemble {
  struct Node {
    float threshold = 0;  ///< value of a leaf
    std::uint32_t feature = 0;
    std::uint32_t left = 0, right = 0;  ///< within the tree; both 0 for a leaf
    bool missing_left = false;
    [[nodiscard]] bool leaf() const noexcept { return left == 0; }
  };
  using Tree = std::vector<Node>;  // node 0 is the root; children come after their parents

  enum class Link : std::uint8_t { Identity, Logistic, Exponential };

  std::string objective{};
  Link link = Link::Identity;
  std::size_t columns = 0;
  float base_margin = 0;
  std::vector<Tree> trees{};

  /// row [columns]. Throws `std::invalid_argument` for another width.
  [[nodiscard]] float margin(std::span<const float> row) const;
  [[nodiscard]] float value(std::span<const float> row) const;
};

}  // namespace tunewright::data

#if TUNEWRIGHT_DEFINES(data)

namespace tunewright::data {

TUNEWRIGHT_INLINE float XgboostEnsemble::margin(std::span<const float> row) const {
  if (row.size() != columns) {
    throw std::invalid_argument("data::XgboostEnsemble: a row of " + std::to_string(row.size()) +
                                " features, but the model was trained on " + std::to_string(columns));
  }
  float sum = base_margin;
  for (const Tree& tree : trees) {
    const Node* node = tree.data();
    while (!node->leaf()) {
      const float x = row[node->feature];
      const bool left = std::isnan(x) ? node->missing_left : x < node->threshold;
      node = tree.data() + (left ? node->left : node->right);
    }
    sum += node->threshold;
  }
  return sum;
}

TUNEWRIGHT_INLINE float XgboostEnsemble::value(std::span<const float> row) const {
  const float sum = margin(row);
  switch (link) {
    case Link::Logistic: return 1.0F / (1.0F + std::exp(-sum));
    case Link::Exponential: return std::exp(sum);
    case Link::Identity: break;
  }
  return sum;
}

}  // namespace tunewright::data

#endif
