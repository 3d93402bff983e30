// SPDX-License-Identifier: Apache-2.0
#include "tunewright/features/curve.hpp"

#include <doctest/doctest.h>

#include <array>
#include <utility>

#include "support/nest_builder.hpp"
#include "support/refusal.hpp"
#include "support/toy_space.hpp"

using namespace tunewright;
using loops::Body;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Statement;
using test::NestBuilder;

namespace {

/// i in 0..8 { C[i, :] = 0; k in 0..4 { j in 0..16: C[i, j] += A[i, k] * B[k, j] } }, with a loop of one
/// iteration around it all.
loops::LoopNest matmul() {
  program::ComputeGraph graph;
  const auto a = graph.input("A", {8, 4});
  const auto b = graph.input("B", {4, 16});
  const auto c = graph.reduce("C", {{"i", 8}, {"j", 16}}, {{"k", 4}}, program::Combiner::Sum,
                              [&](auto i, auto r) { return a(i[0], r[0]) * b(r[0], i[1]); });
  NestBuilder built(graph);
  const loops::Var one = built.var("one", 1), i = built.var("i", 8), j = built.var("j", 16), k = built.var("k", 4);
  const std::vector<IndexExpr> at{IndexExpr::variable(i), IndexExpr::variable(j), IndexExpr::variable(k)};
  Body inner{built.statement(Statement::Kind::Update, c.id, at)};
  Body over_k{NestBuilder::loop(j, LoopKind::Serial, std::move(inner))};
  Body rows{NestBuilder::loop(j, LoopKind::Serial, {built.statement(Statement::Kind::Initialise, c.id, at)})};
  rows.push_back(NestBuilder::loop(k, LoopKind::Serial, std::move(over_k), true));
  Body over_i{NestBuilder::loop(i, LoopKind::Parallel, std::move(rows))};
  built.nest.body.push_back(NestBuilder::loop(one, LoopKind::Serial, std::move(over_i)));
  return std::move(built.nest);
}

struct Lowers : toy::Space {
  using program_type = loops::LoopNest;
  loops::LoopNest lower(const Task&, const toy::Tiles& tiles) const {
    if (tiles[0] == 7) throw std::runtime_error("cannot be lowered");
    return tiles[0] == 6 ? loops::LoopNest{} : matmul();
  }
};
static_assert(FeaturizerFor<features::Curve, Lowers>);
static_assert(!FeaturizerFor<features::Curve, toy::Space>);
static_assert(OneRowFeaturizer<features::Curve>);

using Points = std::vector<double>;

}  // namespace

TEST_CASE("the curves of a matmul by hand") {
  features::curve::Reader reader;
  const auto& curves = reader.read(matmul());
  REQUIRE(curves.size() == 3);
  // C[i, j] in loops i 8, k 4, j 16: j moves it, k uses it again, i moves it.
  CHECK(curves[0].count == Points{0, 4, 4, 7});
  CHECK(curves[0].reuse == Points{0, 0, 2, 2});
  CHECK(curves[0].top_down == Points{0, 3, 5, 9});
  CHECK(curves[1].count == Points{0, 0, 2, 5});  // A[i, k]
  CHECK(curves[1].reuse == Points{0, 4, 4, 4});
  CHECK(curves[2].count == Points{0, 4, 6, 6});  // B[k, j]
  CHECK(curves[2].reuse == Points{0, 0, 0, 3});
}

TEST_CASE("samples take the last point up to a power of two, and how far it lies below") {
  std::array<float, 12> out{};
  features::curve::sample(Points{0, 0, 2, 5}, Points{0, 4, 4, 9}, out);  // top: 2^0, ... 2^5
  CHECK(out == std::array<float, 12>{4, 0, 4, 1, 4, 0, 4, 1, 4, 2, 9, 0});
}

TEST_CASE("a row of four relations a buffer") {
  const features::Curve featurizer{.samples = 5, .buffers = 4};
  const std::vector<toy::Tiles> tiles{{0}, {7}, {6}};
  const FeatureBatch batch = featurizer.extract(Lowers{}, toy::task(), std::span<const toy::Tiles>(tiles));
  REQUIRE(batch.programs() == 3);
  REQUIRE(batch.columns() == 4 * 4 * 10);
  CHECK(batch.columns() == featurizer.schema().columns.size());
  CHECK(batch.program(1).empty());  // does not lower
  CHECK(batch.program(2).empty());  // computes nothing
  const auto block = [&](std::size_t buffer, std::size_t relation) {
    const auto part = batch.row(0).subspan((4 * buffer + relation) * 10, 10);
    return std::vector<float>(part.begin(), part.end());
  };
  CHECK(block(1, 0) == std::vector<float>{4, 0, 4, 1, 4, 0, 4, 1, 4, 2});  // A: reuse of count
  CHECK(block(1, 1) == std::vector<float>{0, 0, 0, 1, 0, 2, 0, 3, 5, 0});  // count of reuse
  CHECK(block(1, 2) == std::vector<float>{3, 0, 3, 1, 5, 0, 5, 1, 5, 2});  // top-down of count
  CHECK(block(1, 3) == std::vector<float>{0, 0, 0, 1, 0, 2, 0, 0, 0, 1});  // count of top-down
  for (std::size_t relation = 0; relation < 4; ++relation)
    CHECK(block(3, relation) == std::vector<float>(10, 0.0F));  // there is no fourth buffer
}

TEST_CASE("nests that are not well formed are refused") {
  features::curve::Reader reader;
  loops::LoopNest nest = matmul();
  nest.buffer_of[1] = loops::LoopNest::no_buffer;
  CHECK(test::refusal([&] { (void)reader.read(nest); }).find("reads tensor 1 which has no buffer") !=
        std::string::npos);
  nest = matmul();
  nest.variables[1].extent = 0;
  CHECK(test::refusal([&] { (void)reader.read(nest); }).find("an extent of at least 1") != std::string::npos);
}

TEST_CASE("a batch of other columns is refused") {
  features::curve::Reader reader;
  FeatureBatch half(80);
  CHECK(test::refusal([&] { features::Curve{.samples = 5, .buffers = 4}.describe(matmul(), reader, half); }) ==
        "features::Curve: a batch of 80 columns for rows of 160; give one of 8 * samples * buffers columns");
  CHECK(half.programs() == 0);
}

TEST_CASE("options out of range are named") {
  const std::vector<toy::Tiles> tiles(1);
  CHECK(test::refusal([] { (void)features::Curve{.samples = 0}.schema(); }) ==
        "features::Curve: samples is 0; give at least 1");
  CHECK(test::refusal([&] {
          (void)features::Curve{.buffers = 0}.extract(Lowers{}, toy::task(), std::span<const toy::Tiles>(tiles));
        }).find("buffers is 0") != std::string::npos);
}
