// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// Describes a configuration by logarithms of products of split factors, in one row. Limits on threads or on shared
/// memory are limits on products, but trees split one column at a time, so knobs alone express them badly.
///
/// A knob called "tile_x.2" is part 2 of the axis "tile_x"; a knob of scale Log2 without a part is a separate axis.
/// Columns, in this order:
///
///   log2 of the product over all axes of part 0, 1, ...            as in "threads of a block"
///   log2 of the tile of every axis, the product of its parts
///   log2 of products of the tiles of 2 to 4 of the first 8 axes    as in "elements of a buffer"
///   log2(1 + number) of the first integers in the task's name, which are the sizes of a recorded task
///
/// Factors below 1 count as 1: AutoTVM writes -1 for "the rest". Joined to `Knobs`, as `Joined<Knobs, FactorProducts>`,
/// it also covers knobs that are not factors.
///
/// Paper:       none. `docs/studies/validity.md` evaluates it for a validity filter.
/// Models:      FeaturizerFor<S> for every KnobSpace S, OneRowFeaturizer.
/// Shapes:      one row per configuration; D = parts + axes + sets of 2 to 4 of the first 8 axes + task_numbers.
/// Cost:        O(knobs + 4 D) per configuration.
/// Determinism: a pure function of task and configuration.
/// Errors:      `std::invalid_argument` without axes, for a repeated axis, and for a space whose knobs belong to none
///              of them.
///
/// A configuration with a non-finite factor gives no row.
struct FactorProducts {
  static constexpr bool one_row = true;

  std::vector<std::string> axes{};  ///< at least one, such as `axes_of(space.knobs())`
  std::size_t parts = 5;            ///< number of parts with a product over axes; 0: none
  std::size_t task_numbers = 16;    ///< number of integers from the task's name; 0: none

  /// The axes of knobs, in their order, each once.
  [[nodiscard]] static std::vector<std::string> axes_of(std::span<const Knob> knobs);

  /// Throws `std::invalid_argument` if no knob of the space belongs to one of the axes, or if they cannot be columns.
  template <KnobSpace S>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    const Columns columns = columns_of(space.knobs(), task);
    FeatureBatch batch(width());
    for (const config_t<S>& config : configs) {
      const std::vector<double> values = space.knob_values(config);
      append(columns, values, batch);
    }
    return batch;  // (N, D)
  }

  [[nodiscard]] std::size_t width() const;

  [[nodiscard]] FeatureSchema schema() const;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t joint_axes = 8, most_joint = 4;

  struct Factor {  // what a knob multiplies
    std::size_t part = none, axis = none;
  };
  struct Columns {
    std::vector<Factor> factors;    // [knobs]
    std::vector<std::size_t> sets;  // of axes, as bits
    std::vector<float> task_sizes;  // [task_numbers]
  };

  static std::pair<std::string, std::size_t> split(const std::string& knob);  // axis and part, or `none`
  [[nodiscard]] std::vector<std::size_t> joint_sets() const;
  [[nodiscard]] Columns columns_of(std::span<const Knob> knobs, const Task& task) const;
  void append(const Columns& columns, std::span<const double> values, FeatureBatch& batch) const;
  void check() const;
};

}  // namespace tunewright::features

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features {

TUNEWRIGHT_INLINE std::pair<std::string, std::size_t> FactorProducts::split(const std::string& knob) {
  const std::size_t dot = knob.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == knob.size() || knob.size() - dot > 4) return {knob, none};
  std::size_t part = 0;
  for (std::size_t i = dot + 1; i < knob.size(); ++i) {
    if (knob[i] < '0' || knob[i] > '9') return {knob, none};
    part = 10 * part + static_cast<std::size_t>(knob[i] - '0');
  }
  return {knob.substr(0, dot), part};
}

TUNEWRIGHT_INLINE std::vector<std::string> FactorProducts::axes_of(std::span<const Knob> knobs) {
  std::vector<std::string> axes;
  for (const Knob& knob : knobs) {
    const auto [axis, part] = split(knob.name);
    const bool multiplies = knob.scale != KnobScale::Category && (part != none || knob.scale == KnobScale::Log2);
    if (multiplies && std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  }
  return axes;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> FactorProducts::joint_sets() const {
  std::vector<std::size_t> sets;
  for (std::size_t set = 1; set < std::size_t{1} << std::min(axes.size(), joint_axes); ++set) {
    const auto size = static_cast<std::size_t>(std::popcount(set));
    if (size >= 2 && size <= most_joint) sets.push_back(set);
  }
  return sets;
}

TUNEWRIGHT_INLINE FactorProducts::Columns FactorProducts::columns_of(std::span<const Knob> knobs,
                                                                     const Task& task) const {
  check();
  Columns columns{.factors = {}, .sets = joint_sets(), .task_sizes = std::vector<float>(task_numbers, 0.0F)};
  bool any = false;
  for (const Knob& knob : knobs) {
    Factor& factor = columns.factors.emplace_back();
    if (knob.scale == KnobScale::Category) continue;
    const auto [axis, part] = split(knob.name);
    const auto found = std::find(axes.begin(), axes.end(), axis);
    if (found == axes.end()) continue;
    any = true;
    factor.axis = static_cast<std::size_t>(found - axes.begin());
    if (part < parts) factor.part = part;
  }
  if (!any) {
    throw std::invalid_argument("features::FactorProducts: none of its axes ('" + axes.front() +
                                "', ...) has a factor among the knobs" +
                                (knobs.empty() ? "" : " ('" + knobs.front().name + "', ...)") +
                                "; give it {.axes = features::FactorProducts::axes_of(space.knobs())}");
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < task.name.size() && next < task_numbers; ++i) {
    const std::size_t first = i;
    double number = 0;
    for (; i < task.name.size() && task.name[i] >= '0' && task.name[i] <= '9'; ++i)
      number = 10 * number + (task.name[i] - '0');
    if (i > first) columns.task_sizes[next++] = static_cast<float>(std::log2(1 + std::min(number, 1e18)));
  }
  return columns;
}

TUNEWRIGHT_INLINE void FactorProducts::append(const Columns& columns, std::span<const double> values,
                                              FeatureBatch& batch) const {
  if (values.size() != columns.factors.size()) {
    throw std::invalid_argument("features::FactorProducts: a configuration has " + std::to_string(values.size()) +
                                " values for " + std::to_string(columns.factors.size()) +
                                " knobs of its space; give one value a knob");
  }
  std::vector<float> row(parts, 0.0F), tile(axes.size(), 0.0F);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Factor& factor = columns.factors[k];
    if (factor.axis == none) continue;
    if (!std::isfinite(values[k])) {
      batch.close_program();
      return;
    }
    const auto log2 = static_cast<float>(std::log2(std::max(values[k], 1.0)));
    if (factor.part != none) row[factor.part] += log2;
    tile[factor.axis] += log2;
  }
  row.insert(row.end(), tile.begin(), tile.end());
  for (const std::size_t set : columns.sets) {
    float sum = 0;
    for (std::size_t axis = 0; axis < std::min(axes.size(), joint_axes); ++axis)
      if ((set >> axis & 1U) != 0) sum += tile[axis];
    row.push_back(sum);
  }
  row.insert(row.end(), columns.task_sizes.begin(), columns.task_sizes.end());
  batch.append_program(row);
}

TUNEWRIGHT_INLINE std::size_t FactorProducts::width() const {
  return parts + axes.size() + joint_sets().size() + task_numbers;
}

TUNEWRIGHT_INLINE FeatureSchema FactorProducts::schema() const {
  check();
  FeatureSchema schema{"factor products", 1, {}};
  for (std::size_t part = 0; part < parts; ++part)
    schema.columns.push_back({"part " + std::to_string(part), "log2", "Product of this part of all axes."});
  for (const std::string& axis : axes)
    schema.columns.push_back({"tile of " + axis, "log2", "Product of the parts of the axis."});
  for (const std::size_t set : joint_sets()) {
    std::string name;
    for (std::size_t axis = 0; axis < std::min(axes.size(), joint_axes); ++axis)
      if ((set >> axis & 1U) != 0) name += (name.empty() ? "tile of " : " x ") + axes[axis];
    schema.columns.push_back({name, "log2", "Product of the tiles of these axes."});
  }
  for (std::size_t i = 0; i < task_numbers; ++i)
    schema.columns.push_back({"task number " + std::to_string(i), "log2(x + 1)", "Whole number in the task's name."});
  return schema;
}

TUNEWRIGHT_INLINE void FactorProducts::check() const {
  if (axes.empty()) {
    throw std::invalid_argument(
        "features::FactorProducts: it has no axes; give it {.axes = "
        "features::FactorProducts::axes_of(space.knobs())}, unless the knobs are no factors");
  }
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(axis), axes[axis]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(axis)) {
      throw std::invalid_argument("features::FactorProducts: axis '" + axes[axis] + "' is named twice; name it once");
    }
  }
}

}  // namespace tunewright::features

#endif
