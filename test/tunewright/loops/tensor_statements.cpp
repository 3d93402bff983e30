// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/tensor_statements.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "support/cpu_tensor_schedules.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::loops;
using program::ScalarType;
using test::Columns, test::row_product, test::tile_product;

std::vector<TensorStatement> found_in(const LoopNest& nest) {
  std::vector<TensorStatement> found;
  TensorStatements().find(nest, found);
  return found;
}

/// How many are found in what code is generated for, and which share of the iterations they have.
std::pair<std::size_t, double> share_of(const LoopNest& lowered) {
  const LoopNest nest = prepare_for_codegen(lowered, 64);
  Share share = 0;
  const std::vector<TensorStatement> found = found_in(nest);
  for (const TensorStatement& t : found) share += t.share;
  return {found.size(), static_cast<double>(share) / static_cast<double>(whole_share)};
}

/// The body that holds the fill of the sums and, behind it, the loops that add to them.
Body& filled_body(Body& body) {
  return body.size() == 2 ? body : filled_body(std::get<Loop>(body.back().content).body);
}
Statement& innermost(Node& node) {
  auto* loop = std::get_if<Loop>(&node.content);
  return loop != nullptr ? innermost(loop->body.front()) : std::get<Statement>(node.content);
}

TEST_CASE("a block of tile registers: what is kept, what starts at zero, which loops move what") {
  LoopNest nest = tile_product(32, Columns::PackedAhead);
  const std::vector<TensorStatement> found = found_in(nest);
  REQUIRE(found.size() == 1);
  const TensorStatement& t = found[0];
  CHECK(t.kind == TensorStatement::Kind::Product);
  CHECK((t.number == 0 && t.own == 4 && t.m == 16 && t.steps == 16 && t.share == whole_share));
  // Four steps of the reduction around two rows of two tiles.
  CHECK((t.around == 3 && t.kept == 3));
  CHECK(t.starts);
  CHECK(t.fill == &filled_body(nest.body)[0]);
  CHECK((t.moves_rows & 7U) == 0b011U);
  CHECK((t.moves_columns & 7U) == 0b101U);
  CHECK((t.moves_sums & 7U) == 0b110U);
  CHECK((t.interleaved && !t.guarded));
  Target target;
  target.isa = Isa::Avx512;
  CHECK(is_emitted(t, target.with_tensor_unit(TensorUnit::AmxBf16)));
  CHECK_FALSE(is_emitted(t, target.with_tensor_unit(TensorUnit::AmxInt8)));
}

TEST_CASE("sums start from memory where something else is filled, or not all of it") {
  LoopNest nest = tile_product(32, Columns::PackedAhead);
  const auto starts = [&] {
    const std::vector<TensorStatement> found = found_in(nest);
    REQUIRE(found.size() == 1);
    return found[0].starts;
  };
  CHECK(starts());
  Body& body = filled_body(nest.body);
  Statement& fill = innermost(body[0]);
  fill.guards.push_back({IndexExpr::variable(0), 1});
  CHECK_FALSE(starts());
  fill.guards.clear();
  fill.target = 0;
  CHECK_FALSE(starts());
  fill.target = innermost(body[1]).target;
  CHECK(starts());
  std::get<Loop>(body[0].content).var = nest.variables.size();
  nest.variables.push_back({"other", 2});
  CHECK_FALSE(starts());
}

TEST_CASE("more sums than registers are kept for a part of the loops, or for none") {
  // Four steps of the reduction around two by two tiles, which become two by four.
  LoopNest nest = tile_product(32, Columns::PackedAhead);
  const Loop& reduction = std::get<Loop>(filled_body(nest.body)[1].content);
  const Loop& rows = std::get<Loop>(reduction.body.front().content);
  const Loop& columns = std::get<Loop>(rows.body.front().content);
  nest.variables[columns.var].extent = 4;
  const std::vector<TensorStatement> found = found_in(nest);
  REQUIRE(found.size() == 1);
  CHECK((found[0].around == 3 && found[0].kept == 0));
  CHECK_FALSE(found[0].starts);
}

TEST_CASE("a guard of one tile keeps its whole block from the instruction") {
  using Found = std::pair<std::size_t, double>;
  const auto share = [](std::int64_t rows) { return share_of(tile_product(rows, Columns::PackedAhead)); };
  CHECK(share(32) == Found{1, 1});
  CHECK(share(40) == Found{1, 0.5});  // 16 + 16 and 8 + 0
  CHECK(share(56) == Found{1, 0.5});  // 16 + 16 and 16 + 8
  CHECK(share(64) == Found{1, 1});
  CHECK(share(72).second == doctest::Approx(2.0 / 3));
}

TEST_CASE("guards of rows do not keep a product of rows from its instruction, those of columns do") {
  using Found = std::pair<std::size_t, double>;
  const auto share = [](std::int64_t rows, std::int64_t columns) {
    return share_of(row_product(ScalarType::UInt8, rows, columns));
  };
  CHECK(share(8, 16) == Found{1, 1});
  CHECK(share(12, 16) == Found{2, 1});  // with and without guards
  CHECK(share(8, 24) == Found{1, 0.5});
  const std::vector<TensorStatement> found = found_in(row_product(ScalarType::UInt8));
  CHECK((found[0].own == 2 && found[0].terms == 4 && found[0].interleaved && !found[0].same_signs));
  CHECK(found_in(row_product(ScalarType::Int8))[0].same_signs);
}

TEST_CASE("guards share statements out only where they cut instructions") {
  CHECK(TensorStatements::is_final(tile_product(32, Columns::PackedAhead)));
  CHECK_FALSE(TensorStatements::is_final(tile_product(40, Columns::PackedAhead)));
  CHECK(TensorStatements::is_final(row_product(ScalarType::UInt8, 12)));
  CHECK_FALSE(TensorStatements::is_final(row_product(ScalarType::UInt8, 8, 24)));
}

TEST_CASE("products of rows are found as lowered, with their padding, and in what code is generated for") {
  schedule::ScheduleBuilder s(program::operators::conv2d_graph({.height = 8,
                                                                .width = 8,
                                                                .in_channels = 16,
                                                                .out_channels = 16,
                                                                .kernel = 3,
                                                                .padding = 1,
                                                                .type = ScalarType::UInt8,
                                                                .weight_type = ScalarType::Int8}));
  constexpr program::TensorId weight = 1, padded = 2, sums = 3;
  s.compute_inline(padded);
  const auto terms = s.split(sums, 6, {4});
  s.reorder(sums, {0, 1, 2, 4, 5, terms[0], 3, terms[1]});
  s.vectorize(sums, 3);
  s.pack(weight, sums);
  s.tensorize(sums, 3, "avx512_vnni");
  const LoopNest lowered = loops::lower(s.schedule());
  CHECK(TensorStatements::is_final(lowered));
  const std::vector<TensorStatement> found = found_in(lowered);
  REQUIRE(found.size() == 1);
  CHECK((found[0].interleaved && found[0].terms == 4 && found[0].share == whole_share));
  CHECK(share_of(lowered).second == doctest::Approx(1));
}

TEST_CASE("copies into the order of columns are found, and products of columns in another order are not") {
  const std::vector<TensorStatement> found = found_in(tile_product(32, Columns::Copied));
  REQUIRE(found.size() == 2);
  CHECK(found[0].kind == TensorStatement::Kind::Interleaving);
  CHECK((found[0].number == 0 && found[1].number == 1));
  CHECK((found[0].columns == 16 && found[0].terms == 2 && found[0].vectors_read == 1));
  CHECK(found_in(tile_product(32, Columns::AsTheyAre)).empty());
}

TEST_CASE("the loops of an instruction have the kinds that it takes, and none around has lanes") {
  LoopNest nest = tile_product(32, Columns::PackedAhead);
  Loop& reduction = std::get<Loop>(filled_body(nest.body)[1].content);
  reduction.kind = LoopKind::Vectorized;
  CHECK(found_in(nest).empty());
  reduction.kind = LoopKind::Serial;
  CHECK(found_in(nest).size() == 1);
  Loop* loop = &reduction;
  while (loop->intrinsic == nullptr) loop = &std::get<Loop>(loop->body.front().content);
  loop->kind = LoopKind::Unrolled;
  CHECK(found_in(nest).empty());
}

}  // namespace
