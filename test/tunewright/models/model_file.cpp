// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/model_file.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/linear.hpp"

namespace {

using namespace tunewright;

struct OtherFeatures : toy::Features {
  [[nodiscard]] FeatureSchema schema() const {
    FeatureSchema schema = toy::Features::schema();
    schema.version = 2;
    return schema;
  }
};
struct OtherColumns : toy::Features {
  std::string unit = "bytes";
  std::size_t columns = 4;
  [[nodiscard]] FeatureSchema schema() const {
    FeatureSchema schema = toy::Features::schema();
    schema.columns.resize(columns);
    schema.columns[1].unit = unit;
    return schema;
  }
};

template <class Model = models::Linear, class Featurizer = toy::Features>
std::string refused(const std::string& path) {
  return test::refusal<std::runtime_error>([&] { (void)models::load_model<Model>(path, Featurizer{}); });
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a model in a file is loaded with the featurizer and type that it was saved with, and no other") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  models::Linear model;
  const std::vector<toy::Tiles> tiles{{1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}};
  const FeatureBatch x = toy::Features{}.extract({}, toy::task(), tiles);
  model.fit(x, std::vector<float>{1, 0.5F, 0.25F}, {});
  models::save_model(path, model, toy::Features{});
  models::save_model(path, model, toy::Features{});  // replaces

  const auto loaded = models::load_model<models::Linear>(path, toy::Features{});
  std::vector<float> before(3), after(3);
  model.predict(x, before);
  loaded.predict(x, after);
  CHECK(before == after);

  const std::string trained = "'" + path + "': the model was trained on featurizer 'toy tiles' version 1";
  const std::string remedy = "; load it with that featurizer, or train it again";
  CHECK(refused<models::Linear, OtherFeatures>(path) == trained + ", and this one is 'toy tiles' version 2" + remedy);
  CHECK(refused<models::Linear, OtherColumns>(path) ==
        trained + " with other columns: column 1 was 'tile1' in 'log2', and is 'tile1' in 'bytes'" + remedy);
  OtherColumns fewer;
  fewer.unit = "log2";
  CHECK(test::refusal<std::runtime_error>([&] { (void)models::load_model<models::Linear>(path, fewer); }) ==
        trained + " with other columns: column 4 was 'tile4' in 'log2', and is missing" + remedy);
  CHECK(contains(refused<models::Gbdt>(path), "holds a 'models::Linear'"));
}

TEST_CASE("a model that does not name its featurizer tells the keys of both") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  std::ofstream(path, std::ios::binary) << [] {
    std::ostringstream saved;
    models::Linear{}.save(saved, stable_hash(toy::Features{}.schema()));
    return saved.str();
  }();
  (void)models::load_model<models::Linear>(path, toy::Features{});
  CHECK(contains(refused<models::Linear, OtherFeatures>(path), "the model was trained on feature schema"));
}

TEST_CASE("files that cannot be written, are missing or damaged are named") {
  const support::TemporaryFolder folder;
  const std::string nowhere = folder.file("no/model.safetensors"), cut = folder.file("cut.safetensors");
  CHECK(contains(
      test::refusal<std::runtime_error>([&] { models::save_model(nowhere, models::Linear{}, toy::Features{}); }),
      "cannot write '" + nowhere));
  CHECK(contains(refused(nowhere), "cannot read model '" + nowhere));
  std::ofstream(cut) << "{";
  CHECK(contains(refused(cut), cut));
}

TEST_CASE("options that are not stored are those of the model given") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  models::save_model(path, models::Gbdt{}, toy::Features{});
  CHECK(models::load_model(path, toy::Features{}, models::Gbdt{.rounds = 7}).rounds == 7);
}
