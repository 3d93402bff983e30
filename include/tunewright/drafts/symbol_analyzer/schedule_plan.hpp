// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/core/hash.hpp"
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

  /// Words that tell all that schedules of one plan have in common, and no other schedule.
  struct Signature {
    static constexpr std::size_t most = 2048;
    std::size_t count = 0;
    std::array<std::uint32_t, most> words;

    void put(std::uint64_t word) noexcept {
      if (count < most) words[count] = static_cast<std::uint32_t>(word);
      ++count;
    }
    [[nodiscard]] std::uint64_t hash() const noexcept {
      std::uint64_t sum = count;  // of terms that do not wait for each other, as those of `StableHash` would
      for (std::size_t i = 0; i < count; ++i) sum += mix64(words[i] + (std::uint64_t{i} << 32));
      return sum;
    }
    [[nodiscard]] std::span<const std::uint32_t> all() const noexcept {
      return std::span(words).first(count);
    }
  };

  schedule::State state;
  std::vector<std::uint32_t> signature;
  std::size_t steps = 0;
  std::unique_ptr<SchedulePlan> next;          ///< another one whose signature has the same hash
  std::vector<loops::detail::StageInfo> info;  ///< as placement leaves it
  std::vector<StagePlan> stages;
  std::vector<loops::BufferId> buffer_of;
  std::size_t buffers = 0;
  std::vector<std::optional<Made>> made;  ///< by step: of those that split, if their factors may differ
  std::vector<std::uint32_t> arranging, pipelining;  ///< steps
  std::vector<std::uint32_t> numbered;  ///< steps that unroll, or split by factors that may differ
  /// False for what only lowering reads: tensor instructions, padding for them, and packing that it refuses.
  bool is_complete = false;

  /// False where a step chooses what it does not have, and for more than a signature has room for.
  [[nodiscard]] static bool sign(const schedule::Schedule& candidate, Signature& words) {
    words.count = 0;
    const std::size_t frozen = frozen_steps(candidate);
    words.put(frozen);
    for (std::size_t i = 0; i < candidate.steps.size(); ++i) {
      words.put(candidate.steps[i].index());
      if (!std::visit([&](const auto& step) { return sign(step, i < frozen, words); }, candidate.steps[i]))
        return false;
    }
    return words.count <= Signature::most;
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
    steps = candidate.steps.size();
    state = schedule::initial_state(candidate.graph);
    made.resize(steps);
    for (std::size_t i = 0; i < steps; ++i) {
      schedule::apply(state, candidate.steps[i]);
      std::visit([&](const auto& step) { note(step, i); }, candidate.steps[i]);
    }
    for (std::uint32_t i = 0; i < steps; ++i)
      if (made[i] || std::holds_alternative<schedule::UnrollLimit>(candidate.steps[i])) numbered.push_back(i);
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
      std::fill_n(made.begin(), i, std::nullopt);  // operators have now been made with the factors so far
    } else if constexpr (std::is_same_v<S, schedule::Arrange>) {
      arranging.push_back(static_cast<std::uint32_t>(i));
    } else if constexpr (std::is_same_v<S, schedule::Pipeline>) {
      pipelining.push_back(static_cast<std::uint32_t>(i));
    }
  }

  /// Steps up to the last one that makes operators of extents: their factors are part of the structure.
  [[nodiscard]] static std::size_t frozen_steps(const schedule::Schedule& candidate) noexcept {
    std::size_t end = candidate.steps.size();
    while (end > 0 && !std::holds_alternative<schedule::Rfactor>(candidate.steps[end - 1])) --end;
    return end;
  }

  template <class... Values>
  static void put(Signature& words, Values... values) {
    (words.put(static_cast<std::uint64_t>(values)), ...);
  }
  static void put_whole(Signature& words, std::int64_t value) {
    put(words, value, static_cast<std::uint64_t>(value) >> 32);
  }
  template <class List>
  static void put_all(Signature& words, const List& list, std::size_t count) {
    put(words, count);
    for (std::size_t i = 0; i < count; ++i) put(words, list[i]);
  }

  template <class S>
  static bool sign(const S& s, bool is_frozen, Signature& words) {
    using namespace schedule;
    if constexpr (std::is_same_v<S, Split>) {
      put(words, s.stage, s.iter, s.factors.size());
      for (std::size_t f = 0; is_frozen && f < s.factors.size(); ++f)
        put_whole(words, s.factors[f]);
    } else if constexpr (std::is_same_v<S, FollowSplit>) {
      put(words, s.stage, s.iter, s.source, s.parts);
    } else if constexpr (std::is_same_v<S, FollowFusedSplit>) {
      put(words, s.stage, s.iter, s.level);
      put_all(words, s.sources, s.sources.size());
    } else if constexpr (std::is_same_v<S, Fuse>) {
      if (s.count > s.iters.size()) return false;
      put(words, s.stage);
      put_all(words, s.iters, s.count);
    } else if constexpr (std::is_same_v<S, Reorder>) {
      put(words, s.stage);
      put_all(words, s.order, s.order.size());
    } else if constexpr (std::is_same_v<S, Annotate>) {
      put(words, s.stage, s.iter, s.kind);
    } else if constexpr (std::is_same_v<S, ComputeLocation>) {
      if (s.selected >= s.choices.size()) return false;
      const Location& chosen = s.choices[s.selected];
      put(words, s.stage, chosen.kind, chosen.stage, chosen.iter);
    } else if constexpr (std::is_same_v<S, CacheWrite>) {
      put(words, s.stage, s.scope);
    } else if constexpr (std::is_same_v<S, CacheRead>) {
      put(words, s.tensor, s.consumer, s.scope);
    } else if constexpr (std::is_same_v<S, Pack>) {
      put(words, s.tensor, s.consumer);
    } else if constexpr (std::is_same_v<S, Rfactor> || std::is_same_v<S, Pipeline>) {
      put(words, s.stage, s.iter);
    } else if constexpr (std::is_same_v<S, UnrollLimit> || std::is_same_v<S, Arrange>) {
      put(words, s.stage);
    } else if constexpr (std::is_same_v<S, Tensorize>) {
      put(words, s.stage, s.iter);
      put_all(words, s.intrinsic, s.intrinsic.size());
    } else {
      static_assert(std::is_same_v<S, Pad>);
      put(words, s.stage);
      put(words, s.multiples.size());
      for (const std::int64_t multiple : s.multiples) put_whole(words, multiple);
    }
    return true;
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
