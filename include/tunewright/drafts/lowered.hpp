// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/drafts/symbol_analyzer/schedule_outliner.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::drafts {

/// A space whose configurations are schedules and whose `lower` is `loops::lower`, as its member `lowers_by_replay`
/// promises.
template <class S>
concept ScheduleSpace =
    SearchSpace<S> && std::same_as<config_t<S>, schedule::Schedule> && requires { requires S::lowers_by_replay; };

/// Outliners that are kept from one batch of schedules to the next, with the plans they have made; one for each thread
/// that is at work. Copies of a draft share them.
class Outliners {
 public:
  [[nodiscard]] std::unique_ptr<ScheduleOutliner> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<ScheduleOutliner>();
    std::unique_ptr<ScheduleOutliner> taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  void give_back(std::unique_ptr<ScheduleOutliner> outliner) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(outliner));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ScheduleOutliner>> idle_;
};

/// 1 / `latency_s(program)`; -infinity for what cannot be read, and for scores that are no positive number.
template <class Latency, class Program>
[[nodiscard]] float score_of(Latency& latency_s, const Program& program) {
  try {
    const double found = 1 / latency_s(program);
    if (std::isfinite(found) && found > 0) return static_cast<float>(found);
  } catch (const std::bad_alloc&) {
    throw;                           // says nothing about the program
  } catch (const std::exception&) {  // a program that cannot be read
  }
  return -std::numeric_limits<float>::infinity();
}

/// Scores each configuration by its program, see `score_of`; -infinity for what cannot be lowered. Schedules are not
/// lowered where an outline of their steps tells the same. Throws `std::invalid_argument` when there are not as many
/// scores as configurations.
template <SearchSpace S, class Latency>
void score_configurations(const S& space, const Task& task, std::span<const config_t<S>> configs,
                          std::span<float> score, Latency latency_s, Outliners& outliners) {
  if (configs.size() != score.size()) {
    throw std::invalid_argument("drafts: " + std::to_string(score.size()) + " scores for " +
                                std::to_string(configs.size()) + " configurations; give one each");
  }
  const auto score_lowered = [&](const config_t<S>& config) {
    try {
      return score_of(latency_s, space.lower(task, config));
    } catch (const std::bad_alloc&) {
      throw;                           // says nothing about the configuration
    } catch (const std::exception&) {  // a configuration that leads nowhere
    }
    return -std::numeric_limits<float>::infinity();
  };
  if constexpr (ScheduleSpace<S>) {
    std::unique_ptr<ScheduleOutliner> outliner = outliners.take();
    for (std::size_t i = 0; i < configs.size(); ++i) {
      if (i + 1 < configs.size()) ScheduleSignature::prefetch(configs[i + 1]);
      const Outline* outline = outliner->outline(configs[i]);
      score[i] = outline != nullptr ? score_of(latency_s, *outline) : score_lowered(configs[i]);
    }
    outliners.give_back(std::move(outliner));
  } else {
    for (std::size_t i = 0; i < configs.size(); ++i) score[i] = score_lowered(configs[i]);
  }
}

}  // namespace tunewright::drafts
