// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/schedule/ansor/steps.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::data::ansor {

using namespace schedule::ansor;  // the steps
using schedule::ansor::Split;     // which data::Split, of a dataset, would hide

namespace detail {

/// Converts the steps of a log. The log numbers stages by their position in a list that grows in the middle, and
/// iterators by their position among the current loops; this library has permanent numbers, so the translation follows
/// both.
class Translation {
 public:
  explicit Translation(std::shared_ptr<const program::ComputeGraph> graph) : builder_(std::move(graph)) {
    for (TensorId id = 0; id < builder_.state().stages.size(); ++id) stages_.push_back(id);
  }

  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      our_step_.push_back(builder_.next_step());
      std::visit([this](const auto& s) { apply(s); }, step);
      splits_.push_back(std::get_if<Split>(&step));
    }
  }

  [[nodiscard]] const schedule::Schedule& schedule() const noexcept { return builder_.schedule(); }

 private:
  using TensorId = schedule::TensorId;
  using IterId = schedule::IterId;
  using Fault = schedule::ScheduleFault;
  using LoopKind = schedule::LoopKind;
  using ScheduleError = schedule::ScheduleError;

  [[nodiscard]] TensorId stage(std::int32_t place) const {
    if (place < 0 || static_cast<std::size_t>(place) >= stages_.size()) {
      throw ScheduleError(Fault::UnknownStage,
                          "there is no stage " + std::to_string(place) + " among " + std::to_string(stages_.size()));
    }
    return stages_[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] IterId iter(TensorId stage, std::int32_t place) const {
    const std::vector<IterId>& loops = builder_.loops(stage);
    if (place < 0 || static_cast<std::size_t>(place) >= loops.size()) {
      throw ScheduleError(Fault::UnknownIterator, "there is no loop " + std::to_string(place) + " among the " +
                                                      std::to_string(loops.size()) + " of stage '" +
                                                      builder_.state().stages[stage].op->name + "'");
    }
    return loops[static_cast<std::size_t>(place)];
  }
  [[nodiscard]] std::vector<IterId> iters(TensorId stage, const std::vector<std::int32_t>& places) const {
    std::vector<IterId> ids;
    for (const std::int32_t place : places) ids.push_back(iter(stage, place));
    return ids;
  }
  [[nodiscard]] std::uint32_t split_step(std::int32_t step) const {
    const bool known = step >= 0 && static_cast<std::size_t>(step) < splits_.size() &&
                       splits_[static_cast<std::size_t>(step)] != nullptr;
    if (!known || splits_[static_cast<std::size_t>(step)]->lengths.empty()) {
      throw ScheduleError(Fault::BadFactor, "step " + std::to_string(step) + " is no split to follow");
    }
    return our_step_[static_cast<std::size_t>(step)];
  }

  /// The product of positive numbers below 2^31. Throws `ScheduleError` unless it is below 2^31 too.
  [[nodiscard]] static std::int64_t times(std::int64_t a, std::int64_t b) {
    if (b < 1 || a > schedule::detail::max_split / b) {
      throw ScheduleError(Fault::BadFactor, std::to_string(b) + " is no factor of a loop's extent");
    }
    return a * b;
  }

  /// Moves stages computed at one of the replaced loops to `to`.
  void move_attached(TensorId target, const std::vector<IterId>& from, IterId to) {
    for (const TensorId id : stages_) {
      const schedule::Location location = builder_.state().stages[id].location;
      if (location.kind != schedule::Location::Kind::At || location.stage != target) continue;
      for (const IterId old : from) {
        if (location.iter == old) builder_.compute_at(id, target, to);
      }
    }
  }

  void split(TensorId at, IterId what, std::vector<std::int64_t> factors) {
    const std::vector<IterId> parts = builder_.split(at, what, std::move(factors));
    move_attached(at, {what}, parts.back());
  }

  void apply(const Split& s) {
    const TensorId at = stage(s.stage);
    std::vector<std::int64_t> factors(s.lengths.begin(), s.lengths.end());
    if (!s.inner_to_outer) {
      std::int64_t outer = 1;
      for (const std::int64_t length : factors) outer = times(outer, length);
      if (factors.empty() || s.extent < 1) {
        throw ScheduleError(Fault::BadFactor, "a split into outer parts needs lengths and a known extent");
      }
      factors.erase(factors.begin());
      factors.push_back((s.extent - 1) / outer + 1);
    }
    split(at, iter(at, s.iter), std::move(factors));
  }
  void apply(const FollowSplit& s) {
    const TensorId at = stage(s.stage);
    const IterId what = iter(at, s.iter);
    const std::uint32_t source = split_step(s.source_step);
    const std::vector<IterId> parts = builder_.follow_split(at, what, source, static_cast<std::uint32_t>(s.parts));
    move_attached(at, {what}, parts.back());
  }
  void apply(const FollowFusedSplit& s) {
    const TensorId at = stage(s.stage);
    const IterId what = iter(at, s.iter);
    if (!s.factor) {
      throw ScheduleError(Fault::Unsupported, "a fused split into a number of parts is not translated");
    }
    std::vector<std::uint32_t> sources;
    for (const std::int32_t source : s.source_steps) {
      sources.push_back(split_step(source));
      if (!splits_[static_cast<std::size_t>(source)]->inner_to_outer) {
        throw ScheduleError(Fault::Unsupported,
                            "a fused split that follows a split into outer parts is not translated");
      }
    }
    const std::vector<IterId> parts =
        builder_.follow_fused_split(at, what, std::move(sources), static_cast<std::uint32_t>(s.level));
    move_attached(at, {what}, parts.back());
  }
  void apply(const Reorder& s) {
    const TensorId at = stage(s.stage);
    builder_.reorder(at, iters(at, s.order));
  }
  void apply(const Fuse& s) {
    if (s.iters.empty()) throw ScheduleError(Fault::Unsupported, "fusing nothing is not translated");
    const TensorId at = stage(s.stage);
    const std::vector<IterId> parents = iters(at, s.iters);
    const IterId fused = builder_.fuse(at, parents);
    move_attached(at, parents, fused);
  }
  void apply(const Annotate& s) {
    constexpr std::array kinds{LoopKind::Serial,        LoopKind::Unrolled, LoopKind::Vectorized, LoopKind::Parallel,
                               LoopKind::VirtualThread, LoopKind::BlockX,   LoopKind::ThreadX,    LoopKind::BlockY,
                               LoopKind::ThreadY,       LoopKind::BlockZ,   LoopKind::ThreadZ};
    const auto kind = static_cast<std::size_t>(s.kind);
    if (kind >= kinds.size()) {
      throw ScheduleError(Fault::Unsupported, "tensor instructions are not translated");
    }
    const TensorId at = stage(s.stage);
    builder_.annotate(at, iter(at, s.iter), kinds[kind]);
  }
  void apply(const Pragma& s) {
    constexpr std::string_view unroll = "auto_unroll_max_step$";
    std::int64_t limit = 0;
    const char* end = s.text.data() + s.text.size();
    const bool known = s.text.starts_with(unroll);
    const auto [stop, error] = std::from_chars(known ? s.text.data() + unroll.size() : end, end, limit);
    if (error != std::errc() || stop != end) {
      throw ScheduleError(Fault::Unsupported, "pragma '" + s.text + "' is not translated");
    }
    builder_.unroll_limit(stage(s.stage), limit);
  }
  void apply(const ComputeAt& s) {
    const TensorId target = stage(s.target_stage);
    builder_.compute_at(stage(s.stage), target, iter(target, s.target_iter));
  }
  void apply(const ComputeInline& s) { builder_.compute_inline(stage(s.stage)); }
  void apply(const ComputeRoot& s) { builder_.compute_root(stage(s.stage)); }

  [[nodiscard]] static schedule::Scope scope(const std::string& name) {
    if (name == "local") return schedule::Scope::Local;
    if (name == "shared") return schedule::Scope::Shared;
    if (name == "global") return schedule::Scope::Global;
    throw ScheduleError(Fault::Unsupported, "memory '" + name + "' is not translated");
  }
  void insert_stage(std::int32_t place, TensorId id) { stages_.insert(stages_.begin() + place, id); }

  void apply(const CacheRead& s) {
    if (s.readers.size() != 1) {
      throw ScheduleError(Fault::Unsupported, "a cache for several readers is not translated");
    }
    const TensorId cache = builder_.cache_read(stage(s.stage), stage(s.readers[0]), scope(s.scope));
    insert_stage(s.stage + 1, cache);
  }
  void apply(const CacheWrite& s) {
    const TensorId cache = builder_.cache_write(stage(s.stage), scope(s.scope));
    insert_stage(s.stage, cache);
  }
  void apply(const Rfactor& s) {
    const TensorId at = stage(s.stage);
    if (s.factor_iter != static_cast<std::int32_t>(builder_.state().stages[at].op->rank())) {
      throw ScheduleError(Fault::Unsupported, "rfactor whose new axis is not the last is not translated");
    }
    const TensorId partial = builder_.rfactor(at, iter(at, s.iter));
    insert_stage(s.stage, partial);
  }
  void apply(const StorageAlign&) { throw ScheduleError(Fault::Unsupported, "storage alignment is not translated"); }

  schedule::ScheduleBuilder builder_;
  std::vector<TensorId> stages_;         // by place in the log's list
  std::vector<std::uint32_t> our_step_;  // by step of the log: the first of ours that it became
  std::vector<const Split*> splits_;     // by step of the log: null for others
};

}  // namespace detail

/// The steps of a log as a schedule of `graph`, whose tensors must be numbered like the stages of the log (as in
/// `workload_graph`). `loops::lower` then gives the measured program.
///
/// Throws `schedule::ScheduleError` for steps that do not fit the graph, and with fault `Unsupported` for unsupported
/// ones: storage alignment, tensor instructions, pragmas other than the unroll limit, caches with several readers,
/// fused splits into several parts or after splits into outer parts. Cost: some ten microseconds.
///
/// Deviates: extents in splits are ignored, because the log does not update them, except in splits into outer parts,
/// whose last factor follows from them.
[[nodiscard]] inline schedule::Schedule to_schedule(std::shared_ptr<const program::ComputeGraph> graph,
                                                    const std::vector<Step>& steps) {
  detail::Translation translation(std::move(graph));
  translation.run(steps);
  return translation.schedule();
}

}  // namespace tunewright::data::ansor
