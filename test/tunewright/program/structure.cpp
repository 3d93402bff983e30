// SPDX-License-Identifier: Apache-2.0
#include "tunewright/program/structure.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/matmul.hpp"

namespace {

using namespace tunewright::program;
using operators::matmul_graph;

std::uint64_t structure_of_conv(std::int64_t size, std::int64_t channels, std::int64_t stride, std::int64_t padding) {
  return structure_hash(*operators::conv2d_graph({.height = size,
                                                  .width = size,
                                                  .in_channels = channels,
                                                  .out_channels = 2 * channels,
                                                  .kernel = 3,
                                                  .stride = stride,
                                                  .padding = padding}));
}

}  // namespace

TEST_CASE("products are of one structure whatever their shapes, and nothing else is") {
  const std::uint64_t product = structure_hash(*matmul_graph({.m = 64, .n = 32, .k = 16}));
  CHECK(structure_hash(*matmul_graph({.m = 7, .n = 1000, .k = 3})) == product);
  CHECK(structure_hash(*matmul_graph({.m = 64, .n = 32, .k = 16, .constant_b = true})) != product);
  CHECK(structure_hash(*matmul_graph({.m = 64, .n = 32, .k = 16, .transpose_b = true})) != product);
  CHECK(structure_hash(*matmul_graph({.m = 64, .n = 32, .k = 16, .type = ScalarType::Float64})) != product);
  CHECK(structure_hash(*operators::dense_graph({.batch = 64, .in = 16, .out = 32})) != product);
}

TEST_CASE("convolutions are of one structure whatever their stride") {
  CHECK(structure_of_conv(56, 64, 1, 1) == structure_of_conv(28, 128, 2, 1));
  CHECK(structure_of_conv(56, 64, 1, 1) != structure_of_conv(56, 64, 1, 0));  // one of them pads
}

TEST_CASE("the distance of shapes is that of the logarithms of their extents") {
  const auto a = matmul_graph({.m = 64, .n = 32, .k = 16});
  // A is m x k, B is k x n, and the product has the axes m, n and k.
  CHECK(all_extents(*a) == std::vector<std::int64_t>{64, 16, 16, 32, 64, 32, 16});
  CHECK(shape_distance(*a, *a) == 0);
  CHECK(shape_distance(*a, *matmul_graph({.m = 128, .n = 32, .k = 16})) == doctest::Approx(std::sqrt(2.0)));
  CHECK(shape_distance(*a, *matmul_graph({.m = 64, .n = 32, .k = 4})) == doctest::Approx(std::sqrt(3 * 4.0)));
  CHECK(shape_distance(*matmul_graph({.m = 64, .n = 32, .k = 4}), *a) == doctest::Approx(std::sqrt(3 * 4.0)));
  CHECK_THROWS_AS((void)shape_distance(*a, *operators::dense_graph({.batch = 64, .in = 16, .out = 32})),
                  std::invalid_argument);
}
