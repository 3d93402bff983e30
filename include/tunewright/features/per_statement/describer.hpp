// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/per_statement/schema.hpp"

namespace tunewright::loops {
struct LoopNest;
struct NestSummary;
}  // namespace tunewright::loops

namespace tunewright::features::per_statement {

/// Writes the rows of programs, one program after the other: lowered ones, or their summaries, which give the same
/// rows. Holds only memory to work in, so that describing many programs allocates next to nothing; what it writes does
/// not depend on what it described before. Not for several threads at once: give each its own.
class Describer {
 public:
  Describer();
  Describer(Describer&&) noexcept;
  Describer& operator=(Describer&&) noexcept;
  ~Describer();

  /// Appends the program to `batch`, a row for each stored buffer in the order of first visit. Throws
  /// `std::invalid_argument` for a batch of another width or a nest that is not well formed; `batch` is then unchanged.
  void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch);
  void describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tunewright::features::per_statement

#if TUNEWRIGHT_DEFINES(program_features)

#include "tunewright/features/per_statement/describer_of.hpp"

namespace tunewright::features::per_statement {

struct Describer::State {
  DescriberOf<loops::LoopNest> of_nests;
  DescriberOf<loops::NestSummary> of_summaries;
};

TUNEWRIGHT_INLINE Describer::Describer() : state_(std::make_unique<State>()) {}
TUNEWRIGHT_INLINE Describer::Describer(Describer&&) noexcept = default;
TUNEWRIGHT_INLINE Describer& Describer::operator=(Describer&&) noexcept = default;
TUNEWRIGHT_INLINE Describer::~Describer() = default;

TUNEWRIGHT_INLINE void Describer::describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) {
  state_->of_nests.describe(nest, task, batch);
}

TUNEWRIGHT_INLINE void Describer::describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch) {
  state_->of_summaries.describe(summary, task, batch);
}

}  // namespace tunewright::features::per_statement

#endif
