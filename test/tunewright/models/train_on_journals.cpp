// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/train_on_journals.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_space.hpp"
#include "tunewright/data/journal.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/model_file.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/tuner.hpp"

namespace {

using namespace tunewright;

/// Random searches of tasks, as tuners keep them.
std::vector<std::string> searched(const support::TemporaryFolder& folder, std::size_t tasks, std::size_t trials) {
  std::vector<std::string> paths;
  for (std::size_t t = 0; t < tasks; ++t) {
    paths.push_back(folder.file(std::to_string(t) + ".jsonl"));
    data::Journal journal({.path = paths.back()});
    Tuner<recipes::Random<toy::Space, toy::Measurer>> tuner{{.seed = t}};
    tuner.run(toy::task("toy " + std::to_string(t), t + 1), {.trials = trials}, journal);
  }
  return paths;
}

}  // namespace

TEST_CASE("what searches left behind is a model that ranks what it did not see, kept and read in one call each") {
  const support::TemporaryFolder folder;
  const auto paths = searched(folder, 3, 60);
  const auto trained = models::train_on_journals(models::Gbdt{}, paths, toy::Space{}, toy::Features{},
                                                 {.split = data::by_task, .test_share = 0.3, .seed = 1});
  CHECK(trained.journals.report.records == 180);
  CHECK(trained.split.train.size() == 120);
  CHECK(trained.split.test.size() == 60);
  CHECK(trained.scores.programs == 60);
  CHECK(trained.scores.pairwise_accuracy > 0.8);
  CHECK(trained.scores.top_5 >= trained.scores.top_1);

  const std::string path = folder.file("model.safetensors");
  models::save_model(path, trained.model, toy::Features{});
  const auto loaded = models::load_model<models::Gbdt>(path, toy::Features{});
  const FeatureBatch& x = trained.journals.dataset.x;
  std::vector<float> before(x.programs()), after(x.programs());
  trained.model.predict(x, before);
  loaded.predict(x, after);
  CHECK(before == after);
}

TEST_CASE("labels are relative to the best of the task, whichever side that is on") {
  const support::TemporaryFolder folder;
  const auto paths = searched(folder, 1, 40);
  const auto read = data::read_journals(paths, toy::Space{}, toy::Features{});
  struct Keeps {
    std::vector<float> y{};
    void predict(const FeatureBatch&, std::span<float> score) const { std::fill(score.begin(), score.end(), 0.0F); }
    void fit(const FeatureBatch&, std::span<const float> labels, std::span<const std::uint32_t>) {
      y.assign(labels.begin(), labels.end());
    }
  };
  const auto best = static_cast<std::size_t>(std::min_element(read.dataset.cost_s.begin(), read.dataset.cost_s.end()) -
                                             read.dataset.cost_s.begin());
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < read.dataset.size(); ++i)
    if (i != best) others.push_back(i);
  Keeps model;
  models::fit(model, read.dataset, others);
  REQUIRE(model.y.size() == 39);
  CHECK(model.y[0] == data::pick(read.dataset.labels(), others)[0]);
  CHECK(*std::max_element(model.y.begin(), model.y.end()) < 1);
  CHECK(models::judge(model, read.dataset, {}).programs == 0);
  CHECK(models::judge(model, read.dataset, others).pairwise_accuracy == doctest::Approx(0.5));
}

TEST_CASE("a share of 0 learns from everything; other shares are those of splits") {
  const support::TemporaryFolder folder;
  const auto paths = searched(folder, 1, 20);
  const auto all = models::train_on_journals(toy::Linear{}, paths, toy::Space{}, toy::Features{}, {.test_share = 0});
  CHECK(all.split.train.size() == 20);
  CHECK(all.split.test.empty());
  CHECK(all.scores.programs == 0);
  CHECK_FALSE(all.model.weights.empty());
  const auto train = [&](const models::JournalTraining& how) {
    return test::refusal(
        [&] { (void)models::train_on_journals(toy::Linear{}, paths, toy::Space{}, toy::Features{}, how); });
  };
  CHECK(train({.test_share = 1}).find("a test share of 1") != std::string::npos);
  CHECK(train({.split = data::by_task}).find("fewer than two tasks") != std::string::npos);
  CHECK(train({.split = data::by_target}).find("fewer than two targets") != std::string::npos);
  CHECK(train({.split = nullptr}).find("split") != std::string::npos);
}
