// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/drafts/symbol_analyzer/outline.hpp"
#include "tunewright/loops/lower/pass.hpp"
#include "tunewright/loops/lower/stages.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::drafts {

/// What schedules have in common that differ in tile sizes, unroll limits, arrangements and depths of pipelines alone:
/// their state but for these numbers, and what lowering makes of it without looking at them.
struct SchedulePlan {
  /// A read of an attached stage.
  struct Reading {
    program::TensorId reader = 0;
    const program::ExprNode* load = nullptr;
  };
  struct StagePlan {
    std::size_t place = 0;      ///< in the order of the stage it is attached to
    std::vector<char> is_loop;  ///< by IterId: neither split nor fused
    std::vector<Reading> readings;
    std::vector<OutlineLoad> loads;
    loops::BodyOperations operations;
    const program::ExprNode* packed_read = nullptr;  ///< the only one of a packed tensor
    program::TensorId packed_for = 0;
    bool is_output = false;
  };
  /// The relation that a step makes.
  struct Made {
    program::TensorId stage = 0;
    std::size_t relation = 0;
  };

  schedule::State state;
  std::vector<schedule::Step> steps;
  std::vector<loops::detail::StageInfo> info;  ///< as placement leaves it
  std::vector<StagePlan> stages;
  std::vector<loops::BufferId> buffer_of;
  std::size_t buffers = 0;
  std::vector<std::optional<Made>> made;  ///< by step: of those that split, if their factors may differ
  std::vector<std::uint32_t> arranging, pipelining;  ///< steps
  std::vector<std::uint32_t> numbered;  ///< steps that unroll, or split by factors that may differ
  /// False for what only lowering reads: tensor instructions, padding for them, and packing that it refuses.
  bool is_complete = false;

  /// Hash of all that schedules of one plan have in common, or nearly: `fits` decides.
  [[nodiscard]] static std::uint64_t key(const schedule::Schedule& candidate) noexcept {
    std::uint64_t key = candidate.steps.size() * 0x9e3779b97f4a7c15U;
    const auto mix = [&key](std::uint64_t value) {
      key = (key ^ value) * 0xff51afd7ed558ccdU;
      key ^= key >> 32;
    };
    mix(reinterpret_cast<std::uintptr_t>(candidate.graph.get()));
    bool has_rfactor = false;
    for (std::size_t i = candidate.steps.size(); i-- > 0;) {
      const schedule::Step& step = candidate.steps[i];
      if (const auto* fuse = std::get_if<schedule::Fuse>(&step)) {
        mix(fuse->count);
      } else if (const auto* at = std::get_if<schedule::ComputeLocation>(&step)) {
        mix(at->selected);
      } else if (const auto* rfactor = std::get_if<schedule::Rfactor>(&step)) {
        has_rfactor = true;
        mix(rfactor->iter);
      } else if (const auto* split = std::get_if<schedule::Split>(&step); split != nullptr && has_rfactor) {
        for (const std::int64_t factor : split->factors) mix(static_cast<std::uint64_t>(factor));
      }
    }
    return key;
  }

  /// Throws `schedule::ScheduleError` for steps that do not fit together.
  [[nodiscard]] static std::unique_ptr<SchedulePlan> of(const schedule::Schedule& candidate) {
    auto plan = std::make_unique<SchedulePlan>();
    plan->is_complete = plan->make(candidate);
    return plan;
  }

  /// Lets the lists of a schedule that is read soon, which lie all over memory, be fetched meanwhile.
  static void prefetch(const schedule::Schedule& candidate) noexcept {
    const auto list_of = [](const auto& s) -> const void* {
      using S = std::remove_cvref_t<decltype(s)>;
      if constexpr (std::is_same_v<S, schedule::Split>) return s.factors.data();
      if constexpr (std::is_same_v<S, schedule::Fuse>) return s.iters.data();
      if constexpr (std::is_same_v<S, schedule::Reorder>) return s.order.data();
      if constexpr (std::is_same_v<S, schedule::FollowFusedSplit>) return s.sources.data();
      if constexpr (requires { s.choices; }) return s.choices.data();
      return &s;
    };
    for (const schedule::Step& step : candidate.steps) __builtin_prefetch(std::visit(list_of, step));
  }

  /// Whether `candidate` is a schedule of this plan.
  [[nodiscard]] bool fits(const schedule::Schedule& candidate) const {
    if (candidate.graph != state.graph || candidate.steps.size() != steps.size()) return false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].index() != candidate.steps[i].index()) return false;
      const bool same = std::visit(
          [&](const auto& mine) {
            return same_structure(mine,
                                  *std::get_if<std::remove_cvref_t<decltype(mine)>>(&candidate.steps[i]),
                                  made[i].has_value());
          },
          steps[i]);
      if (!same) return false;
    }
    return true;
  }

  /// Takes the numbers of a schedule of this plan over; false where its steps do not fit together.
  [[nodiscard]] bool adopt(const schedule::Schedule& candidate) {
    for (const std::uint32_t i : numbered) {
      const schedule::Step& step = candidate.steps[i];
      if (const auto* limit = std::get_if<schedule::UnrollLimit>(&step)) {
        if (limit->selected >= limit->choices.size() || limit->choices[limit->selected] < 0) return false;
        state.stages[limit->stage].unroll_limit = limit->choices[limit->selected];
        continue;
      }
      schedule::Factors& factors = state.stages[made[i]->stage].relations[made[i]->relation].factors;
      if (const auto* split = std::get_if<schedule::Split>(&step)) {
        std::copy(split->factors.begin(), split->factors.end(), factors.begin());
      } else if (const auto* follow = std::get_if<schedule::FollowSplit>(&step)) {
        const std::span<const std::int64_t> source = state.factors_of_step(follow->source);
        std::copy_n(source.begin(), follow->parts - 1, factors.begin());
        std::int64_t rest = 1;
        for (std::size_t f = follow->parts - 1; f < source.size(); ++f) rest *= source[f];
        factors.back() = rest;
      } else if (const auto* fused = std::get_if<schedule::FollowFusedSplit>(&step)) {
        std::int64_t product = 1;
        for (const std::uint32_t source : fused->sources) {
          const std::int64_t factor = state.factors_of_step(source)[fused->level];
          if (factor > schedule::detail::max_split / product) return false;
          product *= factor;
        }
        factors[0] = product;
      }
      std::int64_t inner = 1;
      for (const std::int64_t factor : factors) {
        if (factor < 1 || factor > schedule::detail::max_split / inner) return false;
        inner *= factor;
      }
      const std::size_t first = i == 0 ? 0 : state.factors_end[i - 1];
      std::copy(factors.begin(), factors.end(),
                state.split_factors.begin() + static_cast<std::ptrdiff_t>(first));
    }
    return true;
  }

 private:
  bool make(const schedule::Schedule& candidate) {
    steps = candidate.steps;
    state = schedule::initial_state(candidate.graph);
    made.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      schedule::apply(state, steps[i]);
      std::visit([&](const auto& step) { note(step, i); }, steps[i]);
    }
    for (std::uint32_t i = 0; i < steps.size(); ++i)
      if (made[i] || std::holds_alternative<schedule::UnrollLimit>(steps[i])) numbered.push_back(i);
    info.resize(state.stages.size());
    loops::detail::Lowered lowered{state, std::move(info), {}};
    loops::detail::StagePlacement(lowered).run();
    info = std::move(lowered.info);
    stages.resize(state.stages.size());
    return describe_buffers() && describe_stages() && describe_packs();
  }

  template <class S>
  void note(const S& step, std::size_t i) {
    using schedule::FollowFusedSplit, schedule::FollowSplit, schedule::Split;
    if constexpr (std::is_same_v<S, Split> || std::is_same_v<S, FollowSplit> ||
                  std::is_same_v<S, FollowFusedSplit>) {
      made[i] = Made{step.stage, state.stages[step.stage].relations.size() - 1};
    } else if constexpr (std::is_same_v<S, schedule::Rfactor>) {
      // Operators have now been made with the factors so far.
      for (std::size_t before = i; before-- > 0;)
        if (made[before] && made[before]->stage == step.stage) freeze(before);
    } else if constexpr (std::is_same_v<S, schedule::Arrange>) {
      arranging.push_back(static_cast<std::uint32_t>(i));
    } else if constexpr (std::is_same_v<S, schedule::Pipeline>) {
      pipelining.push_back(static_cast<std::uint32_t>(i));
    }
  }

  /// The factors of a step are part of the structure, and so are those it follows.
  void freeze(std::size_t step) {
    made[step].reset();
    if (const auto* follow = std::get_if<schedule::FollowSplit>(&steps[step])) freeze(follow->source);
    if (const auto* fused = std::get_if<schedule::FollowFusedSplit>(&steps[step]))
      for (const std::uint32_t source : fused->sources) freeze(source);
  }

  template <class S>
  static bool same_structure(const S& mine, const S& other, bool factors_may_differ) {
    using namespace schedule;
    if constexpr (std::is_same_v<S, Split>) {
      return mine.stage == other.stage && mine.iter == other.iter &&
             mine.factors.size() == other.factors.size() &&
             (factors_may_differ || mine.factors == other.factors);
    } else if constexpr (std::is_same_v<S, Fuse>) {
      return mine.stage == other.stage && mine.count == other.count && mine.count <= other.iters.size() &&
             std::equal(mine.iters.begin(), mine.iters.begin() + mine.count, other.iters.begin());
    } else if constexpr (std::is_same_v<S, ComputeLocation>) {
      return mine.stage == other.stage && other.selected < other.choices.size() &&
             mine.choices[mine.selected] == other.choices[other.selected];
    } else if constexpr (std::is_same_v<S, UnrollLimit>) {
      return mine.stage == other.stage;
    } else if constexpr (std::is_same_v<S, Arrange>) {
      return mine.stage == other.stage && other.order < other.orders.size() &&
             other.padding < other.paddings.size();
    } else if constexpr (std::is_same_v<S, Pipeline>) {
      return mine.stage == other.stage && mine.iter == other.iter && other.selected < other.choices.size();
    } else {
      return mine == other;
    }
  }

  bool describe_buffers() {
    std::vector<bool> is_read(stages.size());
    for (const loops::detail::StageInfo& reader : info)
      if (reader.live)
        for (const program::TensorId read : reader.reads) is_read[read] = true;
    buffer_of.assign(stages.size(), loops::LoopNest::no_buffer);
    for (program::TensorId id = 0; id < stages.size(); ++id) {
      const schedule::Stage& stage = state.stages[id];
      if (stage.tensorized.intrinsic != nullptr || !stage.multiples.empty()) return false;
      if (!info[id].live && !stage.is_source()) continue;
      buffer_of[id] = static_cast<loops::BufferId>(buffers++);
      stages[id].is_output = !stage.is_source() && !is_read[id];
    }
    return true;
  }

  bool describe_stages() {
    for (program::TensorId id = 0; id < stages.size(); ++id) {
      if (!info[id].live) continue;
      const program::Operator& op = *info[id].op;
      StagePlan& plan = stages[id];
      if (op.body) collect_loads(op.body, buffer_of, buffers, op.name, plan.loads);
      loops::Statement statement;
      statement.kind = op.has_reduction() ? loops::Statement::Kind::Update : loops::Statement::Kind::Assign;
      statement.op = info[id].op;
      plan.operations = loops::operations(statement);
      plan.is_loop.assign(state.stages[id].iterators.size(), false);
      for (const schedule::IterId iter : state.stages[id].order) plan.is_loop[iter] = true;
      const schedule::Location& location = state.stages[id].location;
      if (location.kind != schedule::Location::Kind::At) continue;
      plan.place = state.stages[location.stage].position(location.iter);
      if (!describe_readings(id)) return false;
    }
    return true;
  }

  bool describe_readings(program::TensorId id) {
    const program::TensorId target = state.stages[id].location.stage;
    for (const program::TensorId reader : state.order) {
      const std::vector<program::TensorId>& reads = info[reader].reads;
      if (!info[reader].live || std::find(reads.begin(), reads.end(), id) == reads.end()) continue;
      if (!is_inside(reader, target, stages[id].place)) return false;
      program::visit(info[reader].op->body, [&](const program::ExprNode& node) {
        if (node.op != program::Op::Load || node.tensor != id) return;
        for (const Reading& known : stages[id].readings)
          if (known.reader == reader && known.load->indices == node.indices) return;
        stages[id].readings.push_back({reader, &node});
      });
    }
    return true;
  }

  /// As window inference has it.
  [[nodiscard]] bool is_inside(program::TensorId reader, program::TensorId target, std::size_t place) const {
    using schedule::Location;
    if (reader == target) return true;
    for (const Location* l = &state.stages[reader].location; l->kind == Location::Kind::At;
         l = &state.stages[l->stage].location) {
      if (l->stage == target) return state.stages[target].position(l->iter) >= place;
    }
    return false;
  }

  bool describe_packs() {
    for (const schedule::Pack& pack : state.packs) {
      if (buffer_of[pack.tensor] == loops::LoopNest::no_buffer) continue;
      StagePlan& plan = stages[pack.tensor];
      if (plan.is_output || plan.packed_read != nullptr) return false;
      std::size_t reads = 0;
      for (program::TensorId reader = 0; reader < stages.size(); ++reader) {
        if (!info[reader].live) continue;
        program::visit(info[reader].op->body, [&](const program::ExprNode& node) {
          if (node.op != program::Op::Load || node.tensor != pack.tensor) return;
          reads += reader == pack.consumer ? 1 : 2;
          plan.packed_read = &node;
        });
      }
      if (reads != 1) return false;
      plan.packed_for = pack.consumer;
    }
    for (const schedule::Arrange& arranged : state.arrangements)
      if (stages[arranged.stage].packed_read != nullptr || stages[arranged.stage].is_output) return false;
    return true;
  }
};

}  // namespace tunewright::drafts
