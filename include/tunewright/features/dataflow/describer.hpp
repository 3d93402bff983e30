// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/dataflow/schema.hpp"

namespace tunewright::loops {
struct LoopNest;
struct NestSummary;
}  // namespace tunewright::loops

namespace tunewright::features::dataflow {

/// Writes the rows of programs: lowered ones, or their summaries, which give the same rows. Holds options and memory to
/// work in; what it writes does not depend on what it described before. Not for several threads at once: give each its
/// own.
class Describer {
 public:
  explicit Describer(bool store_rows = true, bool squared_operations = false, bool asynchronous_copies = false);
  Describer(Describer&&) noexcept;
  Describer& operator=(Describer&&) noexcept;
  ~Describer();

  /// Appends the program to `batch`. Throws `std::invalid_argument` for a batch of another width or a nest that is not
  /// well formed; `batch` is then unchanged.
  void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch);
  void describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tunewright::features::dataflow

#if TUNEWRIGHT_DEFINES(program_features)

#include "tunewright/features/dataflow/describer_of.hpp"

namespace tunewright::features::dataflow {

struct Describer::State {
  DescriberOf<loops::LoopNest> of_nests;
  DescriberOf<loops::NestSummary> of_summaries;
};

TUNEWRIGHT_INLINE Describer::Describer(bool store_rows, bool squared_operations, bool asynchronous_copies)
    : state_(new State{{store_rows, squared_operations, asynchronous_copies},
                       {store_rows, squared_operations, asynchronous_copies}}) {}
TUNEWRIGHT_INLINE Describer::Describer(Describer&&) noexcept = default;
TUNEWRIGHT_INLINE Describer& Describer::operator=(Describer&&) noexcept = default;
TUNEWRIGHT_INLINE Describer::~Describer() = default;

TUNEWRIGHT_INLINE void Describer::describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) {
  state_->of_nests.describe(nest, task, batch);
}

TUNEWRIGHT_INLINE void Describer::describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch) {
  state_->of_summaries.describe(summary, task, batch);
}

}  // namespace tunewright::features::dataflow

#endif
