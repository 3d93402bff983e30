// SPDX-License-Identifier: Apache-2.0
// Weights that are fetched while earlier ones are used: which lines, and which kernels do not fetch any.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include "support/count.hpp"
#include "support/prefetched_bytes.hpp"
#include "support/run_kernel.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace {

using namespace tunewright;

/// Rows times weights, in tiles of rows and 16 columns that keep a tile of the result in registers. Eight rows, 128
/// columns and sums of 256 unless told: four tiles of two rows use 16 KB of 128 KB of weights.
struct Product {
  std::int64_t rows = 8, columns = 128, terms = 256, taps = 1, tile_rows = 2;
  bool packed = true, rows_first = false, parallel_rows = false, padded = false;

  [[nodiscard]] loops::LoopNest nest() const {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {rows, terms});
    const std::vector<std::int64_t> shape{taps, terms, columns};
    const auto w = g->constant("w", shape);
    const auto sum = g->reduce(
        "sum", {{"i", rows}, {"j", columns}}, {{"t", taps}, {"k", terms}}, program::Combiner::Sum, [&](auto i, auto r) {
          if (!padded) return x(i[0], r[1]) * w(r[0], r[1], i[1]);
          const auto row = i[0] + r[0] - 1;
          const auto place = program::index_value(row);
          return select(program::index_value(0) <= place && place < program::index_value(rows), x(row, r[1]), 0.0) *
                 w(r[0], r[1], i[1]);
        });
    schedule::ScheduleBuilder s(g);
    const auto i = s.split(sum.id, 0, {tile_rows}), j = s.split(sum.id, 1, {16});
    s.reorder(sum.id, {rows_first ? i[0] : j[0], rows_first ? j[0] : i[0], 2, 3, i[1], j[1]});
    s.unroll(sum.id, i[1]);
    s.vectorize(sum.id, j[1]);
    if (parallel_rows) s.parallel(sum.id, i[0]);
    if (packed) s.pack(w.id, sum.id);
    return loops::lower(s.schedule());
  }
};

Target processor(std::uint64_t l2_bytes = 1 << 20) {
  Target target = host_target().with_threads(2);
  target.l2_bytes = l2_bytes;
  return target;
}

/// Rows and blocks of a matrix may be fetched as well, see the tests of `RowPrefetcher` and `BlockPrefetcher`.
constexpr codegen::CompileOptions weights_alone{.prefetch_rows = false, .prefetch_blocks = false, .verify = true};

std::size_t prefetches(const loops::LoopNest& nest, const Target& target = processor(),
                       const codegen::CompileOptions& options = weights_alone) {
  return test::count(codegen::LlvmCompiler(target, options).to_llvm_ir(nest), "call void @llvm.prefetch");
}

/// The lines that the kernel fetches, from the first one of the weights on, each time that it does; empty if its result
/// is wrong.
std::vector<std::int64_t> lines_fetched_by(const loops::LoopNest& nest) {
  codegen::LlvmCompiler compiler(processor(), weights_alone);
  std::vector<std::int64_t> lines = test::prefetched_bytes(nest, compiler, loops::BufferRole::Constant);
  for (std::int64_t& line : lines) line /= 64;
  return lines;
}

/// How many of the lines from `begin` to before `end` are among `lines`.
std::int64_t covered(const std::vector<std::int64_t>& lines, std::int64_t begin, std::int64_t end) {
  const std::set<std::int64_t> distinct(lines.begin(), lines.end());
  return std::distance(distinct.lower_bound(begin), distinct.lower_bound(end));
}

}  // namespace

TEST_CASE("the tiles that use a piece of the weights fetch the next one, each line of it once") {
  // Eight pieces of 256 lines; while the last one is used, what lies behind it is fetched.
  const std::vector<std::int64_t> lines = lines_fetched_by(Product{}.nest());
  CHECK(lines.size() == 8 * 256);
  CHECK(covered(lines, 256, 9 * 256) == 8 * 256);
  // While the first piece is used, nothing but the second one is.
  CHECK(covered({lines.begin(), lines.begin() + 256}, 256, 2 * 256) == 256);
}

TEST_CASE("a sum over several loops is fetched like one over a single loop") {
  const std::vector<std::int64_t> lines = lines_fetched_by(Product{.taps = 3}.nest());
  CHECK(lines.size() == 8 * 3 * 256);
  CHECK(covered(lines, 3 * 256, 9 * 3 * 256) == 8 * 3 * 256);
}

TEST_CASE("pieces that the tiles cannot share evenly are fetched as a whole, too") {
  // Five tiles, and steps that do not divide a sum of 251 terms, of which each is a line.
  const std::vector<std::int64_t> lines = lines_fetched_by(Product{.rows = 10, .terms = 251}.nest());
  CHECK(covered(lines, 251, 9 * 251) > 8 * (251 - 8));
  CHECK(covered(lines, 0, 251) == 0);
  CHECK(covered(lines, 9 * 251, 20 * 251) < 128);
}

TEST_CASE("nothing is fetched where it would not help") {
  REQUIRE(prefetches(Product{}.nest()) > 0);
  CHECK(prefetches(Product{}.nest(), processor(),
                   {.prefetch_constants = false, .prefetch_rows = false, .prefetch_blocks = false}) == 0);
  CHECK(prefetches(Product{.packed = false}.nest()) == 0);               // pieces have gaps
  CHECK(prefetches(Product{.columns = 48}.nest()) == 0);                 // 48 KB stay in L2
  CHECK(prefetches(Product{.columns = 1024, .terms = 32}.nest()) == 0);  // 2 KB are fetched ahead by hardware
  CHECK(prefetches(Product{.rows = 2}.nest()) == 0);                     // one tile uses a piece
  CHECK(prefetches(Product{.rows = 200}.nest()) == 0);                   // a hundred do
  CHECK(prefetches(Product{.rows = 100}.nest()) == 0);                   // fifty do, of 16 elements a term
  CHECK(prefetches(Product{.rows_first = true}.nest()) == 0);            // the next tile uses another piece
  CHECK(prefetches(Product{.parallel_rows = true}.nest()) == 0);
  CHECK(prefetches(Product{}.nest(), processor(32 << 10)) == 0);  // L2 does not hold two pieces
}

TEST_CASE("tiles at the border of an image, which skip terms of their sums, fetch nothing") {
  // Its two copies of the loops are for tiles inside the image, which fetch in one place, and at its border.
  const loops::LoopNest nest = Product{.taps = 3, .padded = true}.nest();
  codegen::LlvmCompiler compiler(processor(), {.verify = true});
  CHECK(test::compiled_error(nest, compiler) < 1e-5);
  CHECK(prefetches(nest) == 1);
  CHECK(prefetches(Product{.rows = 4, .taps = 3, .padded = true}.nest()) == 0);  // both tiles are at the border
}
