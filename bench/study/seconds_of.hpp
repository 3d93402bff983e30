// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tunewright::study {

/// Wall time that `work()` takes.
template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tunewright::study
