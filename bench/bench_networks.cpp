// SPDX-License-Identifier: Apache-2.0
// Training of the networks against the matrix-multiply peak of the same machine in the same run.
//
//   bench_networks --benchmark_format=json
//
// One iteration trains a model for some steps of its default size on random features shaped like real ones;
// in turn with it, both cores multiply square matrices with the same library. Time is of whole fits, copying
// features, losses and optimiser included. Counters, medians over the rounds:
//   gflops                 additions and multiplications in matrix products of the fit / time
//   peak_gflops            of square products, the best of three sizes
//   share_of_matmul_peak   median of gflops / peak_gflops of each round
//   programs_per_s         trained on
#include <benchmark/benchmark.h>
#include <Eigen/Core>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"
#include "tunewright/stats/robust.hpp"

namespace {

using namespace tunewright;

constexpr unsigned threads = 2;

template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Multiply-adds per second of two threads that multiply n x n matrices, each its own.
double square_products(std::size_t n) {
  using Square = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto size = static_cast<Eigen::Index>(n);
  std::vector<Square> a(threads, Square::Constant(size, size, 0.5F)), b = a, c = a;
  const double flop = 2.0 * static_cast<double>(n * n * n);
  const auto times = static_cast<std::size_t>(1e9 / flop) + 1;
  const double took = seconds([&] {
    parallel_for(threads, threads, [&](std::size_t i) {
      for (std::size_t k = 0; k < times; ++k) c[i].noalias() = a[i] * b[i];
    });
  });
  benchmark::DoNotOptimize(c[0].data());
  return flop * static_cast<double>(times * threads) / took;
}

double peak_flops() { return std::max({square_products(256), square_products(512), square_products(1024)}); }

struct Shape {
  std::size_t programs = 0, columns = 0, least_rows = 0, most_rows = 0, tokens = 0;
};

struct Data {
  FeatureBatch x;
  std::vector<float> y{};
  std::vector<std::uint32_t> group{};
  double rows = 0, tokens = 0, programs = 0;
};

Data make_data(const Shape& shape) {
  Data data{.x = FeatureBatch(shape.columns)};
  Rng rng(1);
  for (std::size_t p = 0; p < shape.programs; ++p) {
    const std::size_t rows = shape.least_rows + rng.below(shape.most_rows - shape.least_rows + 1);
    for (std::size_t r = 0; r < rows + shape.tokens; ++r) {
      const auto row = data.x.append_row();
      for (float& value : row) value = static_cast<float>(rng.uniform());
      if (shape.tokens > 0) row[0] = r < rows ? 0.0F : 1.0F;
    }
    data.x.close_program();
    data.y.push_back(static_cast<float>(rng.uniform()));
    data.group.push_back(static_cast<std::uint32_t>(p % 20));
    data.rows += static_cast<double>(rows);
    data.tokens += static_cast<double>(shape.tokens);
  }
  data.programs = static_cast<double>(shape.programs);
  return data;
}

// Multiply-adds (2 each) of the products of one epoch: of a weight (a, b) used on n rows forward, for its own
// gradient and, except in the first layer, for that of what it was applied to.
double first(double a, double b, double n) { return 4 * a * b * n; }
double inner(double a, double b, double n) { return 6 * a * b * n; }

double flop_of(const models::Mlp&, const Data& d) {
  return first(174, 256, d.rows) + inner(256, 256, d.rows) + inner(256, 513, d.programs);
}
double flop_of(const models::PatternAware&, const Data& d) {
  return first(174, 256, d.rows) + inner(256, 256, d.rows) + first(23, 64, d.tokens) + inner(64, 128, d.tokens) +
         inner(128, 4 * 128, d.tokens) + inner(2 * 128, d.tokens / d.programs, d.tokens) + inner(384, 256, d.programs) +
         inner(256, 513, d.programs);
}
double flop_of(const models::PrimitiveAttention&, const Data& d) {
  return first(22, 64, d.rows) + inner(64, 128, d.rows) + inner(128, 256, d.rows) + inner(256, 256, d.rows) +
         inner(256, 4 * 256, d.rows) + inner(2 * 256, d.rows / d.programs, d.rows) + inner(256, 512, d.rows) +
         inner(256, 256, d.rows) + inner(256, 128, d.rows) + inner(128, 64, d.rows);
}
double flop_of(const models::BiLstmAttention&, const Data& d) {
  return first(174, 128, d.rows) + 2 * (inner(128, 512, d.rows) + 2 * inner(256, 512, d.rows)) +
         2 * 3 * inner(128, 512, d.rows) + 2 * inner(2 * 128, 512, d.programs);
}

template <class Model>
void train(benchmark::State& state, Model model, const Shape& shape) {
  const Data data = make_data(shape);
  model.threads = threads;
  model.training.epochs = 2;
  model.training.least_steps = 0;
  const double flop = flop_of(model, data) * model.training.epochs;
  std::vector<double> rates, peaks, shares;
  model.fit(data.x, data.y, data.group);
  for (auto _ : state) {
    const double before = peak_flops();
    const double took = seconds([&] { model.fit(data.x, data.y, data.group); });
    const double peak = std::max(before, peak_flops());
    state.SetIterationTime(took);
    rates.push_back(flop / took);
    peaks.push_back(peak);
    shares.push_back(rates.back() / peak);
  }
  const double rate = stats::median(rates);
  state.counters["gflops"] = rate * 1e-9;
  state.counters["peak_gflops"] = stats::median(peaks) * 1e-9;
  state.counters["share_of_matmul_peak"] = stats::median(shares);
  state.counters["programs_per_s"] = data.programs * model.training.epochs * rate / flop;
}

// Rows of real programs: two to seven statements, eight data movements, some 20 schedule primitives.
void mlp(benchmark::State& state) { train(state, models::Mlp{}, {4096, 174, 2, 7, 0}); }
void pattern_aware(benchmark::State& state) { train(state, models::PatternAware{}, {2048, 198, 2, 7, 8}); }
void primitive_attention(benchmark::State& state) { train(state, models::PrimitiveAttention{}, {1024, 22, 16, 25, 0}); }
void bilstm_attention(benchmark::State& state) { train(state, models::BiLstmAttention{}, {1024, 174, 2, 7, 0}); }

BENCHMARK(mlp)->Name("networks/mlp/train")->UseManualTime()->Iterations(7)->Unit(benchmark::kMillisecond);
BENCHMARK(pattern_aware)
    ->Name("networks/pattern_aware/train")
    ->UseManualTime()
    ->Iterations(7)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(primitive_attention)
    ->Name("networks/primitive_attention/train")
    ->UseManualTime()
    ->Iterations(7)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(bilstm_attention)
    ->Name("networks/bilstm_attention/train")
    ->UseManualTime()
    ->Iterations(7)
    ->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  Eigen::setNbThreads(1);  // threads are ours; the build may have given Eigen some too
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
