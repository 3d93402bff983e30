// SPDX-License-Identifier: Apache-2.0
#include "tunewright/loops/thread_arrays.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "support/nest_builder.hpp"
#include "tunewright/program/operators/elementwise.hpp"

namespace {

using namespace tunewright;
using loops::IndexExpr;
using loops::LoopKind;
using loops::Scope;
using loops::Statement;
using test::NestBuilder;

loops::ThreadArrays arrays_of(const loops::LoopNest& nest) { return {nest, loops::ThreadArrays::Fragments::Excluded}; }

program::ComputeGraph twice() {
  program::ComputeGraph g;
  const auto x = g.input("x", {64});
  program::operators::relu(g, program::operators::relu(g, x));
  return g;
}

/// 64 numbers in blocks of eight, two by four: `window` has one block of the first operator's results, in `scope`. It
/// is allocated at the top where `at_top`, otherwise in each block.
struct Blocks {
  explicit Blocks(Scope scope, bool at_top = false) : b(graph) {
    block = b.var("block", 8);
    outer = b.var("outer", 2);
    inner = b.var("inner", 4);
    const IndexExpr start = 8 * IndexExpr::variable(block);
    const IndexExpr at = start + 4 * IndexExpr::variable(outer) + IndexExpr::variable(inner);
    window = b.temporary(1, {8}, {start}, scope);
    fill = b.statement(Statement::Kind::Assign, 1, {at});
    take = b.statement(Statement::Kind::Assign, 2, {at});
    loops::Body body;
    (at_top ? b.nest.body : body).push_back(loops::Allocate{window});
    body.push_back(fill);
    body.push_back(take);
    b.nest.body.push_back(NestBuilder::loop(block, LoopKind::Serial, std::move(body)));
  }
  [[nodiscard]] bool selects(loops::Var var, const loops::Node& node) const {
    return arrays_of(b.nest).selected_by(var, {&node, 1});
  }

  program::ComputeGraph graph = twice();
  NestBuilder b;
  loops::Var block = 0, outer = 0, inner = 0;
  loops::BufferId window = 0;
  Statement fill, take;
};

TEST_CASE("arrays of threads are temporary, not shared, and allocated inside a kernel") {
  const Blocks local(Scope::Local), shared(Scope::Shared), workspace(Scope::Local, true);
  CHECK(arrays_of(local.b.nest).contains(local.window));
  CHECK_FALSE(arrays_of(shared.b.nest).contains(shared.window));
  CHECK_FALSE(arrays_of(workspace.b.nest).contains(workspace.window));
  CHECK_FALSE(arrays_of(local.b.nest).contains(local.b.nest.arguments.at(0)));
  CHECK_FALSE(arrays_of(local.b.nest).contains(loops::LoopNest::no_buffer));
}

TEST_CASE("fragments of warps are among them where they are asked for") {
  using Fragments = loops::ThreadArrays::Fragments;
  const Blocks sums(Scope::Accumulator);
  CHECK_FALSE(loops::ThreadArrays(sums.b.nest, Fragments::Excluded).contains(sums.window));
  CHECK(loops::ThreadArrays(sums.b.nest, Fragments::Included).contains(sums.window));
}

TEST_CASE("a view is what it views") {
  Blocks workspace(Scope::Local, true);
  loops::Buffer view = workspace.b.nest.buffers[workspace.window];
  view.view_of = workspace.window;
  workspace.b.nest.buffers.push_back(view);
  CHECK_FALSE(arrays_of(workspace.b.nest).contains(workspace.window + 1));
}

TEST_CASE("loops inside an array's allocation select its elements, those around it move the window") {
  const Blocks local(Scope::Local);
  for (const Statement& s : {local.fill, local.take}) {
    CHECK(local.selects(local.outer, s));
    CHECK(local.selects(local.inner, s));
    CHECK_FALSE(local.selects(local.block, s));
  }
  CHECK(local.selects(local.inner, local.b.nest.body.at(0)));
  CHECK_FALSE(local.selects(local.block, local.b.nest.body.at(0)));
  const Blocks shared(Scope::Shared);
  CHECK_FALSE(shared.selects(shared.inner, shared.b.nest.body.at(0)));
}

TEST_CASE("an element that stays where it is while the window moves is another one each time") {
  Blocks local(Scope::Local);
  local.fill.axis_values = {IndexExpr::variable(local.inner)};
  CHECK(local.selects(local.block, local.fill));
}

TEST_CASE("what starts a sum reads nothing, and each loop that has a copy of its own selects it") {
  Blocks local(Scope::Local);
  local.take.kind = Statement::Kind::Initialise;
  CHECK_FALSE(local.selects(local.inner, local.take));
  const loops::Var thread = local.b.var("thread", 2);
  CHECK_FALSE(local.selects(thread, local.fill));
  local.b.nest.buffers[local.window].private_to = {{thread, 2}};
  CHECK(local.selects(thread, local.fill));
}

TEST_CASE("sides of branches and sums across threads take elements too") {
  const Blocks local(Scope::Local);
  loops::Branch branch;
  CHECK_FALSE(local.selects(local.inner, branch));
  branch.otherwise = {local.fill};
  CHECK(local.selects(local.inner, branch));
  loops::CrossThreadReduction sum;
  sum.partial = local.window;
  sum.target = local.b.nest.arguments.at(1);
  sum.axis_values = local.fill.axis_values;
  CHECK(local.selects(local.outer, sum));
  CHECK_FALSE(local.selects(local.block, sum));
  std::swap(sum.partial, sum.target);
  CHECK(local.selects(local.outer, sum));
}

}  // namespace
