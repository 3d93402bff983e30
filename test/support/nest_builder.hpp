// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/loops/nest.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::test {

/// Builds loop nests by hand: inputs, constants and outputs get argument buffers, the rest is up to the test.
struct NestBuilder {
  explicit NestBuilder(const program::ComputeGraph& g, std::string name = "kernel") : graph(g) {
    nest.name = std::move(name);
    nest.buffer_of.assign(graph.size(), loops::LoopNest::no_buffer);
    std::vector<program::TensorId> outputs = graph.outputs();
    for (program::TensorId id = 0; id < graph.size(); ++id) {
      if (graph.op(id).role == program::Role::Input)
        nest.arguments.push_back(add_argument(id, loops::BufferRole::Input));
      if (graph.op(id).role == program::Role::Constant)
        nest.arguments.push_back(add_argument(id, loops::BufferRole::Constant));
    }
    for (const program::TensorId id : outputs) nest.arguments.push_back(add_argument(id, loops::BufferRole::Output));
  }

  loops::Var var(std::string name, std::int64_t extent) {
    nest.variables.push_back({std::move(name), extent});
    return static_cast<loops::Var>(nest.variables.size() - 1);
  }

  loops::BufferId temporary(program::TensorId id, std::vector<std::int64_t> shape, std::vector<loops::IndexExpr> origin,
                            loops::Scope scope = loops::Scope::Global) {
    loops::Buffer buffer;
    buffer.name = graph.op(id).name;
    buffer.tensor = id;
    buffer.type = graph.op(id).type;
    buffer.scope = scope;
    buffer.shape = std::move(shape);
    buffer.origin = std::move(origin);
    nest.buffers.push_back(std::move(buffer));
    nest.buffer_of[id] = static_cast<loops::BufferId>(nest.buffers.size() - 1);
    return nest.buffer_of[id];
  }
  loops::BufferId temporary(program::TensorId id) {
    const auto shape = graph.op(id).shape();
    return temporary(id, shape, std::vector<loops::IndexExpr>(shape.size(), 0));
  }

  loops::Statement statement(loops::Statement::Kind kind, program::TensorId id,
                             std::vector<loops::IndexExpr> axis_values, std::vector<loops::Guard> guards = {},
                             bool may_overcompute = false) const {
    loops::Statement s;
    s.kind = kind;
    s.target = nest.buffer_of[id];
    s.op = std::make_shared<const program::Operator>(graph.op(id));
    s.axis_values = std::move(axis_values);
    s.guards = std::move(guards);
    s.may_overcompute = may_overcompute;
    return s;
  }

  static loops::Loop loop(loops::Var var, loops::LoopKind kind, loops::Body body, bool reduction = false) {
    loops::Loop l;
    l.var = var;
    l.kind = kind;
    l.reduction = reduction;
    l.body = std::move(body);
    return l;
  }

  const program::ComputeGraph& graph;
  loops::LoopNest nest;

 private:
  loops::BufferId add_argument(program::TensorId id, loops::BufferRole role) {
    temporary(id);
    nest.buffers.back().role = role;
    return nest.buffer_of[id];
  }
};

/// The plainest nest of a graph: every operator computed whole, one after the other, one serial loop an axis;
/// the innermost spatial loop of every operator is of kind `innermost`.
inline loops::LoopNest plain_nest(const program::ComputeGraph& graph,
                                  loops::LoopKind innermost = loops::LoopKind::Serial,
                                  loops::LoopKind outermost = loops::LoopKind::Serial) {
  using loops::Statement;
  NestBuilder b(graph);
  for (program::TensorId id = 0; id < graph.size(); ++id) {
    const program::Operator& op = graph.op(id);
    if (op.role != program::Role::Computed) continue;
    if (b.nest.buffer_of[id] == loops::LoopNest::no_buffer) b.nest.body.push_back(loops::Allocate{b.temporary(id)});
    std::vector<loops::Var> vars;
    std::vector<loops::IndexExpr> values;
    for (const program::Axis& axis : op.axes) {
      vars.push_back(b.var(op.name + "." + axis.name, axis.extent));
      values.push_back(loops::IndexExpr::variable(vars.back()));
    }
    const auto spatial = [&](loops::Body body) {
      for (std::size_t a = op.rank(); a-- > 0;) {
        const loops::LoopKind kind = a + 1 == op.rank() ? innermost : a == 0 ? outermost : loops::LoopKind::Serial;
        loops::Body outer;
        outer.push_back(NestBuilder::loop(vars[a], kind, std::move(body)));
        body = std::move(outer);
      }
      for (loops::Node& node : body) b.nest.body.push_back(std::move(node));
    };
    if (!op.has_reduction()) {
      spatial({b.statement(Statement::Kind::Assign, id, values)});
      continue;
    }
    spatial({b.statement(Statement::Kind::Initialise, id, values)});
    loops::Body body{b.statement(Statement::Kind::Update, id, values)};
    std::vector<std::size_t> order;
    for (std::size_t a = 0; a + 1 < op.rank(); ++a) order.push_back(a);
    for (std::size_t a = op.rank(); a < op.axes.size(); ++a) order.push_back(a);
    if (op.rank() > 0) order.push_back(op.rank() - 1);
    for (std::size_t n = order.size(); n-- > 0;) {
      const std::size_t a = order[n];
      const bool reduction = a >= op.rank();
      const loops::LoopKind kind = a + 1 == op.rank() ? innermost : a == 0 ? outermost : loops::LoopKind::Serial;
      loops::Body outer;
      outer.push_back(
          NestBuilder::loop(vars[a], reduction ? loops::LoopKind::Serial : kind, std::move(body), reduction));
      body = std::move(outer);
    }
    for (loops::Node& node : body) b.nest.body.push_back(std::move(node));
  }
  return std::move(b.nest);
}

/// Small deterministic choices for nests below.
struct Choices {
  std::uint64_t state = 1;
  std::int64_t operator()(std::int64_t count) {  ///< 0 to count - 1
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(count));
  }
};

/// A random schedule of a graph whose last operator reduces: axes split in up to three parts that need not
/// divide, loops in random order and of random kinds, the initialisation as far inside as it can be, guards
/// where parts do not divide. With `cached`, the graph ends in an elementwise copy of the reduction, which is
/// computed in a tile per outer iteration.
inline loops::LoopNest random_nest(const program::ComputeGraph& graph, bool cached, std::uint64_t seed) {
  using loops::IndexExpr;
  using loops::LoopKind;
  using loops::Statement;
  Choices choose{seed * 977 + 5};
  choose(2);
  NestBuilder b(graph);
  const auto copy_id = static_cast<program::TensorId>(graph.size() - 1);
  const program::TensorId id = cached ? copy_id - 1 : copy_id;
  const program::Operator& op = graph.op(id);
  struct Part {
    loops::Var var;
    std::int64_t extent;
    std::int64_t stride;
    std::size_t axis;
    std::int64_t level;
    LoopKind kind = LoopKind::Serial;
  };
  std::vector<Part> parts;
  std::vector<IndexExpr> value(op.axes.size());
  std::vector<bool> covered(op.axes.size());
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    std::int64_t rest = op.axes[a].extent;
    std::int64_t stride = 1;
    for (std::int64_t level = 2; level >= 0; --level) {
      static constexpr std::int64_t factors[] = {1, 2, 3, 4, 5, 8, 16, 32};
      const bool innermost_vector = level == 2 && a + 1 == op.rank();
      std::int64_t extent = innermost_vector ? factors[3 + choose(5)] : factors[choose(5)];
      if (level == 0) extent = rest;
      if (extent > rest) extent = rest;
      const loops::Var var = b.var(op.axes[a].name + "." + std::to_string(level), extent);
      parts.push_back({var, extent, stride, a, level});
      value[a] += stride * IndexExpr::variable(var);
      stride *= extent;
      rest = (rest + extent - 1) / extent;
    }
    covered[a] = stride == op.axes[a].extent;
  }
  // Outer spatial parts, outer reduction parts, then the inner levels in random order.
  std::vector<Part> order;
  const auto is_reduction = [&](const Part& p) { return p.axis >= op.rank(); };
  for (const Part& p : parts) {
    if (p.level == 0 && !is_reduction(p)) order.push_back(p);
  }
  const std::size_t outer = order.size();
  for (std::int64_t level = 0; level < 3; ++level) {
    std::vector<Part> here;
    for (const Part& p : parts) {
      if (p.level == level && (level > 0 || is_reduction(p))) here.push_back(p);
    }
    while (!here.empty()) {
      const auto pick = here.begin() + choose(static_cast<std::int64_t>(here.size()));
      order.push_back(*pick);
      here.erase(pick);
    }
  }
  if (choose(3) != 0) {
    for (std::size_t n = 0; n < order.size(); ++n) {
      if (order[n].level == 2 && order[n].axis + 1 == op.rank()) {
        const Part vector = order[n];
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(n));
        order.push_back(vector);
        break;
      }
    }
  }
  for (Part& p : order) {
    if (p.level == 0 && !is_reduction(p))
      p.kind = p.axis == 0 && choose(2) == 0 ? LoopKind::Parallel : LoopKind::Serial;
    if (p.level == 1) p.kind = choose(3) == 0 ? LoopKind::Unrolled : LoopKind::Serial;
    if (p.level == 2) p.kind = choose(4) != 0 ? LoopKind::Unrolled : LoopKind::Serial;
    if (p.level == 2 && p.axis + 1 == op.rank() && choose(4) != 0) p.kind = LoopKind::Vectorized;
    if (p.level == 2 && is_reduction(p) && choose(8) == 0) p.kind = LoopKind::Vectorized;
  }
  for (std::size_t n = 0, vectors = 0; n < order.size(); ++n) {
    if (order[n].kind == LoopKind::Vectorized && vectors++ > 0) order[n].kind = LoopKind::Unrolled;
  }

  std::vector<loops::Guard> guards;
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    if (!covered[a]) guards.push_back({value[a], op.axes[a].extent, false, true, static_cast<std::uint32_t>(a)});
  }
  const auto spatial_guards = [&](const std::vector<loops::Guard>& all) {
    std::vector<loops::Guard> some;
    for (const loops::Guard& g : all) {
      if (g.axis < op.rank()) some.push_back(g);
    }
    return some;
  };
  loops::Body allocation;
  if (cached) {
    std::vector<std::int64_t> shape;
    std::vector<IndexExpr> origin;
    for (std::size_t a = 0; a < op.rank(); ++a) {
      IndexExpr start;
      std::int64_t extent = 1;
      for (const Part& p : parts) {
        if (p.axis != a) continue;
        if (p.level == 0) start += p.stride * IndexExpr::variable(p.var);
        if (p.level != 0) extent *= p.extent;
      }
      shape.push_back(extent);
      origin.push_back(start);
    }
    allocation.push_back(loops::Allocate{b.temporary(id, shape, origin, loops::Scope::Local)});
  }
  loops::Body update{b.statement(Statement::Kind::Update, id, value, guards, cached)};
  for (std::size_t n = order.size(); n-- > outer;) {
    loops::Body around;
    around.push_back(NestBuilder::loop(order[n].var, order[n].kind, std::move(update), is_reduction(order[n])));
    if (n == outer && choose(3) == 0) std::get<loops::Loop>(around.back().content).unroll_limit = 64;
    update = std::move(around);
  }
  // Spatial loops inside `outer` again, with variables of their own, for the initialisation and the copy.
  const auto spatial_nest = [&](Statement::Kind kind, program::TensorId which, bool overcompute) {
    std::vector<IndexExpr> values = value;
    std::vector<loops::Guard> own = spatial_guards(guards);
    std::vector<Part> inside;
    for (std::size_t n = outer; n < order.size(); ++n) {
      if (is_reduction(order[n])) continue;
      Part p = order[n];
      p.var = b.var(b.nest.variables[p.var].name + "'", p.extent);
      const IndexExpr change = p.stride * (IndexExpr::variable(p.var) - IndexExpr::variable(order[n].var));
      values[p.axis] += change;
      for (loops::Guard& g : own) {
        if (g.axis == p.axis) g.value += change;
      }
      inside.push_back(p);
    }
    if (kind == Statement::Kind::Assign) values.resize(op.rank());
    loops::Body body{b.statement(kind, which, values, own, overcompute)};
    for (std::size_t n = inside.size(); n-- > 0;) {
      loops::Body around;
      around.push_back(NestBuilder::loop(inside[n].var, inside[n].kind, std::move(body)));
      body = std::move(around);
    }
    return body;
  };
  loops::Body body = std::move(allocation);
  const auto append = [&](loops::Body more) {
    for (loops::Node& node : more) body.push_back(std::move(node));
  };
  append(spatial_nest(Statement::Kind::Initialise, id, cached));
  append(std::move(update));
  if (cached) append(spatial_nest(Statement::Kind::Assign, copy_id, false));
  for (std::size_t n = outer; n-- > 0;) {
    loops::Body around;
    around.push_back(NestBuilder::loop(order[n].var, order[n].kind, std::move(body)));
    body = std::move(around);
  }
  b.nest.body = std::move(body);
  return std::move(b.nest);
}

}  // namespace tunewright::test
