// SPDX-License-Identifier: Apache-2.0
#include "tunewright/models/gbdt/split.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tunewright/core/rng.hpp"
#include "tunewright/core/thread_team.hpp"

using namespace tunewright;
using namespace tunewright::models::gbdt;

namespace {

// g and h of rows, one program each, on a single column with values 1, 2, 3, ...
struct OneColumn {
  BinnedRows data;
  std::vector<PackedSum> packed;
  Quanta quanta;
  PackedSum total = 0;
  std::vector<std::uint32_t> rows;

  explicit OneColumn(const std::vector<Slope>& slopes) {
    FeatureBatch x(1);
    for (std::size_t i = 0; i < slopes.size(); ++i) x.append_program(std::vector<float>{static_cast<float>(i + 1)});
    ThreadTeam team(1);
    data = bin_rows(x, 256, team);
    packed.resize(slopes.size());
    quanta = pack_slopes(slopes, x.offsets(), packed);
    for (std::uint32_t i = 0; i < slopes.size(); ++i) {
      rows.push_back(i);
      total += packed[i];
    }
  }
  Split best(const SplitRules& rules) {
    SplitFinder finder(data);
    finder.set_rules(rules, quanta);
    return finder.scan_rows(rows, packed.data(), total);
  }
};

}  // namespace

TEST_CASE("packed sums add and subtract gradients and hessians at once") {
  const std::vector<Slope> slopes{{-0.75F, 1}, {0.5F, 0.25F}, {-0.25F, 0}};
  const std::vector<std::uint32_t> offsets{0, 2, 3, 4};  // the first program has two rows
  std::vector<PackedSum> packed(3);
  const Quanta quanta = pack_slopes(slopes, offsets, packed);
  const PackedSum sum = 2 * packed[0] + packed[1] + packed[2];
  CHECK(gradient_quanta(sum) * quanta.gradient == -1.25);
  CHECK(hessian_quanta(sum) * quanta.hessian == 2.25);
  CHECK(gradient_quanta(sum - 2 * packed[0]) * quanta.gradient == 0.25);
  CHECK(hessian_quanta(sum - 2 * packed[0]) * quanta.hessian == 0.25);
}

TEST_CASE("a program without rows is in no sum, whatever its slope") {
  const std::vector<Slope> slopes{{1e-6F, 1}, {-1, 1}};
  const std::vector<std::uint32_t> offsets{0, 1, 1};
  std::vector<PackedSum> packed(2, -1);
  const Quanta quanta = pack_slopes(slopes, offsets, packed);
  CHECK(gradient_quanta(packed[0]) * quanta.gradient == doctest::Approx(1e-6));
  CHECK(packed[1] == 0);
}

TEST_CASE("the best split by hand") {
  // Squared error at s = 0 of y = 0, 0, 1, 1: g = 0, 0, -1, -1, h = 1. lambda = 1, G^2 / (H + lambda) of all
  // is 4/5.
  //   after 1: 0/2 + 4/4 - 4/5 =  0.2
  //   after 2: 0/3 + 4/3 - 4/5 =  0.5333
  //   after 3: 1/4 + 1/2 - 4/5 = -0.05
  OneColumn node({{0, 1}, {0, 1}, {-1, 1}, {-1, 1}});
  const Split split = node.best({.lambda = 1});
  CHECK(split.id == 1);
  CHECK(gradient_quanta(split.left) == 0);
  CHECK(hessian_quanta(split.left) * node.quanta.hessian == 2);
  // The found gain lacks the parent's share: 0/3 + 4/3, in quanta.
  CHECK(static_cast<double>(split.gain) * node.quanta.gradient * node.quanta.gradient / node.quanta.hessian ==
        doctest::Approx(4.0 / 3));
}

TEST_CASE("min_child_weight rules out light children") {
  OneColumn node({{-9, 1}, {0, 1}, {0, 1}, {0, 1}});
  CHECK(node.best({.min_child_weight = 1}).id == 0);
  CHECK(node.best({.min_child_weight = 2}).id == 1);
  CHECK(node.best({.min_child_weight = 2.5F}).gain == -std::numeric_limits<float>::infinity());
}

TEST_CASE("a child without weight is never made") {
  OneColumn node({{-1, 1}, {0, 0}});  // the second failed: nothing is known of it
  CHECK(node.best({.lambda = 1}).gain == -std::numeric_limits<float>::infinity());
}

TEST_CASE("visiting rows and scanning a histogram find the same split") {
  Rng rng(17);
  FeatureBatch x(12);
  std::vector<Slope> slopes;
  for (int p = 0; p < 300; ++p) {
    std::vector<float> row(12);
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = rng.below(3) == 0 ? static_cast<float>(rng.below(c < 6 ? 4 : 200)) : 0.0F;
    }
    x.append_program(row);
    const auto y = static_cast<float>(rng.uniform());
    slopes.push_back(rng.below(10) == 0 ? Slope{0, 0} : Slope{(y - 0.5F) * y, y});
  }
  ThreadTeam team(1);
  const BinnedRows data = bin_rows(x, 64, team);
  std::vector<PackedSum> of_program(slopes.size()), packed(data.rows);
  const Quanta quanta = pack_slopes(slopes, x.offsets(), of_program);
  for (std::size_t p = 0; p < slopes.size(); ++p) packed[data.distinct_of[p]] += of_program[p];
  SplitFinder finder(data);
  for (const float weight : {0.0F, 2.0F}) {
    finder.set_rules({.lambda = 0.5F, .min_child_weight = weight}, quanta);
    for (int node = 0; node < 50; ++node) {
      std::vector<std::uint32_t> rows;
      PackedSum total = 0;
      for (std::uint32_t r = 0; r < data.rows; ++r) {
        if (rng.below(static_cast<std::uint64_t>(node) + 1) != 0) continue;
        rows.push_back(r);
        total += packed[r];
      }
      std::vector<PackedSum> histogram(data.bins, 0);
      finder.add_rows<1>(rows, packed.data(), histogram.data());
      const Split by_histogram = finder.scan_histogram(histogram.data(), total, 0, data.columns.size());
      const Split by_rows = finder.scan_rows(rows, packed.data(), total);
      CHECK(by_rows.gain == by_histogram.gain);
      CHECK(by_rows.id == by_histogram.id);
      CHECK(by_rows.left == by_histogram.left);
    }
  }
}
