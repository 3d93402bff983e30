// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tunewright/core/outcome.hpp"
#include "tunewright/core/task.hpp"

namespace tunewright {

/// Determines how fast programs are.
///
/// `measure(task, programs)` returns one `Outcome` per program, in order. A failing program gives a `Failure`, never an
/// exception; exceptions mean that measuring itself is impossible (no device, no child process).
template <class M, class P>
concept MeasurerFor = requires(M& measurer, const Task& task, std::span<const P> programs) {
  { measurer.measure(task, programs) } -> std::same_as<std::vector<Outcome>>;  // [B], same order
};

/// Receives (position in the batch, outcome) as soon as a program is finished, in any order, but from one thread at a
/// time.
using OutcomeSink = std::function<void(std::size_t, const Outcome&)>;

/// Refinement: reports every outcome as soon as it is known, so that a kill loses at most the program being measured.
/// The sink is called exactly once per program; the returned vector is as above.
template <class M, class P>
concept StreamingMeasurerFor =
    MeasurerFor<M, P> && requires(M& measurer, const Task& task, std::span<const P> programs, const OutcomeSink& sink) {
      { measurer.measure(task, programs, sink) } -> std::same_as<std::vector<Outcome>>;
    };

/// Refinement: identifies the compiler and machine behind the latencies ("llvm 19.1.7 -O2 avx512"). Journals store it
/// with every record and do not reuse records of another identity.
template <class M>
concept IdentifiedMeasurer = requires(const M& measurer) {
  { measurer.identity() } -> std::convertible_to<std::string>;
};

/// Refinement: receives the best latency of the task before each batch, zero if there is none, to stop early on far
/// slower programs.
template <class M>
concept BestAwareMeasurer = requires(M& measurer, const Task& task, Seconds best) { measurer.note_best(task, best); };

/// Refinement: measures finalists again, alternately, so that drift of the machine affects all of them alike.
template <class M, class P>
concept ConfirmingMeasurerFor =
    MeasurerFor<M, P> && requires(M& measurer, const Task& task, std::span<const P> programs) {
      { measurer.confirm(task, programs) } -> std::same_as<std::vector<Outcome>>;  // [B], same order
    };

}  // namespace tunewright
