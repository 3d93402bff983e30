// SPDX-License-Identifier: Apache-2.0
// The next block of a matrix, fetched while register tiles use the present one: which places, and which kernels do not
// fetch any.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/count.hpp"
#include "support/prefetched_bytes.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;

/// Rows times a matrix of 64 rows and 128 columns, 32 KB, in tiles of 4 rows and 16 columns. A quarter of the rows is
/// copied at a time, of 32 columns, 2 KB; rows of the matrix are 512 bytes apart.
struct Product {
  enum class Copied : std::uint8_t { No, ForEachBlock, ForEachRowOfTiles, Before };

  std::int64_t rows = 8, columns = 128, terms = 64;
  std::int64_t first_column = 0;  ///< of the matrix that is used; it has 16 more then
  bool parallel_columns = false;
  Copied copied = Copied::ForEachBlock;

  [[nodiscard]] loops::LoopNest nest() const {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto a = g->input("a", {rows, terms});
    const auto b = g->constant("b", {terms, columns + (first_column == 0 ? 0 : 16)});
    const auto product = g->reduce("product", {{"i", rows}, {"j", columns}}, {{"k", terms}}, program::Combiner::Sum,
                                   [&](auto i, auto k) { return a(i[0], k[0]) * b(k[0], i[1] + first_column); });
    schedule::ScheduleBuilder s(g);
    const auto i = s.split(product.id, 0, {4}), j = s.split(product.id, 1, {2, 16});
    const auto k = s.split(product.id, 2, {terms / 4});
    const bool rows_first = copied == Copied::ForEachRowOfTiles;
    if (rows_first) {
      s.reorder(product.id, {j[0], k[0], i[0], j[1], k[1], i[1], j[2]});
    } else {
      s.reorder(product.id, {j[0], k[0], j[1], i[0], k[1], i[1], j[2]});
    }
    s.unroll(product.id, i[1]);
    s.vectorize(product.id, j[2]);
    if (parallel_columns) s.parallel(product.id, j[0]);
    if (copied == Copied::No) return loops::lower(s.schedule());
    const program::TensorId copy = s.cache_read(b.id, product.id);
    if (copied != Copied::Before) s.compute_at(copy, product.id, rows_first ? i[0] : k[0]);
    s.vectorize(copy, 1);
    return loops::lower(s.schedule());
  }
};

constexpr codegen::CompileOptions blocks_alone{.prefetch_constants = false, .prefetch_rows = false, .verify = true};

/// A core whose L2 holds less than the matrix, and three of its blocks of up to 8 KB.
Target processor(std::uint64_t l2_bytes = 24 << 10) {
  Target target = host_target().with_threads(1);
  target.l1_bytes = 1 << 10;
  target.l2_bytes = l2_bytes;
  return target;
}

std::size_t prefetches(const loops::LoopNest& nest, const Target& target = processor(),
                       const codegen::CompileOptions& options = blocks_alone) {
  return test::count(codegen::LlvmCompiler(target, options).to_llvm_ir(nest), "call void @llvm.prefetch");
}

std::vector<std::int64_t> bytes_fetched_by(const loops::LoopNest& nest) {
  codegen::LlvmCompiler compiler(processor(), blocks_alone);
  return test::prefetched_bytes(nest, compiler, loops::BufferRole::Constant);
}

}  // namespace

TEST_CASE("tiles that use a piece of a block fetch the same piece of the next block, each a part") {
  std::vector<std::int64_t> expected;
  for (std::int64_t j = 0; j < 4; ++j) {      // 32 columns
    for (std::int64_t k = 0; k < 4; ++k) {    // 16 rows
      for (std::int64_t p = 0; p < 2; ++p) {  // 16 columns
        for (std::int64_t i = 0; i < 2; ++i) {
          // The block below; after the last one, the first of the next columns, and in the end the first of all, which
          // the next run begins with.
          const std::int64_t next_k = (k + 1) % 4, next_j = (j + (k + 1) / 4) % 4;
          for (std::int64_t row = 0; row < 8; ++row)
            expected.push_back((16 * next_k + 8 * i + row) * 512 + (32 * next_j + 16 * p) * 4);
        }
      }
    }
  }
  CHECK(bytes_fetched_by(Product{}.nest()) == expected);
  CHECK(bytes_fetched_by(Product{.parallel_columns = true}.nest()) == expected);
}

TEST_CASE("tiles that use the same block of a matrix without a copy fetch the next one, each a part") {
  std::vector<std::int64_t> expected;
  for (std::int64_t j = 0; j < 4; ++j) {
    for (std::int64_t k = 0; k < 4; ++k) {
      for (std::int64_t p = 0; p < 2; ++p) {
        for (std::int64_t i = 0; i < 2; ++i) {
          // The next columns; after them, the block below, or the first one of the columns that follow.
          const std::int64_t next_p = (p + 1) % 2, next_k = (k + p) % 4, next_j = (j + (k + p) / 4) % 4;
          for (std::int64_t row = 0; row < 8; ++row)
            expected.push_back((16 * next_k + 8 * i + row) * 512 + (32 * next_j + 16 * next_p) * 4);
        }
      }
    }
  }
  CHECK(bytes_fetched_by(Product{.copied = Product::Copied::No}.nest()) == expected);
  // A tile that is alone with a block fetches it row by row.
  CHECK(prefetches(Product{.rows = 4, .copied = Product::Copied::No}.nest()) == 0);
}

TEST_CASE("pieces that do not begin with a line are fetched to their end") {
  const std::vector<std::int64_t> bytes = bytes_fetched_by(Product{.columns = 125}.nest());
  REQUIRE(bytes.size() >= 4);
  // Rows 16 and 17, 500 bytes apart: the first and the last of 16 elements.
  CHECK(std::vector(bytes.begin(), bytes.begin() + 4) == std::vector<std::int64_t>{8000, 8060, 8500, 8560});

  // Whole lines apart, from the middle of one on: rows 0 and 1, 576 bytes apart, of columns 24 to 39.
  const std::vector<std::int64_t> shifted =
      bytes_fetched_by(Product{.first_column = 8, .copied = Product::Copied::No}.nest());
  REQUIRE(shifted.size() >= 4);
  CHECK(std::vector(shifted.begin(), shifted.begin() + 4) == std::vector<std::int64_t>{96, 156, 672, 732});
}

TEST_CASE("a tile fetches at most so many lines") {
  const auto fetched = [](std::int64_t terms) {
    return prefetches(Product{.rows = 4, .terms = terms}.nest(), processor(180 << 10));
  };
  // One tile uses the whole piece.
  CHECK(fetched(4 * 100) == 100);
  CHECK(fetched(4 * 128) == 128);
  CHECK(fetched(4 * 256) == 128);
}

TEST_CASE("no block is fetched where it would not help") {
  REQUIRE(prefetches(Product{}.nest()) > 0);
  codegen::CompileOptions none = blocks_alone;
  none.prefetch_blocks = false;
  CHECK(prefetches(Product{}.nest(), processor(), none) == 0);
  CHECK(prefetches(Product{}.nest(), processor(32 << 10)) == 0);  // L2 holds the matrix
  REQUIRE(prefetches(Product{}.nest(), processor(6 << 10)) > 0);
  CHECK(prefetches(Product{}.nest(), processor((6 << 10) - 4)) == 0);                    // nor three blocks
  CHECK(prefetches(Product{.copied = Product::Copied::Before}.nest()) == 0);             // all is copied at once
  CHECK(prefetches(Product{.copied = Product::Copied::ForEachRowOfTiles}.nest()) == 0);  // the same one again
  REQUIRE(prefetches(Product{.rows = 128}.nest()) > 0);
  CHECK(prefetches(Product{.rows = 132}.nest()) == 0);  // 33 tiles for 16 rows
}

namespace {

/// 8 rows times a matrix of 16 rows and 128 columns, 8 KB, in strips of 32 columns: each is used by two tiles, which the
/// vectors of a strip are around or in.
struct Strips {
  bool parallel = false, vectors_around = false;

  [[nodiscard]] loops::LoopNest nest() const {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto product = program::operators::matmul(*g, g->input("a", {8, 16}), g->constant("b", {16, 128}));
    schedule::ScheduleBuilder s(g);
    const auto i = s.split(product.id, 0, {4}), j = s.split(product.id, 1, {32});
    if (vectors_around) {
      s.reorder(product.id, {j[0], j[1], i[0], 2, i[1]});
    } else {
      s.reorder(product.id, {j[0], i[0], 2, i[1], j[1]});
    }
    s.vectorize(product.id, j[1]);
    s.unroll(product.id, i[1]);
    if (parallel) s.parallel(product.id, j[0]);
    return loops::lower(s.schedule());
  }
};

}  // namespace

TEST_CASE("the next block is not fetched where another thread computes with it") {
  const auto fetched = [](unsigned threads) {
    return prefetches(Strips{.parallel = true}.nest(), processor(6 << 10).with_threads(threads));
  };
  CHECK(fetched(1) > 0);
  CHECK(fetched(3) > 0);
  CHECK(fetched(4) == 0);  // as many as strips
}

TEST_CASE("tiles inside a vectorised loop fetch nothing") {
  const loops::LoopNest nest = Strips{.vectors_around = true}.nest();
  CHECK(prefetches(nest, processor(6 << 10)) == 0);
  codegen::LlvmCompiler compiler(processor(6 << 10), blocks_alone);
  CHECK(test::compiled_error(nest, compiler) < 1e-5);
}
