// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/ansor/steps.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::schedule::ansor {

namespace detail {

/// Replays a schedule step by step and numbers stages and loops by position, as logs do.
class Export {
 public:
  explicit Export(const schedule::Schedule& schedule);

  std::vector<Step> steps;

 private:
  using TensorId = schedule::TensorId;
  using IterId = schedule::IterId;

  [[nodiscard]] std::int32_t place(TensorId id) const {
    return static_cast<std::int32_t>(std::find(stages_.begin(), stages_.end(), id) - stages_.begin());
  }
  [[nodiscard]] std::int32_t place(TensorId stage, IterId iter) const {
    return static_cast<std::int32_t>(state_.stage(stage).position(iter));
  }

  void before(const schedule::Split& s);
  void before(const schedule::FollowSplit& s);
  void before(const schedule::FollowFusedSplit& s);
  void before(const schedule::Fuse& s);
  void before(const schedule::Reorder& s) { order_ = state_.stage(s.stage).order; }
  void before(const schedule::Annotate& s);
  void before(const schedule::CacheWrite& s) {
    steps.push_back(CacheWrite{place(s.stage), std::string(schedule::name(s.scope))});
  }
  void before(const schedule::CacheRead& s) {
    steps.push_back(CacheRead{place(s.tensor), std::string(schedule::name(s.scope)), {place(s.consumer)}});
  }
  void before(const schedule::Rfactor& s);
  template <class S>
  void before(const S&) {}

  void after(const schedule::Reorder& s);
  void after(const schedule::UnrollLimit& s);
  void after(const schedule::ComputeLocation& s);
  void after(const schedule::CacheWrite& s) { insert(place(s.stage)); }
  void after(const schedule::CacheRead& s) { insert(place(s.tensor) + 1); }
  void after(const schedule::Rfactor& s) { insert(place(s.stage)); }
  template <class S>
  void after(const S&) {}

  void insert(std::int32_t at) {
    stages_.insert(stages_.begin() + at, static_cast<TensorId>(state_.stages.size() - 1));
  }

  schedule::State state_;
  std::vector<TensorId> stages_;    // by position
  std::vector<std::int32_t> step_;  // by our step: the step of the log
  std::vector<IterId> order_;       // loops before a reorder
};

}  // namespace detail

/// Converts a schedule to the steps of a log. `to_schedule` converts them back to a schedule that lowers to the same
/// program, except for steps without a counterpart, which are left out: packing, layouts, pipelining, padding, tensor
/// instructions, and merged axes and orders of axes, without which later steps name other axes. Throws
/// `schedule::ScheduleError` for a schedule that does not replay, and for a factor of 2^31, which logs do not hold.
/// Cost: that of replaying.
[[nodiscard]] inline std::vector<Step> from_schedule(const schedule::Schedule& schedule) {
  return detail::Export(schedule).steps;
}

}  // namespace tunewright::schedule::ansor

#if TUNEWRIGHT_DEFINES(schedule)

#include "tunewright/schedule/apply.hpp"

namespace tunewright::schedule::ansor::detail {

TUNEWRIGHT_INLINE Export::Export(const schedule::Schedule& schedule) : state_(schedule::initial_state(schedule.graph)) {
  for (schedule::TensorId id = 0; id < state_.stages.size(); ++id) stages_.push_back(id);
  for (const schedule::Step& step : schedule.steps) {
    step_.push_back(static_cast<std::int32_t>(steps.size()));
    std::visit([this](const auto& s) { before(s); }, step);
    schedule::apply(state_, step);
    std::visit([this](const auto& s) { after(s); }, step);
  }
}

TUNEWRIGHT_INLINE void Export::before(const schedule::Split& s) {
  Split split{place(s.stage), place(s.stage, s.iter), s.extent, {}};
  for (const std::int64_t factor : s.factors) {
    if (factor > std::numeric_limits<std::int32_t>::max()) {
      throw schedule::ScheduleError(schedule::ScheduleFault::BadFactor,
                                    "a loop of stage '" + state_.stage(s.stage).op->name + "' is split by " +
                                        std::to_string(factor) +
                                        ", and lengths in logs are below 2^31; split it by several smaller factors");
    }
    split.lengths.push_back(static_cast<std::int32_t>(factor));
  }
  steps.push_back(std::move(split));
}

TUNEWRIGHT_INLINE void Export::before(const schedule::FollowSplit& s) {
  const std::int32_t source = s.source < step_.size() ? step_[s.source] : 0;
  steps.push_back(FollowSplit{place(s.stage), place(s.stage, s.iter), source, static_cast<std::int32_t>(s.parts)});
}

TUNEWRIGHT_INLINE void Export::before(const schedule::FollowFusedSplit& s) {
  FollowFusedSplit split{place(s.stage), place(s.stage, s.iter), {}, static_cast<std::int32_t>(s.level), true};
  for (const std::uint32_t source : s.sources) split.source_steps.push_back(source < step_.size() ? step_[source] : 0);
  steps.push_back(std::move(split));
}

TUNEWRIGHT_INLINE void Export::before(const schedule::Fuse& s) {
  Fuse fuse{place(s.stage), {}};
  for (std::size_t i = 0; i < s.count && i < s.iters.size(); ++i) fuse.iters.push_back(place(s.stage, s.iters[i]));
  steps.push_back(std::move(fuse));
}

TUNEWRIGHT_INLINE void Export::before(const schedule::Annotate& s) {
  constexpr Annotation kinds[] = {Annotation::None,    Annotation::Parallel, Annotation::Vectorize, Annotation::Unroll,
                                  Annotation::BlockX,  Annotation::BlockY,   Annotation::BlockZ,    Annotation::ThreadX,
                                  Annotation::ThreadY, Annotation::ThreadZ,  Annotation::VThread};
  steps.push_back(Annotate{place(s.stage), place(s.stage, s.iter), kinds[static_cast<std::size_t>(s.kind)]});
}

TUNEWRIGHT_INLINE void Export::before(const schedule::Rfactor& s) {
  const auto rank = static_cast<std::int32_t>(state_.stage(s.stage).op->rank());
  steps.push_back(Rfactor{place(s.stage), place(s.stage, s.iter), rank});
}

TUNEWRIGHT_INLINE void Export::after(const schedule::Reorder& s) {
  Reorder reorder{place(s.stage), {}};
  for (const IterId iter : state_.stages[s.stage].order) {
    reorder.order.push_back(static_cast<std::int32_t>(std::find(order_.begin(), order_.end(), iter) - order_.begin()));
  }
  steps.push_back(std::move(reorder));
}

TUNEWRIGHT_INLINE void Export::after(const schedule::UnrollLimit& s) {
  const std::int64_t limit = state_.stages[s.stage].unroll_limit;
  steps.push_back(Pragma{place(s.stage), 0, "auto_unroll_max_step$" + std::to_string(limit)});
}

TUNEWRIGHT_INLINE void Export::after(const schedule::ComputeLocation& s) {
  const schedule::Location& location = s.choices[s.selected];
  if (location.kind == schedule::Location::Kind::Root) {
    steps.push_back(ComputeRoot{place(s.stage)});
  } else if (location.kind == schedule::Location::Kind::Inline) {
    steps.push_back(ComputeInline{place(s.stage)});
  } else {
    steps.push_back(ComputeAt{place(s.stage), place(location.stage), place(location.stage, location.iter)});
  }
}

}  // namespace tunewright::schedule::ansor::detail

#endif
