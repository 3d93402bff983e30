// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/joined.hpp"

#include <doctest/doctest.h>

#include "support/refusal.hpp"
#include "support/toy_space.hpp"
#include "tunewright/features/none.hpp"

using namespace tunewright;
using test::refusal;

namespace {

/// As many rows as the first tile says: (10 * Offset + row number, unroll).
template <int Offset>
struct ManyRows {
  FeatureBatch extract(const toy::Space&, const Task&, std::span<const toy::Tiles> configs) const {
    FeatureBatch batch(2);
    for (const toy::Tiles& tiles : configs) {
      for (int r = 0; r < tiles[0]; ++r) {
        const auto row = batch.append_row();
        row[0] = static_cast<float>(10 * Offset + r);
        row[1] = static_cast<float>(tiles[3]);
      }
      batch.close_program();
    }
    return batch;
  }
  FeatureSchema schema() const { return {"rows", 3, {{"number", "count", ""}, {"unroll", "count", ""}}}; }
};

/// The second tile; nothing for a tile of seven.
struct OneRow {
  static constexpr bool one_row = true;
  FeatureBatch extract(const toy::Space&, const Task&, std::span<const toy::Tiles> configs) const {
    FeatureBatch batch(1);
    for (const toy::Tiles& tiles : configs) {
      if (tiles[1] != 7) batch.append_row()[0] = static_cast<float>(tiles[1]);
      batch.close_program();
    }
    return batch;
  }
  FeatureSchema schema() const { return {"one", 1, {{"columns", "count", ""}}}; }
};

struct TwoDespitePromise : ManyRows<1> {
  static constexpr bool one_row = true;
};

template <class F>
FeatureBatch extract(const F& featurizer, std::vector<toy::Tiles> tiles) {
  return featurizer.extract(toy::Space{}, toy::task(), std::span<const toy::Tiles>(tiles));
}
std::vector<float> values(const FeatureBatch& batch) { return {batch.values().begin(), batch.values().end()}; }

static_assert(FeaturizerFor<features::Joined<ManyRows<0>, OneRow>, toy::Space>);
static_assert(!FeaturizerFor<features::Joined<ManyRows<0>, OneRow>, int>);
static_assert(OneRowFeaturizer<features::Joined<OneRow, features::None>>);
static_assert(!OneRowFeaturizer<features::Joined<ManyRows<0>, OneRow>>);

}  // namespace

TEST_CASE("parts of one row stand side by side") {
  const features::Joined<OneRow, features::None, OneRow> joined;
  const FeatureBatch batch = extract(joined, {{0, 3, 0, 0}, {0, 7, 0, 0}, {0, 5, 0, 0}});
  CHECK(batch.programs() == 3);
  CHECK(values(batch) == std::vector<float>{3, 0, 3, 5, 0, 5});
  CHECK(batch.program(1).empty());  // what one part cannot describe
  CHECK(joined.schema().name == "joined(one 1, none 1, one 1)");
  CHECK(joined.schema().columns.size() == 3);
  CHECK(joined.schema().columns[0].name == "one.columns");
}

TEST_CASE("a part of one row is repeated on the rows of the other, in the order declared") {
  const features::Joined<OneRow, ManyRows<0>> joined;
  const FeatureBatch batch = extract(joined, {{2, 5, 0, 4}, {1, 6, 0, 0}});
  CHECK(values(batch) == std::vector<float>{5, 0, 4,  //
                                            5, 1, 4,  //
                                            6, 0, 0});
  CHECK(batch.offsets()[1] == 2);
  CHECK(joined.schema().columns.size() == batch.columns());
  CHECK(extract(joined, {{0, 5, 0, 0}}).program(0).empty());
}

TEST_CASE("several parts of many rows are stacked behind the number of the part") {
  const features::Joined<ManyRows<1>, OneRow, ManyRows<2>> joined;
  const FeatureBatch batch = extract(joined, {{1, 5, 0, 4}, {2, 6, 0, 3}});
  CHECK(values(batch) == std::vector<float>{0, 10, 4, 5, 0,  0,  //
                                            1, 0,  0, 5, 20, 4,  //
                                            0, 10, 3, 6, 0,  0,  //
                                            0, 11, 3, 6, 0,  0,  //
                                            1, 0,  0, 6, 20, 3,  //
                                            1, 0,  0, 6, 21, 3});
  CHECK(joined.schema().name == "joined(rows 3, one 1, rows 3)");
  CHECK(joined.schema().columns[0].name == "part");
  CHECK(joined.schema().columns.size() == batch.columns());
}

TEST_CASE("an empty pool is as wide as the schema") {
  const features::Joined<ManyRows<1>, ManyRows<2>> joined;
  CHECK(extract(joined, {}).columns() == joined.schema().columns.size());
}

TEST_CASE("parts that do not agree are refused") {
  CHECK(refusal([] {
          (void)extract(features::Joined<OneRow, TwoDespitePromise>{}, {{2, 0, 0, 0}});
        }).find("declares one_row gave 2 rows") != std::string::npos);
  FeatureBatch one(1);
  one.append_program(std::vector<float>{1});
  CHECK(refusal([&] {
          (void)features::Joined<OneRow, OneRow>::join({one, FeatureBatch(1)});
        }).find("one part describes 1 configurations, another 0") != std::string::npos);
}
