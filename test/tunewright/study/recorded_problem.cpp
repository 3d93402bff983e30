// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/recorded_problem.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string>

#include "support/data_file.hpp"
#include "support/refusal.hpp"
#include "support/small_table.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/core/precision.hpp"
#include "tunewright/data/t4.hpp"

namespace {

using namespace tunewright;

TEST_CASE("a recorded space is a problem: its latencies, its trials, and a clock for each search") {
  const std::string file = support::data_file("kernel_tuner_convolution_A100.json.gz");
  const study::RecordedProblem problem = study::recorded_problem("conv", file);
  CHECK(problem.name == "conv");
  REQUIRE(problem.latencies_s.size() == problem.space.table().size());
  CHECK(problem.trials == study::RandomSearch(problem.latencies_s).range().last);

  REQUIRE(problem.costs_s.size() == problem.latencies_s.size());
  const data::Table& table = problem.space.table();
  for (std::size_t row = 0; row < table.size(); ++row) {
    const Outcome& outcome = table.outcomes[row];
    CHECK(problem.costs_s[row] == (outcome.compile_time + outcome.run_time).count());
    CHECK(problem.costs_s[row] > 0);  // failures as well
  }

  const auto one = problem.measurer(), other = problem.measurer();
  CHECK(one.size() == problem.latencies_s.size());
  one.clock.advance(Seconds(1));
  CHECK(other.clock().count() == 0);
}

TEST_CASE("configurations are judged by the median of their repeats, or by the mean as other tuners do") {
  const std::string file = support::data_file("kernel_tuner_convolution_A100.json.gz");
  const study::RecordedProblem by_median = study::recorded_problem("conv", file);
  const study::RecordedProblem by_mean = study::recorded_problem("conv", file, {.latency = data::Latency::Mean});
  std::size_t valid = 0, differ = 0;
  for (std::size_t i = 0; i < by_mean.latencies_s.size(); ++i) {
    const Timing* timing = by_mean.space.table().outcomes[i].timing();
    if (timing == nullptr) {
      CHECK(std::isinf(by_mean.latencies_s[i]));
      continue;
    }
    double sum_s = 0;
    for (const Seconds repeat : timing->repeats) sum_s += repeat.count();
    CHECK(by_mean.latencies_s[i] ==
          doctest::Approx(sum_s / static_cast<double>(timing->repeats.size())).epsilon(1e-12));
    CHECK_FALSE(is_imprecise(*timing));
    ++valid;
    differ += by_mean.latencies_s[i] != by_median.latencies_s[i] ? 1U : 0U;
  }
  CHECK(valid > 0);
  CHECK(differ > 0);
}

TEST_CASE("a file that is none is refused") {
  CHECK_THROWS_AS((void)study::recorded_problem("none", "no/such/file.json"), std::runtime_error);
}

TEST_CASE("a space that nothing can be searched in is refused with its file") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("flat.json");
  data::Table table = small_table();
  for (Outcome& outcome : table.outcomes) outcome.result = Timing{.repeats = {Seconds(1)}, .median = Seconds(1)};
  std::ofstream out(path);
  data::write_t4(out, table);
  out.close();
  const std::string why = test::refusal([&] { (void)study::recorded_problem("flat", path, {.device = "gpu"}); });
  CHECK(why.find("'" + path + "': all 11 valid configurations take 1 s") == 0);
}

}  // namespace
