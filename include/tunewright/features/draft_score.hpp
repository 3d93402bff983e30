// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "tunewright/core/target.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/drafts/concept.hpp"
#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// Describes a program by what a draft says of it, so that a model can start from there and learn what the draft
/// misses.
///
///   log2 score(p)
///
/// Joined to other rows, it is the last part, where `models::GbdtOnDraft` reads it:
/// `Joined<PerStatement, DraftScore<drafts::SymbolAnalyzer>>`.
///
/// Models:      FeaturizerFor<S> for every space S with ProgramDraftFor<Draft, S>, NestFeaturizerFor<S>,
///              SummaryFeaturizerFor<S> if the draft reads summaries, OneRowFeaturizer, EndsWithEstimate.
/// Shapes:      one row per configuration, 1 column.
/// Units:       log2 of the draft's score; with drafts of latencies, log2 of 1/s.
/// Cost:        that of the draft.
/// Determinism: that of the draft.
/// Errors:      those of the draft's `score_of`, for its options and for the target. A program that the draft rejects
///              has no row.
template <class Draft>
struct DraftScore {
  static constexpr bool one_row = true;
  static constexpr bool ends_with_estimate = true;

  Draft draft{};  ///< with the options of the recipe's own draft, if it has one

  template <SearchSpace S>
    requires ProgramDraftFor<Draft, S>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(1);
    Describer describes = describer();
    describe_configurations(describes, space, task, configs, batch);
    return batch;  // (N, 1)
  }

  /// Describes programs and summaries one by one; see `NestFeaturizerFor`.
  [[nodiscard]] auto describer() const { return Describer{draft}; }

  [[nodiscard]] FeatureSchema schema() const {
    return {"draft_score", 1, {{"log2_score", "log2(score)", "Logarithm of the draft's score of the program."}}};
  }

 private:
  using ScoreOf = decltype(std::declval<const Draft&>().score_of(std::declval<const Task&>()));

  class Describer {
   public:
    explicit Describer(Draft draft) : draft_(std::move(draft)) {}

    /// Throws the errors of the draft's `score_of`.
    void prepare(const Task& task) {
      if (score_of_ && workload_hash_ == task.workload_hash && target_ == task.target) return;
      score_of_.emplace(draft_.score_of(task));
      workload_hash_ = task.workload_hash;
      target_ = task.target;
    }

    /// Throws as `prepare`, and `std::invalid_argument` for a program that the draft rejects; `batch` is then
    /// unchanged.
    template <class Program>
      requires requires(ScoreOf& score_of, const Program& program) { static_cast<float>(score_of(program)); }
    void describe(const Program& program, const Task& task, FeatureBatch& batch) {
      prepare(task);
      const float score = (*score_of_)(program);
      if (!(score > 0 && score < std::numeric_limits<float>::infinity()))
        throw std::invalid_argument("features::DraftScore: the draft rejects the program");
      batch.append_row()[0] = std::log2(score);
      batch.close_program();
    }

   private:
    Draft draft_;
    std::optional<ScoreOf> score_of_;  // of the task that was described last
    std::uint64_t workload_hash_ = 0;
    Target target_;
  };
};

}  // namespace tunewright::features
