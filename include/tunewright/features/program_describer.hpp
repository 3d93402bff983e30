// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"

namespace tunewright::loops {
struct LoopNest;
struct NestSummary;
}  // namespace tunewright::loops

namespace tunewright::features {

/// Writes the rows of programs, one program after the other: lowered ones, or their summaries, which give the same
/// rows. It has options and working memory, so that describing many programs hardly allocates; its output does not
/// depend on earlier programs. Not thread-safe: each thread needs its own.
///
/// The implementation is behind a pointer, so that users need not include it.
class ProgramDescriber {
 public:
  /// Appends the program to `batch`. Throws `std::invalid_argument` for a batch of another width or a malformed nest;
  /// `batch` is then unchanged.
  void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) {
    parts_->describe(nest, task, batch);
  }
  void describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch) {
    parts_->describe(summary, task, batch);
  }

 protected:
  template <class OfNests, class OfSummaries>
  ProgramDescriber(OfNests of_nests, OfSummaries of_summaries)
      : parts_(std::make_unique<PartsOf<OfNests, OfSummaries>>(std::move(of_nests), std::move(of_summaries))) {}

 private:
  struct Parts {
    Parts() = default;
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    virtual ~Parts() = default;
    virtual void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) = 0;
    virtual void describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch) = 0;
  };
  template <class OfNests, class OfSummaries>
  struct PartsOf final : Parts {
    PartsOf(OfNests nests, OfSummaries summaries) : of_nests(std::move(nests)), of_summaries(std::move(summaries)) {}
    void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) override {
      of_nests.describe(nest, task, batch);
    }
    void describe(const loops::NestSummary& summary, const Task& task, FeatureBatch& batch) override {
      of_summaries.describe(summary, task, batch);
    }
    OfNests of_nests;
    OfSummaries of_summaries;
  };

  std::unique_ptr<Parts> parts_;
};

}  // namespace tunewright::features
