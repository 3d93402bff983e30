// SPDX-License-Identifier: Apache-2.0
// [snippet-begin program]
#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>
#include <vector>

#include "tunewright/graph.hpp"
#include "tunewright/study.hpp"

using namespace tunewright;

/// Chooses evenly spaced ranks from the best to the worst of the pool.
struct EvenlySpread {
  template <CostModel M>
  std::vector<std::size_t> select(const M&, const FeatureBatch&, std::span<const float> score, std::size_t n,
                                  Rng&) const {
    std::vector<std::size_t> order(score.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score[a] > score[b]; });
    std::vector<std::size_t> chosen;
    const std::size_t count = std::min(n, order.size());
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(order[i * order.size() / count]);
    return chosen;
  }
};

using Ansor = recipes::AnsorQuick<spaces::MultiLevelTiling, measurers::Simulated>;
struct Spread : Ansor {
  using sampler = EvenlySpread;
};

int main(int argc, char** argv) {
  const int failed = study::run(argc, argv, {.name = "spread", .seeds = 3}, [](study::Study& study) {
    const Target target{.name = "simulated", .isa = Isa::Avx2, .l3_bytes = 8U << 20};
    const auto problem = [&](const char* name, std::int64_t size) {
      const auto graph = program::operators::matmul_graph({.m = size, .n = size, .k = size});
      return study::Problem<spaces::MultiLevelTiling, measurers::Simulated>{
          .name = name, .task = program::make_task(name, graph, target)};
    };
    study.compare<Ansor, Spread>(std::vector{problem("small", 64), problem("large", 256)}, {.trials = 96, .batch = 8});
  });
  std::cout << std::ifstream("results-spread/spread.md").rdbuf();
  return failed;
}
// [snippet-end program]
