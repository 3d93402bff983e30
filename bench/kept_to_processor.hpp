// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

namespace tunewright::bench {

/// Keeps the calling thread to one processor while it lives. Helpers of a `codegen::PinnedTeam` have processors of
/// their own, which a caller that may run anywhere shares with them at times: then a loop takes as long as a turn of
/// the system's scheduler.
class KeptToProcessor {
 public:
  explicit KeptToProcessor(int processor) {
    changed_ = ::sched_getaffinity(0, sizeof before_, &before_) == 0;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<unsigned>(processor), &own);
    changed_ = changed_ && ::sched_setaffinity(0, sizeof own, &own) == 0;  // a refusal makes loops slower, not wrong
  }
  KeptToProcessor(const KeptToProcessor&) = delete;
  KeptToProcessor& operator=(const KeptToProcessor&) = delete;
  ~KeptToProcessor() {
    if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_{};
  bool changed_ = false;
};

}  // namespace tunewright::bench
