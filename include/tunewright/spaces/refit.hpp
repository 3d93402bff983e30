// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/concept.hpp"

/// Adapts schedules of one shape to another.
namespace tunewright::spaces {

/// The sketch with the decisions of `steps`, which may have other extents; empty unless both have the same steps except
/// for decisions, extents and the factors of splits without a decision, which follow from extents.
///
/// Fused loops, compute locations, unroll limits, layouts and pipelines are copied. Of a split, the innermost part is
/// fitted first: it keeps its size if that leaves at most an eighth of the iterations idle, or if it has whole vectors,
/// of which a CPU's last tile has only those that are left; otherwise it gets the size nearest by ratio among those
/// that the space draws, a multiple of whole vectors if it was one. Each part around it gets the nearest size that
/// divides, or nearly divides, the rest. So register tiles keep their size, and the outermost loop takes the additional
/// iterations of a larger shape.
///
/// Determinism: a function of the arguments. Cost: microseconds.
[[nodiscard]] std::optional<schedule::Schedule> decided_as(const schedule::Schedule& sketch,
                                                           std::span<const schedule::Step> steps, const Target& target);

/// Whether the sketch, which has the same steps otherwise, allows the innermost parts of all splits of `steps`, and has
/// the same splits without a decision.
[[nodiscard]] bool allows_tiles_of(const schedule::Schedule& sketch, std::span<const schedule::Step> steps);

/// A configuration of `space` for `task` with the decisions of `steps`, a schedule of the same structure for another
/// shape: that of the first sketch that matches and allows its tiles, otherwise of the first that matches. Empty if no
/// sketch matches or the configuration is infeasible; `why`, if given, then gets the reason.
template <SearchSpace S>
  requires requires(const S& space, const Task& task) { space.sketches(task); }
[[nodiscard]] std::optional<schedule::Schedule> refitted(const S& space, const Task& task,
                                                         std::span<const schedule::Step> steps,
                                                         std::string_view* why = nullptr) {
  std::string_view reason = "no sketch of the space has these steps";
  std::vector<schedule::Schedule> others;  // of sketches that do not allow all tiles
  for (const schedule::Schedule& sketch : space.sketches(task)) {
    std::optional<schedule::Schedule> decided = decided_as(sketch, steps, task.target);
    if (!decided) continue;
    if (!allows_tiles_of(sketch, steps)) {
      others.push_back(*std::move(decided));
      continue;
    }
    reason = space.why_infeasible(task, *decided);
    if (reason.empty()) return decided;
  }
  for (schedule::Schedule& decided : others) {
    reason = space.why_infeasible(task, decided);
    if (reason.empty()) return std::move(decided);
  }
  if (why != nullptr) *why = reason;
  return std::nullopt;
}

}  // namespace tunewright::spaces

#if TUNEWRIGHT_DEFINES(spaces)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/decisions/register_tile.hpp"
#include "tunewright/spaces/decisions/tile_sizes.hpp"

namespace tunewright::spaces::refit_detail {

using schedule::Split;
using schedule::Step;

/// The step without its decision and without values that follow from extents.
TUNEWRIGHT_INLINE Step undecided(Step step) {
  if (auto* split = std::get_if<Split>(&step)) {
    std::fill(split->factors.begin(), split->factors.end(), 1);
    if (decisions::is_open_split(*split)) split->max_innermost = 0;
    split->extent = 0;
  }
  if (auto* fuse = std::get_if<schedule::Fuse>(&step); fuse != nullptr && fuse->open) fuse->count = 0;
  if (auto* location = std::get_if<schedule::ComputeLocation>(&step)) location->selected = 0;
  if (auto* limit = std::get_if<schedule::UnrollLimit>(&step)) limit->selected = 0;
  if (auto* layout = std::get_if<schedule::TransformLayout>(&step)) layout->order = layout->padding = 0;
  if (auto* pipeline = std::get_if<schedule::Pipeline>(&step)) pipeline->selected = 0;
  return step;
}

/// Vectors of a target, and whether the last tile of an axis has only those that are left (`loops::trim_boundaries`).
struct Vectors {
  std::int64_t lanes = 1;
  bool are_trimmed = false;
};

/// The size nearest to `wanted` by ratio; the larger of two equally near ones.
TUNEWRIGHT_INLINE std::int64_t nearest(std::span<const std::int64_t> sizes, std::int64_t wanted) {
  const auto octaves = [&](std::int64_t size) {
    return std::abs(std::log2(static_cast<double>(size) / static_cast<double>(wanted)));
  };
  return *std::min_element(sizes.begin(), sizes.end(), [&](std::int64_t a, std::int64_t b) {
    return octaves(a) != octaves(b) ? octaves(a) < octaves(b) : a > b;
  });
}

TUNEWRIGHT_INLINE std::int64_t fitted_innermost(const Split& split, std::int64_t wanted, const Vectors& vectors) {
  const std::int64_t extent = std::max<std::int64_t>(split.extent, 1);
  const std::int64_t cap = split.max_innermost > 0 ? split.max_innermost : extent;
  const bool has_whole_vectors = split.inner == schedule::LoopKind::Vectorized && wanted % vectors.lanes == 0;
  const bool may_be_left = has_whole_vectors && vectors.are_trimmed;
  if (wanted <= std::min(cap, extent) && (may_be_left || decisions::waste(extent, wanted) <= decisions::max_waste))
    return wanted;
  std::vector<std::int64_t> sizes;
  if (has_whole_vectors) {
    for (std::int64_t size = vectors.lanes; size <= std::min(cap, extent); size += vectors.lanes)
      if (may_be_left || decisions::waste(extent, size) <= decisions::max_waste) sizes.push_back(size);
  }
  const bool imperfect = split.inner != schedule::LoopKind::Serial;
  if (sizes.empty()) sizes = decisions::tile_sizes(extent, cap, imperfect);
  return nearest(sizes, wanted);
}

/// Sets the factors of the sketch's split, as similar as possible to those of `from`.
TUNEWRIGHT_INLINE void fit(Split& split, const Split& from, const Vectors& vectors) {
  std::int64_t rest = std::max<std::int64_t>(split.extent, 1);
  for (std::size_t part = split.factors.size(); part-- > 0;) {
    const std::int64_t wanted = std::max<std::int64_t>(from.factors[part], 1);
    split.factors[part] = part + 1 == split.factors.size() ? fitted_innermost(split, wanted, vectors)
                                                           : nearest(decisions::tile_sizes(rest, rest), wanted);
    rest = program::ceil_div(rest, split.factors[part]);
  }
}

}  // namespace tunewright::spaces::refit_detail

namespace tunewright::spaces {

TUNEWRIGHT_INLINE bool allows_tiles_of(const schedule::Schedule& sketch, std::span<const schedule::Step> steps) {
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto *own = std::get_if<schedule::Split>(&sketch.steps[s]), *wanted = std::get_if<schedule::Split>(&steps[s]);
    if (own == nullptr || wanted == nullptr) continue;
    if (!decisions::is_open_split(*own)) {
      if (own->factors != wanted->factors) return false;
    } else if (own->max_innermost > 0 && wanted->factors.back() > own->max_innermost) {
      return false;
    }
  }
  return true;
}

TUNEWRIGHT_INLINE std::optional<schedule::Schedule> decided_as(const schedule::Schedule& sketch,
                                                               std::span<const schedule::Step> steps,
                                                               const Target& target) {
  using namespace refit_detail;
  if (sketch.steps.size() != steps.size()) return std::nullopt;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (undecided(sketch.steps[s]) != undecided(steps[s])) return std::nullopt;
  const Vectors vectors{decisions::CoreLimits(target, program::widest_element(*sketch.graph)).lanes,
                        target.kind == DeviceKind::Cpu};
  schedule::Schedule result = sketch;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    auto* split = std::get_if<Split>(&result.steps[s]);
    if (split == nullptr) {
      result.steps[s] = steps[s];
    } else if (decisions::is_open_split(*split) && split->extent == std::get<Split>(steps[s]).extent) {
      split->factors = std::get<Split>(steps[s]).factors;
    } else if (decisions::is_open_split(*split)) {
      fit(*split, std::get<Split>(steps[s]), vectors);
    }
  }
  return result;
}

}  // namespace tunewright::spaces

#endif
