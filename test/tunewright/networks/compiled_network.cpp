// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/compiled_network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/measurers/simulated.hpp"
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
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/tuner.hpp"

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
  const std::vector<reference::Comparison> calls = compiled.compare_calls(c.values);
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

TEST_CASE("tensors share memory, and none that are needed at the same time overlap") {
  const Compiled c(networks::mobilenet_v2(small));
  const networks::CompiledNetwork compiled = c.compile();
  const std::vector<networks::Lifetime>& pieces = compiled.lifetimes();
  const networks::MemoryPlan& plan = compiled.memory();
  std::size_t apart = 0;
  for (std::size_t a = 0; a < pieces.size(); ++a) {
    apart += pieces[a].bytes;
    for (std::size_t b = 0; b < a; ++b) {
      if (pieces[a].first > pieces[b].last || pieces[b].first > pieces[a].last) continue;
      CHECK((plan.offsets[a] + pieces[a].bytes <= plan.offsets[b] ||
             plan.offsets[b] + pieces[b].bytes <= plan.offsets[a]));
    }
  }
  CHECK(plan.bytes < apart / 2);
  CHECK(plan.bytes >= networks::least_memory(pieces));
}

TEST_CASE("an inference can be repeated and depends on nothing but its inputs") {
  const networks::TransformerShape shape{.layers = 1, .hidden = 16, .heads = 2, .feed_forward = 16};
  const Compiled c(networks::bert({.tokens = 4, .shape = shape, .vocabulary = 9, .positions = 4}));
  networks::CompiledNetwork compiled = c.compile();
  const std::vector<reference::Array> first = compiled.run(c.values);
  reference::Tensors other = c.values;
  const networks::TensorId ids = networks::inputs(c.network)[0];
  other[ids].set(0, other[ids].get(0) == 0 ? 1 : 0);
  CHECK(compiled.run(other) != first);
  CHECK(compiled.run(c.values) == first);
  compiled.execute();
  CHECK(compiled.outputs() == first);
}

TEST_CASE("a call that computes something else is found") {
  const Compiled c(networks::resnet18({.image_size = 32, .classes = 10, .width = 0.0625}));
  networks::CompiledNetwork compiled = c.compile();
  reference::Tensors values = c.values;
  // The reference is told another bias of the dense layer than was compiled.
  const networks::TensorId bias = c.partition.calls.back().tensors[3];
  REQUIRE(c.network.graph->op(bias).name == "fc.bias");
  values[bias].set(3, values[bias].get(3) + 1);
  const std::vector<reference::Comparison> calls = compiled.compare_calls(values);
  CHECK(calls[calls.size() - 2].passed);
  CHECK_FALSE(calls.back().passed);
  CHECK(calls.back().mismatches == 1);
  CHECK(calls.back().worst_index() == std::vector<std::int64_t>{0, 3});
}

TEST_CASE("what does not belong together is refused") {
  Compiled c(networks::resnet18({.image_size = 32, .classes = 10, .width = 0.0625}));
  const auto message = [&] { return test::refusal([&] { (void)c.compile(); }); };
  const auto contains = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  c.network = networks::vgg16(small);
  CHECK(contains(message(), "the partition is not one of network 'vgg16'"));
  c.network = networks::resnet18({.image_size = 32, .classes = 10, .width = 0.0625});
  std::swap(c.schedules[0], c.schedules[1]);
  CHECK(contains(message(), "schedule 0 of network 'resnet18' is not one of task"));
  std::swap(c.schedules[0], c.schedules[1]);
  c.schedules.pop_back();
  CHECK(contains(message(), "17 schedules were given for the 18 tasks"));

  Compiled d(networks::resnet18({.image_size = 32, .classes = 10, .width = 0.0625}));
  networks::CompiledNetwork compiled = d.compile();
  CHECK(contains(test::refusal([&] { (void)compiled.run({}); }), "no array, or one of another type or shape"));
  CHECK(contains(test::refusal([&] { (void)compiled.value(100000); }), "does not keep tensor 100000"));
  d.values[1] = reference::Array();
  CHECK(contains(test::refusal([&] { (void)d.compile(); }), "tensor 1 ('conv1.weight')"));

  Compiled e(networks::bert({.tokens = 2,
                             .shape = {.layers = 1, .hidden = 8, .heads = 1, .feed_forward = 8},
                             .vocabulary = 5,
                             .positions = 2}));
  networks::CompiledNetwork text = e.compile();
  e.values[networks::inputs(e.network)[0]].set(1, 5);
  CHECK(contains(test::refusal([&] { (void)text.run(e.values); }), "element 1 of input 'input_ids' is 5"));
}

TEST_CASE("tasks that were tuned run with their best schedules, others with those they have") {
  using Recipe = recipes::Random<spaces::MultiLevelTiling, measurers::Simulated>;
  // [snippet-begin run]
  const networks::Network network = networks::squeezenet1_1({.image_size = 32, .width = 0.125});
  const networks::Partition partition = networks::partition(network, host_target().with_threads(1));
  std::vector<schedule::Schedule> schedules = networks::default_schedules(partition.tasks);

  // Tune what takes the most operations; the rest keeps its defaults.
  Tuner<Recipe> tuner{{.seed = 7}};
  for (std::size_t t = 0; t < partition.tasks.size(); ++t) {
    const WeightedTask& weighted = partition.tasks[t];
    if (weighted.weight * weighted.task.flops < 1e5) continue;
    const auto run = tuner.run(weighted.task, {.trials = 16, .batch = 8});
    if (run.best() != nullptr) schedules[t] = run.best()->candidate.config;
  }

  // Weights and inputs, by tensor of the graph: here random ones.
  const reference::Tensors values = networks::random_values(network, Rng(1));
  networks::CompiledNetwork compiled(network, partition, schedules, values);
  const std::vector<reference::Array> outputs = compiled.run(values);
  // [snippet-end run]
  REQUIRE(outputs.size() == 1);
  CHECK(outputs[0].shape() == std::vector<std::int64_t>{1, 1000});
  for (const reference::Comparison& call : compiled.compare_calls(values)) CHECK(call.passed);
}

TEST_CASE("a network of one's own") {
  // [snippet-begin build]
  networks::LayerBuilder layers;
  const program::Tensor image = layers.graph().input("image", {1, 16, 16, 3});
  const program::Tensor first = layers.conv(image, "first", {.channels = 8, .kernel = 3, .stride = 2, .padding = 1});
  const program::Tensor second = layers.conv(first, "second", {.channels = 8, .kernel = 3, .padding = 1});
  const program::Tensor sum = program::operators::add(layers.graph(), first, second);  // any operator
  const program::Tensor logits = networks::pooled_classifier(layers, sum, "classes", 10);
  const networks::Network network = layers.finish("mine", {logits});
  // [snippet-end build]
  CHECK(network.parameters == 27 * 8 + 16 + 72 * 8 + 16 + 90);
  CHECK(networks::multiply_accumulates(*network.graph) == 64 * 8 * (27 + 72) + 80);
  check_network(network);
}
