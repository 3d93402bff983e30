// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "tunewright/codegen/cuda/lane_plan.hpp"
#include "tunewright/codegen/cuda/loop_visit.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/thread_arrays.hpp"

/// Stores values in registers as vectors if their destinations are contiguous. Compilers do this for shared memory,
/// whose alignment they know, but not for kernel arguments.
namespace tunewright::codegen::cuda {

namespace detail {

class VectorStores {
 public:
  explicit VectorStores(const loops::LoopNest& nest)
      : nest_(nest), arrays_(nest, loops::ThreadArrays::Fragments::Included) {}

  void run(loops::Body& body) const {
    for_each_loop(body, [this](loops::Node& node, const loops::Loop& loop) {
      if (loop.kind == loops::LoopKind::Unrolled) vectorize(node);
    });
  }

 private:
  void vectorize(loops::Node& node) const {
    loops::Body vectorized{node};
    std::get<loops::Loop>(vectorized[0].content).kind = loops::LoopKind::Vectorized;
    guard_whole_vectors(nest_, vectorized);
    const std::optional<LanePlan> plan = plan_lanes(nest_, std::get<loops::Loop>(vectorized[0].content),
                                                    [&](loops::BufferId id) { return arrays_.contains(id); });
    if (plan && plan->stores) node = std::move(vectorized[0]);
  }

  const loops::LoopNest& nest_;
  loops::ThreadArrays arrays_;
};

}  // namespace detail

/// Vectorizes the unrolled loops of a nest in device form that surround a single statement which stores consecutive,
/// aligned elements of memory shared by threads.
[[nodiscard]] inline loops::LoopNest vectorize_stores(loops::LoopNest nest) {
  detail::VectorStores(nest).run(nest.body);
  return nest;
}

}  // namespace tunewright::codegen::cuda
