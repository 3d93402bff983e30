// SPDX-License-Identifier: Apache-2.0
#include "tunewright/measurers/sandbox/task_data.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/refusal.hpp"

using namespace tunewright;
using measurers::TaskData;
using measurers::sandbox::validate;

namespace {

using Shape = std::vector<std::int64_t>;

std::string refusal(const TaskData& data) {
  return test::refusal([&] { validate(data); });
}

}  // namespace

TEST_CASE("contents that do not fit their shape are refused") {
  TaskData data;
  data.inputs.push_back({.tensor = 0, .name = "a", .shape = {2, 3}, .bytes = std::vector<char>(24)});
  data.outputs.push_back({.tensor = 1, .name = "c", .shape = {2}, .points = {}, .values = {1, 2}});
  CHECK_NOTHROW(validate(data));
  data.inputs[0].bytes.pop_back();
  CHECK(refusal(data) == "input 'a' has 23 bytes of contents where its shape needs 24");
  data.inputs.clear();
  data.outputs[0].values.pop_back();
  CHECK(refusal(data) == "output 'c' has 1 expected values; give 2");
  data.outputs[0].points = {2};
  CHECK(refusal(data) == "output 'c' is to be checked at element 2 of 2; give offsets inside it");
}

TEST_CASE("shapes whose products wrap around are refused, not taken for empty ones") {
  constexpr std::int64_t half = std::int64_t{1} << 32;  // of the bits of a product
  for (const Shape& shape : {Shape{half, half}, Shape{half, half, 0}, Shape{-1, 0}, Shape{-1, -1}}) {
    const std::string why = shape[0] < 0 ? "has a negative extent" : "has more than 2^53 elements";
    TaskData data;
    data.inputs.push_back({.tensor = 0, .name = "a", .shape = shape, .bytes = {}});
    CHECK(refusal(data).starts_with("input 'a' of shape ["));
    CHECK(refusal(data).find(why) != std::string::npos);
    data.inputs.clear();
    data.outputs.push_back({.tensor = 1, .name = "c", .shape = shape, .points = {}, .values = {}});
    CHECK(refusal(data).starts_with("output 'c' of shape ["));
    CHECK(refusal(data).find(why) != std::string::npos);
  }
}
