// SPDX-License-Identifier: Apache-2.0
// [snippet-begin program]
#include <iostream>

#include "tunewright/data.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/orc.hpp"

using namespace tunewright;

int main() {
  using Recipe = recipes::DraftAndTrees<spaces::MultiLevelTiling, measurers::OrcJit>;
  Tuner<Recipe> tuner{{.seed = 7}};
  const auto graph = program::operators::matmul_graph({.m = 128, .n = 128, .k = 128});
  const Task task = program::make_task("matmul 128x128x128", graph, host_target().with_threads(1));

  data::Journal journal{{.path = "matmul.jsonl"}};
  const auto run = tuner.run(task, {.trials = 48, .batch = 10}, journal, Progress{});
  if (run.best() == nullptr) return 1;
  const schedule::Schedule& best = run.best()->candidate.config;
  std::cout << explain(best);

  const codegen::Kernel kernel = tuner.parts().measurer.compile_kernel(task, loops::lower(best));
  codegen::export_kernel(kernel, "matmul", "kernels");
  std::cout << "kernels/matmul.o, matmul.h\n";
}
// [snippet-end program]
