// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/ktt.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "support/data_file.hpp"
#include "support/temporary_folder.hpp"
#include "tunewright/data/read_table.hpp"

using namespace tunewright;
using doctest::Contains;

namespace {

std::string file(const std::string& results, const std::string& unit = "Microseconds") {
  return R"({"Metadata": {"Device": "gpu", "TimeUnit": ")" + unit + R"("}, "Results": [)" + results + "]}";
}
std::string result(int x, const std::string& status, const std::string& more = "") {
  return R"({"Configuration": [{"Name": "X", "Value": )" + std::to_string(x) + R"(, "ValueType": "UnsignedInt"}], )" +
         R"("KernelName": "k", "TotalDuration": 5, "Status": ")" + status + '"' + more + '}';
}

}  // namespace

TEST_CASE("a published file of the Kernel Tuning Toolkit, with hardware counters") {
  const data::ImportedTable read = data::read_table(support::data_file("ktt_convolution_2080Ti.json"));
  CHECK(read.report.records == 3);
  CHECK(read.report.failed == 1);
  CHECK(read.table.device == "NVIDIA GeForce RTX 2080 Ti");
  CHECK(read.table.kernel == "Convolution");
  CHECK(read.table.text(0) == "2,32,1,1,0,4096,4096,7,0");
  CHECK(read.table.cost_s(0) == doctest::Approx(17188e-6).scale(0));
  // 571940.299 us of overhead in all, of which 49364.01 + 40.31 + 10.649 us are not compiling
  CHECK(read.table.outcomes[0].compile_time.count() == doctest::Approx(0.52252533));
  CHECK(read.table.outcomes[0].run_time.count() == doctest::Approx(0.049414969 + 0.017188));
  CHECK(read.table.outcomes[2].failure()->fault == Fault::RunError);
}

TEST_CASE("each status is a fault of its own") {
  const auto read = data::parse_ktt(file(result(5, "Ok") + "," + result(4, "CompilationFailed") + "," +
                                         result(3, "ValidationFailed") + "," + result(2, "DeviceLimitsExceeded") + "," +
                                         result(1, "ComputationFailed") + "," + result(0, "Odd")));
  REQUIRE(read.table.size() == 6);
  CHECK(read.table.parameters[0].values == std::vector<std::string>{"0", "1", "2", "3", "4", "5"});
  CHECK(read.table.text(0) == "5");
  CHECK(read.table.cost_s(0) == doctest::Approx(5e-6).scale(0));
  const Fault expected[] = {Fault::DeviceCompileError, Fault::WrongResult, Fault::InvalidSchedule, Fault::RunError,
                            Fault::Unknown};
  for (std::size_t i = 0; i < 5; ++i) CHECK(read.table.outcomes[i + 1].failure()->fault == expected[i]);
}

TEST_CASE("parts that add up to the whole but for a rounding leave nothing for compiling") {
  const std::string parts = R"(, "TotalOverhead": 0.3, "DataMovementOverhead": 0.1, "SearcherOverhead": 0.2)";
  const auto read = data::parse_ktt(file(result(1, "Ok", parts)));
  REQUIRE(read.report.records == 1);
  CHECK(read.table.outcomes[0].compile_time == Seconds(0));
}

TEST_CASE("newer files say what compiling and profiling took") {
  const std::string parts =
      R"(, "TotalOverhead": 100, "DataMovementOverhead": 10, "ProfilingOverhead": 20, "CompilationOverhead": 60)";
  const auto read = data::parse_ktt(file(result(1, "Ok", parts)));
  REQUIRE(read.report.records == 1);
  CHECK(read.table.outcomes[0].compile_time.count() == doctest::Approx(60e-6).scale(0));
  CHECK(read.table.outcomes[0].run_time.count() == doctest::Approx(35e-6).scale(0));  // 10 and 20, and 5 of the kernel
}

TEST_CASE("what is no result is skipped; what is no file is an error") {
  const auto read = data::parse_ktt(
      file(result(1, "Ok") + "," + result(1, "Ok") + ", 7," + result(2, "Ok", R"(, "SearcherOverhead": 3)")),
      {.file = "f"});
  CHECK(read.report.records == 1);
  REQUIRE(read.report.bad == 3);
  CHECK(read.report.bad_lines[0].reason.c_str() == Contains("recorded before"));
  CHECK(read.report.bad_lines[1].reason.c_str() == Contains("expected '{'"));
  CHECK(read.report.bad_lines[2].reason.c_str() == Contains("a price of -3"));
  const std::string whole = file(result(1, "Ok") + "," + result(2, "Ok"));
  const auto cut = data::parse_ktt(whole.substr(0, whole.size() - 10), {.file = "f"});
  CHECK(cut.report.records == 1);
  CHECK(cut.report.bad_lines[0].reason == "cut short or not JSON");
  CHECK(!cut.report.damage.empty());

  CHECK_THROWS_WITH_AS((void)data::parse_ktt(file("", "Microseconds"), {.file = "f"}),
                       Contains("'f' holds no measurement"), FormatError);
  CHECK_THROWS_WITH_AS((void)data::parse_ktt(file(result(1, "Ok"), "Ticks"), {.file = "f"}),
                       Contains("'ticks' is unknown"), FormatError);
  CHECK_THROWS_WITH_AS((void)data::parse_ktt(R"({"Results": []})", {.file = "f"}), Contains("before 'Results'"),
                       FormatError);
}

TEST_CASE("the first key tells the format of a file") {
  const support::TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    std::ofstream(folder.file("table.json")) << text;
    return data::read_table(folder.file("table.json"), {.device = "d"}).table;
  };
  const std::string cache = R"("kernel_name": "k", "tune_params_keys": ["x"], "tune_params": {"x": [1]},
    "cache": {"1": {"x": 1, "time": 2}}})";
  CHECK(read(R"({"schema_version": "1.1.0", "device_name": "gpu", )" + cache).kernel == "k");
  const std::string t4 = R"("results": [{"configuration": {"x": 1}, "times": {"runtimes": [2]},
    "invalidity": "correct", "measurements": [{"name": "time", "value": 2, "unit": "ms"}]}]})";
  CHECK(read(R"({ "schema_version": "1.0.0", )" + t4).cost_s(0) == doctest::Approx(2e-3).scale(0));
  CHECK(read("{" + t4).cost_s(0) == doctest::Approx(2e-3).scale(0));
  for (const char* text : {"", "[1]", R"({"schema_version")", R"({"schema_version": })", R"({"schema_version": 1})"})
    CHECK_THROWS_WITH_AS((void)read(text), Contains("is no Kernel Tuner cache"), FormatError);

  CHECK(data::read_table(support::data_file("t4_convolution_A100.json"), {.device = "A100"}).report.records == 4);
  CHECK(data::read_table(support::data_file("kernel_tuner_convolution_A100.json.gz")).report.records == 424);
  CHECK_THROWS_WITH_AS((void)data::read_table(support::data_file("bennu_x86_matmul.json")),
                       Contains("is no Kernel Tuner cache, but a log of TVM's auto_scheduler"), FormatError);
  CHECK_THROWS_WITH_AS((void)read(R"({"input": ["cuda", "conv2d", []], "result": [[1], 0, 1, 1]})"),
                       Contains("read it by data::read_autotvm_table"), FormatError);
  CHECK_THROWS_AS((void)data::read_table("/nonexistent"), std::runtime_error);
}
