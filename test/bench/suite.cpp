// SPDX-License-Identifier: Apache-2.0
#include "../../bench/suite.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "../../bench/random_shapes.hpp"
#include "tunewright/program/analysis.hpp"

using namespace tunewright;

TEST_CASE("convolutions of MobileNet-V2") {
  const bench::MobileNetV2 net = bench::mobilenet_v2();
  // By hand from table 2 of the paper: a stem, and 2, 3, 3, 6 and 5 products of channels on images of 112 to 7.
  CHECK(net.convolutions.size() == 1 + 2 + 3 + 3 + 6 + 5);
  CHECK(net.depthwise.size() == 10);
  CHECK(net.convolutions.back() == bench::ConvolutionShape{7, 7, 320, 1280, 1, 1, 0});
  CHECK(net.depthwise[1] == bench::DepthwiseShape{112, 96, 2});
}

TEST_CASE("names of the suite are distinct, select groups, and tell what bounds a kernel") {
  const auto suite = bench::suite();
  std::set<std::string> names;
  std::size_t convolutions = 0, memory_bound = 0;
  for (const bench::SuiteEntry& entry : suite) {
    names.insert(entry.name);
    convolutions += entry.name.starts_with("conv2d_resnet50/") ? 1 : 0;
    memory_bound += entry.memory_bound ? 1 : 0;
    CHECK(entry.memory_bound == entry.name.starts_with("memory_"));
  }
  CHECK(names.size() == suite.size());
  CHECK(convolutions == bench::resnet50_convolutions().size());
  CHECK(memory_bound >= 40);
  for (const char* name :
       {"matmul/512x512x512", "matmul/2048x2048x2048", "matmul_odd/509x521x503", "matmul_odd/384x512x640",
        "matmul_nt/1024x1024x1024", "matmul/128x3072x768", "matmul/3136x64x576", "matmul/49x512x4608",
        "batch_matmul/12x128x64x128", "batch_matmul_nt/12x128x128x64", "depthwise_mobilenet_v2/56x56x144_s1",
        "memory_matmul_few_rows/1x4096x4096", "memory_softmax/1024x1024", "memory_sum/256x256x64_axis1"})
    CHECK_MESSAGE(names.count(name) == 1, name);
}

TEST_CASE("programs have the shapes of their entries") {
  const auto operations = [](const bench::Shape& shape) { return program::flops(*bench::program_of(shape)); };
  const auto bytes = [](const bench::Shape& shape) { return program::bytes(*bench::program_of(shape)); };
  CHECK(operations(bench::Product{1, 3, 5, 7, true, false}) == 2 * 3 * 5 * 7);
  CHECK(operations(bench::Product{2, 3, 5, 7, false, true}) == 2 * 2 * 3 * 5 * 7);
  CHECK(bytes(bench::AxisSum{{3, 5, 7}, 1}) == 4 * (3 * 5 * 7 + 3 * 7));
  CHECK(bytes(bench::AddRelu{3, 5, true}) == 4 * (3 * 5 + 5 + 3 * 5));
  CHECK(bytes(bench::AddRelu{3, 5, false}) == 4 * 3 * (3 * 5));
  CHECK(bytes(bench::LayerNormRows{3, 5}) == 4 * (2 * 3 * 5 + 2 * 5));
  CHECK(bytes(bench::BatchNormRows{3, 5}) == 4 * (2 * 3 * 5 + 2 * 5));
  CHECK(bytes(bench::PoolShape{8, 4, 2, 2, 0, true}) == 4 * 4 * (8 * 8 + 4 * 4));
  CHECK(bytes(bench::TransposeShape{3, 5}) == 4 * 2 * 3 * 5);
  CHECK(bytes(bench::SoftmaxRows{3, 5}) == 4 * 2 * 3 * 5);
  CHECK(bytes(bench::DepthwiseShape{8, 4, 2}) == 4 * (8 * 8 * 4 + 9 * 4 + 4 * 4 * 4));
}

TEST_CASE("random shapes are of no list, differ, and follow from the seed") {
  const auto listed = bench::suite();
  const auto drawn = bench::random_shapes(7, listed);
  CHECK(drawn.size() >= 40);
  std::set<std::string> names;
  for (const bench::SuiteEntry& entry : drawn) {
    names.insert(entry.name);
    CHECK(entry.name.starts_with("random_"));
    CHECK(std::none_of(listed.begin(), listed.end(), [&](const auto& other) { return other.shape == entry.shape; }));
    CHECK(program::flops(*bench::program_of(entry.shape)) <= 8.1e9);
  }
  CHECK(names.size() == drawn.size());

  const auto again = bench::random_shapes(7, listed), other = bench::random_shapes(8, listed);
  const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
  CHECK(std::equal(drawn.begin(), drawn.end(), again.begin(), again.end(), same));
  CHECK_FALSE(std::equal(drawn.begin(), drawn.end(), other.begin(), other.end(), same));

  // A drawn shape that is listed is drawn again.
  const auto without = bench::random_shapes(7, {drawn.front()});
  CHECK(std::none_of(without.begin(), without.end(), [&](const auto& e) { return e.shape == drawn.front().shape; }));
}

TEST_CASE("extents are drawn between their bounds, small ones as often as large ones") {
  Rng rng(3);
  std::size_t small = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t extent = bench::detail::draw_extent(rng, 16, 1024);
    CHECK(extent >= 16);
    CHECK(extent <= 1024);
    small += extent < 128 ? 1 : 0;  // the middle of the logarithms
  }
  CHECK(small > 900);
  CHECK(small < 1100);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t width = bench::detail::draw_width(rng, 17, 100, 32);
    CHECK(width >= 17);
    CHECK(width <= 100);
  }
}
