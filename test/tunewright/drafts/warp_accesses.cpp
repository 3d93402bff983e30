// SPDX-License-Identifier: Apache-2.0
#include "tunewright/drafts/symbol_analyzer/warp_accesses.hpp"

#include <doctest/doctest.h>

#include "support/gpu_schedules.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/program/operators/matmul.hpp"

using namespace tunewright;
using namespace tunewright::drafts;

TEST_CASE("what a warp touches of a product, by hand") {
  // 16 x 16 threads, columns fastest, with 8 x 8 sums each: a warp has two rows of threads.
  const auto graph = program::operators::matmul_graph({.m = 128, .n = 128, .k = 128});
  auto s = test::tiled_on_gpu(graph, "matmul", {{1, 16, 1, 8}, {1, 16, 1, 8}}, {{16, 1}}, {"A", "B"});
  const loops::LoopNest nest = loops::lower(s.schedule());
  loops::NestSummarizer summarizer;
  const loops::NestSummary& summary = summarizer.summary(nest);
  NestReader reader;
  StatementReach reach;
  int met = 0;
  reader.read(
      summary, [](const loops::LoopSummary&) {},
      [&](const loops::StatementSummary& statement) {
        reach.reset(reader, statement);
        reach.run(reader.thread_loops(), 32);
        const StatementReach::Access store = reach.accesses()[0];
        if (reader.scope_of(store.buffer) == loops::Scope::Global) {
          ++met;
          // 16 threads of a row, 32 bytes apart, in two rows: a sector for each.
          CHECK(sectors(reach, store) == 32);
        } else if (statement.kind == loops::Statement::Kind::Update) {
          ++met;
          const StatementReach::Access b = reach.accesses().back();
          const Together together = moved_together(reader, reach, b, reader.all_loops());
          CHECK(together.elements == 4);  // of the eight columns that a thread has in a row
          CHECK(together.unrolled == 4);
          // 16 threads of a row, 16 bytes each, 32 bytes apart: 64 words in every other four banks.
          CHECK(bank_steps(reach, b, together) == 4);
          CHECK(bank_steps(reach, b, {}) == 4);  // 16 words in every eighth bank
          // The same for all threads of a row.
          CHECK(bank_steps(reach, reach.accesses()[1], {}) == 1);
        }
      });
  CHECK(met == 2);
}
