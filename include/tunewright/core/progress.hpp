// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>

#include "tunewright/core/observer.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Observer that prints the progress of a run: one line that is rewritten in a terminal, or a line now and then in a
/// log file.
///
///   matmul 1024 | 128/500 trials | best 9.21 ms, 233.2 GFLOP/s | 1 failed: 1 run_timeout | 3 imprecise | 42 s
///
/// A run of several tasks shows the latency of the network, the sum of weight times best, before the task of the round:
///
///   18 tasks, 2 finished | 640/20000 trials | end to end 12.3 ms, 295.1 GFLOP/s | conv2d_3: best 1.2 ms, ...
///
/// Before the run it warns if the budget is so small that the model hardly chooses a trial; after it, if finalists
/// cannot be distinguished, if tasks of a network have no valid program, and if scores were NaN, which the line counts
/// as unscored. Time is that of the run's clock.
struct Progress {
  std::ostream* out = &std::cerr;
  bool in_place = ::isatty(STDERR_FILENO) != 0;  ///< rewrite one line; false for files
  Seconds in_place_every{0.1};
  Seconds log_every{10};
  std::size_t columns = 110;  ///< a renewed line is cut to this, so that it never wraps

  std::optional<Seconds> shown_at{};  ///< run-time state
  std::size_t shown_columns = 0;      ///< run-time state

  void on_start(const RunStatus& status);
  void on_record(const Record&, const RunStatus& status) { show_if_due(status); }
  void on_round(const RunStatus& status) { show_if_due(status); }
  void on_stop(const RunStatus& status, Stop stop);

  /// The line, optionally with an estimate of the remaining time.
  [[nodiscard]] static std::string line(const RunStatus& status, bool with_time_left = true);

  /// A warning if a trained model will choose hardly any trial of a new run; empty otherwise.
  [[nodiscard]] static std::string too_few_rounds(const RunStatus& status);

  /// Time until the trials or the seconds run out, whichever is first, at the pace so far; empty before the first
  /// trial.
  [[nodiscard]] static std::optional<Seconds> time_left(const RunStatus& status);

 private:
  void show_if_due(const RunStatus& status);

  void say(const std::string& text) const { *out << text << '\n' << std::flush; }

  // The subject of a line: the task, or the number of tasks.
  static std::string subject(const RunStatus& status);
  static std::string network_line(const NetworkStatus& network);
  static std::string rate(double flops, Seconds time);

  /// Three significant digits with a suitable unit.
  static std::string duration(Seconds time);
  static std::string significant(double value);
  static std::string decimal(double value);
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE void Progress::on_start(const RunStatus& status) {
  shown_at.reset();
  shown_columns = 0;
  if (status.recalled > 0)
    say(subject(status) + " | " + std::to_string(status.recalled) + " trials taken over from a journal");
  for (const auto& [reason, count] : status.unusable) {
    say(subject(status) + " | " + std::to_string(count) + " records of the journal not used: " + reason);
  }
  if (const std::string warning = too_few_rounds(status); !warning.empty()) say(subject(status) + " | " + warning);
}

TUNEWRIGHT_INLINE void Progress::on_stop(const RunStatus& status, Stop stop) {
  if (in_place && shown_columns > 0) *out << '\r' << std::string(shown_columns, ' ') << '\r';
  say(line(status, false) + " | " + std::string(name(stop)));
  if (status.network && status.network->without_valid > 0) {
    std::string names;
    for (const std::string& task : status.network->names_without_valid) names += (names.empty() ? "" : ", ") + task;
    say(subject(status) + " | without a valid program: " + names);
  }
  if (status.unscored > 0) {
    say(subject(status) + " | " + std::to_string(status.unscored) +
        " candidates had scores that are no numbers (NaN), so no model told them apart; look for such values in the "
        "features, and in the weights of the model, which a lower learning_rate keeps small");
  }
  if (status.as_fast > 0) {
    say(status.task.name + " | " + std::to_string(status.as_fast) +
        " other trials are as fast as the best, as far as measuring can tell" +
        (status.can_confirm ? "; Tuner::confirm measures the fastest in turns" : ""));
  }
}

TUNEWRIGHT_INLINE std::string Progress::line(const RunStatus& status, bool with_time_left) {
  std::string text = subject(status) + " | " + std::to_string(status.trials);
  if (status.budget.trials != Budget::unlimited) text += "/" + std::to_string(status.budget.trials);
  text += " trials | ";
  if (status.network) text += network_line(*status.network) + " | " + status.task.name + ": ";
  if (status.best) {
    text += "best " + duration(*status.best) + rate(status.task.flops, *status.best);
  } else {
    text += "nothing valid yet";
  }
  if (const std::size_t failed = status.failed(); failed > 0) {
    text += " | " + std::to_string(failed) + " failed: ";
    bool first = true;
    for (std::size_t i = 0; i < status.faults.size(); ++i) {
      if (status.faults[i] == 0) continue;
      text += (first ? "" : ", ") + std::to_string(status.faults[i]) + " " + std::string(fault_names[i]);
      first = false;
    }
  }
  if (status.imprecise > 0) text += " | " + std::to_string(status.imprecise) + " imprecise";
  if (status.unscored > 0) text += " | " + std::to_string(status.unscored) + " unscored";
  text += " | " + duration(status.elapsed);
  if (const auto left = time_left(status); with_time_left && left) text += ", " + duration(*left) + " left";
  return text;
}

TUNEWRIGHT_INLINE std::string Progress::subject(const RunStatus& status) {
  if (!status.network) return status.task.name;
  std::string text = std::to_string(status.network->tasks) + " tasks";
  if (status.network->finished > 0) text += ", " + std::to_string(status.network->finished) + " finished";
  return text;
}

TUNEWRIGHT_INLINE std::string Progress::network_line(const NetworkStatus& network) {
  if (const auto latency = network.end_to_end())
    return "end to end " + duration(*latency) + rate(network.flops, *latency);
  return std::to_string(network.without_valid) + " without a valid program";
}

TUNEWRIGHT_INLINE std::string Progress::rate(double flops, Seconds time) {
  return flops > 0 ? ", " + decimal(flops / time.count() * 1e-9) + " GFLOP/s" : "";
}

TUNEWRIGHT_INLINE std::string Progress::too_few_rounds(const RunStatus& status) {
  const std::size_t trials = status.budget.trials, batch = status.budget.batch;
  if (status.network) {
    const std::size_t tasks = status.network->tasks;
    if (status.recalled > 0 || tasks < 2 || trials >= 2 * tasks * batch) return {};
    return std::to_string(trials) + " trials for " + std::to_string(tasks) + " tasks in batches of " +
           std::to_string(batch) +
           " are less than two rounds a task, so the scheduler hardly chooses; give a batch of " +
           std::to_string(std::max<std::size_t>(1, trials / (4 * tasks))) + " or less";
  }
  if (!status.learns || status.recalled > 0 || trials < 2) return {};
  if (trials <= (status.warmup + batch - 1) / batch * batch) {  // whole batches
    return "the model learns from " + std::to_string(status.warmup) + " measurements on, so it chooses none of " +
           std::to_string(trials) + " trials in batches of " + std::to_string(batch) +
           "; give more trials, or the adaptation fewer warmup_candidates";
  }
  if (trials >= 2 * batch) return {};
  const std::string budget = std::to_string(trials) + " trials in batches of " + std::to_string(batch);
  const std::size_t good = std::max<std::size_t>(1, trials / 4);
  const std::string remedy = "; give a batch of " + std::to_string(good) + (good > 1 ? " or less" : "");
  if (trials <= batch) return budget + " are one round, so no trial is chosen by what others taught the model" + remedy;
  return budget + " are two rounds, so only the last " + std::to_string(trials - batch) +
         " trials are chosen by what the others taught the model" + remedy;
}

TUNEWRIGHT_INLINE std::optional<Seconds> Progress::time_left(const RunStatus& status) {
  const std::size_t measured = status.trials - status.recalled;
  if (measured == 0 || status.trials > status.budget.trials) return std::nullopt;
  const auto pace = status.elapsed / static_cast<double>(measured);
  Seconds left = status.budget.time - status.elapsed;
  if (status.budget.trials != Budget::unlimited)
    left = std::min(left, pace * static_cast<double>(status.budget.trials - status.trials));
  if (!std::isfinite(left.count())) return std::nullopt;
  return std::max(Seconds(0), left);
}

TUNEWRIGHT_INLINE void Progress::show_if_due(const RunStatus& status) {
  if (shown_at && status.elapsed - *shown_at < (in_place ? in_place_every : log_every)) return;
  shown_at = status.elapsed;
  if (!in_place) return say(line(status));
  const std::string text = line(status).substr(0, columns);
  *out << '\r' << text << std::string(shown_columns > text.size() ? shown_columns - text.size() : 0, ' ') << std::flush;
  shown_columns = text.size();
}

TUNEWRIGHT_INLINE std::string Progress::duration(Seconds time) {
  const double s = time.count();
  if (s >= 5400) return significant(s / 3600) + " h";
  if (s >= 90) return significant(s / 60) + " min";
  if (s >= 1 || s == 0) return significant(s) + " s";
  if (s >= 1e-3) return significant(s * 1e3) + " ms";
  return significant(s * 1e6) + " us";
}

TUNEWRIGHT_INLINE std::string Progress::significant(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

TUNEWRIGHT_INLINE std::string Progress::decimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  return buffer;
}

}  // namespace tunewright

#endif
