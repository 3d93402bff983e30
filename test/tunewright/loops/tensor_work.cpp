// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/tensor_work.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "support/cpu_tensor_schedules.hpp"
#include "support/loops_around.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::loops;
using program::ScalarType;
using test::Columns, test::row_product, test::tile_product;

TensorWork work_of_first(const LoopNest& nest, std::int64_t vector_registers = 32) {
  std::vector<TensorStatement> found;
  TensorStatements().find(nest, found);
  REQUIRE(!found.empty());
  return test::work_of(nest, found.front(), vector_registers);
}

TEST_CASE("a block of tile registers") {
  // Four steps of two by two products; each step loads two tiles of each factor, and what was summed is stored once.
  const TensorWork work = work_of_first(tile_product(32, Columns::PackedAhead));
  CHECK(work.products == 4 * 4);
  CHECK(work.chained == 4);
  CHECK(work.lines_loaded == 4 * (2 + 2) * 16);
  CHECK(work.sums_stored == 4 * 16);
  CHECK(work.sums_loaded == 0);
}

TEST_CASE("rows of products") {
  // 16 steps of eight rows of 16 columns.
  const TensorWork work = work_of_first(row_product(ScalarType::UInt8));
  CHECK(work.products == 16 * 8);
  CHECK(work.chained == 16);
  CHECK(work.vectors_loaded == 16 * (8 + 1));
  CHECK((work.sums_loaded == 8 && work.sums_stored == 8));
  CHECK((work.shuffles == 0 && work.sign_operations == 0 && work.sign_products == 0));
  const TensorWork same_signs = work_of_first(row_product(ScalarType::Int8));
  CHECK(same_signs.sign_operations == 16 * 8 + 8);  // rows are flipped each time, what that adds is taken off once
  CHECK(same_signs.sign_products == 16);
  const TensorWork widened = work_of_first(row_product(ScalarType::Int8, 8, 8, "avx2_int8"));
  CHECK(widened.products == 128);
  CHECK(widened.widening_operations == 16 * (8 + 1) * 3);
  CHECK(work_of_first(row_product(ScalarType::UInt8, 8, 8, "avx2_int8")).widening_operations == 16 * (8 * 2 + 3));
  CHECK(widened.sign_operations + widened.sign_products == 0);
  // Eight sums and two factors do not fit eight registers.
  const TensorWork spilled = work_of_first(row_product(ScalarType::UInt8), 8);
  CHECK(spilled.vectors_loaded == 16 * (8 + 8));
  CHECK((spilled.sums_loaded == 16 * 8 && spilled.sums_stored == 16 * 8));
}

TEST_CASE("sums of rows are stored before columns are copied, and loaded behind") {
  using namespace schedule;
  // Four blocks of eight steps of eight rows; each block copies the columns of its 32 terms first.
  const LoopNest nest = loops::lower(
      {program::operators::matmul_graph(
           {.m = 8, .n = 16, .k = 128, .type = ScalarType::UInt8, .type_b = ScalarType::Int8}),
       {CacheRead{1, 2, Scope::Local}, Split{2, 0, {8}}, Split{2, 1, {16}}, Split{2, 2, {8, 4}},
        Reorder{2, {3, 5, 7, 8, 4, 6, 9}}, Annotate{2, 4, LoopKind::Unrolled}, Annotate{2, 6, LoopKind::Vectorized},
        ComputeLocation{3, {{Location::Kind::At, 2, 7}}}, Pack{3, 2}, Tensorize{2, 6, "avx512_vnni"}}});
  const TensorWork work = work_of_first(nest);
  CHECK(work.products == 4 * 8 * 8);
  CHECK(work.chained == 4 * 8);
  CHECK(work.vectors_loaded == 4 * 8 * (8 + 1));
  CHECK((work.sums_loaded == 4 * 8 && work.sums_stored == 4 * 8));
}

TEST_CASE("copies are written as vectors") {
  // 128 terms of 32 columns: 128 vectors of two terms of 16 columns.
  const TensorWork work = work_of_first(tile_product(32, Columns::Copied));
  CHECK((work.bodies == 256 && work.vectors_loaded == 256));
  CHECK((work.shuffles == 128 && work.vectors_stored == 128));
  CHECK(work.products == 0);
}

}  // namespace
