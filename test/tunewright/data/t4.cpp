// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/t4.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "support/data_file.hpp"
#include "support/small_table.hpp"
#include "tunewright/data/gzip.hpp"

using namespace tunewright;
using doctest::Contains;

namespace {

std::string file(const std::string& metadata, const std::string& results) {
  return R"({"metadata": {)" + metadata + R"(}, "results": [)" + results + "]}";
}

const std::string good = R"({"configuration": {"x": 1}, "times": {"compilation": 8, "runtimes": [4, 2, 2]},
  "invalidity": "correct", "measurements": [{"name": "time", "value": 2.5, "unit": ""}]})";

}  // namespace

TEST_CASE("a published T4 file") {
  const std::string text = data::read_text(support::data_file("t4_convolution_A100.json"));
  const data::ImportedTable read = data::parse_t4(text, {.file = "T4", .device = "A100"});
  CHECK(data::summary(read.report) == "T4: 4 records (2 failed)");
  CHECK(read.table.text(0) == "16,1,1,1,0,0,0,1,15,15");
  CHECK(read.table.cost_s(0) == doctest::Approx(3.8722559e-3).epsilon(1e-3));
  CHECK(read.table.outcomes[0].compile_time.count() == doctest::Approx(0.918599).epsilon(1e-5));
  CHECK(read.table.outcomes[2].failure()->fault == Fault::RunError);
  CHECK(read.table.outcomes[3].failure()->fault == Fault::DeviceCompileError);
}

TEST_CASE("times are read in the unit of the file, one with a unit of its own in that") {
  for (const auto& [unit, seconds] :
       {std::pair{"seconds", 1.0}, {"miliseconds", 1e-3}, {"ms", 1e-3}, {"us", 1e-6}, {"Nanoseconds", 1e-9}}) {
    const auto read = data::parse_t4(file("\"timeunit\": \"" + std::string(unit) + '"', good), {.device = "d"});
    CHECK(read.table.cost_s(0) == doctest::Approx(2 * seconds).scale(0));
    CHECK(read.table.outcomes[0].compile_time.count() == doctest::Approx(8 * seconds).scale(0));
    CHECK(read.table.outcomes[0].run_time.count() == doctest::Approx(8 * seconds).scale(0));
  }
  std::string own = good;
  own.replace(own.find("2.5"), 15, R"(0.0025, "unit": "s")");
  CHECK(data::parse_t4(file("\"timeunit\": \"ms\"", own), {.device = "d"}).report.records == 1);
  own.replace(own.find(R"("s")"), 3, R"("ms")");
  CHECK_THROWS_WITH_AS((void)data::parse_t4(file("\"timeunit\": \"ms\"", own), {.device = "d"}),
                       Contains("units are mixed"), FormatError);
}

TEST_CASE("a unit or a device that is not named is an error, results before the unit are not") {
  CHECK_THROWS_WITH_AS((void)data::parse_t4(file("", good), {.file = "f", .device = "d"}),
                       Contains("expected a unit of time"), FormatError);
  CHECK_THROWS_WITH_AS((void)data::parse_t4(file("\"timeunit\": \"fortnights\"", good), {.device = "d"}),
                       Contains("'fortnights' is unknown"), FormatError);
  CHECK_THROWS_WITH_AS((void)data::parse_t4(file("\"timeunit\": \"ms\"", good), {.file = "f"}),
                       Contains("TableSource::device"), FormatError);
  CHECK_THROWS_WITH_AS((void)data::parse_t4("", {.file = "f", .device = "d"}), Contains("'f' holds no measurement"),
                       FormatError);
  const std::string swapped = R"({"results": [)" + good + R"(], "metadata": {"timeunit": "ms"}})";
  CHECK(data::parse_t4(swapped, {.device = "d"}).table.cost_s(0) == doctest::Approx(2e-3).scale(0));
}

TEST_CASE("without metadata, times are in the unit of the measured time") {
  const std::string timed = R"({"timestamp": "2026", "configuration": {"x": 1}, "times": {"compilation": 500,
    "benchmark": 40, "framework": 1, "search_algorithm": 0, "validation": 0, "runtimes": [4, 2, 2]},
    "invalidity": "correct", "correctness": 1, "measurements": [{"name": "watts", "value": [[0.1, 30]], "unit": ""},
    {"name": "optimal", "value": true, "unit": ""}, {"name": "time", "value": 2.5, "unit": "ms"}],
    "objectives": ["time"]})";
  const std::string failed = R"({"configuration": {"x": 2}, "times": {"compilation": 300, "benchmark": 7,
    "runtimes": []}, "invalidity": "compile", "measurements": [{"name": "__error__", "value": "", "unit": ""}]})";
  const auto parse = [](const std::string& results) {
    return data::parse_t4(R"({"results": [)" + results + R"(], "schema_version": "1.0.0"})", {.device = "d"});
  };
  const data::ImportedTable read = parse("7, " + failed + ", " + timed);  // the unit comes last
  CHECK(read.report.bad == 1);
  REQUIRE(read.table.size() == 2);
  CHECK(read.table.outcomes[0].failure()->fault == Fault::DeviceCompileError);
  CHECK(read.table.outcomes[0].compile_time.count() == doctest::Approx(0.3));
  CHECK(read.table.outcomes[0].run_time.count() == doctest::Approx(0.007));
  CHECK(read.table.cost_s(1) == doctest::Approx(2e-3).scale(0));
  CHECK(read.table.outcomes[1].compile_time.count() == doctest::Approx(0.5));
  CHECK(read.table.outcomes[1].run_time.count() == doctest::Approx(0.04));

  const std::string cut = R"({"results": [)" + timed + ", " + failed.substr(0, 30);
  const data::ImportedTable early = data::parse_t4(cut, {.device = "d"});
  CHECK(early.report.records == 1);
  CHECK(!early.report.damage.empty());

  CHECK_THROWS_WITH_AS((void)parse(failed), Contains("expected a unit of time"), FormatError);
  std::string no_number = timed;
  no_number.replace(no_number.find("2.5"), 3, "[2.5]");
  CHECK_THROWS_WITH_AS((void)parse(no_number), Contains("expected a number"), FormatError);
}

TEST_CASE("metadata may name the device") {
  const std::string metadata = R"("autotuner": "some", "device": "gpu", "timeunit": "microseconds")";
  CHECK(data::parse_t4(file(metadata, good)).table.device == "gpu");
  CHECK(data::parse_t4(file(metadata, good), {.device = "other"}).table.device == "other");
  CHECK(data::parse_t4(R"({"results": [)" + good + R"(], "metadata": {)" + metadata + "}}").table.device == "gpu");
}

TEST_CASE("a result that is none is skipped with line and reason") {
  const std::string stray = R"(
{"configuration": {"x": 2, "y": 1}, "invalidity": "compile"},
{"configuration": {"x": 3}, "invalidity": "correct"},
{"configuration": {"x": 4}},
{"configuration": {}, "invalidity": "timeout"},
{"configuration": {"x": 5}, "invalidity": "timeout"})";
  const auto read = data::parse_t4(file("\"timeunit\": \"ms\"", good + "," + stray), {.device = "d"});
  CHECK(read.report.records == 2);
  CHECK(read.table.outcomes[1].failure()->fault == Fault::RunTimeout);
  REQUIRE(read.report.bad == 4);
  CHECK(read.report.bad_lines[0].number == 3);
  CHECK(read.report.bad_lines[0].reason.c_str() == Contains("'y' is not one of the first"));
  CHECK(read.report.bad_lines[1].reason.c_str() == Contains("no time"));
  CHECK(read.report.bad_lines[2].reason.c_str() == Contains("no 'invalidity'"));
  CHECK(read.report.bad_lines[3].reason.c_str() == Contains("'x' has no value"));
}

TEST_CASE("a table written as T4 is read as itself") {
  data::Table table = small_table();
  table.parameters[1].values = {"row", "column", "a \"word\"", "none"};
  std::stringstream out;
  data::write_t4(out, table);
  const data::ImportedTable read = data::parse_t4(out.str(), {.file = "own", .device = "gpu"});
  CHECK(read.report.complete());
  REQUIRE(read.table.size() == table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    CHECK(read.table.text(i) == table.text(i));
    CHECK(read.table.outcomes[i].compile_time == table.outcomes[i].compile_time);
    CHECK(read.table.outcomes[i].run_time == table.outcomes[i].run_time);
    CHECK(read.table.cost_s(i) == table.cost_s(i));
  }
  CHECK(read.table.outcomes.back().failure()->fault == Fault::RunError);
}

TEST_CASE("records of a journal are written as T4 with one parameter, their configuration") {
  const data::Table table = small_table();
  std::stringstream out;
  data::write_t4(out, data::records_of(table, data::task_of(table)));
  const data::ImportedTable read = data::parse_t4(out.str(), {.file = "own", .device = "gpu"});
  CHECK(read.report.records == 11);
  CHECK(read.table.parameters[0].name == "config");
  CHECK(read.table.text(4) == table.text(4));
  CHECK(read.table.cost_s(4) == table.cost_s(4));
}

TEST_CASE("a stream that refuses the data is told") {
  const data::Table table = small_table();
  std::ofstream closed;
  CHECK_THROWS_WITH_AS(data::write_t4(closed, table), Contains("writing T4 failed"), std::runtime_error);
  const std::vector<Record> records = data::records_of(table, data::task_of(table));
  CHECK_THROWS_WITH_AS(data::write_t4(closed, records), Contains("writing T4 failed"), std::runtime_error);
}

TEST_CASE("times that are none are not written, nor tables that do not hold together") {
  data::Table table = small_table();
  std::stringstream out;
  std::get<Timing>(table.outcomes[2].result).median = Seconds(std::nan(""));
  CHECK_THROWS_WITH_AS(data::write_t4(out, table), Contains("result 2 has a latency of nan s"), std::invalid_argument);
  const std::vector<Record> records = data::records_of(table, data::task_of(table));
  CHECK_THROWS_WITH_AS(data::write_t4(out, records), Contains("or a Failure"), std::invalid_argument);
  table.outcomes.pop_back();
  CHECK_THROWS_WITH_AS(data::write_t4(out, table), Contains("22 choices for 10 outcomes"), std::invalid_argument);
}

TEST_CASE("what is written is read again, whatever parameters and repeats are like") {
  const std::string results =
      R"({"configuration": {"a\"b\n": Infinity, "word": "inf"}, "times": {"runtimes": [324, 1, 1]}, "invalidity": "correct"},
         {"configuration": {"a\u0022b\n": 2, "word": NaN}, "times": {}, "invalidity": "timeout"},
         {"configuration": {"a\u0022b\n": 3, "word": 266666666666666666666}, "times": {}, "invalidity": "timeout"})";
  const data::ImportedTable read = data::parse_t4(file("\"timeunit\": \"ms\"", results), {.device = "d"});
  REQUIRE(read.report.complete());
  std::stringstream written;
  data::write_t4(written, read.table);
  const data::ImportedTable again = data::parse_t4(written.str(), {.device = "d"});
  CHECK(again.report.complete());
  CHECK(again.table.parameters == read.table.parameters);
  CHECK(again.table.cost_s(0) == doctest::Approx(1e-3).scale(0));
}

TEST_CASE("a first record that is none leaves nothing behind") {
  const std::string bad = R"({"configuration": {"z": 9}, "times": {}, "invalidity": ""},)";
  const data::ImportedTable read = data::parse_t4(file("\"timeunit\": \"ms\"", bad + good), {.device = "d"});
  CHECK(read.report.bad == 1);
  CHECK(read.report.records == 1);
  CHECK(read.table.text(0) == "1");
}

TEST_CASE("values that only refused records have are none of the parameter") {
  const std::string refused = R"(,{"configuration": {"x": "none"}, "times": {"runtimes": [1]}})";
  std::string later = good;
  later.replace(later.find("\"x\": 1"), 6, "\"x\": 16");
  const data::ImportedTable read =
      data::parse_t4(file("\"timeunit\": \"ms\"", good + refused + "," + later), {.device = "d"});
  CHECK(read.report.bad == 1);
  REQUIRE(read.table.parameters.size() == 1);
  CHECK(read.table.parameters[0].values == std::vector<std::string>{"1", "16"});
  CHECK(read.table.parameters[0].numeric());
  CHECK(read.table.text(1) == "16");
}

TEST_CASE("a time that is nothing in seconds is no latency") {
  std::string tiny = good;
  tiny.replace(tiny.find("[4, 2, 2]"), 9, "[4, 2, 1e-320]");
  CHECK_THROWS_WITH_AS((void)data::parse_t4(file("\"timeunit\": \"ns\"", tiny), {.device = "d"}),
                       Contains("too short for a number in seconds"), FormatError);
}
