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
    std::size_t rank = 0;               ///< of what it computes, and stores
    std::vector<std::int64_t> extents;  ///< of the axes of its operator
    bool is_live = false;               ///< neither a source nor inlined
    bool is_sum = false;
    std::size_t place = 0;                        ///< in the order of the stage it is attached to
    std::size_t first_reduction = 0;              ///< place in its own order; behind it, where it has none
    std::vector<char> is_loop;                    ///< by IterId: neither split nor fused
    std::vector<char> is_split_axis;              ///< by IterId: an axis that was split into loops
    std::vector<loops::detail::Attached> inside;  ///< by place, then in topological order
    std::vector<Reading> readings;
    std::vector<OutlineLoad> loads;
    loops::BodyOperations operations;
    const program::ExprNode* packed_read = nullptr;  ///< the only one of a packed tensor
    program::TensorId packed_for = 0;
    bool is_output = false;
  };
  /// Where the numbers of a step go that splits, within `state`.
  struct Numbers {
    std::uint32_t step = 0;
    std::span<std::int64_t> factors{};  ///< of the relation it makes
    std::int64_t* kept = nullptr;       ///< among `split_factors`
  };

  /// Words that tell all that schedules of one plan have in common, and no other schedule. Each holds two numbers of 32
  /// bits.
  struct Signature {
    static constexpr std::size_t most = 1024;
    std::size_t count = 0;
    std::array<std::uint64_t, most + 1> words;  // the last one takes what there is no room for

    void put(std::uint64_t word) noexcept { words[std::min(count++, most)] = word; }
    void put(std::uint32_t low, std::uint32_t high) noexcept { put(low | std::uint64_t{high} << 32); }
    [[nodiscard]] std::uint64_t hash() const noexcept {
      // Terms that do not wait for each other, as those of `StableHash` would.
      std::uint64_t sum = count, key = 0;
      for (std::size_t i = 0; i < count; i += 2) {
        key += 0x9e3779b97f4a7c15ULL;
        sum += (words[i] + key) * ((i + 1 < count ? words[i + 1] : 0) ^ ~key);
      }
      return mix64(sum);
    }
    [[nodiscard]] std::span<const std::uint64_t> all() const noexcept {
      return std::span(words).first(count);
    }
  };

  schedule::State state;
  std::vector<std::uint64_t> signature;
  std::size_t steps = 0;
  std::unique_ptr<SchedulePlan> next;          ///< another one whose signature has the same hash
  std::vector<loops::detail::StageInfo> info;  ///< as placement leaves it
  std::vector<StagePlan> stages;
  std::vector<loops::BufferId> buffer_of;
  std::vector<OutlineBuffer> buffers;                ///< but for what tile sizes and arrangements decide
  std::vector<std::uint32_t> arranging, pipelining;  ///< steps
  std::vector<Numbers> numbered;  ///< of the steps that unroll, or split by factors that may differ
  /// False for what only lowering reads: tensor instructions, padding for them, and packing that it refuses.
  bool is_complete = false;

  /// `f` of what a step is. Quicker than `std::visit`, which calls by a table and so inlines nothing.
  template <class F>
  static auto of_step(const schedule::Step& step, const F& f) {
    static_assert(std::variant_size_v<schedule::Step> == 16);
    switch (step.index()) {
      case 0: return f(*std::get_if<0>(&step));
      case 1: return f(*std::get_if<1>(&step));
      case 2: return f(*std::get_if<2>(&step));
      case 3: return f(*std::get_if<3>(&step));
      case 4: return f(*std::get_if<4>(&step));
      case 5: return f(*std::get_if<5>(&step));
      case 6: return f(*std::get_if<6>(&step));
      case 7: return f(*std::get_if<7>(&step));
      case 8: return f(*std::get_if<8>(&step));
      case 9: return f(*std::get_if<9>(&step));
      case 10: return f(*std::get_if<10>(&step));
      case 11: return f(*std::get_if<11>(&step));
      case 12: return f(*std::get_if<12>(&step));
      case 13: return f(*std::get_if<13>(&step));
      case 14: return f(*std::get_if<14>(&step));
      default: return f(std::get<15>(step));
    }
  }

  /// False where a step chooses what it does not have, and for more than a signature has room for.
  [[nodiscard]] static bool sign(const schedule::Schedule& candidate, Signature& words) {
    words.count = 0;
    const std::size_t frozen = frozen_steps(candidate);
    words.put(frozen);
    for (std::size_t i = 0; i < candidate.steps.size(); ++i) {
      const schedule::Step& step = candidate.steps[i];
      const auto kind = static_cast<std::uint32_t>(step.index());
      if (!of_step(step, [&](const auto& s) { return sign(s, kind, i < frozen, words); })) return false;
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
    for (const schedule::Step& step : candidate.steps) __builtin_prefetch(of_step(step, list_of));
  }

  /// Takes the numbers of a schedule of this plan over; false where its steps do not fit together.
  [[nodiscard]] bool adopt(const schedule::Schedule& candidate) {
    for (const Numbers& numbers : numbered) {
      const schedule::Step& step = candidate.steps[numbers.step];
      if (const auto* limit = std::get_if<schedule::UnrollLimit>(&step)) {
        if (limit->selected >= limit->choices.size() || limit->choices[limit->selected] < 0) return false;
        state.stages[limit->stage].unroll_limit = limit->choices[limit->selected];
        continue;
      }
      const std::span<std::int64_t> factors = numbers.factors;
      if (const auto* split = std::get_if<schedule::Split>(&step)) {
        for (std::size_t f = 0; f < factors.size(); ++f) factors[f] = split->factors[f];
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
      for (std::size_t f = 0; f < factors.size(); ++f) {
        const std::int64_t factor = factors[f];
        if (factor < 1 || factor > schedule::detail::max_split) return false;
        inner *= factor;  // of two numbers up to 2^31
        if (inner > schedule::detail::max_split) return false;
        numbers.kept[f] = factor;
      }
    }
    return true;
  }

 private:
  bool make(const schedule::Schedule& candidate) {
    steps = candidate.steps.size();
    state = schedule::initial_state(candidate.graph);
    std::vector<std::optional<Made>> made(steps);
    for (std::size_t i = 0; i < steps; ++i) {
      schedule::apply(state, candidate.steps[i]);
      std::visit([&](const auto& step) { note(step, i, made); }, candidate.steps[i]);
    }
    for (std::uint32_t i = 0; i < steps; ++i) {
      if (made[i]) {
        schedule::Factors& factors = state.stages[made[i]->stage].relations[made[i]->relation].factors;
        std::int64_t* const kept = state.split_factors.data() + (i == 0 ? 0 : state.factors_end[i - 1]);
        numbered.push_back({i, {factors.data(), factors.size()}, kept});
      } else if (std::holds_alternative<schedule::UnrollLimit>(candidate.steps[i])) {
        numbered.push_back({i});
      }
    }
    info.resize(state.stages.size());
    loops::detail::Lowered lowered{state, std::move(info), {}};
    loops::detail::StagePlacement(lowered).run();
    info = std::move(lowered.info);
    stages.resize(state.stages.size());
    return describe_buffers() && describe_stages() && describe_packs();
  }

  /// The relation that a step makes whose factors may differ.
  struct Made {
    program::TensorId stage = 0;
    std::size_t relation = 0;
  };

  template <class S>
  void note(const S& step, std::size_t i, std::vector<std::optional<Made>>& made) {
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

  static void put_all(Signature& words, std::span<const std::uint32_t> list) {
    std::size_t i = 0;
    for (; i + 1 < list.size(); i += 2) words.put(list[i], list[i + 1]);
    if (i < list.size()) words.put(list[i], 0);
  }

  /// `kind`: of the step, by its place in `schedule::Step`.
  template <class S>
  static bool sign(const S& s, std::uint32_t kind, bool is_frozen, Signature& words) {
    using namespace schedule;
    const auto number = [](auto value) { return static_cast<std::uint32_t>(value); };
    if constexpr (requires { s.stage; })
      words.put(kind, s.stage);
    else
      words.put(kind, s.tensor);
    if constexpr (std::is_same_v<S, Split>) {
      words.put(s.iter, number(s.factors.size()));
      for (std::size_t f = 0; is_frozen && f < s.factors.size(); ++f)
        words.put(static_cast<std::uint64_t>(s.factors[f]));
    } else if constexpr (std::is_same_v<S, FollowSplit>) {
      words.put(s.iter, s.source);
      words.put(s.parts);
    } else if constexpr (std::is_same_v<S, FollowFusedSplit>) {
      words.put(s.iter, s.level);
      words.put(s.sources.size());
      put_all(words, s.sources);
    } else if constexpr (std::is_same_v<S, Fuse>) {
      if (s.count > s.iters.size()) return false;
      words.put(s.count);
      put_all(words, std::span(s.iters).first(s.count));
    } else if constexpr (std::is_same_v<S, Reorder>) {
      words.put(s.order.size());
      put_all(words, s.order);
    } else if constexpr (std::is_same_v<S, Annotate>) {
      words.put(s.iter, number(s.kind));
    } else if constexpr (std::is_same_v<S, ComputeLocation>) {
      if (s.selected >= s.choices.size()) return false;
      const Location& chosen = s.choices[s.selected];
      words.put(number(chosen.kind));
      words.put(chosen.stage, chosen.iter);
    } else if constexpr (std::is_same_v<S, CacheWrite>) {
      words.put(number(s.scope));
    } else if constexpr (std::is_same_v<S, CacheRead>) {
      words.put(s.consumer, number(s.scope));
    } else if constexpr (std::is_same_v<S, Pack>) {
      words.put(s.consumer);
    } else if constexpr (std::is_same_v<S, Rfactor> || std::is_same_v<S, Pipeline>) {
      words.put(s.iter);
    } else if constexpr (std::is_same_v<S, Tensorize>) {
      words.put(s.iter, number(s.intrinsic.size()));
      for (const char letter : s.intrinsic) words.put(number(letter));
    } else if constexpr (std::is_same_v<S, Pad>) {
      words.put(s.multiples.size());
      for (const std::int64_t multiple : s.multiples) words.put(static_cast<std::uint64_t>(multiple));
    } else {
      static_assert(std::is_same_v<S, UnrollLimit> || std::is_same_v<S, Arrange>);
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
      buffer_of[id] = static_cast<loops::BufferId>(buffers.size());
      stages[id].is_output = !stage.is_source() && !is_read[id];
      describe_buffer(stage, stages[id].is_output, buffers.emplace_back());
    }
    return true;
  }

  static void describe_buffer(const schedule::Stage& stage, bool is_output, OutlineBuffer& b) {
    b.element_bytes = static_cast<double>(program::size_in_bytes(stage.op->type));
    b.scope = stage.scope;
    b.role = stage.op->role == program::Role::Constant ? loops::BufferRole::Constant
             : stage.is_source()                       ? loops::BufferRole::Input
             : is_output                               ? loops::BufferRole::Output
                                                       : loops::BufferRole::Temporary;
    for (std::size_t d = 0; d < stage.op->rank(); ++d) b.shape.push_back(stage.op->axes[d].extent);
  }

  bool describe_stages() {
    for (program::TensorId id = 0; id < stages.size(); ++id) {
      if (!info[id].live) continue;
      const program::Operator& op = *info[id].op;
      StagePlan& plan = stages[id];
      if (op.body) collect_loads(op.body, buffer_of, buffers.size(), op.name, plan.loads);
      loops::Statement statement;
      statement.kind = op.has_reduction() ? loops::Statement::Kind::Update : loops::Statement::Kind::Assign;
      statement.op = info[id].op;
      plan.operations = loops::operations(statement);
      plan.rank = op.rank();
      for (const program::Axis& axis : op.axes) plan.extents.push_back(axis.extent);
      plan.is_live = true;
      plan.is_sum = op.has_reduction();
      const std::vector<schedule::Iterator>& iterators = state.stages[id].iterators;
      const std::vector<schedule::IterId>& order = state.stages[id].order;
      plan.first_reduction =
          static_cast<std::size_t>(std::find_if(order.begin(), order.end(),
                                                [&](schedule::IterId iter) {
                                                  return iterators[iter].kind == program::AxisKind::Reduction;
                                                }) -
                                   order.begin());
      plan.is_loop.assign(iterators.size(), false);
      for (const schedule::IterId iter : order) plan.is_loop[iter] = true;
      plan.is_split_axis.assign(plan.is_loop.size(), false);
      for (const schedule::Relation& r : state.stages[id].relations) {
        const bool into_loops = std::all_of(r.children.begin(), r.children.end(),
                                            [&](schedule::IterId part) { return plan.is_loop[part] != 0; });
        plan.is_split_axis[r.parents[0]] =
            r.parents.size() == 1 && r.parents[0] < op.axes.size() && into_loops;
      }
      plan.inside = info[id].attached;
      std::stable_sort(plan.inside.begin(), plan.inside.end(),
                       [](const auto& a, const auto& b) { return a.place < b.place; });
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
