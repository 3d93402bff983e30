// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/perfect_nest.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <variant>

#include "tunewright/loops/lower.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using program::ScalarType;

/// Whether out[i, j] = in[j, i] in tiles of `rows` x `columns`, whose columns are vectorised, is transposed.
bool is_transposed(ScalarType from, ScalarType to, std::int64_t rows = 8, std::int64_t columns = 8) {
  auto graph = std::make_shared<program::ComputeGraph>();
  const auto in = graph->input("in", {64, 64}, from);
  graph->compute("out", {{"i", 64}, {"j", 64}}, [&](auto i) { return program::cast(in(i[1], i[0]), to); });
  schedule::ScheduleBuilder s(graph);
  const auto i = s.split(1, 0, {rows}), j = s.split(1, 1, {columns});
  s.reorder(1, {i[0], j[0], i[1], j[1]});
  s.vectorize(1, j[1]);
  const loops::LoopNest nest = loops::lower(s.schedule());
  const loops::Node& tile = std::get<loops::Loop>(std::get<loops::Loop>(nest.body[0].content).body[0].content).body[0];
  return loops::transposes(nest, tile);
}

}  // namespace

TEST_CASE("tiles of float32 are transposed, of squares side by side that registers hold") {
  CHECK(is_transposed(ScalarType::Float32, ScalarType::Float32));
  CHECK(is_transposed(ScalarType::Float32, ScalarType::Float32, 8, 32));
  CHECK_FALSE(is_transposed(ScalarType::Float32, ScalarType::Float32, 8, 64));
  CHECK_FALSE(is_transposed(ScalarType::Float32, ScalarType::Float32, 8, 4));
  CHECK_FALSE(is_transposed(ScalarType::Float32, ScalarType::Float32, 32, 32));
}

TEST_CASE("tiles of other types are not transposed, nor those that convert") {
  for (const ScalarType type : {ScalarType::Float16, ScalarType::BFloat16, ScalarType::Int8, ScalarType::Float64})
    CHECK_FALSE(is_transposed(type, type));
  CHECK_FALSE(is_transposed(ScalarType::Float16, ScalarType::Float32));
  CHECK_FALSE(is_transposed(ScalarType::Float32, ScalarType::Float16));
}
