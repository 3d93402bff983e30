// SPDX-License-Identifier: Apache-2.0
// models::Gbdt against XGBoost on the same rows, rounds, depth, learning rate, penalties, bins and threads.
//
//   bench_gbdt --benchmark_format=json
//
// Both sides are fitted in turn, several times, so that whatever else the machine does meets both; times are
// medians of whole fits, data preparation included. Counters:
//   pairwise_accuracy, pairwise_accuracy_xgboost   on 4,000 programs of the same tasks that neither has seen
//   time_ratio_vs_xgboost                          our time / its time, below 1 is faster
//   fit_ms, fit_ms_xgboost, predict_us_per_program, predict_us_per_program_xgboost (prediction on one core)
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "synthetic_programs.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/stats/robust.hpp"
#include "xgboost.hpp"

namespace {

using namespace tunewright;

constexpr std::size_t test_programs = 4000;
constexpr unsigned threads = 2;

struct Data {
  FeatureBatch x{164};
  std::vector<float> y;
  std::vector<std::uint32_t> group;

  void add(const bench::SyntheticPrograms& from, std::size_t p) {
    x.append_program(from.x.program(p));
    y.push_back(from.y[p]);
    group.push_back(from.group[p]);
  }
};

// The programs of a session: the first are trained on, the last are tested on.
std::pair<Data, Data> make_data(std::size_t programs, std::size_t tasks, bool single_statement) {
  const auto all = bench::make_synthetic(programs + test_programs, tasks, 7, single_statement);
  std::pair<Data, Data> split;
  for (std::size_t p = 0; p < programs + test_programs; ++p) (p < programs ? split.first : split.second).add(all, p);
  return split;
}

template <class F>
double milliseconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double accuracy(const std::vector<float>& score, const Data& test) {
  return stats::pairwise_accuracy(score, test.y, test.group);
}

void compare(benchmark::State& state, models::Gbdt model, std::size_t tasks, bool single_statement) {
  const auto programs = static_cast<std::size_t>(state.range(0));
  const auto [train, test] = make_data(programs, tasks, single_statement);
  const int repeats = programs > 20000 ? 3 : programs > 4000 ? 5 : 9;
  model.threads = threads;
  std::vector<double> fit, predict, fit_xgboost, predict_xgboost;
  std::vector<float> score(test.y.size()), score_xgboost;
  for (auto _ : state) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
      fit.push_back(milliseconds([&] { model.fit(train.x, train.y, train.group); }));
      models::Gbdt one_core = model;
      one_core.threads = 1;
      predict.push_back(milliseconds([&] { one_core.predict(test.x, score); }));
#if defined(TUNEWRIGHT_COMPARES_WITH_XGBOOST)
      double ms = 0;
      const auto start = std::chrono::steady_clock::now();
      bench::XgBoost xgboost(model, train.x, train.y);
      fit_xgboost.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      score_xgboost = xgboost.predict_on_one_core(test.x, ms);
      predict_xgboost.push_back(ms);
#endif
    }
    state.SetIterationTime(stats::median(fit) * 1e-3);
  }
  const auto per_program = 1e3 / static_cast<double>(test_programs);
  state.counters["pairwise_accuracy"] = accuracy(score, test);
  state.counters["fit_ms"] = stats::median(fit);
  state.counters["predict_us_per_program"] = stats::median(predict) * per_program;
#if defined(TUNEWRIGHT_COMPARES_WITH_XGBOOST)
  state.counters["pairwise_accuracy_xgboost"] = accuracy(score_xgboost, test);
  state.counters["fit_ms_xgboost"] = stats::median(fit_xgboost);
  state.counters["predict_us_per_program_xgboost"] = stats::median(predict_xgboost) * per_program;
  state.counters["time_ratio_vs_xgboost"] = stats::median(fit) / stats::median(fit_xgboost);
#else
  state.SetLabel("XGBoost was not found");
#endif
}

void summed(benchmark::State& state) { compare(state, {}, 4, false); }
void summed_ansor_depth(benchmark::State& state) { compare(state, {.max_depth = 10, .gamma = 1e-3F}, 4, false); }
// TenSet's: squared error of the sum over statements, with the options it published.
void tenset(benchmark::State& state) {
  compare(state,
          {.rounds = 300,
           .learning_rate = 0.2F,
           .min_child_weight = 2,
           .gamma = 3e-3F,
           .objective = models::gbdt::Objective::Squared},
          4, false);
}
void squared_one_row(benchmark::State& state) {
  compare(state, {.gamma = 1e-3F, .objective = models::gbdt::Objective::Squared}, 4, true);
}

BENCHMARK(summed)->Arg(512)->Arg(1024)->Arg(3072)->Arg(8192)->Arg(65536)->Iterations(1)->UseManualTime()->Unit(
    benchmark::kMillisecond);
BENCHMARK(summed_ansor_depth)->Arg(1024)->Arg(8192)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(tenset)->Arg(1024)->Arg(8192)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(squared_one_row)
    ->Arg(1024)
    ->Arg(8192)
    ->Arg(65536)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
