// SPDX-License-Identifier: Apache-2.0
// Lesson 9: what is Pruner's draft worth? An ablation changes one part and reports the effect with an interval.
//
// Each recipe searches each problem with each seed, as a benchmark named recipe/problem/seed that runs once. A stopped
// program resumes when it is started again. Tables are in results-draft/draft.md; draw the curves by
// `cd results-draft && gnuplot draft.gp`.
#include <fstream>
#include <iostream>
#include <vector>

#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/study/study.hpp"

using namespace tunewright;
namespace ops = program::operators;
using Space = spaces::MultiLevelTiling;
using Machine = measurers::Simulated;

// [snippet-begin ablation]
// The recipe, and the recipe without its draft, in which the network chooses from random schedules.
using Pruner = recipes::PrunerQuick<Space, Machine>;
struct WithoutDraft : Pruner {
  using draft = drafts::None;
  using explorer = explorers::Uniform;
  static void set_explorer(explorers::Uniform& draws) { draws.pool = 512; }
};

int main(int argc, char** argv) {
  const int failed = study::run(argc, argv, {.name = "draft", .seeds = 5}, [](study::Study& study) {
    const Target gpu = gpu_target("V100");
    const auto problem = [&](const char* name, const auto& graph) {
      return study::Problem<Space, Machine>{.name = name, .task = program::make_task(name, graph, gpu)};
    };
    study.compare<WithoutDraft, Pruner>(
        std::vector{
            problem("matmul", ops::matmul_graph({.m = 512, .n = 512, .k = 512})),
            problem("conv", ops::conv2d_graph({.height = 28, .width = 28, .in_channels = 64, .out_channels = 64}))},
        {.trials = 60, .batch = 10});
  });
  std::cout << std::ifstream("results-draft/draft.md").rdbuf();
  return failed;
}
// [snippet-end ablation]
