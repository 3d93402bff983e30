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
/// Cost: a tenth of replaying and lowering, once there is a plan; making one costs as much as both.
class ScheduleOutliner {
 public:
  /// Valid until the next call, as long as the candidate's graph is. Null for what has to be lowered to be read:
  /// schedules with tensor instructions or padding for them, of more steps or terms than there is room for, and those
  /// that lowering would refuse.
  [[nodiscard]] const Outline* outline(const schedule::Schedule& candidate) {
    try {
      if (!signature_.read(candidate)) return nullptr;
      const SchedulePlan& plan = plan_of(candidate);
      if (!plan.is_complete) return nullptr;
      work_.start(plan, candidate, signature_);
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
  /// Of the schedule that `signature_` has read.
  const SchedulePlan& plan_of(const schedule::Schedule& candidate) {
    constexpr std::size_t most = 4096;
    if (last_ != nullptr && is_of(*last_, candidate)) return *last_;
    const std::uint64_t key = signature_.hash() ^ reinterpret_cast<std::uintptr_t>(candidate.graph.get());
    const auto known = plans_.find(key);
    for (const SchedulePlan* plan = known == plans_.end() ? nullptr : known->second.get(); plan != nullptr;
         plan = plan->next.get())
      if (is_of(*plan, candidate)) return *(last_ = plan);
    std::unique_ptr<SchedulePlan> made = SchedulePlan::of(candidate, signature_);
    if (count_ == most) {
      last_ = nullptr;
      plans_.clear();
      count_ = 0;
    }
    std::unique_ptr<SchedulePlan>& first = plans_[key];
    made->next = std::move(first);
    first = std::move(made);
    ++count_;
    return *(last_ = first.get());
  }

  [[nodiscard]] bool is_of(const SchedulePlan& plan, const schedule::Schedule& candidate) const {
    const std::span<const std::uint64_t> words = signature_.words();
    return plan.state.graph == candidate.graph &&
           std::equal(words.begin(), words.end(), plan.words.begin(), plan.words.end());
  }

  std::unordered_map<std::uint64_t, std::unique_ptr<SchedulePlan>> plans_;  // by hash of graph and signature
  const SchedulePlan* last_ = nullptr;                                      // most often the next one too, on GPUs
  std::size_t count_ = 0;
  ScheduleSignature signature_;
  OutlineWork work_;
};

}  // namespace tunewright::drafts
