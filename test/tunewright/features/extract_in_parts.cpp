// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/extract_in_parts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <stdexcept>
#include <vector>

#include "support/toy_space.hpp"
#include "tunewright/core/thread_team.hpp"

using namespace tunewright;

namespace {

/// As many rows as the first number of a configuration says, and how often it was asked.
struct Counting {
  std::atomic<int>* calls = nullptr;

  FeatureBatch extract(const toy::Space&, const Task&, std::span<const toy::Tiles> configs) const {
    ++*calls;
    FeatureBatch batch(2);
    for (const toy::Tiles& config : configs) {
      for (int row = 0; row < config[0] % 3; ++row) {
        const std::span<float> values = batch.append_row();
        values[0] = static_cast<float>(config[0]);
        values[1] = static_cast<float>(row);
      }
      batch.close_program();
    }
    return batch;
  }
  FeatureSchema schema() const { return {"counting", 1, {{"tile", "count", ""}, {"row", "count", ""}}}; }
};

}  // namespace

TEST_CASE("parts on several threads give what one call gives") {
  std::atomic<int> calls = 0;
  const Counting featurizer{&calls};
  const std::vector<toy::Tiles> configs{{1}, {2}, {3}, {4}, {5}};  // 1, 2, 0, 1 and 2 rows
  const auto extracted = [&](std::size_t count, unsigned threads) {
    calls = 0;
    return features::extract_in_parts(featurizer, toy::Space(), toy::task(),
                                      std::span<const toy::Tiles>(configs).first(count), threads);
  };
  const FeatureBatch one = extracted(5, 1);
  CHECK(calls == 1);
  CHECK(one.rows() == 6);
  for (const unsigned threads : {2U, 3U, 5U, 64U}) {
    CAPTURE(threads);
    const FeatureBatch several = extracted(5, threads);
    CHECK(calls == static_cast<int>(std::min(threads, 5U)));
    CHECK(std::ranges::equal(one.offsets(), several.offsets()));
    CHECK(std::ranges::equal(one.values(), several.values()));
  }
  (void)extracted(5, 0);
  CHECK(calls == static_cast<int>(std::min(hardware_threads(), 5U)));
  CHECK(extracted(0, 4).programs() == 0);
  CHECK(extracted(0, 0).columns() == 2);
}

TEST_CASE("a featurizer that leaves a configuration out, or has other columns than its schema, is refused by name") {
  struct Wrong {
    std::size_t left_out = 0, columns = 2;
    FeatureBatch extract(const toy::Space&, const Task&, std::span<const toy::Tiles> configs) const {
      FeatureBatch batch(columns);
      for (std::size_t i = left_out; i < configs.size(); ++i) {
        batch.append_row();
        batch.close_program();
      }
      return batch;
    }
    FeatureSchema schema() const { return {"wrong", 1, {{"a", "", ""}, {"b", "", ""}}}; }
  };
  const std::vector<toy::Tiles> configs{{1}, {2}, {3}};
  const auto extracted = [&](const Wrong& featurizer, unsigned threads) {
    return features::extract_in_parts(featurizer, toy::Space(), toy::task(), std::span<const toy::Tiles>(configs),
                                      threads);
  };
  CHECK(extracted({}, 2).programs() == 3);
  CHECK_THROWS_WITH_AS(
      (void)extracted({.left_out = 1}, 1),
      "featurizer 'wrong' gave 2 programs for 3 configurations; close_program() once for each, without "
      "rows if it cannot be described",
      std::logic_error);
  CHECK_THROWS_WITH_AS((void)extracted({.columns = 3}, 1),
                       "featurizer 'wrong' gave rows of 3 columns, and its schema names 2; name each column, in order",
                       std::logic_error);
  CHECK_THROWS_AS((void)extracted({.columns = 3}, 3), std::logic_error);
}
