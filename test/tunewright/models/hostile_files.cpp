// SPDX-License-Identifier: Apache-2.0
// Files of models whose numbers fit together, and that no model wrote.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/network_lessons.hpp"
#include "support/refusal.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/gaussian_process.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"

using namespace tunewright;

namespace {

/// The file of the model, trained on little.
template <class Model>
data::TensorFile file_of(Model model) {
  const auto lesson = test::make_lesson(20, 3);
  if constexpr (requires { model.training.epochs; }) model.training.epochs = 1;
  model.fit(lesson.x, lesson.y, lesson.group);
  std::stringstream file;
  model.save(file, 7);
  return data::read_safetensors(file);
}

/// Why the file is refused.
template <class Model>
std::string refused(const data::TensorFile& file) {
  std::stringstream stream;
  data::write_safetensors(stream, file.tensors, file.metadata);
  return test::refusal<std::runtime_error>([&] { Model{}.load(stream, 7); });
}

/// Why the file is refused that says `value` of the size of the network.
template <class Model>
std::string refused_with(data::TensorFile file, const std::string& size, const std::string& value) {
  file.metadata.at("shape." + size) = value;
  return refused<Model>(file);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Gives the tensor no numbers.
void empty(data::TensorFile& file, const std::string& name, const std::vector<std::size_t>& shape) {
  for (data::Tensor& tensor : file.tensors) {
    if (tensor.name == name) tensor = data::Tensor::of(name, shape, std::span<const float>());
  }
}

}  // namespace

TEST_CASE("a file of a network without layers, heads or attention is refused, not read beyond its weights") {
  const data::TensorFile lstm = file_of(models::BiLstmAttention{.width = 4, .layers = 1});
  CHECK(contains(refused_with<models::BiLstmAttention>(lstm, "layers", "0"), "layers is 0"));
  CHECK(contains(refused_with<models::BiLstmAttention>(lstm, "steps", "0"), "steps is 0"));
  CHECK(contains(refused_with<models::BiLstmAttention>(lstm, "steps", "1025"), "steps"));
  CHECK(contains(refused_with<models::BiLstmAttention>(lstm, "attention_heads", "0"), "heads"));
  CHECK(contains(refused_with<models::BiLstmAttention>(lstm, "layers", "1000000"), "'1000000' is no layers"));

  data::TensorFile mlp = file_of(models::Mlp{.hidden = 4});
  empty(mlp, "output.weight", {4, 0});
  empty(mlp, "output.bias", {1, 0});
  CHECK(contains(refused_with<models::Mlp>(mlp, "heads", "0"), "heads is 0"));

  const data::TensorFile primitive = file_of(models::PrimitiveAttention{.width = 8, .attention_heads = 2});
  CHECK(contains(refused_with<models::PrimitiveAttention>(primitive, "heads", "0"), "heads is 0"));
  CHECK(contains(refused_with<models::PrimitiveAttention>(primitive, "heads", "1025"), "heads"));
  CHECK(contains(refused_with<models::PrimitiveAttention>(primitive, "width", "10"), "width is 10"));
}

TEST_CASE("a file of a network whose running variance is negative is refused") {
  const data::TensorFile file =
      file_of(models::PatternAware{.hidden = 8, .dataflow_columns = 2, .training = {.least_steps = 1}});
  const auto refused_for = [&](std::size_t position, float value) {
    data::TensorFile changed = file;
    for (data::Tensor& tensor : changed.tensors) {
      if (tensor.name != "statistics") continue;
      std::vector<float> numbers = tensor.values<float>();
      numbers[position] = value;
      tensor = data::Tensor::of("statistics", numbers);
    }
    return refused<models::PatternAware>(changed);
  };
  // Eight means, then eight variances.
  CHECK(contains(refused_for(8, -1e-3F), "'statistics' holds a variance that is negative"));
  CHECK(contains(refused_for(15, -1), "'statistics' holds a variance that is negative"));
  CHECK(refused_for(15, 0) == "nothing was thrown");
  CHECK(refused_for(7, -1) == "nothing was thrown");
}

TEST_CASE("a file of a Gaussian process takes no more memory than is foreseen") {
  data::TensorFile file = file_of(models::GaussianProcess{.threads = 1});
  for (data::Tensor& tensor : file.tensors) {
    if (tensor.name == "mean" || tensor.name == "deviation")
      tensor = data::Tensor::of(tensor.name, std::vector<double>{});
    if (tensor.name == "inputs") tensor = data::Tensor::of("inputs", {20, 0}, std::span<const double>());
  }
  CHECK(contains(refused<models::GaussianProcess>(file), "no columns"));

  constexpr std::size_t many = 10'001;  // 800 MB of distances, and as much of their factor
  for (data::Tensor& tensor : file.tensors) {
    if (tensor.name == "mean") tensor = data::Tensor::of("mean", std::vector<double>{0});
    if (tensor.name == "deviation") tensor = data::Tensor::of("deviation", std::vector<double>{1});
    if (tensor.name == "labels") tensor = data::Tensor::of("labels", std::vector<double>(many, 0.5));
    if (tensor.name == "inputs") {
      const std::vector<double> inputs(many, 1.0);
      tensor = data::Tensor::of("inputs", {many, 1}, std::span<const double>(inputs));
    }
  }
  CHECK(contains(refused<models::GaussianProcess>(file), "most_programs"));
}

namespace {

/// The file of a network of one head, with another one beside it.
data::TensorFile with_two_heads(data::TensorFile file) {
  file.metadata.at("shape.heads") = "2";
  for (data::Tensor& tensor : file.tensors) {
    if (tensor.name != "output.weight" && tensor.name != "output.bias") continue;
    std::vector<std::size_t> shape = tensor.shape;
    shape.back() = 2;
    std::size_t numbers = 1;
    for (const std::size_t extent : shape) numbers *= extent;
    const std::vector<float> values(numbers, 0.1F);
    tensor = data::Tensor::of(tensor.name, shape, std::span<const float>(values));
  }
  return file;
}

template <class Model>
void check_training_of_two_heads(const Model& model) {
  const auto lesson = test::make_lesson(20, 3);
  const data::TensorFile file = with_two_heads(file_of(model));
  std::stringstream stream;
  data::write_safetensors(stream, file.tensors, file.metadata);
  Model loaded;
  loaded.load(stream, 7);
  loaded.train_from_current(lesson.x, lesson.y, lesson.group, {.epochs = 1, .least_steps = 1});
  for (const float score : test::predicted(loaded, lesson.x)) CHECK(std::isfinite(score));
}

}  // namespace

TEST_CASE("a network that a file gives a second head learns labels of the first one alone") {
  check_training_of_two_heads(models::BiLstmAttention{.width = 8, .layers = 1, .attention_heads = 2});
  check_training_of_two_heads(models::PatternAware{.hidden = 16, .dataflow_columns = 2});
}
