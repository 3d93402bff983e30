// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/training_set.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

using namespace tunewright;

namespace {

constexpr double failed = std::numeric_limits<double>::infinity();

FeatureBatch programs(std::initializer_list<float> values) {
  FeatureBatch batch(1);
  for (const float value : values) batch.append_program(std::array{value});
  return batch;
}

}  // namespace

TEST_CASE("labels are best / cost of the task as it stands now") {
  TrainingSet set;
  set.add(7, programs({1, 2, 3}), std::array{4.0, 2.0, failed});
  CHECK(set.assemble().y == std::vector<float>{0.5F, 1.0F, 0.0F});
  set.add(7, programs({4}), std::array{1.0});  // a new best rescales the older labels
  CHECK(set.assemble().y == std::vector<float>{0.25F, 0.5F, 0.0F, 1.0F});
  CHECK(set.size() == 4);
}

TEST_CASE("each task is a group with a best of its own") {
  TrainingSet set;
  set.add(9, programs({1, 2}), std::array{10.0, 20.0});
  set.add(3, programs({5}), std::array{1.0});
  set.add(9, programs({6}), std::array{5.0});
  const TrainingSet::Data data = set.assemble();
  CHECK(data.y == std::vector<float>{0.5F, 0.25F, 1.0F, 1.0F});
  CHECK(data.group == std::vector<std::uint32_t>{0, 0, 0, 1});
  CHECK(data.x.programs() == 4);
  CHECK(data.x.program(0)[0] == 1);
  CHECK(data.x.program(3)[0] == 5);
}

TEST_CASE("a task with failures only has labels of zero") {
  TrainingSet set;
  set.add(1, programs({1, 2}), std::array{failed, failed});
  CHECK(set.assemble().y == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("a task can be forgotten") {
  TrainingSet set;
  set.add(1, programs({1, 2}), std::array{1.0, 2.0});
  set.add(2, programs({3}), std::array{1.0});
  set.forget(1);
  set.forget(42);
  CHECK(set.size() == 1);
  CHECK(set.assemble().x.programs() == 1);
}

TEST_CASE("costs that do not match the programs are refused") {
  TrainingSet set;
  CHECK_THROWS_WITH_AS(set.add(1, programs({1, 2}), std::array{1.0}), doctest::Contains("2 programs but 1 costs"),
                       std::invalid_argument);
  for (const double wrong : {0.0, -1.0, std::nan("")}) {
    CHECK_THROWS_WITH_AS(set.add(1, programs({1, 2}), std::array{1.0, wrong}), doctest::Contains("program 1 costs"),
                         std::invalid_argument);
  }
  CHECK(set.size() == 0);
}

TEST_CASE("it remembers when and with what expectation a candidate was chosen") {
  TrainingSet set;
  CHECK(set.group_of(9) == 0);
  set.add(9, programs({1, 2}), std::array{10.0, 20.0}, {.round = std::array{3U, 4U}});
  set.add(3, programs({5}), std::array{1.0}, {.round = {}, .predicted = std::array{0.5F}});
  set.add(9, programs({6}), std::array{5.0});
  const TrainingSet::Data data = set.assemble();
  CHECK(data.round == std::vector<std::uint32_t>{3, 4, 0, 0});
  REQUIRE(data.predicted.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::isnan(data.predicted[i]));
  CHECK(data.predicted[3] == 0.5F);
  CHECK(set.group_of(9) == 0);
  CHECK(set.group_of(3) == 1);
  CHECK(set.group_of(42) == 2);
  CHECK_THROWS_WITH_AS(set.add(9, programs({6}), std::array{5.0}, {.round = std::array{1U, 2U}}),
                       doctest::Contains("1 costs but 2 rounds and 0 predictions"), std::invalid_argument);
}
