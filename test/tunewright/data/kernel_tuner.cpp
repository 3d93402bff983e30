// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/kernel_tuner.hpp"

#include <doctest/doctest.h>

#include <string>

#include "support/data_file.hpp"
#include "tunewright/data/gzip.hpp"

using namespace tunewright;

namespace {

const std::string head = R"({"device_name": "gpu", "kernel_name": "k", "problem_size": [64, 32],
"tune_params_keys": ["x", "mode"], "tune_params": {"mode": ["row", "col"], "x": [16, 32, 64]}, "cache": {
)";
const std::string good = R"("16,row": {"x": 16, "mode": "row", "time": 2.0, "times": [4.0, 1.0, 1.0],
  "compile_time": 500, "benchmark_time": 20, "GFLOP/s": 3.5})";

std::string with(const std::string& record) { return head + good + ",\n" + record + "}}"; }

std::string reason(const std::string& record) {
  const data::ImportedTable read = data::parse_kernel_tuner(with(record), {.file = "f"});
  CHECK(read.report.records == 1);
  CHECK(read.report.lines == 2);
  REQUIRE(read.report.bad_lines.size() == 1);
  CHECK(read.report.bad_lines[0].number == 5);
  return read.report.bad_lines[0].reason;
}

}  // namespace

TEST_CASE("milliseconds become seconds, the latency is the median, the price compiling and benchmarking") {
  const data::ImportedTable read = data::parse_kernel_tuner(head + good + "}}");
  CHECK(read.report.complete());
  const data::Table& table = read.table;
  CHECK(table.device == "gpu");
  CHECK(table.kernel == "k");
  CHECK(table.problem == "64x32");
  CHECK(table.parameters == std::vector<data::Parameter>{{"x", {"16", "32", "64"}}, {"mode", {"row", "col"}}});
  CHECK(table.text(0) == "16,row");
  const Outcome& outcome = table.outcomes.at(0);
  REQUIRE(outcome.valid());
  CHECK(outcome.timing()->median.count() == doctest::Approx(1e-3).scale(0));
  CHECK(outcome.timing()->repeats.size() == 3);
  CHECK(outcome.compile_time.count() == doctest::Approx(0.5));
  CHECK(outcome.run_time.count() == doctest::Approx(0.02));
  CHECK(table.flops == doctest::Approx(7e6));  // 3.5e9 a second during 2 ms
}

TEST_CASE("a word in place of the time is a failure of that kind, with its price") {
  const auto fault = [](const std::string& time) {
    const auto read = data::parse_kernel_tuner(
        with(R"("32,row": {"x": 32, "mode": "row", "time": )" + time + R"(, "compile_time": 1000})"));
    CHECK(read.report.failed == 1);
    CHECK(read.table.outcomes.at(1).compile_time == Seconds(1));
    REQUIRE(read.table.outcomes.at(1).failure() != nullptr);
    return read.table.outcomes.at(1).failure()->fault;
  };
  CHECK(fault(R"("CompilationFailedConfig")") == Fault::DeviceCompileError);
  CHECK(fault(R"("RuntimeFailedConfig")") == Fault::RunError);
  CHECK(fault(R"("InvalidConfig")") == Fault::InvalidSchedule);
  CHECK(fault(R"("SomethingNew")") == Fault::Unknown);
  CHECK(fault("1e20") == Fault::Unknown);
}

TEST_CASE("a failure is told in place of any objective, or as an error") {
  const auto fault = [](const std::string& members) {
    const auto read =
        data::parse_kernel_tuner(with(R"("32,row": {"x": 32, "mode": "row", "compile_time": 1000, )" + members + "}"));
    REQUIRE(read.table.size() == 2);
    CHECK(read.table.outcomes[1].compile_time == Seconds(1));
    REQUIRE(read.table.outcomes[1].failure() != nullptr);
    return read.table.outcomes[1].failure()->fault;
  };
  CHECK(fault(R"("GFLOP/s": "CompilationFailedConfig")") == Fault::DeviceCompileError);
  CHECK(fault(R"("energy": "RuntimeFailedConfig")") == Fault::RunError);
  CHECK(fault(R"("__error__": "InvalidConfig")") == Fault::InvalidSchedule);
  // The value of a parameter is no failure, whatever its name.
  std::string text = with(R"("32,row": {"x": 32, "mode": "row", "time": 1})");
  for (auto at = text.find("row"); at != std::string::npos; at = text.find("row", at))
    text.replace(at, 3, "InvalidConfig");
  const data::ImportedTable read = data::parse_kernel_tuner(text);
  CHECK(read.table.text(1) == "32,InvalidConfig");
  CHECK(read.report.failed == 0);
}

TEST_CASE("a record that is none is skipped, counted and listed with line and reason") {
  using doctest::Contains;
  CHECK(reason(R"("a": {"x": 32, "time": 1})").c_str() == Contains("parameter 'mode' has no value"));
  CHECK(reason(R"("a": {"x": 48, "mode": "row", "time": 1})").c_str() == Contains("'x' has no value 48"));
  CHECK(reason(R"("a": {"x": 16.0, "mode": "row", "time": 1})").c_str() == Contains("recorded before"));
  CHECK(reason(R"("a": {"x": 32, "mode": "row"})").c_str() == Contains("no 'time'"));
  CHECK(reason(R"("a": {"x": 32, "mode": "row", "time": -1})").c_str() == Contains("is no latency"));
  CHECK(reason(R"("a": {"x": 32, "mode": "row", "time": 1, "times": [0]})").c_str() == Contains("is no latency"));
  CHECK(reason(R"("a": {"x": 32, "mode": "row", "time": 1, "compile_time": -3})").c_str() == Contains("is no time"));
  CHECK(reason(R"("a": {"x": 32, "mode": "row", "time": null})").c_str() == Contains("expected a number"));
  CHECK(reason(R"("a": [1, 2])").c_str() == Contains("expected '{'"));
  CHECK(reason(R"("a": {"x": 32, "mode": "row", "time": 0.002, "times": [2.0, 2.0]})").c_str() ==
        Contains("units are mixed"));
}

TEST_CASE("parameters are declared once, and work is a number that tasks take") {
  const std::string twice = head + good + "}}";
  const auto cache = twice.find("\"cache\"");
  REQUIRE(cache != std::string::npos);
  const std::string again = twice.substr(0, twice.size() - 1) + "," + twice.substr(cache);
  CHECK(data::parse_kernel_tuner(again).report.damage.find("declared twice") != std::string::npos);
  const std::string work = head + R"("16,row": {"x": 16, "mode": "row", "time": 2.0, "GFLOP/s": -1e308}}})";
  CHECK(data::parse_kernel_tuner(work).table.flops == 0);
}

TEST_CASE("of a text that ends early, what is whole counts and the damage is told") {
  const std::string whole = with(R"("32,row": {"x": 32, "mode": "row", "time": 1.0})");
  std::size_t complete = 0;
  for (std::size_t length = head.size() + good.size() + 1; length < whole.size(); ++length) {
    const data::ImportedTable read = data::parse_kernel_tuner(whole.substr(0, length), {.file = "f"});
    CHECK(read.report.records + read.report.bad == read.report.lines);
    CHECK(read.table.size() == read.report.records);
    CHECK(!read.report.damage.empty());
    complete += read.report.records == 2 ? 1U : 0U;
  }
  CHECK(complete == 2);  // only the closing braces are missing
}

TEST_CASE("texts that are no cache, hold nothing or name no device are errors that name the file") {
  using doctest::Contains;
  const auto parse = [](const std::string& text) { (void)data::parse_kernel_tuner(text, {.file = "some.json"}); };
  CHECK_THROWS_WITH_AS(parse(""), Contains("'some.json' is no Kernel Tuner cache"), FormatError);
  CHECK_THROWS_WITH_AS(parse("[1]"), Contains("is no Kernel Tuner cache"), FormatError);
  CHECK_THROWS_WITH_AS(parse("{\"cache\": {}}"), Contains("is no Kernel Tuner cache"), FormatError);
  CHECK_THROWS_WITH_AS(parse(head + "}}"), Contains("'some.json' holds no measurement"), FormatError);
  CHECK_THROWS_WITH_AS(parse(head + "\"a\": 1}}"), Contains("line 3: "), FormatError);
  std::string nameless = head + good + "}}";
  nameless.replace(nameless.find("gpu"), 3, "");
  CHECK_THROWS_WITH_AS(parse(nameless), Contains("names no device"), FormatError);
  CHECK(data::parse_kernel_tuner(nameless, {.device = "MI250X"}).table.device == "MI250X");
}

TEST_CASE("memory is in proportion to the text, whatever its first records make of its length") {
  std::string names = R"("x")", values = R"("x": [1])", row = R"("x": 1)";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = R"("p)" + std::to_string(i) + '"';
    names += ", " + name;
    values += ", " + name + ": [1]";
    row += ", " + name + ": 1";
  }
  std::string text = R"({"device_name": "gpu", "tune_params_keys": [)" + names + R"(], "tune_params": {)" + values +
                     R"(}, "cache": {)";
  for (int i = 0; i < 16; ++i) text += "\"\":0,";
  text += R"("1": {)" + row + R"(, "time": 1}}})";
  const data::ImportedTable read = data::parse_kernel_tuner(text);
  CHECK(read.report.bad == 16);
  CHECK(read.table.size() == 1);
  CHECK(read.table.choices.capacity() <= text.size());
  CHECK(read.table.outcomes.capacity() <= text.size());
}

TEST_CASE("a problem may be a number or a word") {
  const auto problem = [](const std::string& size) {
    std::string text = head + good + "}}";
    return data::parse_kernel_tuner(text.replace(text.find("[64, 32]"), 8, size)).table.problem;
  };
  CHECK(problem("4096") == "4096");
  CHECK(problem("\"callable\"") == "callable");
}

TEST_CASE("the parameters may follow the cache") {
  const std::string text = R"({"cache": {)" + good + R"(}, "device_name": "gpu", "tune_params": {"x": [16],
    "mode": ["row"]}, "tune_params_keys": ["x", "mode"]})";
  CHECK(data::parse_kernel_tuner(text).table.text(0) == "16,row");
}

TEST_CASE("a published cache: counts, best and price") {
  const std::string text = data::read_text(support::data_file("kernel_tuner_convolution_A100.json.gz"));
  const data::ImportedTable read = data::parse_kernel_tuner(text, {.file = "A100"});
  CHECK(data::summary(read.report) == "A100: 424 records (22 failed)");
  CHECK(read.table.device == "NVIDIA A100-PCIE-40GB");
  CHECK(read.table.flops == doctest::Approx(2.0 * 4096 * 4096 * 15 * 15));
  double best = 1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < read.table.size(); ++i) {
    if (read.table.cost_s(i) < best) best = read.table.cost_s(at = i);
  }
  CHECK(best == doctest::Approx(5.536e-4).epsilon(0.01));  // the mean of its repeats, as published
  CHECK(read.table.outcomes[at].timing()->repeats.size() == 32);
}
