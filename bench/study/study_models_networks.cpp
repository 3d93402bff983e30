// SPDX-License-Identifier: Apache-2.0
// How well the networks rank the programs of auto_scheduler logs, on the data sets of study_models.
//
//   study_models_networks --data=DIR [--seeds=N --records=N --tasks=N --first_tasks=N --threads=N --epochs=N
//                         --batch=N]
//
// Sets: gpu_drawn, --records drawn at random from each of --tasks logs of a device; gpu_first, the first 128 records of
// --first_tasks logs.
//
// Counters: see study_models. pattern_aware is given statements and data movements, pattern_aware_statements the former
// alone; PrimitiveAttention the steps of the same records. Boosted trees with default options run beside them, on rows
// of statements. `mlp` and `pattern_aware` train by their papers' settings, `primitive_attention` in mini-batches of
// 256 and for ten epochs, unless --epochs and --batch say otherwise; the names with _quick by the library's `quick()`.
#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "recorded_programs.hpp"
#include "seconds_of.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"
#include "tunewright/study/study.hpp"

namespace {

using namespace tunewright;

struct Set {
  std::string pool, split;
  study::Selection selection;
  [[nodiscard]] std::string name() const { return pool + (selection.first ? "_first_" : "_drawn_") + split; }
};

// Drops the rows of the other parts; columns stay.
FeatureBatch part_zero(const FeatureBatch& x) {
  FeatureBatch statements(x.columns());
  for (std::size_t p = 0; p < x.programs(); ++p) {
    for (std::uint32_t r = x.offsets()[p]; r < x.offsets()[p + 1]; ++r) {
      const auto row = x.row(r);
      if (row[0] == 0) std::copy(row.begin(), row.end(), statements.append_row().begin());
    }
    statements.close_program();
  }
  return statements;
}

FeatureBatch all_parts(const FeatureBatch& x) { return x; }

template <class Model>
void add(const std::string& recipe, Model model, const Set& set, std::uint64_t seed, const study::Options& options,
         FeatureBatch (*seen)(const FeatureBatch&) = all_parts) {
  model.threads = options.threads_or(2);
  model.seed = seed + 43;
  const std::filesystem::path root = options.data;
  study::add_of_tasks(options, recipe, set.name(), seed, [=](benchmark::State& state) {
    const study::Case& data = study::recorded_case(root, set.pool, set.selection, set.split, seed);
    const FeatureBatch train = seen(data.train.x), test = seen(data.test.x);
    Model fitted = model;
    state.counters["train_s"] = study::seconds_of([&] { fitted.fit(train, data.train.y, data.train.group); });
    std::vector<float> score(data.test.y.size());
    fitted.predict(test, score);
    state.counters["programs_train"] = static_cast<double>(data.train.y.size());
    state.counters["programs_test"] = static_cast<double>(data.test.y.size());
    state.counters["left_out"] = static_cast<double>(data.left_out);
    return study::quality(score, data.test);
  });
}

template <class Model>
Model with_epochs(Model model, const study::Options& options, unsigned usual) {
  model.training.epochs = options.few("epochs", usual);
  model.training.least_steps = 0;
  model.training.batch_programs = options.number("batch", model.training.batch_programs);
  return model;
}

void add_all(const Set& set, std::uint64_t seed, const study::Options& options) {
  add("gbdt_default", models::Gbdt{}, set, seed, options);
  add("mlp", with_epochs(models::Mlp{}, options, 50), set, seed, options);
  Set moves = set;
  moves.selection.rows = study::Selection::Rows::StatementsAndDataflow;
  add("pattern_aware", with_epochs(models::PatternAware{}, options, 50), moves, seed, options);
  add("pattern_aware_statements", with_epochs(models::PatternAware{}, options, 50), moves, seed, options, part_zero);
  add("mlp_quick", models::Mlp::quick(), set, seed, options);
  add("pattern_aware_quick", models::PatternAware::quick(), moves, seed, options);
  add("pattern_aware_statements_quick", models::PatternAware::quick(), moves, seed, options, part_zero);
  add("bilstm_attention", with_epochs(models::BiLstmAttention{}, options, 15), set, seed, options);
  Set steps = set;
  steps.selection.rows = study::Selection::Rows::Steps;
  models::PrimitiveAttention attention;
  attention.training.batch_programs = 256;
  add("primitive_attention", with_epochs(attention, options, 10), steps, seed, options);
  add("primitive_attention_quick", models::PrimitiveAttention::quick(), steps, seed, options);
}

}  // namespace

int main(int argc, char** argv) {
  return study::run(argc, argv,
                    {.name = "models_networks",
                     .seeds = 2,
                     .folders = {"roller-tvm-logs"},
                     .options = {"records=40", "first_tasks=10", "epochs", "batch"}},
                    [](const study::Study& study) {
                      const study::Options& options = study.options();
                      const study::Selection drawn{.records = options.number("records"), .tasks = options.tasks};
                      const study::Selection first{
                          .records = 128, .first = true, .tasks = options.number("first_tasks")};
                      for (const std::uint64_t seed : options.all_seeds())
                        for (const char* split : {"within_task", "by_task", "by_target_V100", "by_target_K80"})
                          for (const study::Selection& selection : {drawn, first})
                            add_all({"gpu", split, selection}, seed, options);
                    });
}
