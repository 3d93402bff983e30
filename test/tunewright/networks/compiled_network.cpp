// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/compiled_network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/densenet.hpp"
#include "tunewright/networks/gpt2.hpp"
#include "tunewright/networks/inception_v3.hpp"
#include "tunewright/networks/mobilenet_v2.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/squeezenet.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/networks/vgg.hpp"
#include "tunewright/networks/vision_transformer.hpp"

namespace {

using namespace tunewright;

struct Compiled {
  networks::Network network;
  networks::Partition partition;
  std::vector<schedule::Schedule> schedules;
  reference::Tensors values;

  explicit Compiled(networks::Network of, unsigned threads = 1)
      : network(std::move(of)),
        partition(networks::partition(network, host_target().with_threads(threads))),
        schedules(networks::default_schedules(partition.tasks, {.candidates = 4})),
        values(networks::random_values(network, Rng(1))) {}

  [[nodiscard]] networks::CompiledNetwork compile() const {
    return {network, partition, schedules, values, {.compile_threads = 2}};
  }
};

/// Every call computes what the reference does of what it read, and the network what the reference does as a whole.
void check_network(const networks::Network& network, unsigned threads = 1) {
  const Compiled c(network, threads);
  networks::CompiledNetwork compiled = c.compile();
  const std::vector<reference::Comparison> calls = networks::compare_calls(compiled, c.values);
  REQUIRE(calls.size() == c.partition.calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK_MESSAGE(calls[i].passed, network.name << ": " << c.partition.tasks[c.partition.calls[i].task].task.name
                                                << ": " << calls[i].text());
  }
  const std::vector<reference::Array> outputs = compiled.run(c.values);
  const reference::Tensors expected = networks::evaluate(network, c.values);
  REQUIRE(outputs.size() == network.outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const reference::Array& wanted = expected[network.outputs[o]];
    double largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(wanted.get(i)));
    CHECK(largest > 1e-3);  // of values that vanish nothing could be seen
    CHECK(largest < 1e3);
    const reference::Comparison end = reference::compare(outputs[o], wanted, {1e-4 * largest, 0});
    CHECK_MESSAGE(end.passed, network.name << ": output " << o << ": " << end.text());
  }
}

constexpr networks::ImageClassifier small{.image_size = 32, .classes = 10, .width = 0.125};

}  // namespace

TEST_CASE("small image classifiers compute what the reference does, call by call and as a whole") {
  SUBCASE("ResNet-18") { check_network(networks::resnet18(small)); }
  SUBCASE("ResNet-50, two images") {
    check_network(networks::resnet50({.batch = 2, .image_size = 32, .classes = 10, .width = 0.0625}));
  }
  SUBCASE("Wide ResNet-50-2, two threads") {
    check_network(networks::wide_resnet50_2({.image_size = 32, .classes = 10, .width = 0.0625}), 2);
  }
  SUBCASE("MobileNet-V2") { check_network(networks::mobilenet_v2(small)); }
  SUBCASE("VGG-16") { check_network(networks::vgg16({.image_size = 32, .classes = 10, .width = 0.0625})); }
  SUBCASE("SqueezeNet 1.1") { check_network(networks::squeezenet1_1(small)); }
  SUBCASE("DenseNet-121") { check_network(networks::densenet121(small)); }
  SUBCASE("Inception-V3") { check_network(networks::inception_v3({.image_size = 75, .classes = 10, .width = 0.0625})); }
}

TEST_CASE("small transformers compute what the reference does, call by call and as a whole") {
  const networks::TransformerShape shape{.layers = 2, .hidden = 32, .heads = 4, .feed_forward = 48};
  SUBCASE("BERT") {
    check_network(networks::bert({.batch = 2, .tokens = 5, .shape = shape, .vocabulary = 30, .positions = 8}));
  }
  SUBCASE("GPT-2 over a prompt") {
    check_network(networks::gpt2({.batch = 2, .tokens = 6, .shape = shape, .vocabulary = 30, .positions = 8}));
  }
  SUBCASE("one step of GPT-2") {
    check_network(networks::gpt2({.tokens = 1, .past = 5, .shape = shape, .vocabulary = 30, .positions = 8}));
  }
  SUBCASE("ViT") {
    check_network(
        networks::vision_transformer({.batch = 2, .image_size = 12, .patch = 4, .shape = shape, .classes = 7}));
  }
}
