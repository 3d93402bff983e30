// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/autotvm_log.hpp"

#include <doctest/doctest.h>

#include <map>

#include "support/data_file.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using data::autotvm::KnobKind;

namespace {

const std::string every_knob =
    R"({"input": ["llvm -keys=arm_cpu", "conv2d.arm", [["TENSOR", [1, 3], "float32"], [1, 1], null, 2.0, "NCHW", true], {}], )"
    R"("config": {"index": 17, "code_hash": null, "entity": [["tile_co", "sp", [-1, 8]], ["reorder_0", "re", [1, 0]], )"
    R"(["ann_reduce", "an", ["unroll", "none"]], ["unroll_kw", "ot", true], ["step", "ot", 512]]}, )"
    R"("result": [[0.25, 0.5], 0, 1.25, 1638984773.5], "version": 0.2, "tvm_version": "0.10.0"})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("every kind of knob is read, and arguments of every type") {
  const auto record = data::parse_autotvm_line(every_knob);
  CHECK(record.task->name == "conv2d.arm");
  CHECK(record.task->target == "llvm -keys=arm_cpu");
  REQUIRE(record.task->arguments.size() == 6);
  CHECK(*record.task->arguments[0].array()->at(0).text() == "TENSOR");
  CHECK(record.task->arguments[2].is_null());
  CHECK(record.index == 17);
  REQUIRE(record.knobs.size() == 5);
  CHECK(record.knobs[0].numbers == std::vector<std::int64_t>{-1, 8});
  CHECK(record.knobs[1].kind == KnobKind::Reorder);
  CHECK(record.knobs[2].words == std::vector<std::string>{"unroll", "none"});
  CHECK(std::get<bool>(record.knobs[3].value.value));
  CHECK(*record.knobs[4].value.integer() == 512);
  CHECK(record.result.mean_seconds() == 0.375);
  CHECK(record.result.median_seconds() == 0.375);
  CHECK(record.result.timestamp == 1638984773.5);
  CHECK(record.tvm_version == "0.10.0");
  CHECK(to_line(record) == every_knob);
  const std::string keywords = with(every_knob, "{}", R"({"layout": ["NCHW", 1]})");
  CHECK(to_line(data::parse_autotvm_line(keywords)) == keywords);
}

TEST_CASE("damaged lines are refused, never anything else") {
  Rng rng(11);
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string line = every_knob;
    for (std::size_t damage = 1 + rng.below(3); damage > 0; --damage) {
      line[rng.below(line.size())] = "0129-.,[]{}\"\\ abtfnu"[rng.below(21)];
    }
    try {
      const auto record = data::parse_autotvm_line(line);
      CHECK(data::parse_autotvm_line(to_line(record)) == record);
    } catch (const FormatError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a record without a task is not written") {
  CHECK_THROWS_WITH_AS((void)to_line(data::AutoTvmRecord{}), doctest::Contains("has no task"), std::invalid_argument);
}

TEST_CASE("a line that is no record is refused with the column and what was expected") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[]", "expected '{'"},
      {with(every_knob, R"("sp")", R"("zz")"), "unknown kind of knob 'zz'"},
      {with(every_knob, "[-1, 8]", "[-1, x]"), "expected an integer"},
      {with(every_knob, "\"version\": 0.2", "\"version\": 0.3"), "expected format version 0.2, not 0.3"},
      {with(every_knob, "\"version\": 0.2, ", ""), "no \"version\""},
      {with(every_knob, "\"entity\"", "\"x\""), "no \"entity\""},
      {with(every_knob, "\"result\"", "\"x\""), "no \"result\""},
      {with(every_knob, "0.25", "-0.25"), "expected run times above 0"},
      {with(every_knob, "NCHW", "NC\\uD800HW"), "surrogate"},
  };
  for (const auto& [line, reason] : cases) {
    CAPTURE(line);
    CHECK_THROWS_WITH_AS((void)data::parse_autotvm_line(line), doctest::Contains(reason.c_str()), FormatError);
  }
}

TEST_CASE("a published log is read line by line, and written back equal") {
  data::AutoTvmLog log(support::data_file("roller_v100_autotvm.log.gz"));
  std::map<std::string, int> templates;
  for (data::AutoTvmRecord record; log.next(record);) {
    ++templates[record.task->name];
    CHECK(data::parse_autotvm_line(to_line(record)) == record);
  }
  CHECK(log.report().complete());
  CHECK(log.report().records == 94);
  CHECK(log.report().failed == 40);
  CHECK(templates.size() == 4);
}
