// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/record_json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

using namespace tunewright;

namespace {

Record timed() {
  Record record{.task = 0xfedcba9876543210,
                .target = 1,
                .task_name = "matmul \"8x8\"\n",
                .target_name = "cpu",
                .key = 0xffffffffffffffff,
                .config = "[[1,2],\"x\"]",
                .compiler = "llvm 19",
                .outcome = {},
                .seed = 0xffffffffffffffff,
                .round = 3,
                .slot = 12};
  record.timestamp = Seconds(1.7e9 + 0.125);
  record.outcome.result = Timing{.repeats = {Seconds(0.1), Seconds(1.0 / 3), Seconds(5e-324)},
                                 .median = Seconds(0.1),
                                 .median_absolute_deviation = Seconds(1e-17),
                                 .calls_per_repeat = 7,
                                 .stopped = StopReason::FarSlower};
  record.outcome.compile_time = Seconds(0.013);
  record.outcome.run_time = Seconds(0.2);
  return record;
}

std::string with(std::string line, const std::string& from, const std::string& to) {
  const auto at = line.find(from);
  REQUIRE(at != std::string::npos);
  return line.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a record survives the way through text, bit for bit") {
  CHECK(data::from_line(data::to_line(timed())) == timed());
  CHECK(data::to_line(timed()).find('\n') == std::string::npos);
  for (std::size_t i = 0; i < fault_names.size(); ++i) {
    Record failed = timed();
    failed.outcome.result = Failure{static_cast<Fault>(i), "why: \xc3\xa4"};
    CHECK(data::from_line(data::to_line(failed)) == failed);
  }
  for (const StopReason reason :
       {StopReason::Precise, StopReason::Budget, StopReason::FarSlower, StopReason::Extrapolated, StopReason::Slower}) {
    Record record = timed();
    std::get<Timing>(record.outcome.result).stopped = reason;
    CHECK(data::from_line(data::to_line(record)) == record);
  }
  Record guided = timed();
  guided.predicted = -1.0F / 3;
  guided.search_time = Seconds(0.04);
  guided.learn_time = Seconds(1e-3);
  CHECK(data::from_line(data::to_line(guided)) == guided);
}

TEST_CASE("reasons to stop are text that every version reads") {
  const std::pair<StopReason, const char*> names[] = {{StopReason::Precise, "precise"},
                                                      {StopReason::Budget, "budget"},
                                                      {StopReason::FarSlower, "far_slower"},
                                                      {StopReason::Extrapolated, "extrapolated"},
                                                      {StopReason::Slower, "slower"}};
  for (const auto& [reason, text] : names) {
    Record record = timed();
    std::get<Timing>(record.outcome.result).stopped = reason;
    CHECK(data::to_line(record).find("\"stopped\":\"" + std::string(text) + '"') != std::string::npos);
  }
}

TEST_CASE("text that is not UTF-8 is repaired instead of losing the measurement") {
  for (const std::string byte : {"\xff", "\x80"}) {  // none of UTF-8, and one within a character
    Record record = timed();
    record.outcome.result = Failure{Fault::CompileError, "bad byte " + byte + " here"};
    const Record read = data::from_line(data::to_line(record));
    CHECK(read.outcome.failure()->detail == "bad byte \xef\xbf\xbd here");
    CHECK(read.key == record.key);
  }
}

TEST_CASE("a line that is not a whole valid record is refused with a reason") {
  const std::string line = data::to_line(timed());
  const auto refused = [](const std::string& text, const char* reason) {
    CHECK_THROWS_WITH_AS((void)data::from_line(text), doctest::Contains(reason), std::exception);
  };
  refused("", "parse error");
  refused("[]", "");
  refused(line.substr(0, line.size() / 2), "parse error");
  refused(line + "}", "parse error");
  refused(with(line, "\"schema\":1", "\"schema\":2"), "schema 2");
  refused(with(line, "\"schema\":1", "\"schema\":0"), "schema 0");
  refused(with(line, "fedcba9876543210", "fedcba987654321"), "16 hexadecimal");
  refused(with(line, "fedcba9876543210", "FEDCBA9876543210"), "16 hexadecimal");
  refused(with(line, "fedcba9876543210", ""), "'task' is empty");
  refused(with(line, "\"median_s\":0.1", "\"median_s\":-0.1"), "negative");
  refused(with(line, "\"median_s\":0.1", "\"median_s\":null"), "type must be number");
  refused(with(line, "\"median_s\":0.1", "\"median_s\":0.0,\"was\":0.1"), "a latency is above 0");
  refused(with(line, "\"far_slower\"", "\"bored\""), "bored");
  refused(with(line, "\"config\"", "\"confi\""), "config");
  refused(with(line, "\"run_s\"", "\"learn_s\":-1,\"run_s\""), "'learn_s' is negative");
  refused(with(line, "\"run_s\"", "\"predicted\":1e39,\"run_s\""), "'predicted' is not finite");
  refused(with(line, "\"slot\":", "\"slot\":1.4e46,\"was\":"), "'slot' is 1.4e+46, not a whole number from 0");
  refused(with(line, "\"round\":", "\"round\":-1,\"was\":"), "'round' is -1, not a whole number from 0");
  refused(with(line, "\"schema\":1", "\"schema\":1.44e46"), "'schema' is 1.44e+46, not a whole number");
  refused(with(line, "\"calls\":", "\"calls\":4294967296,\"was\":"), "'calls' is 4294967296, not a whole number");
  refused(with(line, "\"seed\":", "\"seed\":\"7\",\"was\":"), "'seed' is \"7\", not a whole number");
  // An index reads the beginning of a line, where another task stands.
  refused(with(line, "\"slot\":", "\"task\":\"0000000000000001\",\"slot\":"),
          "names two tasks, fedcba9876543210 and 0000000000000001");
  Record failed = timed();
  failed.outcome.result = Failure{Fault::RunError, ""};
  refused(with(data::to_line(failed), "run_error", "bad_mood"), "bad_mood");
}

TEST_CASE("a number that no reader takes is not written, nor anything with it") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const std::string& number, auto change, const std::string& remedy = "give a") {
    std::vector<Record> records{timed(), timed()};
    change(records[1], std::get<Timing>(records[1].outcome.result));
    std::ostringstream out;
    const std::string named =
        "record 1, candidate ffffffffffffffff of task 'matmul \"8x8\"\n', has " + number + "; " + remedy;
    CHECK_THROWS_WITH_AS(data::write_journal(out, records), doctest::Contains(named.c_str()), std::invalid_argument);
    CHECK(out.str().empty());
    // The line itself is what a reader refuses.
    CHECK_THROWS_AS((void)data::from_line(data::to_line(records[1])), std::exception);
  };
  refused("'median_s' = 0", [](Record&, Timing& t) { t.median = Seconds(0); });
  refused("'median_s' = -1e-09", [](Record&, Timing& t) { t.median = Seconds(-1e-9); });
  refused("'median_s' = Infinity", [=](Record&, Timing& t) { t.median = Seconds(infinity); });
  refused("'median_s' = NaN", [=](Record&, Timing& t) { t.median = Seconds(nan); });
  refused("'mad_s' = NaN", [=](Record&, Timing& t) { t.median_absolute_deviation = Seconds(nan); });
  refused("'repeats_s[1]' = Infinity", [=](Record&, Timing& t) { t.repeats = {Seconds(1), Seconds(infinity)}; });
  refused("'repeats_s[0]' = -2", [](Record&, Timing& t) { t.repeats = {Seconds(-2), Seconds(1)}; });
  refused("'time' = -Infinity", [=](Record& r, Timing&) { r.timestamp = Seconds(-infinity); });
  refused("'compile_s' = -0.5", [](Record& r, Timing&) { r.outcome.compile_time = Seconds(-0.5); });
  refused("'search_s' = -1", [](Record& r, Timing&) { r.search_time = Seconds(-1); });
  refused("'learn_s' = -1", [](Record& r, Timing&) { r.learn_time = Seconds(-1); });
  refused("'predicted' that is not finite", [](Record& r, Timing&) { r.predicted = INFINITY; }, "leave it out");
  refused("'predicted' that is not finite", [](Record& r, Timing&) { r.predicted = NAN; }, "leave it out");
  // The first is named; non-finite ones are null, which every reader of JSON takes.
  refused("'compile_s' = NaN", [=](Record& r, Timing& t) {
    r.outcome.compile_time = Seconds(nan);
    r.outcome.run_time = Seconds(-1);
    t.median = Seconds(0);
    CHECK(data::to_line(r).find("\"compile_s\":null,") != std::string::npos);
  });
  refused("'run_s' = NaN", [=](Record& r, Timing&) { r.outcome.run_time = Seconds(nan); });
}

TEST_CASE("a full disk is told before a journal counts as written") {
  std::ofstream full("/dev/full");
  REQUIRE(full);
  CHECK_THROWS_WITH_AS(data::write_journal(full, std::vector{timed()}), doctest::Contains("space on the disk"),
                       std::runtime_error);
}

TEST_CASE("times of failures are checked too, and times of 0 are none to refuse") {
  Record failed = timed();
  failed.outcome.result = Failure{Fault::RunError, ""};
  failed.timestamp = failed.outcome.compile_time = failed.outcome.run_time = Seconds(0);
  std::ostringstream out;
  data::write_journal(out, std::vector{failed});
  CHECK(out.str() == data::to_line(failed) + "\n");
  failed.outcome.run_time = Seconds(-1);
  CHECK_THROWS_WITH_AS(data::write_journal(out, std::vector{failed}), doctest::Contains("'run_s' = -1"),
                       std::invalid_argument);
}

TEST_CASE("every prefix of a line is refused: a torn line is never taken for a record") {
  const std::string line = data::to_line(timed());
  for (std::size_t length = 0; length < line.size(); ++length) {
    CHECK_THROWS_AS((void)data::from_line(std::string_view(line).substr(0, length)), std::exception);
  }
}
