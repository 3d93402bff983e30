// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/toy_space.hpp"
#include "tunewright/core/knob.hpp"

namespace toy {

/// The toy space with its four exponents as knobs.
struct KnobbedSpace : Space {
  [[nodiscard]] std::vector<tunewright::Knob> knobs() const {
    std::vector<tunewright::Knob> all;
    for (const char* name : {"rows", "columns", "depth", "unroll"}) {
      tunewright::Knob& knob = all.emplace_back(tunewright::Knob{.name = name});
      for (int value = 0; value < values; ++value) knob.values.push_back(value);
    }
    return all;
  }
  [[nodiscard]] std::vector<double> knob_values(const Tiles& tiles) const { return {tiles.begin(), tiles.end()}; }
  [[nodiscard]] std::optional<Tiles> at_knobs(const tunewright::Task&, const std::vector<double>& numbers) const {
    Tiles tiles{};
    for (std::size_t k = 0; k < tiles.size(); ++k) tiles[k] = static_cast<int>(numbers[k]);
    return tiles;
  }
};

}  // namespace toy
