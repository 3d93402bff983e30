// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::test {

/// Makes a register tile of some loops of a stage: they go innermost, unrolled and the last one in vectors.
inline void make_tile(schedule::ScheduleBuilder& s, program::TensorId stage, Rng& rng) {
  const std::vector<schedule::Iterator>& iterators = s.state().stages[stage].iterators;
  std::vector<schedule::IterId> loops = s.loops(stage);
  rng.shuffle(std::span(loops));
  const auto is_outer = [&](schedule::IterId loop) {
    return iterators[loop].kind == program::AxisKind::Reduction || rng.below(2) == 0;
  };
  const auto inner = std::stable_partition(loops.begin(), loops.end(), is_outer);
  s.reorder(stage, loops);
  for (auto loop = inner; loop != loops.end(); ++loop)
    s.annotate(stage, *loop, loop + 1 == loops.end() ? schedule::LoopKind::Vectorized : schedule::LoopKind::Unrolled);
}

/// A schedule of the steps among random ones that are legal, whatever they are good for: unlike those of a
/// search space, they split within tiles and by numbers that do not divide, and annotate any loop.
struct RandomSteps {
  int tries = 40;
  std::uint64_t annotations = 1;  ///< how many times as likely as other steps an annotation, or a location, is
  std::vector<schedule::LoopKind> kinds{schedule::LoopKind::Parallel, schedule::LoopKind::Vectorized,
                                        schedule::LoopKind::Vectorized, schedule::LoopKind::Unrolled};
  std::vector<schedule::Scope> scopes{schedule::Scope::Local};  ///< of caches
};
inline schedule::Schedule random_steps(std::shared_ptr<const program::ComputeGraph> graph, Rng& rng,
                                       const RandomSteps& options = {}) {
  using program::TensorId;
  using schedule::IterId;
  schedule::ScheduleBuilder s(std::move(graph));
  const auto one_of = [&rng](const auto& values) { return values[rng.below(values.size())]; };
  const auto factor = [&rng] { return static_cast<std::int64_t>(1 + rng.below(rng.below(2) == 0 ? 5 : 24)); };
  for (int i = 0; i < options.tries; ++i) {
    const auto stage = static_cast<TensorId>(rng.below(s.state().stages.size()));
    const auto other = static_cast<TensorId>(rng.below(s.state().stages.size()));
    const std::vector<IterId> loops = s.loops(stage);
    if (s.state().stages[stage].is_source() || loops.empty()) continue;
    const std::size_t place = rng.below(loops.size());
    schedule::ScheduleBuilder next = s;
    try {
      switch (rng.below(13 + 2 * options.annotations)) {
        case 0: next.split(stage, loops[place], {factor()}); break;
        case 1: next.split(stage, loops[place], {factor(), factor()}); break;
        case 2: next.fuse(stage, {loops.at(place), loops[(place + 1) % loops.size()]}); break;
        case 3:
        case 4: {
          std::vector<IterId> order = loops;
          rng.shuffle(std::span(order));
          next.reorder(stage, std::move(order));
          break;
        }
        case 5:
        case 7: make_tile(next, stage, rng); break;
        case 6: next.vectorize(stage, loops.back()); break;
        case 8: next.compute_inline(stage); break;
        case 9: next.cache_write(stage, one_of(options.scopes)); break;
        case 10: next.cache_read(other, stage, one_of(options.scopes)); break;
        case 11: next.split(stage, loops.back(), {factor()}); break;
        case 12:
          if (rng.below(2) == 0)
            next.rfactor(stage, loops[place]);
          else
            next.unroll_limit(stage, 16);
          break;
        default:
          if (rng.below(2) == 0)
            next.annotate(stage, loops[place], one_of(options.kinds));
          else if (!s.loops(other).empty())
            next.compute_at(stage, other, one_of(s.loops(other)));
      }
      s = std::move(next);
    } catch (const schedule::ScheduleError&) {
      continue;
    }
  }
  return s.schedule();
}

}  // namespace tunewright::test
