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

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/summary/schedule_plan.hpp"
#include "tunewright/loops/summary/work.hpp"

namespace tunewright::loops {

/// Computes summaries of schedules from their steps: the loops, windows and buffers of `loops::lower`, without building
/// the program. Caches a plan for each structure of schedules, so that only tile sizes are processed.
///
/// All values equal those of the lowered program's summary.
///
/// Cost: a tenth of replaying and lowering if the plan exists; creating it costs as much as both.
class ScheduleSummarizer {
 public:
  /// Valid until the next call and while the candidate's graph lives. Null for schedules that must be lowered: with
  /// tensor instructions or padding for them, with more steps or terms than fit, and illegal ones.
  [[nodiscard]] const NestSummary* summary(const schedule::Schedule& candidate);

 private:
  /// The plan for the schedule that `signature_` has read.
  const SchedulePlan& plan_of(const schedule::Schedule& candidate);

  [[nodiscard]] bool is_of(const SchedulePlan& plan, const schedule::Schedule& candidate) const;

  static constexpr std::size_t most_plans = 4096;

  std::unordered_map<std::uint64_t, std::unique_ptr<SchedulePlan>> plans_;  // by hash of graph and signature
  const SchedulePlan* last_ = nullptr;                                      // often the next one as well, on GPUs
  std::size_t count_ = 0;
  ScheduleSignature signature_;
  SummaryWork work_;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/summary/buffers.hpp"
#include "tunewright/loops/summary/loops.hpp"
#include "tunewright/loops/summary/windows.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE const NestSummary* ScheduleSummarizer::summary(const schedule::Schedule& candidate) {
  try {
    if (!signature_.read(candidate)) return nullptr;
    const SchedulePlan& plan = plan_of(candidate);
    if (!plan.is_complete) return nullptr;
    work_.start(plan, candidate, signature_);
    SummaryWindows windows(work_);
    if (!windows.run() || !SummaryBuffers(work_).run()) return nullptr;
    windows.rename();
    SummaryLoops(work_).run();
    return &work_.summary;
  } catch (const NoRoom&) {
  } catch (const std::invalid_argument&) {  // a schedule without a graph, or with contradictory steps
  }
  return nullptr;
}

TUNEWRIGHT_INLINE const SchedulePlan& ScheduleSummarizer::plan_of(const schedule::Schedule& candidate) {
  if (last_ != nullptr && is_of(*last_, candidate)) return *last_;
  const std::uint64_t key = signature_.hash() ^ reinterpret_cast<std::uintptr_t>(candidate.graph.get());
  const auto known = plans_.find(key);
  for (const SchedulePlan* plan = known == plans_.end() ? nullptr : known->second.get(); plan != nullptr;
       plan = plan->next.get())
    if (is_of(*plan, candidate)) return *(last_ = plan);
  std::unique_ptr<SchedulePlan> made = SchedulePlan::of(candidate, signature_);
  if (count_ == most_plans) {
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

TUNEWRIGHT_INLINE bool ScheduleSummarizer::is_of(const SchedulePlan& plan, const schedule::Schedule& candidate) const {
  const std::span<const std::uint64_t> words = signature_.words();
  return plan.graph == candidate.graph && std::equal(words.begin(), words.end(), plan.words.begin(), plan.words.end());
}

}  // namespace tunewright::loops

#endif
