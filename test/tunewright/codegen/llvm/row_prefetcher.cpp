// SPDX-License-Identifier: Apache-2.0
// Rows of a matrix that are fetched before they are used: which places, and which kernels do not fetch any.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/count.hpp"
#include "support/prefetched_bytes.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;

/// Four rows times a matrix of 96 rows and 125 columns, 48,000 bytes, in tiles of 16 columns. Rows are 500 bytes apart.
struct Product {
  std::int64_t columns = 125, terms = 96, tile_columns = 16, unrolled_terms = 1;
  bool padded = false;

  [[nodiscard]] loops::LoopNest nest() const {
    constexpr std::int64_t rows = 4;
    auto g = std::make_shared<program::ComputeGraph>();
    const auto a = g->input("a", {rows, terms});
    const auto b = g->constant("b", {terms, columns});
    const auto product = g->reduce(
        "product", {{"i", rows}, {"j", columns}}, {{"k", terms}}, program::Combiner::Sum, [&](auto i, auto k) {
          if (!padded) return a(i[0], k[0]) * b(k[0], i[1]);
          const auto place = program::index_value(k[0] + i[0]);
          return select(place < program::index_value(terms), a(i[0], k[0]), 0.0) * b(k[0], i[1]);
        });
    schedule::ScheduleBuilder s(g);
    const auto i = s.split(product.id, 0, {rows}), j = s.split(product.id, 1, {tile_columns});
    const auto k = s.split(product.id, 2, {unrolled_terms});
    s.reorder(product.id, {j[0], i[0], k[0], k[1], i[1], j[1]});
    if (unrolled_terms > 1) s.unroll(product.id, k[1]);
    s.unroll(product.id, i[1]);
    s.vectorize(product.id, j[1]);
    return loops::lower(s.schedule());
  }
};

Target processor(std::uint64_t l1_bytes = 32 << 10) {
  Target target = host_target().with_threads(1);
  target.l1_bytes = l1_bytes;
  return target;
}

constexpr codegen::CompileOptions rows_alone{.prefetch_blocks = false, .verify = true};

std::size_t prefetches(const loops::LoopNest& nest, const Target& target = processor(),
                       const codegen::CompileOptions& options = rows_alone) {
  return test::count(codegen::LlvmCompiler(target, options).to_llvm_ir(nest), "call void @llvm.prefetch");
}

std::vector<std::int64_t> bytes_fetched_by(const loops::LoopNest& nest) {
  codegen::LlvmCompiler compiler(processor(), rows_alone);
  return test::prefetched_bytes(nest, compiler, loops::BufferRole::Constant);
}

}  // namespace

TEST_CASE("each term of a tile fetches the piece of the row sixteen further") {
  const std::vector<std::int64_t> bytes = bytes_fetched_by(Product{}.nest());
  std::vector<std::int64_t> expected;  // eight tiles of 16 columns, 64 bytes
  for (std::int64_t tile = 0; tile < 8; ++tile)
    for (std::int64_t k = 0; k < 96; ++k) expected.push_back((k + 16) * 500 + tile * 64);
  CHECK(bytes == expected);
}

TEST_CASE("wide pieces are fetched line by line") {
  // Three tiles of 40 columns: 160 bytes, of which the last 32 are in a third line. The five columns left are in one.
  const std::vector<std::int64_t> bytes = bytes_fetched_by(Product{.tile_columns = 40}.nest());
  REQUIRE(bytes.size() == 96 * (3 * 3 + 1));
  for (std::int64_t line = 0; line < 3; ++line) CHECK(bytes[static_cast<std::size_t>(line)] == 16 * 500 + line * 64);
}

TEST_CASE("an iteration of several unrolled terms fetches as many rows") {
  const std::vector<std::int64_t> bytes = bytes_fetched_by(Product{.unrolled_terms = 4}.nest());
  REQUIRE(bytes.size() == 8 * 96);
  for (std::int64_t row = 0; row < 4; ++row) CHECK(bytes[static_cast<std::size_t>(row)] == (16 + row) * 500);
}

TEST_CASE("rows that begin in the same sets of L1 are fetched less far ahead, or not at all") {
  // 3072 = 3 * 1024 bytes: every fourth row begins in the same sets, so eight rows are on their way.
  CHECK(bytes_fetched_by(Product{.columns = 768, .terms = 24}.nest()).front() == 8 * 3072);
  CHECK(bytes_fetched_by(Product{.columns = 1536, .terms = 24}.nest()).front() == 4 * 6144);
  CHECK(prefetches(Product{.columns = 1024, .terms = 24}.nest()) == 0);
}

TEST_CASE("nothing is fetched where it would not help") {
  REQUIRE(prefetches(Product{}.nest()) > 0);
  CHECK(prefetches(Product{}.nest(), processor(), {.prefetch_rows = false, .prefetch_blocks = false}) == 0);
  CHECK(prefetches(Product{}.nest(), processor(48'000)) == 0);                 // the matrix stays in L1
  CHECK(prefetches(Product{.columns = 125, .tile_columns = 64}.nest()) == 0);  // pieces are more than half a row
  CHECK(prefetches(Product{.columns = 40, .terms = 400, .tile_columns = 8}.nest()) == 0);  // sixteen rows are in a page
  CHECK(prefetches(Product{.columns = 500, .terms = 31}.nest()) == 0);  // half of the rows are behind the last
  CHECK(prefetches(Product{.padded = true}.nest()) == 0);               // terms are skipped
}

TEST_CASE("windows, whose rows L1 mostly has, fetch the next row where L2 does not hold the image") {
  // Sums over 3x3 windows of 34x34 pixels of 64 channels, 296 KB: tiles of 4 pixels and 16 channels, a loop over rows.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {34, 34, 64});
  const auto sums = g->reduce("sums", {{"h", 32}, {"w", 32}, {"c", 64}}, {{"rh", 3}, {"rw", 3}}, program::Combiner::Sum,
                              [&](auto i, auto r) { return x(i[0] + r[0], i[1] + r[1], i[2]); });
  schedule::ScheduleBuilder s(g);
  const auto w = s.split(sums.id, 1, {4}), c = s.split(sums.id, 2, {16});
  s.reorder(sums.id, {0, w[0], c[0], 3, 4, w[1], c[1]});
  s.unroll(sums.id, 4);
  s.unroll(sums.id, w[1]);
  s.vectorize(sums.id, c[1]);
  const loops::LoopNest nest = loops::lower(s.schedule());
  Target target = processor();
  target.l2_bytes = 1 << 20;
  CHECK(prefetches(nest, target) == 0);
  target.l2_bytes = 256 << 10;
  codegen::LlvmCompiler compiler(target, rows_alone);
  const std::vector<std::int64_t> bytes = test::prefetched_bytes(nest, compiler, loops::BufferRole::Input);
  REQUIRE(bytes.size() == 32 * 8 * 4 * 3 * 6);
  // Six pixels of the next row, 256 bytes each.
  for (std::int64_t pixel = 0; pixel < 6; ++pixel)
    CHECK(bytes[static_cast<std::size_t>(pixel)] == 34 * 256 + pixel * 256);
}
