// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

#include "support/refusal.hpp"
#include "tunewright/adaptations/alignment/columns.hpp"
#include "tunewright/adaptations/alignment/covariance.hpp"

using namespace tunewright;
using adaptations::alignment::Columns;
using adaptations::alignment::Covariance;
using test::refusal;

namespace {

FeatureBatch batch(std::size_t columns, std::initializer_list<float> values) {
  FeatureBatch x(columns);
  const std::vector<float> all(values);
  for (std::size_t i = 0; i < all.size(); i += columns) x.append_program(std::span(all).subspan(i, columns));
  return x;
}
std::vector<double> moved(const FeatureBatch& x) { return {x.values().begin(), x.values().end()}; }

void check_close(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]));
}

}  // namespace

TEST_CASE("correlation alignment by hand: one column") {
  Covariance map;
  // Variances 3 (of +-sqrt 1.5) and 0 (of 5, 5): (3 + 1)^(-1/2) (0 + 1)^(1/2) = 1/2, around a mean of 5.
  map.fit(batch(1, {std::sqrt(1.5F), -std::sqrt(1.5F)}), batch(1, {5, 5}));
  check_close(moved(map.apply(batch(1, {6}))), {5 + 6 * 0.5});
  // Variances 8 and 15: (8 + 1)^(-1/2) (15 + 1)^(1/2) = 4/3.
  map.fit(batch(1, {2, -2}), batch(1, {std::sqrt(7.5F), -std::sqrt(7.5F)}));
  check_close(moved(map.apply(batch(1, {6}))), {6 * 4.0 / 3});
}

TEST_CASE("correlation alignment by hand: a covariance of two columns") {
  // Source: four points without any correlation, variance 4 * 2.25 / 3 = 3 each.
  const FeatureBatch from = batch(2, {1.5F, 1.5F, 1.5F, -1.5F, -1.5F, 1.5F, -1.5F, -1.5F});
  // Target: C + I has eigenvalues 4 along (1, 1) and 1 along (1, -1):  C = (1.5, 1.5; 1.5, 1.5),
  // whose root with I is (1.5, 0.5; 0.5, 1.5).
  const float s = std::sqrt(0.75F);
  const FeatureBatch to = batch(2, {s, s, -s, -s});
  Covariance map;
  map.fit(from, to);
  // A = 1/2 * (1.5, 0.5; 0.5, 1.5)
  check_close(map.map, {0.75, 0.25, 0.25, 0.75});
  check_close(moved(map.apply(batch(2, {4, 0, 0, -8}))), {3, 1, -2, -6});
}

TEST_CASE("a set aligned with itself stays, and so does everything before the first fit") {
  const FeatureBatch x = batch(2, {1, 2, 3, 5, 4, 4, 0, 9});
  Covariance covariance;
  check_close(moved(covariance.apply(x)), moved(x));
  covariance.fit(x, x);
  CHECK(covariance.fitted());
  check_close(moved(covariance.apply(x)), moved(x));
  covariance.fit(x, batch(2, {1, 1}));  // one row has no covariance
  CHECK(!covariance.fitted());
  for (const auto method : {Columns::Method::Affine, Columns::Method::Quantile}) {
    Columns columns{.method = method};
    check_close(moved(columns.apply(x)), moved(x));
    columns.fit(x, x);
    check_close(moved(columns.apply(x)), moved(x));
  }
}

TEST_CASE("an affine map of columns by hand") {
  // First column: mean 2, deviation 1 to mean 10, deviation 3. Second: constant, only shifted.
  Columns map;
  map.fit(batch(2, {1, 7, 3, 7}), batch(2, {7, 4, 13, 4}));
  check_close(moved(map.apply(batch(2, {2, 7, 4, 8}))), {10, 4, 16, 5});
  // In other units: mean 2e-8, deviation 1e-8. Constant but for rounding: only shifted.
  map.fit(batch(2, {1e-8F, 7e8F, 3e-8F, 7e8F + 64}), batch(2, {7, 4, 13, 8}));
  check_close(moved(map.apply(batch(2, {4e-8F, 7e8F + 64}))), {16, 38});
  map.columns = {1};
  map.fit(batch(2, {1, 7, 3, 7}), batch(2, {7, 4, 13, 4}));
  check_close(moved(map.apply(batch(2, {2, 7}))), {2, 4});
}

TEST_CASE("a quantile map by hand: medians meet medians, and the ends are shifted") {
  Columns map{.method = Columns::Method::Quantile, .quantiles = 3};
  map.fit(batch(1, {0, 10, 1}), batch(1, {100, 200, 600}));  // 0, 1, 10 to 100, 200, 600
  check_close(moved(map.apply(batch(1, {0, 0.5F, 1, 5.5F, 10, -3, 12}))), {100, 150, 200, 400, 600, 97, 602});
  // Five quantiles of 0, 0, 0, 0, 8: four equal ones share the mean 1.5 of 0, 1, 2, 3
  map.quantiles = 5;
  map.fit(batch(1, {0, 0, 8, 0, 0}), batch(1, {3, 1, 2, 0, 9}));
  check_close(moved(map.apply(batch(1, {0, 8, 4}))), {1.5, 9, 5.25});
}

TEST_CASE("columns that are not finite stay and do not count; covariances refuse them") {
  const float infinite = std::numeric_limits<float>::infinity();
  Columns map;
  map.fit(batch(1, {1, 3, infinite}), batch(1, {7, 13}));
  const auto values = moved(map.apply(batch(1, {infinite, 2})));
  CHECK(std::isinf(values[0]));
  CHECK(values[1] == doctest::Approx(10));
  Covariance covariance;
  CHECK(refusal([&] {
          covariance.fit(batch(1, {1, infinite}), batch(1, {1, 2}));
        }).find("column 0 of row 1 is not finite") != std::string::npos);
}

TEST_CASE("maps keep programs: their number, their rows, and those without any") {
  FeatureBatch x(1);
  x.append_program(std::vector<float>{1, 2});
  x.close_program();
  x.append_program(std::vector<float>{3});
  Columns columns;
  columns.fit(x, x);
  Covariance covariance;
  covariance.fit(x, x);
  for (const FeatureBatch& y : {columns.apply(x), covariance.apply(x)})
    CHECK(std::vector(y.offsets().begin(), y.offsets().end()) == std::vector<std::uint32_t>{0, 2, 2, 3});
}

TEST_CASE("maps refuse sets of other widths and options out of range") {
  Columns columns;
  CHECK(refusal([&] {
          columns.fit(batch(1, {1}), batch(2, {1, 2}));
        }).find("rows of 1 columns cannot be moved to rows of 2") != std::string::npos);
  columns.columns = {3};
  CHECK(refusal([&] { columns.fit(batch(1, {1}), batch(1, {1})); }).find("column 3 of 1") != std::string::npos);
  columns.columns = {};
  columns.fit(batch(1, {1}), batch(1, {1}));
  CHECK(refusal([&] { (void)columns.apply(batch(2, {1, 2})); }).find("fitted on 1") != std::string::npos);
  CHECK(refusal([&] { Columns{.quantiles = 1}.fit(batch(1, {1}), batch(1, {1})); }) ==
        "alignment::Columns: quantiles is 1; give 2 to 65536");
  CHECK(refusal([&] { Columns{.quantiles = 65537}.fit(batch(1, {1}), batch(1, {1})); }).find("quantiles is 65537") !=
        std::string::npos);
  Covariance covariance{.regularisation = 0};
  CHECK(refusal([&] { covariance.fit(batch(1, {1, 2}), batch(1, {1, 2})); }).find("regularisation is 0") !=
        std::string::npos);
  covariance.regularisation = std::numeric_limits<double>::infinity();
  CHECK(refusal([&] { covariance.fit(batch(1, {1, 2}), batch(1, {1, 2})); }).find("regularisation is inf") !=
        std::string::npos);
  covariance.regularisation = 1;
  CHECK(refusal([&] { covariance.fit(batch(1, {1}), batch(2, {1, 2})); }).find("rows of 2") != std::string::npos);
  covariance.fit(batch(1, {1, 2}), batch(1, {1, 2}));
  CHECK(refusal([&] { (void)covariance.apply(batch(2, {1, 2})); }).find("fitted on 1") != std::string::npos);
}
