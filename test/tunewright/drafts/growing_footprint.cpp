// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/growing_footprint.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "tunewright/loops/lower.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

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
        touched.start(footprint, reader.open().size(), 64);
        // 256 bytes of x and of y, a line of b.
        CHECK(touched.depth() == 2);
        CHECK(touched.all().bytes == 2 * 256 + 64);
        CHECK(touched.all().cache_bytes == 2 * 256 + 64);
        // 64 rows that begin in the same sets, and all of b.
        touched.grow();
        CHECK(touched.depth() == 1);
        CHECK(touched.all().bytes == 64 * 2 * 256 + 256);
        CHECK(touched.all().cache_bytes == 64 * 2 * 4096 + 256);
        // Everything.
        touched.grow();
        CHECK(touched.depth() == 0);
        CHECK(touched.all().bytes == 64 * 2 * 4096 + 256);
        CHECK(touched.all().cache_bytes == 64 * 2 * 4096 + 256);
      });
  CHECK(met == 1);
}

TEST_CASE("a statement without loops touches the lines of its accesses") {
  auto g = std::make_shared<program::ComputeGraph>();
  const auto x = g->input("x", {1});
  g->compute("y", {{"i", 1}}, [&](auto i) { return x(i[0]) + program::Expr(1.0); });
  const loops::LoopNest nest = loops::lower(schedule::ScheduleBuilder(g).schedule());
  loops::NestSummarizer summarizer;
  NestReader reader;
  StatementFootprint footprint;
  GrowingFootprint touched;
  reader.read(
      summarizer.summary(nest), [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& statement) {
        footprint.reset(reader, statement);
        touched.start(footprint, reader.open().size(), 64);
      });
  CHECK(touched.depth() == 0);
  CHECK(touched.all().bytes == 2 * 64);
}
