// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

namespace tunewright::test {

/// Two cores with AVX2.
inline Target simulated_target() {
  Target target;
  target.isa = Isa::Avx2;
  target.threads = 2;
  target.l3_bytes = 8 << 20;
  return target;
}

inline Task matmul_task(const program::operators::MatmulShape& shape) {
  return program::make_task("matmul", program::operators::matmul_graph(shape), simulated_target());
}
inline Task small_matmul() { return matmul_task({.m = 128, .n = 128, .k = 128}); }

inline Task small_conv2d() {
  namespace ops = program::operators;
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1, 14, 14, 32});
  const auto w = g->constant("w", {3, 3, 32, 32});
  ops::conv2d(*g, x, w, {.padding = 1});
  return program::make_task("conv2d", std::move(g), simulated_target());
}

/// A run of `Recipe` in batches of 16.
template <class Recipe, class... Observers>
auto searched(const Task& task, std::uint64_t seed, unsigned threads, std::size_t trials = 48,
              Observers&&... observers) {
  const measurers::Simulated machine;
  Parts<Recipe> parts{.measurer = machine, .seed = seed, .threads = threads, .clock = machine.clock};
  if constexpr (requires { parts.explorer.population; }) parts.explorer.population = 128;
  Tuner<Recipe> tuner(std::move(parts));
  return tuner.run(task, {.trials = trials, .batch = 16}, observers...);
}

/// Key and latency of every trial, in order.
using Trace = std::vector<std::pair<std::uint64_t, double>>;
inline Trace trace(const auto& run) {
  Trace all;
  for (const auto& trial : run.history.trials()) all.emplace_back(trial.candidate.key, trial.cost_s());
  return all;
}

}  // namespace tunewright::test
