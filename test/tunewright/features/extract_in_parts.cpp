// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/extract_in_parts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "support/toy_space.hpp"

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
  CHECK(extracted(0, 4).programs() == 0);
  CHECK(extracted(0, 0).columns() == 2);
}
