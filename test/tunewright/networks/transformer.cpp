// SPDX-License-Identifier: Apache-2.0
#include "tunewright/networks/transformer.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "support/evaluated.hpp"
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/gpt2.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/networks/vision_transformer.hpp"
#include "tunewright/reference/compare.hpp"

using namespace tunewright;
using networks::Network;

namespace {

constexpr networks::TransformerShape small{.layers = 2, .hidden = 16, .heads = 2, .feed_forward = 24};

networks::Gpt2Options gpt2(std::int64_t tokens, std::int64_t past) {
  return {.batch = 2, .tokens = tokens, .past = past, .shape = small, .vocabulary = 11, .positions = 9};
}

/// Gives each source of `network` the values of what is called so in another network.
reference::Tensors values_by_name(const Network& network, const Network& other, const reference::Tensors& values) {
  std::map<std::string, networks::TensorId> named;
  for (networks::TensorId id = 0; id < other.graph->size(); ++id) named[other.graph->op(id).name] = id;
  reference::Tensors found(network.graph->size());
  for (networks::TensorId id = 0; id < network.graph->size(); ++id) {
    if (network.graph->op(id).role == program::Role::Constant) found[id] = values[named.at(network.graph->op(id).name)];
  }
  return found;
}

}  // namespace

TEST_CASE("a step of decoding continues a prompt: the last logits of the longer prompt, and its caches") {
  const Network longer = networks::gpt2(gpt2(5, 0));
  const Network prompt = networks::gpt2(gpt2(4, 0));
  const Network step = networks::gpt2(gpt2(1, 4));
  const reference::Tensors all = networks::evaluate(longer, networks::random_values(longer, Rng(3)));
  const networks::TensorId ids = networks::inputs(longer)[0];

  reference::Tensors first = values_by_name(prompt, longer, all);
  first[ids] = reference::Array(program::ScalarType::Int32, {8});
  reference::Tensors next = values_by_name(step, longer, all);
  next[ids] = reference::Array(program::ScalarType::Int32, {2});
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t t = 0; t < 4; ++t) first[ids].set(4 * b + t, all[ids].get(5 * b + t));
    next[ids].set(b, all[ids].get(5 * b + 4));
  }
  first = networks::evaluate(prompt, std::move(first));
  const std::vector<networks::TensorId> given = networks::inputs(step);
  REQUIRE(given.size() == prompt.outputs.size());  // ids, then caches as the prompt returns them
  for (std::size_t i = 1; i < given.size(); ++i) next[given[i]] = first[prompt.outputs[i]];
  next = networks::evaluate(step, std::move(next));

  const reference::Array& wanted = all[longer.outputs[0]];
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t w = 0; w < 11; ++w)
      CHECK(next[step.outputs[0]].get(b * 11 + w) == doctest::Approx(wanted.get((b * 5 + 4) * 11 + w)).epsilon(1e-4));
  }
  for (std::size_t o = 1; o < step.outputs.size(); ++o)
    CHECK(reference::compare(next[step.outputs[o]], all[longer.outputs[o]], {1e-5, 1e-5}).passed);
}

TEST_CASE("causal attention does not see what comes later") {
  const Network network = networks::gpt2(gpt2(4, 0));
  const reference::Tensors values = networks::random_values(network, Rng(5));
  reference::Tensors changed = values;
  const networks::TensorId ids = networks::inputs(network)[0];
  changed[ids].set(3, static_cast<double>((static_cast<int>(values[ids].get(3)) + 1) % 11));
  const networks::TensorId logits = network.outputs[0];
  const reference::Array before = networks::evaluate(network, values)[logits];
  const reference::Array after = networks::evaluate(network, changed)[logits];
  for (std::size_t i = 0; i < 3 * 11; ++i) CHECK(before.get(i) == after.get(i));
  bool differs = false;
  for (std::size_t i = 3 * 11; i < 4 * 11; ++i) differs = differs || before.get(i) != after.get(i);
  CHECK(differs);
}

TEST_CASE("sequences of a batch do not see each other") {
  const networks::BertOptions both{.batch = 2, .tokens = 3, .shape = small, .vocabulary = 11, .positions = 4};
  networks::BertOptions single = both;
  single.batch = 1;
  const Network pair = networks::bert(both);
  const Network one = networks::bert(single);
  const reference::Tensors all = networks::evaluate(pair, networks::random_values(pair, Rng(7)));
  reference::Tensors second = values_by_name(one, pair, all);
  for (const networks::TensorId input : networks::inputs(one)) {
    second[input] = reference::Array(program::ScalarType::Int32, {3});
    for (std::size_t t = 0; t < 3; ++t) second[input].set(t, all[input].get(3 + t));
  }
  second = networks::evaluate(one, std::move(second));
  for (std::size_t c = 0; c < 16; ++c)
    CHECK(second[one.outputs[1]].get(c) == doctest::Approx(all[pair.outputs[1]].get(16 + c)).epsilon(1e-5));
}

TEST_CASE("options that make no transformer are refused") {
  CHECK_REFUSES("hidden is 16 and heads is 3", (void)networks::bert({.shape = {.hidden = 16, .heads = 3}}));
  CHECK_REFUSES("layers is 0; give at least 1", (void)networks::gpt2({.shape = {.layers = 0}}));
  CHECK_REFUSES("batch is 0", (void)networks::bert({.batch = 0}));
  CHECK_REFUSES("positions minus tokens plus 1 is 0", (void)networks::bert_base(1, 513));
  CHECK_REFUSES("past plus 1 is 0", (void)networks::gpt2_decode(1, -1));
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  CHECK_REFUSES("batch is 4611686018427387904; give a number up to 2147483647", (void)networks::bert_tiny(huge, 4));
  CHECK_REFUSES("tokens is -4611686018427387904; give a number above 0", (void)networks::bert_tiny(1, -huge));
  CHECK_REFUSES("past is 4611686018427387904", (void)networks::gpt2_decode(1, huge));
  CHECK_REFUSES("hidden is 4611686018427387904", (void)networks::bert({.shape = {.hidden = huge}}));
  CHECK_REFUSES("positions minus past minus tokens plus 1 is 0", (void)networks::gpt2_decode(1, 1024));
  CHECK_REFUSES("image_size is 224 and patch is 15", (void)networks::vision_transformer({.patch = 15}));
  CHECK_REFUSES("classes is 0", (void)networks::vision_transformer({.classes = 0}));
  CHECK_REFUSES("classes is 4611686018427387904", (void)networks::vision_transformer({.classes = huge}));
  CHECK_REFUSES("image_size is 68719476736",
                (void)networks::vision_transformer({.image_size = std::int64_t{16} << 32}));
}
