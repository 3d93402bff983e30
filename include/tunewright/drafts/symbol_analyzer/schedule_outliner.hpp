// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
      SchedulePlan& plan = *plan_of(candidate);
      work_.plan = &plan;
      if (!plan.is_complete || !plan.adopt(candidate)) return nullptr;
      work_.start(plan, candidate);
      OutlineWindows windows(work_);
      if (!windows.run() || !OutlineBuffers(work_).run()) return nullptr;
      windows.rename();
      OutlineLoops(work_).run();
      return &work_.outline;
    } catch (const NoRoom&) {
    } catch (const schedule::ScheduleError&) {
    }
    return nullptr;
  }

 private:
  SchedulePlan* plan_of(const schedule::Schedule& candidate) {
    constexpr std::size_t most = 4096, few = 4;
    if (count_ <= few && work_.plan != nullptr && work_.plan->fits(candidate)) return work_.plan;
    std::vector<std::unique_ptr<SchedulePlan>>& known = plans_[SchedulePlan::key(candidate)];
    for (const auto& plan : known)
      if (plan->fits(candidate)) return plan.get();
    std::unique_ptr<SchedulePlan> made = SchedulePlan::of(candidate);
    if (++count_ > most) {
      work_.plan = nullptr;
      plans_.clear();
      count_ = 1;
      return plans_[SchedulePlan::key(candidate)].emplace_back(std::move(made)).get();
    }
    return known.emplace_back(std::move(made)).get();
  }

  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<SchedulePlan>>> plans_;
  std::size_t count_ = 0;
  OutlineWork work_;
};

}  // namespace tunewright::drafts
