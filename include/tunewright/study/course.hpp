// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace tunewright::study {

/// A trial after which the task, or the network, was faster than before.
struct Improvement {
  std::size_t trial = 0;  ///< 1 for the first
  double elapsed_s = 0;   ///< time since the start of the search when its result was known
  double best_s = 0;      ///< the latency then
  bool operator==(const Improvement&) const = default;
};

/// The course of a search: the latency of its fastest program, or of a network of them, against trials and seconds.
///
/// Failed trials count as trials. Before the first valid one, of a network before one of each task, the best latency is
/// infinite.
struct Course {
  std::vector<Improvement> improvements{};  ///< in order of time and speed
  std::size_t trials = 0;                   ///< of the whole search
  std::size_t failed = 0;                   ///< of these
  std::size_t imprecise = 0;                ///< of these, as in `RunStatus`
  double elapsed_s = 0;                     ///< of the whole search

  /// Adds a trial of a task; `latency_s` is infinite for one that failed.
  void add(double latency_s, double now_s) { add(latency_s < infinity, latency_s, now_s); }

  /// Adds a trial after which the network takes `latency_s` with the fastest programs so far.
  void add(bool is_valid, double latency_s, double now_s) {
    ++trials;
    elapsed_s = now_s;
    if (!is_valid) ++failed;
    if (latency_s < best_s()) improvements.push_back({trials, now_s, latency_s});
  }

  [[nodiscard]] double best_s() const { return improvements.empty() ? infinity : improvements.back().best_s; }

  [[nodiscard]] double best_after(std::size_t trial) const {
    double best = infinity;
    for (const Improvement& one : improvements)
      if (one.trial <= trial) best = one.best_s;
    return best;
  }
  [[nodiscard]] double best_at(double seconds) const {
    double best = infinity;
    for (const Improvement& one : improvements)
      if (one.elapsed_s <= seconds) best = one.best_s;
    return best;
  }

  /// The first improvement to at most `target_s`; empty if there is none.
  [[nodiscard]] std::optional<Improvement> reaching(double target_s) const {
    for (const Improvement& one : improvements)
      if (one.best_s <= target_s) return one;
    return std::nullopt;
  }

  bool operator==(const Course&) const = default;

  static constexpr double infinity = std::numeric_limits<double>::infinity();
};

}  // namespace tunewright::study
