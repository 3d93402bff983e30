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
      if (graph.op(id).role == program::Role::Input) nest.arguments.push_back(add_argument(id, loops::BufferRole::Input));
      if (graph.op(id).role == program::Role::Constant) nest.arguments.push_back(add_argument(id, loops::BufferRole::Constant));
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

  loops::Statement statement(loops::Statement::Kind kind, program::TensorId id, std::vector<loops::IndexExpr> axis_values,
                             std::vector<loops::Guard> guards = {}, bool may_overcompute = false) const {
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

/// The plainest nest of a graph: every operator computed whole, one after the other, one serial loop an axis; the innermost
/// spatial loop of every operator is of kind `innermost`.
inline loops::LoopNest plain_nest(const program::ComputeGraph& graph, loops::LoopKind innermost = loops::LoopKind::Serial,
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
      outer.push_back(NestBuilder::loop(vars[a], reduction ? loops::LoopKind::Serial : kind, std::move(body), reduction));
      body = std::move(outer);
    }
    for (loops::Node& node : body) b.nest.body.push_back(std::move(node));
  }
  return std::move(b.nest);
}

}  // namespace tunewright::test
