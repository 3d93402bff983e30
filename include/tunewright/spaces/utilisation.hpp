// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/loops/summary_limits.hpp"

/// Estimates how much of the machine a candidate uses, from its loops alone.
namespace tunewright::spaces {

/// Share of a GPU that the last kernel of the program (that of its output) uses, at most 1:
///
///   threads / threads rounded up to warps * min(1, 2 * blocks / useful)
///
/// where `useful` is the number of multiprocessors, or of warps of results if that is less. Half as many blocks as
/// multiprocessors count as sufficient, since fewer blocks may be better ones.
[[nodiscard]] double block_utilisation(const loops::LoopNest& nest, const Target& target);

/// The `block_utilisation` of the program of `summary`, which a `loops::ScheduleSummarizer` made.
[[nodiscard]] double block_utilisation(const loops::NestSummary& summary, const Target& target);

/// Share of the threads' time that is used: `loops::thread_utilisation` on CPUs, `block_utilisation` on GPUs. Takes a
/// nest, or a summary made by a `loops::ScheduleSummarizer`.
template <class Program>
[[nodiscard]] double utilisation(const Program& program, const Target& target) {
  return target.kind == DeviceKind::Gpu ? block_utilisation(program, target)
                                        : loops::thread_utilisation(program, target.threads);
}

}  // namespace tunewright::spaces

#if TUNEWRIGHT_DEFINES(spaces)

namespace tunewright::spaces {

namespace detail {

/// Product of the extents of nested loops of kinds `first` to `last`; the maximum over all nests.
TUNEWRIGHT_INLINE std::int64_t bound_extent(const loops::LoopNest& nest, const loops::Body& body, loops::LoopKind first,
                                            loops::LoopKind last) {
  std::int64_t most = 1;
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      const bool counts = loop->kind >= first && loop->kind <= last;
      const std::int64_t own = counts ? nest.variables[loop->var].extent : 1;
      most = std::max(most, own * bound_extent(nest, loop->body, first, last));
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      most = std::max(most, bound_extent(nest, branch->then, first, last));
    }
  }
  return most;
}

/// The same for the loops of a kernel in a summary.
TUNEWRIGHT_INLINE std::int64_t bound_extent(const loops::NestSummary& summary,
                                            std::span<const loops::NestSummary::Step> kernel, loops::LoopKind first,
                                            loops::LoopKind last) {
  using Event = loops::NestSummary::Event;
  std::int64_t most = 1, product = 1;
  std::vector<std::int64_t> open;
  for (const loops::NestSummary::Step& step : kernel) {
    if (step.event == Event::Enter) {
      const loops::LoopSummary& loop = summary.loops[step.of];
      open.push_back(loop.kind >= first && loop.kind <= last ? loop.extent : 1);
      most = std::max(most, product *= open.back());
    } else if (step.event == Event::Leave) {
      product /= open.back();
      open.pop_back();
    }
  }
  return most;
}

/// See `block_utilisation`.
TUNEWRIGHT_INLINE double block_utilisation(std::int64_t blocks, std::int64_t threads, std::int64_t results,
                                           const Target& target) {
  const std::int64_t warp = std::max<std::int64_t>(target.warp_size, 1);
  const std::int64_t useful =
      std::clamp<std::int64_t>(results / warp, 1, std::max<std::int64_t>(target.multiprocessors, 1));
  const double lanes =
      threads >= results ? 1.0
                         : static_cast<double>(threads) / static_cast<double>(program::ceil_div(threads, warp) * warp);
  return lanes * std::min(1.0, 2.0 * static_cast<double>(blocks) / static_cast<double>(useful));
}

}  // namespace detail

TUNEWRIGHT_INLINE double block_utilisation(const loops::LoopNest& nest, const Target& target) {
  const auto* kernel = nest.body.empty() ? nullptr : std::get_if<loops::Loop>(&nest.body.back().content);
  if (kernel == nullptr) return 1;  // a single result
  using loops::LoopKind;
  const auto extent_of = [&](LoopKind first, LoopKind last) {
    const bool counts = kernel->kind >= first && kernel->kind <= last;
    return (counts ? nest.variables[kernel->var].extent : 1) * detail::bound_extent(nest, kernel->body, first, last);
  };
  return detail::block_utilisation(extent_of(LoopKind::BlockX, LoopKind::BlockZ),
                                   extent_of(LoopKind::ThreadX, LoopKind::ThreadZ),
                                   nest.buffers[nest.arguments.back()].elements(), target);
}

TUNEWRIGHT_INLINE double block_utilisation(const loops::NestSummary& summary, const Target& target) {
  const std::span<const loops::NestSummary::Step> kernel = loops::last_tree(summary);
  if (kernel.empty() || kernel[0].event != loops::NestSummary::Event::Enter) return 1;
  using loops::LoopKind;
  const auto extent_of = [&](LoopKind first, LoopKind last) {
    return detail::bound_extent(summary, kernel, first, last);
  };
  return detail::block_utilisation(extent_of(LoopKind::BlockX, LoopKind::BlockZ),
                                   extent_of(LoopKind::ThreadX, LoopKind::ThreadZ),
                                   summary.buffers[summary.last_argument].elements, target);
}

}  // namespace tunewright::spaces

#endif
