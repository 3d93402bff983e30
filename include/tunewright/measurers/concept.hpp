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

/// Finds out how fast programs are.
///
/// `measure(task, programs)` returns one `Outcome` a program, in the order of the programs. A program that
/// fails is a `Failure`, never an exception; exceptions mean that measuring itself is impossible (no device,
/// no child process).
template <class M, class P>
concept MeasurerFor = requires(M& measurer, const Task& task, std::span<const P> programs) {
  { measurer.measure(task, programs) } -> std::same_as<std::vector<Outcome>>;  // [B], same order
};

/// Receives (position in the batch, outcome) as soon as a program is finished, in any order but from one
/// thread at a time.
using OutcomeSink = std::function<void(std::size_t, const Outcome&)>;

/// Refinement: reports every outcome the moment it is known, so that a journal loses at most the program
/// being measured when the process is killed. The sink is called exactly once a program; the vector returned
/// is as above.
template <class M, class P>
concept StreamingMeasurerFor =
    MeasurerFor<M, P> && requires(M& measurer, const Task& task, std::span<const P> programs, const OutcomeSink& sink) {
      { measurer.measure(task, programs, sink) } -> std::same_as<std::vector<Outcome>>;
    };

/// Refinement: names what turns programs into machine code ("llvm 19.1.7 -O2 avx512"). Journals keep it with
/// every record, and records of another compiler are not reused.
template <class M>
concept IdentifiedMeasurer = requires(const M& measurer) {
  { measurer.identity() } -> std::convertible_to<std::string>;
};

/// Refinement: is told the best latency so far of the task before each batch, zero if there is none, to give up early
/// on far slower programs.
template <class M>
concept BestAwareMeasurer = requires(M& measurer, const Task& task, Seconds best) { measurer.note_best(task, best); };

/// Refinement: measures finalists once more, in turns, so that drift of the machine meets all of them alike.
template <class M, class P>
concept ConfirmingMeasurerFor =
    MeasurerFor<M, P> && requires(M& measurer, const Task& task, std::span<const P> programs) {
      { measurer.confirm(task, programs) } -> std::same_as<std::vector<Outcome>>;  // [B], same order
    };

}  // namespace tunewright
