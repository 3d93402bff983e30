// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// Describes the choices of a configuration in one row of numbers, with a column per knob or per category.
///
///   Linear     x
///   Log2       sign(x) log2(|x| + 1)
///   Category   1 in the column of the value, 0 in the others
///
/// `knobs` defines columns, order and scale: those of the space, `{.knobs = space.knobs()}`, a subset, or for a model
/// of several spaces the union. Knobs are matched by name; a knob that the space lacks is zero.
///
/// Paper:       Chen et al., AutoTVM, NeurIPS 2018 (knob features).
/// Models:      FeaturizerFor<S> for every KnobSpace S, OneRowFeaturizer.
/// Shapes:      one row per configuration; D = number of non-category knobs + number of category values.
/// Cost:        one look-up of names per call, then one step per knob.
/// Determinism: a pure function of the configuration.
/// Errors:      `std::invalid_argument` without knobs, for knobs that are all missing in the space, and for values that
///              do not match them.
/// Deviates:    AutoTVM uses raw sizes and category numbers. Samplers that count knobs, `samplers::ClusterCentres` and
///              `samplers::UncertaintyPingPong`, count each column of a category as a knob of two values.
///
/// A configuration with an unlisted category or a non-finite number gives no row.
struct Knobs {
  static constexpr bool one_row = true;

  std::vector<Knob> knobs{};  ///< the columns, at least one

  /// Throws `std::invalid_argument` if no knob of the space is among `knobs`, or if `knobs` cannot be columns.
  template <KnobSpace S>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task&, std::span<const config_t<S>> configs) const {
    const std::vector<Knob> given = space.knobs();
    std::vector<std::string> names;
    for (const Knob& knob : given) names.push_back(knob.name);
    const std::vector<std::size_t> place = places(names);
    FeatureBatch batch(width());
    for (const config_t<S>& config : configs) {
      const std::vector<double> values = space.knob_values(config);
      describe(place, values, batch);
    }
    return batch;  // (N, D)
  }

  /// The position of each of `knobs` in `names`, or `missing`. For records without a space, together with `describe`.
  /// Throws `std::invalid_argument` if all are missing.
  [[nodiscard]] std::vector<std::size_t> places(std::span<const std::string> names) const;

  /// Appends one program: the row of `values` at positions `place`; no row if it cannot be described. Throws
  /// `std::invalid_argument` for a batch of another width or a position beyond the values.
  void describe(std::span<const std::size_t> place, std::span<const double> values, FeatureBatch& batch) const;

  [[nodiscard]] std::size_t width() const;

  [[nodiscard]] FeatureSchema schema() const;

  static constexpr std::size_t missing = std::numeric_limits<std::size_t>::max();

 private:
  static std::size_t columns_of(const Knob& knob) { return knob.scale == KnobScale::Category ? knob.values.size() : 1; }
  static std::string category(const Knob& knob, std::size_t i);

  static bool encode(const Knob& knob, double value, std::span<float> block);

  void check() const;
};

}  // namespace tunewright::features

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features {

TUNEWRIGHT_INLINE std::vector<std::size_t> Knobs::places(std::span<const std::string> names) const {
  check();
  std::vector<std::size_t> place;
  bool any = false;
  for (const Knob& knob : knobs) {
    const auto found = std::find(names.begin(), names.end(), knob.name);
    any = any || found != names.end();
    place.push_back(found == names.end() ? missing : static_cast<std::size_t>(found - names.begin()));
  }
  if (!any) {
    throw std::invalid_argument(
        "features::Knobs: none of its knobs ('" + knobs.front().name + "', ...) is one of the configurations'" +
        (names.empty() ? "" : " ('" + names.front() + "', ...)") + "; give it {.knobs = space.knobs()}");
  }
  return place;
}

TUNEWRIGHT_INLINE void Knobs::describe(std::span<const std::size_t> place, std::span<const double> values,
                                       FeatureBatch& batch) const {
  if (batch.columns() != width() || place.size() != knobs.size()) {
    throw std::invalid_argument("features::Knobs: " + std::to_string(place.size()) + " places and a batch of " +
                                std::to_string(batch.columns()) + " columns for " + std::to_string(knobs.size()) +
                                " knobs in " + std::to_string(width()) + " columns; take both from this featurizer");
  }
  std::vector<float> row(width(), 0.0F);
  std::size_t column = 0;
  bool described = true;
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    const std::span<float> block = std::span(row).subspan(column, columns_of(knobs[k]));
    column += block.size();
    if (place[k] == missing) continue;
    if (place[k] >= values.size()) {
      throw std::invalid_argument("features::Knobs: a configuration has " + std::to_string(values.size()) +
                                  " values, but knob '" + knobs[k].name + "' is number " + std::to_string(place[k]) +
                                  " of its space; give one value a knob");
    }
    described = encode(knobs[k], values[place[k]], block) && described;
  }
  if (described)
    batch.append_program(row);
  else
    batch.close_program();
}

TUNEWRIGHT_INLINE std::size_t Knobs::width() const {
  std::size_t sum = 0;
  for (const Knob& knob : knobs) sum += columns_of(knob);
  return sum;
}

TUNEWRIGHT_INLINE FeatureSchema Knobs::schema() const {
  check();
  FeatureSchema schema{"knobs", 1, {}};
  for (const Knob& knob : knobs) {
    if (knob.scale != KnobScale::Category) {
      schema.columns.push_back({knob.name, knob.scale == KnobScale::Log2 ? "sign(x) log2(|x| + 1)" : "as is",
                                "Value chosen for this knob."});
      continue;
    }
    for (std::size_t i = 0; i < knob.values.size(); ++i) {
      schema.columns.push_back({knob.name + "=" + category(knob, i), "one-hot", "Whether it was chosen."});
    }
  }
  return schema;
}

TUNEWRIGHT_INLINE std::string Knobs::category(const Knob& knob, std::size_t i) {
  if (!knob.categories.empty()) return knob.categories[i];
  const double value = knob.values[i];
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? std::to_string(static_cast<long long>(value)) : std::to_string(value);
}

TUNEWRIGHT_INLINE bool Knobs::encode(const Knob& knob, double value, std::span<float> block) {
  if (!std::isfinite(value)) return false;
  switch (knob.scale) {
    case KnobScale::Linear: block[0] = static_cast<float>(value); return std::isfinite(block[0]);
    case KnobScale::Log2:
      block[0] = static_cast<float>(std::copysign(std::log2(std::abs(value) + 1), value));
      return true;
    case KnobScale::Category: break;
  }
  const auto found = std::find(knob.values.begin(), knob.values.end(), value);
  if (found == knob.values.end()) return false;
  block[static_cast<std::size_t>(found - knob.values.begin())] = 1.0F;
  return true;
}

TUNEWRIGHT_INLINE void Knobs::check() const {
  if (knobs.empty()) throw std::invalid_argument("features::Knobs: it has no knobs; give it {.knobs = space.knobs()}");
  for (const Knob& knob : knobs) {
    if (knob.scale == KnobScale::Category && knob.values.empty()) {
      throw std::invalid_argument("features::Knobs: category '" + knob.name +
                                  "' lists no values; fill in Knob::values, which become its columns");
    }
    if (!knob.categories.empty() && knob.categories.size() != knob.values.size()) {
      throw std::invalid_argument("features::Knobs: '" + knob.name + "' has " + std::to_string(knob.categories.size()) +
                                  " names for " + std::to_string(knob.values.size()) +
                                  " values; give one name a value");
    }
  }
}

}  // namespace tunewright::features

#endif
