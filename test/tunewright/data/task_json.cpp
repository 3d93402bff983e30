// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/task_json.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/hash.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"

namespace {

using namespace tunewright;

std::string refused(const std::string& line) {
  return test::refusal<std::exception>([&] { static_cast<void>(data::task_from_line(line)); });
}
std::string replaced(std::string text, const std::string& part, const std::string& by) {
  return text.replace(text.find(part), part.size(), by);
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a task is one line from which it comes back, graph and target included") {
  const Target halves{.isa = Isa::Avx512, .vector_datapath_bytes = 32};
  for (const Target& target :
       {Target{}, halves, gpu_target("A100"), gpu_target("H100"), arm_target("Raspberry Pi 4")}) {
    const Task task = program::make_task("matmul \"small\"\n8", program::operators::matmul_graph({8, 8, 8}), target, 3);
    const std::string line = data::to_line(task);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(data::describes_task(line));
    const Task back = program::with_graph(data::task_from_line(line));
    CHECK(back.name == task.name);
    CHECK(back.flops == task.flops);
    CHECK(back.weight == 3);
    CHECK(stable_hash(back) == stable_hash(task));
    CHECK(back.target.name == target.name);
    CHECK(back.target.architecture == target.architecture);
    CHECK(back.target.peak_gb_per_s == target.peak_gb_per_s);
    CHECK(back.target.vector_datapath_bytes == target.vector_datapath_bytes);
    REQUIRE(back.graph);
    CHECK(data::to_line(back) == line);
  }
}

TEST_CASE("a description that does not tell the width of units is one of whole registers") {
  const Task task = program::make_task("matmul", program::operators::matmul_graph({8, 8, 8}), Target{});
  const std::string silent = replaced(data::to_line(task), R"("vector_datapath_bytes":0,)", "");
  CHECK(data::task_from_line(silent).target == task.target);
  CHECK(stable_hash(data::task_from_line(silent)) == stable_hash(task));
}

TEST_CASE("a task without a graph is described without one") {
  const std::string line = data::to_line(toy::task());
  CHECK_FALSE(contains(line, "graph"));
  CHECK(line.starts_with(R"({"schema":2,"task":")"));
  CHECK(contains(
      line, R"("workload":"0000000000000080","flops":2e+06,"weight":1,"target":{"name":"generic-cpu","kind":"cpu")"));
  CHECK(stable_hash(data::task_from_line(line)) == stable_hash(toy::task()));
}

TEST_CASE("records and other lines are no descriptions of tasks") {
  Record record;
  record.outcome = toy::outcome({1, 1, 1, 1});
  for (const std::string& line : {data::to_line(record), std::string("{}"), std::string(),
                                  std::string("{\"schema\":3}"), std::string("{\"task\":1}"), std::string("[2]")}) {
    CAPTURE(line);
    CHECK_FALSE(data::describes_task(line));
    CHECK(contains(refused(line), "no description of a task"));
  }
  // Readers of records alone say why they skip it.
  CHECK(contains(test::refusal<std::exception>([] { static_cast<void>(data::from_line(data::to_line(toy::task()))); }),
                 "schema 2 is unknown"));
}

TEST_CASE("a description that is not whole, or of another task than it names, is refused") {
  const std::string line = data::to_line(toy::task());
  for (std::size_t size = 12; size < line.size(); size += 7)
    CHECK(refused(line.substr(0, size)) != "nothing was thrown");
  CHECK(contains(refused(replaced(line, "\"threads\":1", "\"threads\":2")), "but names"));
  CHECK(contains(refused(replaced(line, "\"threads\":1", "\"threads\":-1")), "expected a size"));
  CHECK(contains(refused(replaced(line, "\"workload\":\"0", "\"workload\":\"x")), "not 16 hexadecimal digits"));
  CHECK(contains(refused(replaced(line, "\"kind\":\"cpu\"", "\"kind\":\"fpga\"")), "\"cpu\" or \"gpu\""));
  CHECK(contains(refused(replaced(line, "sse4.2", "sse1")), "instruction set"));
  CHECK(contains(refused(replaced(line, "\"weight\":1", "\"weight\":0")), "'weight' is not above 0"));
  CHECK(contains(refused(R"({"schema":2,"task":"00"})"), "'target' is missing"));
}

TEST_CASE("names that are not UTF-8 are repaired, and so are those of operators and of older lines") {
  program::ComputeGraph graph;
  const program::Tensor a = graph.input("caf\xe9", {4});
  static_cast<void>(graph.compute("C", {{"i\xff", 4}}, [&](auto i) { return a(i[0]) + 1; }));
  const Task task = program::make_task("matmul \xff", std::make_shared<const program::ComputeGraph>(graph),
                                       Target{.name = "caf\xe9"});
  const std::string line = data::to_line(task);
  CHECK(nlohmann::json::accept(line));
  const Task back = program::with_graph(data::task_from_line(line));
  CHECK(back.name == "matmul \xef\xbf\xbd");
  CHECK(back.target.name == "caf\xef\xbf\xbd");
  CHECK(back.graph->op(0).name == "caf\xef\xbf\xbd");
  CHECK(stable_hash(back) == stable_hash(task));
  const Task older = data::task_from_line(replaced(line, "matmul \xef\xbf\xbd", "matmul \xff"));
  CHECK(data::to_line(older) == line);
  CHECK(data::to_line(data::task_from_line(replaced(line, "i\xef\xbf\xbd", "i\xff"))) == line);
}

TEST_CASE("an architecture that is not UTF-8, by which tasks are told apart, is refused") {
  Task task = toy::task();
  task.target.architecture = "sm_\xff";
  CHECK(contains(data::refused_member(task), "'architecture' of the target is not UTF-8: 'sm_\xef\xbf\xbd'"));
  task.target.architecture = "caf\xc3\xa9";
  CHECK(data::refused_member(task).empty());
}

TEST_CASE("members that a later writer adds are passed over") {
  const std::string line = data::to_line(toy::task());
  const std::string wider = replaced(replaced(line, "\"target\":{", "\"since\":[1,{\"a\":2}],\"target\":{\"npu\":{},"),
                                     "{\"schema\":2,", "{ \"schema\": 2, ");
  CHECK(stable_hash(data::task_from_line(wider)) == stable_hash(toy::task()));
}
