// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::adaptations {

/// Training data: the arguments of `fit` in one struct.
struct LabelledPrograms {
  FeatureBatch x{};                    ///< N programs
  std::vector<float> y{};              ///< [N], throughput / best of its task on its device
  std::vector<std::uint32_t> group{};  ///< [N], or empty: one task

  [[nodiscard]] std::size_t size() const noexcept { return y.size(); }

  /// Throws `std::invalid_argument` unless there is a program, and one label and group number per program.
  void check(const char* who) const;

  /// Appends programs measured elsewhere, with group numbers after the existing ones, so that losses that compare only
  /// within groups never compare programs of the two sets. Throws `std::invalid_argument` for group numbers too large
  /// for that.
  void append_apart(const FeatureBatch& programs, std::span<const float> labels, std::span<const std::uint32_t> groups);

  [[nodiscard]] LabelledPrograms subset(std::span<const std::size_t> programs) const;
};

/// At most `most` of the positions below `n`, ascending: the first of a fixed random order, so that a larger sample
/// contains a smaller one.
[[nodiscard]] std::vector<std::size_t> fixed_share(std::size_t n, std::size_t most);

}  // namespace tunewright::adaptations

#if TUNEWRIGHT_DEFINES(core)

#include "tunewright/core/hash.hpp"

namespace tunewright::adaptations {

TUNEWRIGHT_INLINE void LabelledPrograms::check(const char* who) const {
  if (x.programs() > 0 && y.size() == x.programs() && (group.empty() || group.size() == y.size())) return;
  throw std::invalid_argument(std::string(who) + ": the source has " + std::to_string(x.programs()) + " programs, " +
                              std::to_string(y.size()) + " labels and " + std::to_string(group.size()) +
                              " group numbers; give at least one program, with one label and one group "
                              "number each (or no group numbers)");
}

TUNEWRIGHT_INLINE void LabelledPrograms::append_apart(const FeatureBatch& programs, std::span<const float> labels,
                                                      std::span<const std::uint32_t> groups) {
  group.resize(y.size(), 0);
  const std::uint64_t first = group.empty() ? 0 : std::uint64_t{*std::max_element(group.begin(), group.end())} + 1;
  const std::uint64_t last = first + (groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()));
  if (last > std::numeric_limits<std::uint32_t>::max()) {
    throw std::invalid_argument("adaptations::LabelledPrograms: groups up to " + std::to_string(last) +
                                " would keep the two sets apart, beyond 32 bits; number the groups of each from 0");
  }
  x.append(programs);
  y.insert(y.end(), labels.begin(), labels.end());
  for (std::size_t p = 0; p < labels.size(); ++p)
    group.push_back(static_cast<std::uint32_t>(first + (groups.empty() ? 0 : groups[p])));
}

TUNEWRIGHT_INLINE LabelledPrograms LabelledPrograms::subset(std::span<const std::size_t> programs) const {
  LabelledPrograms part{FeatureBatch(x.columns()), {}, {}};
  for (const std::size_t p : programs) {
    part.x.append_program(x.program(p));
    part.y.push_back(y[p]);
    if (!group.empty()) part.group.push_back(group[p]);
  }
  return part;
}

TUNEWRIGHT_INLINE std::vector<std::size_t> fixed_share(std::size_t n, std::size_t most) {
  std::vector<std::size_t> all(n);
  for (std::size_t p = 0; p < n; ++p) all[p] = p;
  if (most >= n) return all;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(),
                   [](std::size_t a, std::size_t b) { return mix64(a + 1) < mix64(b + 1); });
  all.resize(most);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tunewright::adaptations

#endif
