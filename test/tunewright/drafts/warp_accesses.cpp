// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/warp_accesses.hpp"

#include <doctest/doctest.h>

#include "support/gpu_schedules.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

TEST_CASE("pieces of 16 bytes meet in banks where their columns bring them together") {
  CHECK(steps_of_pieces(8, 1, 128) == 8);  // pieces of a row, 128 rows apart: all in one place of eight
  CHECK(steps_of_pieces(8, 1, 129) == 1);  // a row more puts each into another one
  CHECK(steps_of_pieces(1, 8, 128) == 1);  // rows are next to each other
  CHECK(steps_of_pieces(4, 4, 129) == 4);  // piece p of row r is in place p + r
  CHECK(steps_of_pieces(2, 16, 132) == 4);
}

TEST_CASE("what a warp touches of a product, by hand") {
  // 16 x 16 threads, columns fastest, with 8 x 8 sums each: a warp has two rows of threads.
  const auto graph = program::operators::matmul_graph({.m = 128, .n = 128, .k = 128});
  auto s = test::tiled_on_gpu(graph, "matmul", {{1, 16, 1, 8}, {1, 16, 1, 8}}, {{16, 1}}, {"A", "B"});
  const loops::LoopNest nest = loops::lower(s.schedule());
  loops::NestSummarizer summarizer;
  const loops::NestSummary& summary = summarizer.summary(nest);
  NestReader reader;
  StatementFootprint footprint;
  int met = 0;
  reader.read(
      summary, [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& statement) {
        footprint.reset(reader, statement);
        footprint.vary(reader.thread_loops(), 32);
        const StatementFootprint::Access store = footprint.accesses()[0];
        if (reader.scope_of(store.buffer) == loops::Scope::Global) {
          ++met;
          // 16 threads of a row, 32 bytes apart, in two rows: a sector for each.
          CHECK(sectors(footprint, store) == 32);
        } else if (statement.kind == loops::Statement::Kind::Update) {
          ++met;
          const StatementFootprint::Access b = footprint.accesses().back();
          const Together together = moved_together(reader, footprint, b, reader.all_loops());
          CHECK(together.elements == 4);  // of the eight columns that a thread has in a row
          CHECK(together.unrolled == 4);
          // 16 threads of a row, 16 bytes each, 32 bytes apart: 64 words in every other four banks.
          CHECK(bank_steps(footprint, b, together) == 4);
          CHECK(bank_steps(footprint, b, {}) == 4);  // 16 words in every eighth bank
          // The same for all threads of a row.
          CHECK(bank_steps(footprint, footprint.accesses()[1], {}) == 1);
        }
      });
  CHECK(met == 2);
}
