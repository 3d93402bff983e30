// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"

/// How much of the machine a candidate keeps busy, told before anything is known of its speed.
namespace tunewright::spaces {

namespace detail {

/// Product of the extents of loops of kinds `first` to `last` around each other; the largest there is.
std::int64_t bound_extent(const loops::LoopNest& nest, const loops::Body& body, loops::LoopKind first,
                          loops::LoopKind last);

}  // namespace detail

/// Share of a GPU that the last kernel of the program (its output) keeps busy, at most 1:
///
///   threads / threads rounded up to warps * min(1, 2 * blocks / useful)
///
/// where `useful` is the number of multiprocessors, or of warps' worth of results if that is less. Half as
/// many blocks as multiprocessors count as enough, since fewer blocks may be better blocks.
[[nodiscard]] double block_utilisation(const loops::LoopNest& nest, const Target& target);

/// Share of the threads' time that is used: `loops::thread_utilisation` on CPUs, `block_utilisation` on GPUs.
[[nodiscard]] double utilisation(const loops::LoopNest& nest, const Target& target);

}  // namespace tunewright::spaces

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/loops/limits.hpp"

namespace tunewright::spaces::detail {

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

}  // namespace tunewright::spaces::detail

namespace tunewright::spaces {

TUNEWRIGHT_INLINE double block_utilisation(const loops::LoopNest& nest, const Target& target) {
  const auto* kernel = nest.body.empty() ? nullptr : std::get_if<loops::Loop>(&nest.body.back().content);
  if (kernel == nullptr) return 1;  // a single result
  using loops::LoopKind;
  const auto extent_of = [&](LoopKind first, LoopKind last) {
    const bool counts = kernel->kind >= first && kernel->kind <= last;
    return (counts ? nest.variables[kernel->var].extent : 1) * detail::bound_extent(nest, kernel->body, first, last);
  };
  const std::int64_t blocks = extent_of(LoopKind::BlockX, LoopKind::BlockZ);
  const std::int64_t threads = extent_of(LoopKind::ThreadX, LoopKind::ThreadZ);
  const std::int64_t warp = std::max<std::int64_t>(target.warp_size, 1);
  const std::int64_t results = nest.buffers[nest.arguments.back()].elements();
  const std::int64_t useful =
      std::clamp<std::int64_t>(results / warp, 1, std::max<std::int64_t>(target.multiprocessors, 1));
  const double lanes =
      threads >= results ? 1.0
                         : static_cast<double>(threads) / static_cast<double>(program::ceil_div(threads, warp) * warp);
  return lanes * std::min(1.0, 2.0 * static_cast<double>(blocks) / static_cast<double>(useful));
}

TUNEWRIGHT_INLINE double utilisation(const loops::LoopNest& nest, const Target& target) {
  return target.kind == DeviceKind::Gpu ? block_utilisation(nest, target)
                                        : loops::thread_utilisation(nest, target.threads);
}

}  // namespace tunewright::spaces

#endif
