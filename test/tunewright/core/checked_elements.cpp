// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/checked_elements.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/refusal.hpp"

using namespace tunewright;

namespace {

using Shape = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("elements are the product of the extents") {
  CHECK(checked_elements(Shape{}) == 1);
  CHECK(checked_elements(Shape{2, 3, 4}) == 24);
  CHECK(checked_elements(Shape{2, 0, 4}) == 0);
  CHECK(checked_elements(std::vector<std::size_t>{2, 3}) == 6);
  CHECK(checked_elements(Shape{std::int64_t{1} << 53}) == std::int64_t{1} << 53);
}

TEST_CASE("shapes that no tensor has are refused, also behind an extent of 0") {
  const auto refusal = [](const auto& shape) {
    return test::refusal([&] { (void)checked_elements(shape, "input 'x'"); });
  };
  CHECK(refusal(Shape{2, -1}) == "input 'x' of shape [2, -1] has a negative extent; give at least 0");
  CHECK(refusal(Shape{-1, -1}) == "input 'x' of shape [-1, -1] has a negative extent; give at least 0");
  constexpr std::int64_t half = std::int64_t{1} << 32;  // of the bits of a product
  CHECK(refusal(Shape{half, half}) ==
        "input 'x' of shape [4294967296, 4294967296] has more than 2^53 elements; give smaller extents");
  CHECK(refusal(Shape{0, half, half}).find("more than 2^53 elements") != std::string::npos);
  CHECK(refusal(Shape{half, half, 0}).find("more than 2^53 elements") != std::string::npos);
  CHECK(refusal(Shape{(std::int64_t{1} << 53) + 1}).find("more than 2^53 elements") != std::string::npos);
  CHECK(refusal(std::vector<std::size_t>{std::numeric_limits<std::size_t>::max()}).find("more than 2^53 elements") !=
        std::string::npos);
}
