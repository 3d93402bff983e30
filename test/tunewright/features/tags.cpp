// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/tags.hpp"

#include <doctest/doctest.h>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"

using namespace tunewright;

static_assert(FeaturizerFor<features::Tags, toy::Space>);
static_assert(OneRowFeaturizer<features::Tags>);

TEST_CASE("bits of what a task computes, how much and how often") {
  Task task = toy::task("depthwise_conv2d 56");
  task.flops = 1023;
  task.weight = 3;
  const std::vector<toy::Tiles> tiles(3);
  const FeatureBatch batch = features::Tags{}.extract(toy::Space{}, task, std::span<const toy::Tiles>(tiles));
  REQUIRE(batch.rows() == 3);
  const std::vector<float> row(batch.row(2).begin(), batch.row(2).end());
  CHECK(row == std::vector<float>{0, 1, 1, 0, 0, 0, 0, 0, 0, 10, 2});
  CHECK(features::Tags{}.schema().columns.size() == row.size());
}

TEST_CASE("TenSet's nine bits of a printed computation") {
  const features::Tags tags{.tags = features::tenset_tags()};
  const auto row = tags.numbers("compute(b, i, j) += A[i, k]*B[k, j]\nrelu = max(dense, 0f)", 0);
  CHECK(row == std::vector<float>{1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1});

  CHECK(tags.numbers("T_add", -1, NAN)[2] == 1);
  CHECK(tags.numbers("T_add", -1, NAN)[9] == 0);
  CHECK(tags.numbers("T_add", -1, NAN)[10] == 0);
}

TEST_CASE("networks are tags too, and any text may be searched") {
  const std::vector<std::string> networks{"resnet", "bert"};
  const features::Tags tags{.tags = features::network_tags(networks),
                            .text = [](const Task& task) { return "bert/" + task.name; }};
  const std::vector<toy::Tiles> tiles(1);
  const FeatureBatch batch = tags.extract(toy::Space{}, toy::task(), std::span<const toy::Tiles>(tiles));
  CHECK(batch.row(0)[0] == 0);
  CHECK(batch.row(0)[1] == 1);
  CHECK(test::refusal([&] {
          (void)features::Tags{.text = nullptr}.extract(toy::Space{}, toy::task(), std::span<const toy::Tiles>(tiles));
        }).find("features::Tags: text is empty") == 0);
}
