// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright::schedule {
struct Schedule;
}

namespace tunewright::loops {

struct NestSummary;
class ScheduleSummarizer;

/// A pool of summarizers and their plans, one for each active thread. Thread-safe.
class ScheduleSummarizers {
 public:
  /// A summarizer that is returned to the pool by the destructor. The pool must outlive it.
  class Lease {
   public:
    explicit Lease(ScheduleSummarizers& pool);
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();

    /// See `ScheduleSummarizer::summary`. Not callable on a temporary, because the summary is valid only during the
    /// lease.
    [[nodiscard]] const NestSummary* operator()(const schedule::Schedule& candidate) &;
    /// Announces a schedule that will be read soon.
    static void prefetch(const schedule::Schedule& candidate) noexcept;

   private:
    ScheduleSummarizers* pool_;
    std::unique_ptr<ScheduleSummarizer> summarizer_;
  };

  ScheduleSummarizers();
  ~ScheduleSummarizers();
  ScheduleSummarizers(const ScheduleSummarizers&) = delete;
  ScheduleSummarizers& operator=(const ScheduleSummarizers&) = delete;

  [[nodiscard]] Lease lease() { return Lease(*this); }

 private:
  [[nodiscard]] std::unique_ptr<ScheduleSummarizer> take();
  void give_back(std::unique_ptr<ScheduleSummarizer> summarizer);

  std::mutex mutex_;
  std::vector<std::unique_ptr<ScheduleSummarizer>> idle_;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include <utility>

#include "tunewright/loops/schedule_summarizer.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE ScheduleSummarizers::ScheduleSummarizers() = default;
TUNEWRIGHT_INLINE ScheduleSummarizers::~ScheduleSummarizers() = default;

TUNEWRIGHT_INLINE ScheduleSummarizers::Lease::Lease(ScheduleSummarizers& pool)
    : pool_(&pool), summarizer_(pool.take()) {}

TUNEWRIGHT_INLINE ScheduleSummarizers::Lease::~Lease() { pool_->give_back(std::move(summarizer_)); }

TUNEWRIGHT_INLINE const NestSummary* ScheduleSummarizers::Lease::operator()(const schedule::Schedule& candidate) & {
  return summarizer_->summary(candidate);
}

TUNEWRIGHT_INLINE void ScheduleSummarizers::Lease::prefetch(const schedule::Schedule& candidate) noexcept {
  ScheduleSignature::prefetch(candidate);
}

TUNEWRIGHT_INLINE std::unique_ptr<ScheduleSummarizer> ScheduleSummarizers::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<ScheduleSummarizer>();
  std::unique_ptr<ScheduleSummarizer> taken = std::move(idle_.back());
  idle_.pop_back();
  return taken;
}

TUNEWRIGHT_INLINE void ScheduleSummarizers::give_back(std::unique_ptr<ScheduleSummarizer> summarizer) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(summarizer));
}

}  // namespace tunewright::loops

#endif
