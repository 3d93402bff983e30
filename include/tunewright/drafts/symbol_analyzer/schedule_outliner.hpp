// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/drafts/symbol_analyzer/outline_buffers.hpp"
#include "tunewright/drafts/symbol_analyzer/outline_loops.hpp"
#include "tunewright/drafts/symbol_analyzer/outline_windows.hpp"
#include "tunewright/drafts/symbol_analyzer/schedule_plan.hpp"

namespace tunewright::drafts {

/// Outlines of schedules, straight from their steps: the loops, windows and buffers of `loops::lower`, without building
/// the program. Plans of structures that were met before are kept, so that only tile sizes are worked on.
///
/// The outline is that of the lowered program, number for number.
///
/// Cost: a sixth of replaying and lowering, once there is a plan; making one costs as much as both.
class ScheduleOutliner {
 public:
  /// Valid until the next call, as long as the candidate's graph is. Null for what has to be lowered to be read:
  /// schedules with tensor instructions and those that lowering would refuse.
  [[nodiscard]] const Outline* outline(const schedule::Schedule& candidate) {
    try {
      SchedulePlan* const plan = plan_of(candidate);
      if (plan == nullptr || !plan->is_complete || !plan->adopt(candidate)) return nullptr;
      work_.start(*plan, candidate);
      OutlineWindows windows(work_);
      if (!windows.run() || !OutlineBuffers(work_).run()) return nullptr;
      windows.rename();
      OutlineLoops(work_).run();
      return &work_.outline;
    } catch (const NoRoom&) {
    } catch (const std::invalid_argument&) {  // a schedule of no graph, or whose steps do not fit together
    }
    return nullptr;
  }

 private:
  /// Null for a schedule whose steps choose what they do not have.
  SchedulePlan* plan_of(const schedule::Schedule& candidate) {
    constexpr std::size_t most = 4096;
    if (!SchedulePlan::sign(candidate, signature_)) return nullptr;
    const std::uint64_t key = signature_.hash() ^ reinterpret_cast<std::uintptr_t>(candidate.graph.get());
    const std::span<const std::uint64_t> words = signature_.all();
    const auto known = plans_.find(key);
    for (SchedulePlan* plan = known == plans_.end() ? nullptr : known->second.get(); plan != nullptr;
         plan = plan->next.get())
      if (plan->state.graph == candidate.graph &&
          std::equal(words.begin(), words.end(), plan->signature.begin(), plan->signature.end()))
        return plan;
    std::unique_ptr<SchedulePlan> made = SchedulePlan::of(candidate);
    made->signature.assign(words.begin(), words.end());
    if (count_ == most) {
      plans_.clear();
      count_ = 0;
    }
    std::unique_ptr<SchedulePlan>& first = plans_[key];
    made->next = std::move(first);
    first = std::move(made);
    ++count_;
    return first.get();
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<SchedulePlan>> plans_;  // by hash of graph and signature
  std::size_t count_ = 0;
  SchedulePlan::Signature signature_;
  OutlineWork work_;
};

}  // namespace tunewright::drafts
