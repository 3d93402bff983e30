// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::spaces::decisions {

/// Sets each unroll limit of a schedule for a CPU to the lowest choice that unrolls the same loops, so that schedules
/// that differ only in what their limits are called are one. `summary` is that of the schedule.
///
/// A serial loop is unrolled if it then has no more statements than its limit, where one vector is one. At boundaries,
/// where loops are shorter, a lower limit may unroll fewer.
void lower_unroll_limits(std::vector<schedule::Step>& steps, const loops::NestSummary& summary, const Target& target);

}  // namespace tunewright::spaces::decisions

#if TUNEWRIGHT_DEFINES(spaces)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "tunewright/program/range.hpp"

namespace tunewright::spaces::decisions {

/// Counts what loops of a summary would have as straight-line code.
class UnrolledSizes {
 public:
  UnrolledSizes(const loops::NestSummary& summary, const Target& target)
      : summary_(summary), steps_(summary.steps()), target_(target) {}

  /// Statements at least and at most: which vectors the code has for them is known only if their elements are of one
  /// size and fill them.
  struct Range {
    std::int64_t least = 0, most = 0;
  };

  /// The sizes of the serial loops inside of the one that carries the limit `limit` of `stage`, itself included, and
  /// the limit of the loops around it. Empty if there is none.
  struct Sizes {
    std::vector<Range> of_loops;
    std::int64_t outside = 0;
  };
  [[nodiscard]] std::optional<Sizes> inside_limit(schedule::TensorId stage, std::int64_t limit) const {
    const loops::BufferId target = summary_.buffer_of[stage];
    std::vector<std::int64_t> around{0};
    for (std::size_t place = 0; place < steps_.size(); ++place) {
      if (steps_[place].event == Event::Leave) around.pop_back();
      if (steps_[place].event != Event::Enter) continue;
      const loops::LoopSummary& loop = summary_.loops[steps_[place].of];
      if (loop.unroll_limit == limit && last_target(place) == target) {
        Sizes sizes{{}, around.back()};
        static_cast<void>(visit(place, sizes.of_loops));
        return sizes;
      }
      around.push_back(std::max(around.back(), loop.unroll_limit));
    }
    return std::nullopt;
  }

 private:
  using Event = loops::NestSummary::Event;

  /// What the last statement inside of the loop that begins at `place` writes: a stage ends with its own.
  [[nodiscard]] loops::BufferId last_target(std::size_t place) const {
    loops::BufferId last = loops::LoopNest::no_buffer;
    std::size_t depth = 0;
    do {
      if (steps_[place].event == Event::Enter) ++depth;
      if (steps_[place].event == Event::Leave) --depth;
      if (steps_[place].event == Event::Run) last = summary_.statements[steps_[place].of].target;
      ++place;
    } while (depth > 0);
    return last;
  }

  /// Statements, as often as they are written, and what decides which vectors they have.
  struct Code {
    Range size;
    std::int64_t widest = 4, narrowest = 8;  ///< bytes of elements; narrow floats may be computed as wider ones
    bool has_conditions = false;

    void operator+=(const Code& other) {
      size = {size.least + other.size.least, size.most + other.size.most};
      widest = std::max(widest, other.widest);
      narrowest = std::min(narrowest, other.narrowest);
      has_conditions = has_conditions || other.has_conditions;
    }
  };

  [[nodiscard]] Code statement(const loops::StatementSummary& statement) const {
    Code code{.size = {1, 1}, .has_conditions = statement.operations.conditions > 0};
    const auto add_buffer = [&](loops::BufferId buffer) {
      const auto bytes = static_cast<std::int64_t>(summary_.buffers[buffer].element_bytes);
      code.widest = std::max(code.widest, bytes);
      code.narrowest = std::min(code.narrowest, bytes);
    };
    add_buffer(statement.target);
    for (const loops::LoadSummary& load : statement.loads) add_buffer(load.buffer);
    return code;
  }

  /// The loop that begins at `place`, which then is at its end; adds the sizes of serial loops.
  Code visit(std::size_t& place, std::vector<Range>& sizes) const {
    const loops::LoopSummary& loop = summary_.loops[steps_[place].of];
    Code code;
    for (++place; steps_[place].event != Event::Leave; ++place) {
      if (steps_[place].event == Event::Enter)
        code += visit(place, sizes);
      else if (steps_[place].event == Event::Fill)
        code += statement(summary_.fills[steps_[place].of]);
      else if (steps_[place].event == Event::Run)
        code += statement(summary_.statements[steps_[place].of]);
    }
    const bool is_vectorized = loop.kind == schedule::LoopKind::Vectorized;
    Range times{loop.extent, loop.extent};
    if (is_vectorized) {
      const std::int64_t vector = target_.vector_bytes();
      times.least = program::ceil_div(loop.extent, vector / code.narrowest);
      const std::int64_t lanes = vector / code.widest;
      if (!code.has_conditions && loop.extent % lanes == 0) times.most = loop.extent / lanes;
    }
    code.size = {code.size.least * times.least, code.size.most * times.most};
    // A vectorized loop whose lanes do not share their conditions is a serial one.
    if (loop.kind != schedule::LoopKind::Unrolled && (!is_vectorized || code.has_conditions))
      sizes.push_back(code.size);
    return code;
  }

  const loops::NestSummary& summary_;
  std::span<const loops::NestSummary::Step> steps_;
  const Target& target_;
};

TUNEWRIGHT_INLINE void lower_unroll_limits(std::vector<schedule::Step>& steps, const loops::NestSummary& summary,
                                           const Target& target) {
  if (target.kind != DeviceKind::Cpu) return;
  for (schedule::Step& step : steps) {
    auto* limit = std::get_if<schedule::UnrollLimit>(&step);
    if (limit == nullptr || limit->choices[limit->selected] == 0) continue;
    const std::int64_t drawn = limit->choices[limit->selected];
    const auto sizes = UnrolledSizes(summary, target).inside_limit(limit->stage, drawn);
    if (!sizes) continue;
    const std::int64_t high = std::max(drawn, sizes->outside);
    const auto unrolls_the_same = [&](std::int64_t lower) {
      const std::int64_t low = std::max(lower, sizes->outside);
      return std::none_of(sizes->of_loops.begin(), sizes->of_loops.end(),
                          [&](const UnrolledSizes::Range& size) { return size.least <= high && size.most > low; });
    };
    for (std::uint32_t choice = 0; choice < limit->choices.size(); ++choice)
      if (limit->choices[choice] < limit->choices[limit->selected] && unrolls_the_same(limit->choices[choice]))
        limit->selected = choice;
  }
}

}  // namespace tunewright::spaces::decisions

#endif
