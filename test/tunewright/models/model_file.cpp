// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/model_file.hpp"

#include <doctest/doctest.h>

#include <fstream>
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

  CHECK(contains(refused<models::Linear, OtherFeatures>(path), "feature schema"));
  CHECK(contains(refused<models::Linear, OtherFeatures>(path), path));
  CHECK(contains(refused<models::Gbdt>(path), "holds a 'models::Linear'"));
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
