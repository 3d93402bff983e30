// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

#include "tunewright/core/task.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::drafts {

/// 1 / `latency_s(program)`; -infinity for a program that cannot be read and for a result that is not positive and
/// finite.
template <class Latency, class Program>
[[nodiscard]] float score_of(Latency& latency_s, const Program& program) {
  try {
    const double found = 1 / latency_s(program);
    if (std::isfinite(found) && found > 0) return static_cast<float>(found);
  } catch (const std::bad_alloc&) {
    throw;                           // not a property of the program
  } catch (const std::exception&) {  // a program that cannot be read
  }
  return -std::numeric_limits<float>::infinity();
}

/// Scores each configuration by its summary or, without one, its program (see `score_of`); -infinity for a
/// configuration that cannot be lowered. Throws `std::invalid_argument` if the numbers of scores and configurations
/// differ.
template <SearchSpace S, class Latency>
void score_configurations(const S& space, const Task& task, std::span<const config_t<S>> configs,
                          std::span<float> score, Latency latency_s) {
  if (configs.size() != score.size()) {
    throw std::invalid_argument("drafts: " + std::to_string(score.size()) + " scores for " +
                                std::to_string(configs.size()) + " configurations; give one each");
  }
  ProgramReader<S> reader(space, task);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (i + 1 < configs.size()) reader.prefetch(configs[i + 1]);
    score[i] = -std::numeric_limits<float>::infinity();
    try {
      reader.read(
          configs[i], [&](const auto& program)
            requires requires { latency_s(program); }
          { score[i] = score_of(latency_s, program); });
    } catch (const std::bad_alloc&) {
      throw;                           // not a property of the configuration
    } catch (const std::exception&) {  // a configuration that cannot be lowered
    }
  }
}

}  // namespace tunewright::drafts
