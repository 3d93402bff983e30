// SPDX-License-Identifier: Apache-2.0
// What a project of somebody else writes: it sees the headers only through the targets it links, and searches a space
// of its own. Every component it was linked with is used once.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "tunewright/measurers/function.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/tuner.hpp"
#ifdef CONSUMER_HAS_DATA
#include "tunewright/data/record_json.hpp"
#endif
#ifdef CONSUMER_HAS_GZIP
#include "tunewright/data/gzip.hpp"
#endif
#ifdef CONSUMER_HAS_EIGEN
#include "tunewright/models/mlp.hpp"
#endif
#ifdef CONSUMER_HAS_GRAPH
#include "tunewright/program/operators/matmul.hpp"
#endif
#ifdef CONSUMER_HAS_REFERENCE
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#endif
#ifdef CONSUMER_HAS_ORC
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/program/task.hpp"
#endif
#ifdef CONSUMER_HAS_MPI
#include "tunewright/measurers/mpi.hpp"
#endif
#ifdef CONSUMER_HAS_ONNX
#include <stdexcept>

#include "tunewright/networks/import_onnx.hpp"
#endif
#ifdef CONSUMER_HAS_STUDY
#include "tunewright/study/study.hpp"
#endif

namespace {

using namespace tunewright;

/// Tile sizes 1 to 64; the program is the tile size itself.
struct Tiles {
  using config_type = unsigned;
  using program_type = unsigned;

  std::optional<unsigned> sample(const Task&, Rng& rng) const { return 1 + static_cast<unsigned>(rng.below(64)); }
  std::optional<unsigned> mutate(const Task& task, unsigned, Rng& rng) const { return sample(task, rng); }
  bool feasible(const Task&, unsigned tile) const { return tile >= 1 && tile <= 64; }
  std::uint64_t key(unsigned tile) const { return StableHash{}.add(tile).value(); }
  std::string encode(unsigned tile) const { return std::to_string(tile); }
  std::optional<unsigned> decode(const Task&, std::string_view text) const {
    return static_cast<unsigned>(std::stoul(std::string(text)));
  }
  unsigned lower(const Task&, unsigned tile) const { return tile; }
};

/// Fastest at 48.
Outcome pretend(const Task&, unsigned tile) {
  const double distance = tile > 48 ? tile - 48.0 : 48.0 - tile;
  return {.result = Timing{.repeats = {Seconds(1.0 + distance)}, .median = Seconds(1.0 + distance)}};
}

bool check(const char* what, bool works) {
  std::printf("%-10s %s\n", what, works ? "works" : "does not work");
  return works;
}

}  // namespace

int main() {
  Tuner<recipes::Random<Tiles, measurers::Function<unsigned>>> tuner{{.measurer = {pretend}, .seed = 7}};
  const auto run = tuner.run({.name = "tiles", .target = {}}, {.trials = 64, .batch = 16});
  bool works = check("core", run.best() != nullptr && run.best()->candidate.config == 48);
#ifdef CONSUMER_HAS_DATA
  const Record record{.task = 1, .key = 2, .config = "48", .outcome = pretend({}, 48)};
  works &= check("data", data::from_line(data::to_line(record)).config == "48");
#endif
#ifdef CONSUMER_HAS_GZIP
  works &= check("gzip", data::read_text("/dev/null").empty());
#endif
#ifdef CONSUMER_HAS_EIGEN
  const std::vector<float> rows{0, 1, 2, 3};
  FeatureBatch x(1);
  for (const float row : rows) x.append_program(std::span(&row, 1));
  models::Mlp mlp;
  std::vector<float> score(rows.size());
  mlp.fit(x, std::vector<float>{0, 0.3F, 0.6F, 1}, {});
  mlp.predict(x, score);
  works &= check("eigen", score[3] > score[0]);
#endif
#ifdef CONSUMER_HAS_GRAPH
  const auto graph = program::operators::matmul_graph({.m = 2, .n = 3, .k = 4});
  works &= check("graph", graph->op(2).name == "matmul");
#endif
#ifdef CONSUMER_HAS_REFERENCE
  const auto tensors = reference::evaluate(*graph, reference::random_inputs(*graph, Rng(1)));
  works &= check("reference", !tensors.empty());
#endif
#ifdef CONSUMER_HAS_ORC
  measurers::OrcJit measurer;
  const Task task = program::make_task("matmul", graph, host_target().with_threads(1));
  const std::vector<loops::LoopNest> programs{loops::lower(schedule::Schedule{graph, {}})};
  works &= check("orc", measurer.measure(task, programs).front().valid());
#endif
#ifdef CONSUMER_HAS_MPI
  bool alone = false;
  try {
    (void)measurers::Mpi{}.device();
  } catch (const std::invalid_argument&) {  // there is no world
    alone = true;
  }
  works &= check("mpi", alone);
#endif
#ifdef CONSUMER_HAS_ONNX
  bool refused = false;
  try {
    (void)networks::import_onnx("/dev/null");
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  works &= check("onnx", refused);
#endif
#ifdef CONSUMER_HAS_STUDY
  study::add("nothing", "nowhere", 0, [](benchmark::State& state) { state.counters["found"] = 0; });
  works &= check("study", benchmark::RunSpecifiedBenchmarks() == 1);
#endif
  return works ? 0 : 1;
}
