// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/compiled_network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/values.hpp"

namespace {

using namespace tunewright;

/// Compiles a network with default schedules and compares every call, and the outputs, with the reference.
void check_network(const networks::Network& network, unsigned threads = 1) {
  const networks::Partition partition = networks::partition(network, host_target().with_threads(threads));
  const std::vector<schedule::Schedule> schedules = networks::default_schedules(partition.tasks, {.candidates = 4});
  const reference::Tensors values = networks::random_values(network, Rng(1));
  networks::CompiledNetwork compiled(network, partition, schedules, values, {.compile_threads = 2});
  const std::vector<reference::Comparison> calls = networks::compare_calls(compiled, values);
  REQUIRE(calls.size() == partition.calls.size());
  for (std::size_t c = 0; c < calls.size(); ++c)
    CHECK_MESSAGE(calls[c].passed, network.name << ": " << partition.tasks[partition.calls[c].task].task.name << ": "
                                                << calls[c].text());

  const std::vector<reference::Array> outputs = compiled.run(values);
  const reference::Tensors expected = networks::evaluate(network, values);
  REQUIRE(outputs.size() == network.outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const reference::Array& wanted = expected[network.outputs[o]];
    double largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(wanted.get(i)));
    CHECK(largest > 1e-3);  // values that vanish would show nothing
    CHECK(largest < 1e3);
    const reference::Comparison end = reference::compare(outputs[o], wanted, {1e-4 * largest, 0});
    CHECK_MESSAGE(end.passed, network.name << ": output " << o << ": " << end.text());
  }
}

}  // namespace

TEST_CASE("a small ResNet-18 computes what the reference does, call by call and as a whole") {
  check_network(networks::resnet18({.image_size = 32, .classes = 10, .width = 0.125}));
}
