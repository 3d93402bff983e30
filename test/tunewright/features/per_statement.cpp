// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/per_statement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/nest_builder.hpp"
#include "tunewright/features/per_statement/describer_of.hpp"

namespace {

using namespace tunewright;
using namespace tunewright::features::per_statement;
using loops::Allocate;
using loops::Body;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;
using test::NestBuilder;

doctest::Approx logarithm(double x) { return doctest::Approx(std::log2(x + 1)).epsilon(1e-6); }

Task cpu_task() {
  Task task;
  task.target.cache_line_bytes = 64;
  return task;
}

FeatureBatch rows_of(const loops::LoopNest& nest, const Task& task = cpu_task()) {
  FeatureBatch batch(columns);
  features::describe(nest, task, batch);
  return batch;
}

/// parallel i in 0..8 { vectorized j in 0..16: C = 0; serial k in 0..4 unroll<=16 { vectorized j in 0..16: C
/// += A * B } }
struct Matmul {
  program::ComputeGraph graph;
  loops::LoopNest nest;

  Matmul() {
    const auto a = graph.input("A", {8, 4});
    const auto b = graph.input("B", {4, 16});
    const auto c = graph.reduce("C", {{"i", 8}, {"j", 16}}, {{"k", 4}}, program::Combiner::Sum,
                                [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
    NestBuilder built(graph);
    const loops::Var i = built.var("i", 8);
    const loops::Var j = built.var("j", 16);
    const loops::Var k = built.var("k", 4);
    const std::vector<IndexExpr> at{IndexExpr::variable(i), IndexExpr::variable(j), IndexExpr::variable(k)};
    Body inner{built.statement(Statement::Kind::Update, c.id, at)};
    Body reduction{NestBuilder::loop(j, LoopKind::Vectorized, std::move(inner))};
    loops::Loop over_k = NestBuilder::loop(k, LoopKind::Serial, std::move(reduction), true);
    over_k.unroll_limit = 16;
    Body rows{NestBuilder::loop(j, LoopKind::Vectorized, {built.statement(Statement::Kind::Initialise, c.id, at)})};
    rows.push_back(std::move(over_k));
    built.nest.body.push_back(NestBuilder::loop(i, LoopKind::Parallel, std::move(rows)));
    nest = std::move(built.nest);
  }
};

TEST_CASE("every column of a matmul worked by hand") {
  const FeatureBatch batch = rows_of(Matmul().nest);
  REQUIRE(batch.programs() == 1);
  REQUIRE(batch.rows() == 1);  // initialising is not a row of its own
  const auto row = batch.row(0);

  SUBCASE("operations: 512 iterations of one multiplication and one addition, plain indices") {
    for (std::size_t c = 0; c < operation_columns; ++c) {
      CHECK(row[c] == logarithm(c == FloatAddSub || c == FloatMul ? 512 : 0));
    }
  }
  SUBCASE("annotated loops") {
    const auto group = [&](std::size_t first, double count, double product, double length) {
      CHECK(row[first + LoopCount] == logarithm(count));
      CHECK(row[first + LoopProduct] == logarithm(product));
      CHECK(row[first + LoopLength] == logarithm(length));
      for (std::size_t p = PositionNone; p <= PositionMixed; ++p) {
        CHECK(row[first + p] == (p == (count == 0 ? PositionNone : PositionMixed) ? 1.0F : 0.0F));
      }
    };
    group(VectorizedLoops, 1, 16, 16);
    group(UnrolledLoops, 0, 0, 0);
    group(ParallelLoops, 1, 8, 8);
  }
  SUBCASE("no GPU: all lengths are 1") {
    CHECK(row[IsGpu] == 0.0F);
    for (std::size_t c = BlockX; c <= VirtualThread; ++c) CHECK(row[c] == 1.0F);
  }
  SUBCASE("buffers by lines, then name: B, C, A") {
    const auto block = [&](std::size_t b, BufferColumn access, double unique, double lines, double unique_lines,
                           double iterations, double bytes_between, double uses, double stride) {
      const auto values = row.subspan(FirstBuffer + b * buffer_columns, buffer_columns);
      for (const auto flag : {AccessRead, AccessWrite, AccessReadWrite})
        CHECK(values[flag] == (flag == access ? 1.0F : 0.0F));
      CHECK(values[Bytes] == logarithm(2048));
      CHECK(values[UniqueBytes] == logarithm(unique));
      CHECK(values[Lines] == logarithm(lines));
      CHECK(values[UniqueLines] == logarithm(unique_lines));
      CHECK(values[ReuseLoop] == 1.0F);
      CHECK(values[ReuseSerial] == 0.0F);
      CHECK(values[ReuseNone] == 0.0F);
      CHECK(values[ReuseIterations] == logarithm(iterations));
      CHECK(values[ReuseBytes] == logarithm(bytes_between));
      CHECK(values[ReuseCount] == logarithm(uses));
      CHECK(values[BytesPerReuse] == logarithm(2048 / uses));
      CHECK(values[UniqueBytesPerReuse] == logarithm(unique / uses));
      CHECK(values[LinesPerReuse] == logarithm(lines / uses));
      CHECK(values[UniqueLinesPerReuse] == logarithm(unique_lines / uses));
      CHECK(values[Stride] == logarithm(stride));
    };
    // B comes back at every i, after a whole k loop: C 16, A 4 and B 64 floats.
    block(0, AccessRead, 256, 32, 4, 64, 336, 8, 1);
    // C comes back at every k, after a whole j loop: C 16, A 1 and B 16 floats.
    block(1, AccessReadWrite, 512, 32, 8, 16, 132, 4, 1);
    // A stays through j; one iteration touches three floats. 512/16 accesses move by one float each.
    block(2, AccessRead, 128, 2, 2, 1, 12, 16, 0);
    for (std::size_t c = FirstBuffer + 3 * buffer_columns; c < IntensityCurve; ++c) CHECK(row[c] == 0.0F);
  }
  SUBCASE("arithmetic intensity: 32 operations on 132 bytes, 128 on 336, 1024 on 896") {
    CHECK(row[IntensityCurve] == logarithm(32.0 / 132 + (128.0 / 336 - 32.0 / 132) * (102.4 - 32) / (128 - 32)));
    for (std::size_t i = 1; i < curve_samples; ++i) {
      const double done = 102.4 * static_cast<double>(i + 1);
      CHECK(row[IntensityCurve + i] ==
            logarithm(128.0 / 336 + (1024.0 / 896 - 128.0 / 336) * (done - 128) / (1024 - 128)));
    }
  }
  SUBCASE("allocation and loops around") {
    CHECK(row[AllocationBytes] == logarithm(512));
    CHECK(row[AllocationProduct] == logarithm(128));
    CHECK(row[AllocationOuterProduct] == logarithm(1));
    CHECK(row[AllocationInnerProduct] == logarithm(512));
    CHECK(row[OuterProduct] == logarithm(512));
    CHECK(row[LoopsAround] == logarithm(3));
    CHECK(row[AutoUnrollLimit] == logarithm(16));
  }
}

TEST_CASE("the schema names every column in its place") {
  const features::PerStatement featurizer;
  const FeatureSchema& named = featurizer.schema();
  CHECK(named.name == "per_statement");
  CHECK(named.version == 1);
  REQUIRE(named.columns.size() == columns);
  CHECK(named.columns[FloatMul].name == "float_mul");
  CHECK(named.columns[SelectOps].name == "select_op");
  CHECK(named.columns[column_of(UnrolledLoops, LoopLength)].name == "unroll_len");
  CHECK(named.columns[VirtualThread].name == "vthread_len");
  CHECK(named.columns[column_of(1, Lines)].name == "buffer1_lines");
  CHECK(named.columns[IntensityCurve + 9].name == "arith_intensity_10");
  CHECK(named.columns[AllocationInnerProduct].name == "alloc_inner_prod");
  CHECK(named.columns[AutoUnrollLimit].name == "auto_unroll_max_step");
  for (std::size_t a = 0; a < columns; ++a) {
    for (std::size_t b = 0; b < a; ++b) CHECK(named.columns[a].name != named.columns[b].name);
    CHECK_FALSE(named.columns[a].unit.empty());
    CHECK_FALSE(named.columns[a].meaning.empty());
  }
}

/// T[i] = X[i] + X[i]; Y[i] = max(T[i], 0) over 32 elements.
struct Chain {
  program::ComputeGraph graph;
  program::Tensor x, t, y;
  Chain() {
    x = graph.input("X", {32});
    t = graph.compute("T", {{"i", 32}}, [&](auto i) { return x(i[0]) + x(i[0]); });
    y = graph.compute("Y", {{"i", 32}}, [&](auto i) { return program::max(t(i[0]), 0.0); });
  }
};

/// parallel o in 0..8 { [allocate T] for i in 0..4: T[4o + i] = ..; for j in 0..4: Y[4o + j] = .. }
loops::LoopNest chain_nest(const Chain& chain, bool window, bool y_first = false) {
  NestBuilder built(chain.graph);
  const loops::Var o = built.var("o", 8);
  const loops::Var i = built.var("i", 4);
  const loops::Var j = built.var("j", 4);
  const IndexExpr tile = IndexExpr::variable(o) * 4;
  const loops::BufferId buffer =
      window ? built.temporary(chain.t.id, {4}, {tile}, loops::Scope::Local) : built.temporary(chain.t.id);
  Body producer{built.statement(Statement::Kind::Assign, chain.t.id, {tile + IndexExpr::variable(i)})};
  Body consumer{built.statement(Statement::Kind::Assign, chain.y.id, {tile + IndexExpr::variable(j)})};
  Body tiles;
  if (window) tiles.push_back(Allocate{buffer});
  if (y_first) tiles.push_back(NestBuilder::loop(j, LoopKind::Serial, consumer));
  tiles.push_back(NestBuilder::loop(i, LoopKind::Serial, std::move(producer)));
  if (!y_first) tiles.push_back(NestBuilder::loop(j, LoopKind::Serial, std::move(consumer)));
  if (!window) built.nest.body.push_back(Allocate{buffer});
  built.nest.body.push_back(NestBuilder::loop(o, LoopKind::Parallel, std::move(tiles)));
  return std::move(built.nest);
}

TEST_CASE("rows come in the order of first visit") {
  const Chain chain;
  const FeatureBatch batch = rows_of(chain_nest(chain, false));
  REQUIRE(batch.rows() == 2);
  CHECK(batch.row(0)[FloatAddSub] == logarithm(32));
  CHECK(batch.row(0)[FloatCompare] == 0.0F);
  CHECK(batch.row(1)[FloatCompare] == logarithm(32));
  const FeatureBatch swapped = rows_of(chain_nest(chain, false, true));
  REQUIRE(swapped.rows() == 2);
  CHECK(swapped.row(0)[FloatCompare] == logarithm(32));
}

TEST_CASE("a buffer used by two statements under a loop is reused serially") {
  const FeatureBatch batch = rows_of(chain_nest(Chain(), false));
  const auto written = batch.row(0).subspan(FirstBuffer);  // T, before Y is visited; equal lines, so "T" before "X"
  CHECK(written[AccessWrite] == 1.0F);
  CHECK(written[ReuseNone] == 1.0F);
  CHECK(written[ReuseCount] == 0.0F);
  CHECK(written[Bytes] == logarithm(128));
  CHECK(written[BytesPerReuse] == logarithm(256));
  const auto read = batch.row(1).subspan(FirstBuffer);
  CHECK(read[AccessRead] == 1.0F);
  CHECK(read[ReuseSerial] == 1.0F);
  CHECK(read[ReuseCount] == logarithm(1));
  CHECK(read[ReuseIterations] == logarithm(32.0 / 8));     // 32 elements in 8 tiles
  CHECK(read[ReuseBytes] == logarithm(4 * 32 * 4.0 / 8));  // T, X, Y, T of 32 floats each
  CHECK(read[BytesPerReuse] == logarithm(128));
}

TEST_CASE("a window is described by its own indices and counted where it is allocated") {
  const FeatureBatch batch = rows_of(chain_nest(Chain(), true));
  const auto row = batch.row(0);
  CHECK(row[AllocationBytes] == logarithm(16));
  CHECK(row[AllocationProduct] == logarithm(4 * 8));
  CHECK(row[AllocationOuterProduct] == logarithm(8));
  CHECK(row[AllocationInnerProduct] == logarithm(4));
  const auto written = row.subspan(FirstBuffer);
  CHECK(written[UniqueBytes] == logarithm(16));
  CHECK(written[ReuseLoop] == 1.0F);  // the tile loop uses the same four elements again
  CHECK(written[ReuseCount] == logarithm(8));
  CHECK(written[ReuseIterations] == logarithm(4));
}

TEST_CASE("five buffers at most, those with the most lines") {
  program::ComputeGraph graph;
  std::vector<program::Tensor> inputs;
  for (int stride = 1; stride <= 6; ++stride)
    inputs.push_back(graph.input("x" + std::to_string(stride), {64 * stride}));
  graph.compute("sum", {{"i", 64}}, [&](auto i) {
    program::Expr total = inputs[0](i[0]);
    for (std::int64_t s = 2; s <= 6; ++s) total = total + inputs[static_cast<std::size_t>(s - 1)](i[0] * s);
    return total;
  });
  const FeatureBatch batch = rows_of(test::plain_nest(graph));
  REQUIRE(batch.rows() == 1);
  for (std::size_t b = 0; b < buffer_blocks; ++b) {
    const auto block = batch.row(0).subspan(FirstBuffer + b * buffer_columns);
    CHECK(block[Stride] == logarithm(6.0 - static_cast<double>(b)));
    CHECK(block[Lines] == logarithm(64 * (6.0 - static_cast<double>(b)) * 4 / 64));
  }
  CHECK(batch.row(0)[IntMul] == logarithm(5 * 64));  // one a strided index
}

TEST_CASE("a body without loads, and one without anything") {
  program::ComputeGraph graph;
  graph.compute("iota", {{"i", 8}}, [&](auto i) {
    return program::cast(program::index_value(i[0] * 2 + IndexExpr(1)), program::ScalarType::Float32);
  });
  graph.compute("zeros", {{"i", 8}}, [&](auto) { return program::Expr(0.0); });
  const FeatureBatch batch = rows_of(test::plain_nest(graph));
  REQUIRE(batch.rows() == 1);  // filling with a constant is not described
  const auto row = batch.row(0);
  CHECK(row[IntMul] == logarithm(8));
  CHECK(row[IntAddSub] == logarithm(8));
  CHECK(row[column_of(0, AccessWrite)] == 1.0F);
  CHECK(row[column_of(1, Bytes)] == 0.0F);
  for (std::size_t i = 0; i < curve_samples; ++i) CHECK(row[IntensityCurve + i] == 0.0F);  // no float operations
}

TEST_CASE("serial loops of one iteration are no loops; without any loop a statement touches its elements") {
  program::ComputeGraph graph;
  const auto x = graph.input("X", {1});
  graph.compute("Y", {{"i", 1}}, [&](auto i) { return x(i[0]) * 2.0; });
  const FeatureBatch batch = rows_of(test::plain_nest(graph));
  REQUIRE(batch.rows() == 1);
  const auto row = batch.row(0);
  CHECK(row[LoopsAround] == 0.0F);
  CHECK(row[OuterProduct] == 1.0F);
  const auto block = row.subspan(FirstBuffer);
  CHECK(block[Bytes] == logarithm(4));
  CHECK(block[UniqueBytes] == logarithm(4));
  CHECK(block[Lines] == 1.0F);
  CHECK(block[UniqueLines] == 1.0F);
  CHECK(block[Stride] == 0.0F);
  CHECK(row[IntensityCurve] == 0.0F);
}

TEST_CASE("thread bindings of a GPU program") {
  program::ComputeGraph graph;
  const auto x = graph.input("X", {4, 32});
  graph.compute("Y", {{"i", 4}, {"j", 32}}, [&](auto i) { return x(i[0], i[1]) * 2.0; });
  Task task = cpu_task();
  task.target.kind = DeviceKind::Gpu;
  const FeatureBatch batch = rows_of(test::plain_nest(graph, LoopKind::ThreadX, LoopKind::BlockX), task);
  const auto row = batch.row(0);
  CHECK(row[IsGpu] == 1.0F);
  CHECK(row[BlockX] == logarithm(4));
  CHECK(row[ThreadX] == logarithm(32));
  CHECK(row[ThreadY] == 1.0F);
  CHECK(row[column_of(ParallelLoops, LoopCount)] == 0.0F);
  CHECK(row[OuterProduct] == logarithm(128));
}

TEST_CASE("a hoisted guard does not change the rows") {
  Matmul matmul;
  const FeatureBatch plain = rows_of(matmul.nest);
  loops::Branch branch;
  branch.conditions.push_back({IndexExpr(0), 1});
  branch.then = matmul.nest.body;
  branch.otherwise = matmul.nest.body;
  matmul.nest.body.clear();
  matmul.nest.body.push_back(std::move(branch));
  const FeatureBatch guarded = rows_of(matmul.nest);
  REQUIRE(guarded.rows() == 1);
  CHECK(std::equal(plain.values().begin(), plain.values().end(), guarded.values().begin()));
}

TEST_CASE("extents beyond 32 bits stay exact and finite") {
  constexpr std::int64_t rows = std::int64_t{1} << 33;
  constexpr std::int64_t width = std::int64_t{1} << 20;
  program::ComputeGraph graph;
  const auto x = graph.input("X", {rows, width});
  graph.compute("Y", {{"i", rows}, {"j", width}}, [&](auto i) { return x(i[0], i[1]) * 2.0; });
  const FeatureBatch batch = rows_of(test::plain_nest(graph));
  const auto row = batch.row(0);
  CHECK(row[OuterProduct] == doctest::Approx(53));
  CHECK(row[column_of(0, UniqueBytes)] == doctest::Approx(55));
  CHECK(row[column_of(0, Lines)] == doctest::Approx(49));
  for (const float value : row) CHECK(std::isfinite(value));
  CHECK(slog(std::numeric_limits<double>::infinity()) < 1000.0F);
}

TEST_CASE("a describer forgets what it described") {
  const Matmul matmul;
  const loops::LoopNest chain = chain_nest(Chain(), true);
  Describer describer;
  FeatureBatch batch(columns);
  const Task task = cpu_task();
  describer.describe(chain, task, batch);
  describer.describe(matmul.nest, task, batch);
  describer.describe(chain, task, batch);
  REQUIRE(batch.programs() == 3);
  const FeatureBatch alone = rows_of(matmul.nest);
  CHECK(std::equal(alone.values().begin(), alone.values().end(), batch.program(1).begin()));
  CHECK(std::equal(batch.program(0).begin(), batch.program(0).end(), batch.program(2).begin()));
}

TEST_CASE("misuse is refused and leaves the batch alone") {
  Matmul matmul;
  FeatureBatch narrow(41);
  CHECK_THROWS_WITH_AS(features::describe(matmul.nest, cpu_task(), narrow), doctest::Contains("164"),
                       std::invalid_argument);
  FeatureBatch batch(columns);
  loops::LoopNest unbound = matmul.nest;
  unbound.variables[1].extent = 0;
  CHECK_THROWS_WITH_AS(features::describe(unbound, cpu_task(), batch), doctest::Contains("loop variable 1"),
                       std::invalid_argument);
  loops::LoopNest unstored = matmul.nest;
  unstored.buffer_of[1] = loops::LoopNest::no_buffer;
  CHECK_THROWS_WITH_AS(features::describe(unstored, cpu_task(), batch), doctest::Contains("declare it"),
                       std::invalid_argument);
  unstored.buffer_of.resize(1);
  CHECK_THROWS_WITH_AS(features::describe(unstored, cpu_task(), batch), doctest::Contains("tensor 1"),
                       std::invalid_argument);
  loops::LoopNest flat = matmul.nest;
  flat.buffers[0].shape = {32};
  CHECK_THROWS_WITH_AS(features::describe(flat, cpu_task(), batch), doctest::Contains("'A' has 1 dimensions"),
                       std::invalid_argument);
  CHECK(batch.programs() == 0);
}

/// A space whose configurations are tile sizes of a chain; zero cannot be lowered.
struct ChainSpace {
  using config_type = int;
  using program_type = loops::LoopNest;
  Chain chain;

  std::optional<int> sample(const Task&, Rng& rng) const { return static_cast<int>(rng.below(3)); }
  std::optional<int> mutate(const Task&, int config, Rng&) const { return config; }
  bool feasible(const Task&, int) const { return true; }
  std::uint64_t key(int config) const { return static_cast<std::uint64_t>(config); }
  std::string encode(int config) const { return std::to_string(config); }
  std::optional<int> decode(const Task&, std::string_view) const { return 1; }
  loops::LoopNest lower(const Task&, int config) const {
    if (config == 0) throw std::runtime_error("no tiles of zero elements");
    return chain_nest(chain, config == 1);
  }
};
static_assert(FeaturizerFor<features::PerStatement, ChainSpace>);

TEST_CASE("one program a configuration, in order") {
  const ChainSpace space;
  const std::vector<int> configs{1, 2, 0, 2, 1};
  const FeatureBatch batch = features::PerStatement{}.extract(space, cpu_task(), std::span<const int>(configs));
  REQUIRE(batch.programs() == 5);
  CHECK(batch.program(2).empty());  // what cannot be lowered has no rows
  CHECK(batch.program(0).size() == 2 * columns);
  CHECK(std::equal(batch.program(0).begin(), batch.program(0).end(), batch.program(4).begin()));
  CHECK_FALSE(std::equal(batch.program(0).begin(), batch.program(0).end(), batch.program(1).begin()));
  CHECK(features::PerStatement{}.extract(space, cpu_task(), {}).programs() == 0);
}

}  // namespace
