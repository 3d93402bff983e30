// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/device/core_matrices.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopNest;
using loops::Var;
using loops::device::core_matrices;

constexpr Var line = 0, term = 1, tile = 2;

LoopNest counted(std::int64_t lines, std::int64_t terms) {
  LoopNest nest;
  nest.variables = {{"line", lines}, {"term", terms}, {"tile", 4}};
  return nest;
}
IndexExpr quotient(const LoopNest& nest, Var v, std::int64_t by) {
  return IndexExpr::quotient(IndexExpr::variable(v), by, [&](Var w) { return nest.range_of(w); });
}
IndexExpr remainder(const LoopNest& nest, Var v, std::int64_t by) {
  return IndexExpr::remainder(IndexExpr::variable(v), by, [&](Var w) { return nest.range_of(w); });
}

}  // namespace

TEST_CASE("pieces of terms: 8 lines below each other, the next 8 terms so many elements away") {
  const LoopNest nest = counted(64, 16);
  IndexExpr offset = quotient(nest, term, 8) * 520 + remainder(nest, term, 8);
  offset += IndexExpr::variable(line) * 8 + IndexExpr::variable(tile) * 1040;
  const auto found = core_matrices(nest, offset, line, term, 8);
  REQUIRE(found);
  CHECK(found->terms_are_neighbours);
  CHECK(found->along_lines == 64);
  CHECK(found->along_terms == 520);
  // Bytes: 16 terms make a piece.
  const LoopNest bytes = counted(64, 32);
  IndexExpr of_bytes = quotient(bytes, term, 16) * 1040 + remainder(bytes, term, 16);
  of_bytes += IndexExpr::variable(line) * 16;
  CHECK(core_matrices(bytes, of_bytes, line, term, 16)->along_terms == 1040);
}

TEST_CASE("pieces of lines") {
  const LoopNest nest = counted(128, 16);
  IndexExpr offset = quotient(nest, line, 8) * 136 + remainder(nest, line, 8);
  offset += IndexExpr::variable(term) * 8;
  const auto found = core_matrices(nest, offset, line, term, 8);
  REQUIRE(found);
  CHECK_FALSE(found->terms_are_neighbours);
  CHECK(found->along_lines == 136);
  CHECK(found->along_terms == 64);
}

TEST_CASE("the examples without swizzling of the PTX ISA, section 9.7.15.5.1.2.1.3, Canonical Layouts") {
  // Figure 166, of terms as neighbours, 32 bits each: ((8,2),(4,4)):((4,32),(1,64)), rows before columns. Its stride
  // dimension byte offset is that of 32 elements, its leading dimension byte offset that of 64.
  const LoopNest nest = counted(16, 16);
  IndexExpr by_terms = remainder(nest, line, 8) * 4 + quotient(nest, line, 8) * 32;
  by_terms += remainder(nest, term, 4) + quotient(nest, term, 4) * 64;
  const auto k_major = core_matrices(nest, by_terms, line, term, 4);
  REQUIRE(k_major);
  CHECK(k_major->terms_are_neighbours);
  CHECK(k_major->along_lines == 32);
  CHECK(k_major->along_terms == 64);
  // Figure 168, of lines as neighbours, 16 bits each: ((8,1,2),(8,2)):((1,8,64),(8,128)). 64 and 128 elements.
  IndexExpr by_lines = remainder(nest, line, 8) + quotient(nest, line, 8) * 64;
  by_lines += remainder(nest, term, 8) * 8 + quotient(nest, term, 8) * 128;
  const auto mn_major = core_matrices(nest, by_lines, line, term, 8);
  REQUIRE(mn_major);
  CHECK_FALSE(mn_major->terms_are_neighbours);
  CHECK(mn_major->along_lines == 64);
  CHECK(mn_major->along_terms == 128);
}

TEST_CASE("what is not in core matrices") {
  const LoopNest nest = counted(64, 16);
  const IndexExpr l = IndexExpr::variable(line), t = IndexExpr::variable(term);
  CHECK_FALSE(core_matrices(nest, l * 16 + t, line, term, 8));       // whole rows of 16 terms
  CHECK_FALSE(core_matrices(nest, l * 8 + t * 512, line, term, 8));  // terms apart
  CHECK_FALSE(core_matrices(nest, quotient(nest, term, 8) * 516 + remainder(nest, term, 8) + l * 8, line, term,
                            8));  // parts begin between multiples of 16 bytes
  CHECK_FALSE(core_matrices(nest, quotient(nest, term, 8) * 512 + remainder(nest, term, 8) + l * 16, line, term,
                            8));  // every other row
  // Lines in groups of 8 for a while, then elsewhere.
  CHECK_FALSE(core_matrices(
      nest, quotient(nest, term, 8) * 1024 + remainder(nest, term, 8) + l * 8 + quotient(nest, line, 40) * 64, line,
      term, 8));
}
