// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/core/hash.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/measurers/function.hpp"
#include "tunewright/spaces/concept.hpp"

namespace toy {

/// A table of 8^4 = 4096 configurations that looks like tiling a matmul: four exponents of two, each 0 to 7
/// (tile rows, tile columns, tile depth, unroll).
using Tiles = std::array<int, 4>;

struct Program {
  Tiles tiles{};
  std::uint64_t key = 0;
};

/// Seconds of one run, known exactly:
///
///   1 ms * (1 + sum_i weight_i * (tile_i - best_i)^2),   weight = (0.5, 0.4, 0.2, 0.1), best = (3, 4, 5, 2)
///
/// The only optimum is (3, 4, 5, 2) with 1 ms. Tiles with rows + columns > 12 exceed a static limit; depth 0
/// with unroll 7 crashes when run.
inline constexpr Tiles best{3, 4, 5, 2};
inline double cost_s(const Tiles& tiles) {
  constexpr std::array weight{0.5, 0.4, 0.2, 0.1};
  double sum = 1;
  for (std::size_t i = 0; i < 4; ++i) sum += weight[i] * (tiles[i] - best[i]) * (tiles[i] - best[i]);
  return 1e-3 * sum;
}

struct Space {
  using config_type = Tiles;
  using program_type = Program;

  static constexpr int values = 8;
  int limit = 12;  ///< of rows + columns

  [[nodiscard]] std::optional<Tiles> sample(const tunewright::Task&, tunewright::Rng& rng) const {
    Tiles tiles{};
    for (int& tile : tiles) tile = static_cast<int>(rng.below(values));
    return tiles;
  }
  [[nodiscard]] std::optional<Tiles> mutate(const tunewright::Task&, Tiles tiles, tunewright::Rng& rng) const {
    int& tile = tiles[rng.below(4)];
    tile += rng.below(2) == 0 ? -1 : 1;
    if (tile < 0 || tile >= values) return std::nullopt;
    return tiles;
  }
  [[nodiscard]] bool feasible(const tunewright::Task&, const Tiles& tiles) const {
    return tiles[0] + tiles[1] <= limit;
  }
  [[nodiscard]] std::string_view why_infeasible(const tunewright::Task& task, const Tiles& tiles) const {
    return feasible(task, tiles) ? "" : "tile too large";
  }
  [[nodiscard]] std::uint64_t key(const Tiles& tiles) const {
    tunewright::StableHash hash;
    for (const int tile : tiles) hash.add(tile);
    return hash.value();
  }
  [[nodiscard]] std::string encode(const Tiles& tiles) const {
    std::string text;
    for (const int tile : tiles) text += static_cast<char>('0' + tile);
    return text;
  }
  [[nodiscard]] std::optional<Tiles> decode(const tunewright::Task&, std::string_view text) const {
    if (text.size() != 4) return std::nullopt;
    Tiles tiles{};
    for (std::size_t i = 0; i < 4; ++i) {
      tiles[i] = text[i] - '0';
      if (tiles[i] < 0 || tiles[i] >= values) return std::nullopt;
    }
    return tiles;
  }
  [[nodiscard]] Program lower(const tunewright::Task&, const Tiles& tiles) const { return {tiles, key(tiles)}; }
};

/// The four exponents and their squares, one row a configuration.
struct Features {
  [[nodiscard]] tunewright::FeatureBatch extract(const Space&, const tunewright::Task&,
                                                 std::span<const Tiles> configs) const {
    tunewright::FeatureBatch batch(8);
    for (const Tiles& tiles : configs) {
      const std::span<float> row = batch.append_row();
      for (std::size_t i = 0; i < 4; ++i) {
        row[i] = static_cast<float>(tiles[i]);
        row[4 + i] = row[i] * row[i];
      }
      batch.close_program();
    }
    return batch;
  }
  [[nodiscard]] tunewright::FeatureSchema schema() const {
    tunewright::FeatureSchema schema{"toy tiles", 1, {}};
    for (int i = 0; i < 8; ++i)
      schema.columns.push_back({"tile" + std::to_string(i), "log2", "Exponent or its square."});
    return schema;
  }
};

/// Least squares of cost / best on the columns, which is exact for the cost above once there is enough data.
///
///   score = 1 / max(0.1, w . (columns, 1))
struct Linear {
  double ridge = 1e-6;
  std::vector<double> weights{};  // [D + 1]

  void predict(const tunewright::FeatureBatch& x, std::span<float> score) const {
    for (std::size_t p = 0; p < x.programs(); ++p) {
      const auto row = x.program(p);
      double sum = weights.empty() ? 1 : weights.back();
      for (std::size_t i = 0; i + 1 < weights.size(); ++i) sum += weights[i] * row[i];
      score[p] = row.empty() ? -INFINITY : static_cast<float>(1 / std::max(0.1, sum));
    }
  }

  void fit(const tunewright::FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t>) {
    const std::size_t n = x.columns() + 1;
    std::vector<std::vector<double>> a(n,
                                       std::vector<double>(n + 1));  // normal equations, right-hand side last
    for (std::size_t i = 0; i < n; ++i) a[i][i] = ridge;
    for (std::size_t p = 0; p < x.programs(); ++p) {
      if (y[p] == 0) continue;
      std::vector<double> row(x.program(p).begin(), x.program(p).end());
      row.push_back(1);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) a[i][j] += row[i] * row[j];
        a[i][n] += row[i] / y[p];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {  // symmetric and positive: no pivoting needed
      for (std::size_t r = 0; r < n; ++r) {
        const double factor = r == i ? 0 : a[r][i] / a[i][i];
        for (std::size_t c = i; c <= n; ++c) a[r][c] -= factor * a[i][c];
      }
    }
    weights.resize(n);
    for (std::size_t i = 0; i < n; ++i) weights[i] = a[i][n] / a[i][i];
  }
};

inline tunewright::Outcome outcome(const Tiles& tiles) {
  tunewright::Outcome result;
  if (tiles[2] == 0 && tiles[3] == 7) {
    result.result = tunewright::Failure{tunewright::Fault::RunError, "unrolled nothing"};
  } else {
    const tunewright::Seconds seconds(cost_s(tiles));
    result.result = tunewright::Timing{.repeats = {seconds, seconds, seconds}, .median = seconds};
  }
  result.compile_time = tunewright::Seconds(0.010);
  result.run_time = tunewright::Seconds(0.005);
  return result;
}

struct Measurer : tunewright::measurers::Function<Program> {
  Measurer() : Function{[](const tunewright::Task&, const Program& program) { return outcome(program.tiles); }} {}
};

inline tunewright::Task task(std::string name = "toy 128", std::uint64_t workload = 128) {
  return {
      .name = std::move(name), .workload_hash = workload, .flops = 2e6, .weight = 1, .target = {}, .graph = nullptr};
}

}  // namespace toy
