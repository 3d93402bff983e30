// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/graph_json.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "support/refusal.hpp"
#include "support/workloads.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/program/print.hpp"
#include "tunewright/program/task.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::program;

std::string malformed(const std::string& text) {
  return test::refusal<FormatError>([&] { static_cast<void>(graph_from_json(text)); });
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// C = max(A + 0.5, 0), by hand.
const std::string small =
    R"([["A","input","float32",[["d0",4,"spatial"]],"none",null],)"
    R"(["C","computed","float32",[["i",4,"spatial"]],"none",)"
    R"(["max","float32",["add","float32",["load","float32",0,[[0,[1,0]]]],["constant","float32",0.5]],)"
    R"(["constant","float32",0]]]])";

}  // namespace

TEST_CASE("a small graph is the text that the format says, and the text is that graph") {
  ComputeGraph graph;
  const Tensor a = graph.input("A", {4});
  graph.compute("C", {{"i", 4}}, [&](auto i) { return max(a(i[0]) + 0.5, 0); });
  CHECK(to_json(graph) == small);
  CHECK(stable_hash(graph_from_json(small)) == stable_hash(graph));
  CHECK(graph_from_json("[]").size() == 0);
  CHECK(to_json(graph_from_json(" [ [\"A\", \"input\", \"int8\", [[\"d0\", 4, \"spatial\"]], \"none\", null] ] ")) ==
        R"([["A","input","int8",[["d0",4,"spatial"]],"none",null]])");
}

TEST_CASE("every operator of the library comes back with its hash, its names and its text") {
  Rng rng(3);
  for (const test::Workload& workload : test::workloads()) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      CAPTURE(workload.name);
      const auto graph = workload.make(rng);
      const std::string text = to_json(*graph);
      const ComputeGraph back = graph_from_json(text);
      CHECK(stable_hash(back) == stable_hash(*graph));
      CHECK(to_json(back) == text);
      CHECK(to_text(back) == to_text(*graph));
    }
  }
}

TEST_CASE("quotients, remainders, truth values and numbers that are not finite survive") {
  ComputeGraph graph;
  const Tensor a = graph.input("a \"quoted\"", {3, 5}, ScalarType::Int8);
  const auto range = [](Var) { return Range{0, 14}; };
  graph.compute("flat", {{"i", 15}}, [&](auto i) {
    const IndexExpr row = IndexExpr::quotient(i[0], 5, range), column = IndexExpr::remainder(i[0], 5, range);
    const Expr value = cast(a(row, column), ScalarType::Float64);
    const Expr low = constant(-std::numeric_limits<double>::infinity(), ScalarType::Float64);
    return select(in_bounds(i[0] - 1, 14) && logical_not(equal(value, constant(0.1, ScalarType::Float64))), value, low);
  });
  const std::string text = to_json(graph);
  CHECK(contains(text, "\"quotient\""));
  CHECK(contains(text, "\"remainder\""));
  CHECK(contains(text, "-Infinity"));
  const ComputeGraph back = graph_from_json(text);
  CHECK(stable_hash(back) == stable_hash(graph));
  CHECK(back.op(0).name == "a \"quoted\"");
}

TEST_CASE("text that is no graph is refused with the column and what was expected") {
  CHECK(contains(malformed(""), "column 1: expected '['"));
  CHECK(contains(malformed(small.substr(0, small.size() - 1)), "the text ends"));
  CHECK(contains(malformed(small + "x"), "end of the record"));
  const auto replaced = [](const std::string& part, const std::string& by) {
    std::string text = small;
    return text.replace(text.find(part), part.size(), by);
  };
  CHECK(contains(malformed(replaced("\"input\"", "\"output\"")), "'output' is no role of a tensor"));
  CHECK(contains(malformed(replaced("float32", "float31")), "'float31' is no type"));
  CHECK(contains(malformed(replaced("\"add\"", "\"modulo\"")), "'modulo' is no operation"));
  CHECK(contains(malformed(replaced("\"spatial\"", "\"temporal\"")), "'temporal' is no kind of axis"));
  CHECK(contains(malformed(replaced("\"none\"", "\"mean\"")), "'mean' is no combiner"));
  // What a graph refuses, by its own message.
  CHECK(contains(malformed(replaced("\"load\",\"float32\",0", "\"load\",\"float32\",7")), "reads tensor 7"));
  CHECK(contains(malformed(replaced("[\"d0\",4", "[\"d0\",0")), "extent 0"));
  CHECK(contains(malformed(replaced("[0,[1,0]]", "[0,[1,9]]")), "variable 9"));
  CHECK(contains(malformed(replaced("[0,[1,0]]", "[1,[1,0]]")), "at indices from 1 to 4 of dimension 0"));
  CHECK(contains(malformed(R"([["C","computed","int8",[["i",4,"spatial"]],"none",["constant","int8",1000]]])"),
                 "is 1000, which is no int8"));
  CHECK(contains(malformed(replaced("[1,0]", "[1,\"quotient\",[0,[1,0]],1]")), "a divisor above 1"));
  CHECK(contains(malformed(replaced("[1,0]", "[1,\"power\",[0,[1,0]],2]")), "a quotient or a remainder"));
  CHECK(contains(malformed(replaced("[0,[1,0]]", "[9223372036854775807,[1,0]]")), "at most 2^31"));
  // Coefficients that would be added up, or multiplied by the divisor.
  const std::string merged = "expected terms that cannot be merged";
  CHECK(contains(malformed(replaced("[1,0]", "[1,0],[1,0]")), merged));
  const auto quotient_and_remainder = [&](const std::string& coefficient) {
    return replaced("[1,0]", "[" + coefficient + R"(,"quotient",[0,[1,0]],4],[1,"remainder",[0,[1,0]],4])");
  };
  CHECK(contains(malformed(quotient_and_remainder("4")), merged));
  CHECK(malformed(quotient_and_remainder("3")) == "nothing was thrown");
  const std::string huge_remainder = R"([2147483648,"remainder",[0,[1,0]],2147483648])";
  CHECK(contains(
      malformed(replaced("[1,0]", huge_remainder + "," + huge_remainder + R"(,[1,"quotient",[0,[1,0]],2147483648])")),
      merged));
  std::string deep;
  for (int level = 0; level < 100000; ++level) deep += R"(["negate","float32",)";
  CHECK(contains(malformed(R"([["C","computed","float32",[["i",4,"spatial"]],"none",)" + deep), "fewer levels"));
}

TEST_CASE("coefficients that overflow with the extents of their axes are refused") {
  // (2^22 - 1) * 2^31 is below 2^53; 2^22 * 2^31 + 1 is not, and 2^40 * 2^31 exceeds 64 bits.
  const auto with_extent = [](const std::string& extent) {
    return malformed(R"([["C","computed","int64",[["i",)" + extent +
                     R"(,"spatial"]],"none",["index","int64",[1,[2147483648,0]]]]])");
  };
  CHECK(with_extent("4194304") == "nothing was thrown");
  for (const char* extent : {"4194305", "1099511627776"})
    CHECK(contains(with_extent(extent), "operator 'C': its body has an index that adds up terms of more than"));
}

TEST_CASE("a graph has no more levels than are read") {
  ComputeGraph graph;
  graph.compute("C", {{"i", 4}}, [&](auto) {
    Expr e = constant(1, ScalarType::Float32);
    for (std::uint32_t level = 1; level < most_body_levels; ++level) e = -e;
    return e;
  });
  CHECK(stable_hash(graph_from_json(to_json(graph))) == stable_hash(graph));
}

TEST_CASE("a task carries its graph as text, from which the task is complete again") {
  Rng rng(1);
  const auto graph = test::workloads().front().make(rng);
  const Task task = make_task("matmul", graph, Target{});
  CHECK(task.graph_json == to_json(*graph));
  Task told = task;
  told.graph = nullptr;
  const Task complete = with_graph(told);
  REQUIRE(complete.graph);
  CHECK(stable_hash(*complete.graph) == task.workload_hash);
  CHECK(with_graph(task).graph == graph);  // nothing to do

  Task recorded = told;
  recorded.graph_json.clear();
  CHECK(with_graph(recorded).graph == nullptr);
  Task other = told;
  other.workload_hash += 1;
  CHECK(contains(test::refusal([&] { static_cast<void>(with_graph(other)); }), "is the graph of workload"));
  other.graph_json = "[";
  CHECK(contains(test::refusal([&] { static_cast<void>(with_graph(other)); }), "is no graph: column"));
}
