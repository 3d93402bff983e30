// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/autotvm_table.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "support/data_file.hpp"
#include "support/temporary_folder.hpp"

using namespace tunewright;

namespace {

std::string line(const std::string& layer, const std::string& entity, const std::string& result) {
  return R"({"input": ["llvm", "conv", [")" + layer +
         R"("], {}], "config": {"index": 1, "code_hash": null, "entity": [)" + entity + R"(]}, "result": [)" + result +
         R"(, 2.0, 1.0], "version": 0.2})" + "\n";
}

}  // namespace

TEST_CASE("every decision of a knob is a parameter, every record a row") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("log");
  const auto knobs = [](const std::string& tile, const std::string& word, const std::string& flag) {
    return R"(["tile_x", "sp", [-1, )" + tile + R"(]], ["order", "re", [1, 0]], ["ann", "an", ["none", ")" + word +
           R"("]], ["flag", "ot", )" + flag + "]";
  };
  std::ofstream(path) << line("a", knobs("8, 2", "vec", "true"), "[0.5, 0.25, 1.0], 0")
                      << line("a", knobs("4, 16", "none", "false"), "[1000000000.0], 1")
                      << line("a", knobs("4, 16", "none", "false"), "[0.5], 0")
                      << line("b", knobs("4, 4", "none", "false"), "[0.5], 0")
                      << line("a", R"(["tile_y", "sp", [-1, 2]])", "[0.5], 0");
  const auto [table, report] = data::read_autotvm_table(path, {.device = "cpu"});
  REQUIRE(table.size() == 2);
  CHECK(table.kernel == "conv");
  CHECK(table.problem == "[\"a\"]");
  REQUIRE(table.parameters.size() == 6);
  CHECK(table.parameters[0] == data::Parameter{"tile_x.1", {"4", "8"}});
  CHECK(table.parameters[1] == data::Parameter{"tile_x.2", {"2", "16"}});
  CHECK(table.parameters[2] == data::Parameter{"order", {"1 0"}});
  CHECK(table.parameters[4] == data::Parameter{"ann.1", {"none", "vec"}});
  CHECK(table.text(0) == "8,2,1 0,none,vec,true");
  CHECK(table.cost_s(0) == 0.5);
  CHECK(table.outcomes[0].timing()->median_absolute_deviation == Seconds(0.25));
  CHECK(table.outcomes[0].timing()->stopped == StopReason::Precise);
  CHECK(table.outcomes[0].run_time == Seconds(2));
  CHECK(table.outcomes[1].failure()->fault == Fault::InvalidSchedule);
  CHECK(report.lines == 5);
  CHECK(report.records == 2);
  CHECK(report.failed == 1);
  REQUIRE(report.bad_lines.size() == 3);
  CHECK(report.bad_lines[0] == data::BadLine{3, "the configuration was recorded before"});
  CHECK(report.bad_lines[1] == data::BadLine{4, "belongs to another task than the first"});
  CHECK(report.bad_lines[2].reason.find("'tile_y.1', which the first record lacks") != std::string::npos);
  const std::vector<Knob> named = data::knobs_of(table);
  CHECK(named[1].scale == KnobScale::Log2);
  CHECK(named[4].scale == KnobScale::Category);
}

TEST_CASE("a log without records, and one whose device nobody names, are refused") {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("empty")) << "nonsense\n";
  CHECK_THROWS_WITH_AS((void)data::read_autotvm_table(folder.file("empty"), {.device = "d"}),
                       doctest::Contains("holds no measurement"), FormatError);
  CHECK_THROWS_WITH_AS((void)data::read_autotvm_table(support::data_file("roller_v100_autotvm.log.gz")),
                       doctest::Contains("names no device"), FormatError);
  const auto imported = data::read_autotvm_table(support::data_file("roller_v100_autotvm.log.gz"), {.device = "V100"});
  CHECK(imported.table.kernel == "conv2d_nchw.cuda");
  CHECK(imported.report.lines == 94);
  CHECK(imported.report.records + imported.report.bad == 94);
}
