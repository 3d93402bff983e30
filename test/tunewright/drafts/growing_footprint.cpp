// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/growing_footprint.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tunewright/loops/lower.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

namespace {

/// Calls `visit(touched)` for the only statement of a nest, of which the innermost loop varies; lines have 64 bytes, L1
/// has 32 KB.
template <class Visit>
void with_footprint(const loops::LoopNest& nest, const Visit& visit) {
  loops::NestSummarizer summarizer;
  NestReader reader;
  StatementFootprint footprint;
  GrowingFootprint touched;
  int met = 0;
  reader.read(
      summarizer.summary(nest), [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& statement) {
        ++met;
        footprint.reset(reader, statement);
        touched.start(footprint, reader.open().size(), 64, 32 << 10);
        visit(touched);
      });
  CHECK(met == 1);
}

}  // namespace

TEST_CASE("what the loops of a copy touch, from the innermost outwards") {
  // y[i][j] = x[i][j] + b[i], rows of a page, in 16 blocks of 64 columns: loops over blocks, rows, and columns of a
  // block.
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {64, 1024});
  const auto b = g->input("b", {64});
  const auto y = g->compute("y", {{"i", 64}, {"j", 1024}}, [&](auto i) { return x(i[0], i[1]) + b(i[0]); });
  schedule::ScheduleBuilder s(g);
  const auto block = s.split(y.id, 1, {64});
  s.reorder(y.id, {block[0], 0, block[1]});
  const loops::LoopNest nest = loops::lower(s.schedule());
  with_footprint(nest, [](GrowingFootprint& touched) {
    // 256 bytes of x and of y, a line of b.
    CHECK(touched.depth() == 2);
    CHECK(touched.all().bytes == 2 * 256 + 64);
    CHECK(touched.all().cache_bytes == 2 * 256 + 64);
    CHECK(touched.all().stored_cache_bytes == 256);
    // 64 rows that begin in the same sets, each piece with a quarter of the line behind it, and all of b.
    touched.grow();
    CHECK(touched.depth() == 1);
    CHECK(touched.all().bytes == 64 * 2 * (256 + 16) + 256);
    CHECK(touched.all().cache_bytes == 64 * 2 * 4096 + 256);
    CHECK(touched.all().stored_cache_bytes == 64 * 4096);
    // Everything.
    touched.grow();
    CHECK(touched.depth() == 0);
    CHECK(touched.all().bytes == 64 * 2 * 4096 + 256);
    CHECK(touched.all().cache_bytes == 64 * 2 * 4096 + 256);
  });
}

TEST_CASE("what is fetched in vain ends where the next piece begins") {
  // The statement reads 16 floats, a line, of each row of 17, 20 or 32; y has no gaps.
  const auto fetched = [](std::int64_t row_floats) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {64, row_floats});
    g->compute("y", {{"i", 64}, {"j", 16}}, [&](auto i) { return x(i[0], i[1]) + program::Expr(1.0); });
    const loops::LoopNest nest = loops::lower(schedule::ScheduleBuilder(g).schedule());
    double bytes = 0;
    with_footprint(nest, [&](GrowingFootprint& touched) {
      touched.grow();
      bytes = touched.all().bytes - 64 * 64;
    });
    return bytes;
  };
  CHECK(fetched(16) == 64 * 64);
  CHECK(fetched(17) == 64 * 68);
  CHECK(fetched(20) == 64 * 80);
  CHECK(fetched(32) == 64 * 80);
}

TEST_CASE("one gap follows each piece, whatever the number of dimensions") {
  // The statement reads 16 of 64 floats, a line, of each of 8 x 8 rows, or of the first two of each 8; y has no gaps.
  const auto fetched = [](std::int64_t rows) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {8, 8, 64});
    g->compute("y", {{"h", 8}, {"i", rows}, {"j", 16}},
               [&](auto i) { return x(i[0], i[1], i[2]) + program::Expr(1.0); });
    const loops::LoopNest nest = loops::lower(schedule::ScheduleBuilder(g).schedule());
    double bytes = 0;
    with_footprint(nest, [&](GrowingFootprint& touched) {
      while (touched.depth() > 0) touched.grow();
      bytes = touched.all().bytes - 8.0 * static_cast<double>(rows) * 64;
    });
    return bytes;
  };
  CHECK(fetched(8) == 8 * 8 * 80);
  CHECK(fetched(2) == 8 * 2 * 80);
}

TEST_CASE("slices that a fixed index leaves out are gaps between those that it takes") {
  // y[i][j] = x[2][i][j], or x[i][2][j]; y has no gaps.
  const auto copied = [](std::int64_t rows, std::int64_t row_floats, std::vector<std::int64_t> shape, bool outermost) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", shape);
    const program::IndexExpr fixed(shape[outermost ? 0 : 1] - 1);
    g->compute("y", {{"i", rows}, {"j", row_floats}},
               [&](auto i) { return outermost ? x(fixed, i[0], i[1]) : x(i[0], fixed, i[1]); });
    const loops::LoopNest nest = loops::lower(schedule::ScheduleBuilder(g).schedule());
    Footprint all;
    with_footprint(nest, [&](GrowingFootprint& touched) {
      while (touched.depth() > 0) touched.grow();
      all = touched.all();
    });
    return all;
  };
  // Eight lines, each with a quarter of the next one unless they adjoin.
  CHECK(copied(8, 16, {8, 3, 16}, false).bytes == 8 * 64 + 8 * 80);
  CHECK(copied(8, 16, {8, 1, 16}, false).bytes == 8 * 64 + 8 * 64);
  CHECK(copied(8, 16, {3, 8, 16}, true).bytes == 8 * 64 + 8 * 64);
  // Halves of pages are as many rows as there are pages; halves beside each other are one.
  CHECK(copied(16, 512, {16, 2, 512}, false).scattered_bytes == 0);
  CHECK(copied(17, 512, {17, 2, 512}, false).scattered_bytes == 17 * (2048 + 16));
  CHECK(copied(17, 512, {2, 17, 512}, true).scattered_bytes == 0);
}

TEST_CASE("a statement without loops touches the lines of its accesses") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1});
  g->compute("y", {{"i", 1}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  const loops::LoopNest nest = loops::lower(schedule::ScheduleBuilder(g).schedule());
  with_footprint(nest, [](const GrowingFootprint& touched) {
    CHECK(touched.depth() == 0);
    CHECK(touched.all().bytes == 2 * 64);
  });
}

TEST_CASE("rows visited in turn are more than prefetchers follow, or evict each other from L1") {
  // A copy of rows, of which 16 elements are read and written at a time before it goes on along them.
  const auto copied = [](std::int64_t rows, std::int64_t row_floats, std::int64_t at_a_time) {
    auto g = std::make_shared<program::ComputeGraph>();
    const auto x = g->input("x", {rows, row_floats});
    const auto y = g->compute("y", {{"i", rows}, {"j", row_floats}}, [&](auto i) { return x(i[0], i[1]); });
    schedule::ScheduleBuilder s(g);
    const auto block = s.split(y.id, 1, {at_a_time});
    s.reorder(y.id, {block[0], 0, block[1]});
    const loops::LoopNest nest = loops::lower(s.schedule());
    Footprint all;
    with_footprint(nest, [&](GrowingFootprint& touched) {
      while (touched.depth() > 0) touched.grow();
      all = touched.all();
    });
    return all;
  };
  // Eight rows of a page fill the sets of L1 that they begin in, nine evict each other.
  CHECK(copied(8, 1024, 16).evicted_bytes == 0);
  CHECK(copied(9, 1024, 16).evicted_bytes == 2 * 9 * 4096);
  // A line more a row, and each begins in sets of its own; prefetchers follow sixteen.
  CHECK(copied(64, 1024 + 16, 16).evicted_bytes == 0);
  CHECK(copied(16, 1024 + 16, 16).scattered_bytes == 0);
  CHECK(copied(17, 1024 + 16, 16).scattered_bytes == 2 * 17 * 4160);
  // Rows less than a page apart, and pieces of a page, stay in L1, but are not followed from memory.
  CHECK(copied(64, 512, 16).evicted_bytes == 0);
  CHECK(copied(64, 512, 16).scattered_bytes == 2 * 64 * 2048);
  CHECK(copied(64, 2048, 1024).evicted_bytes == 0);
  CHECK(copied(64, 2048, 1024).scattered_bytes == 2 * 64 * 8192);
  // Four pages are long enough.
  CHECK(copied(64, 8192, 4096).scattered_bytes == 0);
  CHECK(copied(64, 8192, 2048).scattered_bytes == 2 * 64 * 32768);
}
