// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/predicted.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/stats/ranking.hpp"

namespace tunewright::test {

/// Programs of 1 to 4 rows and 6 columns, every fiftieth without rows; throughput is 0.1 + 0.4 a + 0.5 a b of
/// two numbers that the rows of a program share among them. Column 0 is 0 in the first row and 1 in the
/// others. Three tasks.
struct NetworkLesson {
  FeatureBatch x{6};
  std::vector<float> y{};
  std::vector<std::uint32_t> group{};
};

inline NetworkLesson make_lesson(std::size_t programs, std::uint64_t seed) {
  NetworkLesson lesson;
  Rng rng(seed);
  for (std::size_t p = 0; p < programs; ++p) {
    const std::size_t rows = p % 50 == 49 ? 0 : 1 + rng.below(4);
    const double a = rng.uniform(), b = rng.uniform();
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = lesson.x.append_row();
      row[0] = r == 0 ? 0.0F : 1.0F;
      row[1] = static_cast<float>(a / static_cast<double>(rows));
      row[2] = static_cast<float>(b / static_cast<double>(rows));
      row[3] = static_cast<float>(rows);
      row[4] = row[1];
      row[5] = static_cast<float>(rng.below(1000));
    }
    lesson.x.close_program();
    lesson.y.push_back(static_cast<float>(0.1 + 0.4 * a + 0.5 * a * b));
    lesson.group.push_back(static_cast<std::uint32_t>(p % 3));
  }
  return lesson;
}

template <class Model>
double accuracy(const Model& model, const NetworkLesson& lesson) {
  return stats::pairwise_accuracy(predicted(model, lesson.x), lesson.y, lesson.group);
}

}  // namespace tunewright::test
