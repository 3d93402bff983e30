// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"

namespace tunewright::program {

/// The same program with fewer axes: what all operators visit as one row becomes one axis, "h@w" of h and w. Tiles then
/// cross the ends of rows: the pixels of a 1x1 convolution are 784, not 28 rows of 28.
///
/// Two axes of a tensor that follow each other are merged if every operator that reads it reads the two by two axes of
/// its own that follow each other, whole, and uses these in other tensors in the same way or not at all. Axes of extent
/// 1, which separate nothing, are left out if others are merged; one of each kind remains. Tensors keep their numbers,
/// names and memory: only their shapes change.
///
/// Returns nothing if no two axes longer than 1 can be merged.
/// Cost: some microseconds for a convolution.
[[nodiscard]] std::optional<ComputeGraph> merge_axes(const ComputeGraph& graph);

}  // namespace tunewright::program

#if TUNEWRIGHT_DEFINES(program)

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tunewright::program::detail {

/// Decides which axes are merged. An axis and the next one of its operator and kind are a pair; pairs that read each
/// other are merged together or not at all.
class AxisMerger {
 public:
  explicit AxisMerger(const ComputeGraph& graph);

  [[nodiscard]] bool merges_any() const noexcept { return merges_any_; }
  [[nodiscard]] ComputeGraph merged() const;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// An axis of an operator.
  struct Place {
    bool is_kept = false;
    std::size_t next = none;  ///< the next axis of its kind that is kept
    bool continues = false;   ///< whether it is merged with the one before it
    std::size_t pair = 0;     ///< number of the pair of it and the next one
  };
  /// What a load is indexed with.
  struct Access {
    std::vector<std::size_t> axis_of;  ///< by dimension: the axis that reads it from end to end, or `none`
    std::vector<std::size_t> uses;     ///< by axis: number of its occurrences
  };

  void keep_axes(TensorId id);
  void constrain(TensorId id);
  void constrain(TensorId reader, const ExprNode& load);
  [[nodiscard]] Access access(TensorId reader, const ExprNode& load) const;
  void forbid(std::size_t pair) { forbidden_[root(pair)] = true; }
  void tie(std::size_t a, std::size_t b);
  [[nodiscard]] std::size_t root(std::size_t pair) const;

  [[nodiscard]] Operator merged(TensorId id) const;

  const ComputeGraph& graph_;
  std::vector<std::vector<Place>> places_;  // by tensor and axis
  std::vector<std::size_t> parent_;         // of pairs, as sets
  std::vector<bool> forbidden_;             // by root
  bool merges_any_ = false;
};

TUNEWRIGHT_INLINE AxisMerger::AxisMerger(const ComputeGraph& graph) : graph_(graph), places_(graph.size()) {
  for (TensorId id = 0; id < graph.size(); ++id) keep_axes(id);
  for (TensorId id = 0; id < graph.size(); ++id) constrain(id);
  for (std::vector<Place>& places : places_) {
    for (const Place& place : places) {
      if (place.next == none || forbidden_[root(place.pair)]) continue;
      places[place.next].continues = true;
      merges_any_ = true;
    }
  }
}

TUNEWRIGHT_INLINE void AxisMerger::keep_axes(TensorId id) {
  const Operator& op = graph_.op(id);
  std::vector<Place>& places = places_[id];
  places.resize(op.axes.size());
  for (const AxisKind kind : {AxisKind::Spatial, AxisKind::Reduction}) {
    std::size_t before = none, last = none;
    for (std::size_t a = 0; a < places.size(); ++a) {
      if (op.axes[a].kind != kind) continue;
      last = a;
      if (op.axes[a].extent == 1) continue;
      places[a].is_kept = true;
      if (before != none) places[before].next = a;
      before = a;
    }
    if (before == none && last != none) places[last].is_kept = true;
  }
  for (Place& place : places) {
    place.pair = parent_.size();
    parent_.push_back(place.pair);
    forbidden_.push_back(false);
  }
}

TUNEWRIGHT_INLINE void AxisMerger::constrain(TensorId id) {
  const Operator& op = graph_.op(id);
  if (!op.body) return;
  visit(op.body, [&](const ExprNode& node) {
    if (node.op == Op::Load) constrain(id, node);
    if (node.op != Op::Index) return;
    for_each_variable(node.index, [&](Var var) {
      for (std::size_t a = 0; a < op.axes.size(); ++a)
        if (a == var || places_[id][a].next == var) forbid(places_[id][a].pair);
    });
  });
}

TUNEWRIGHT_INLINE void AxisMerger::constrain(TensorId reader, const ExprNode& load) {
  const Access read = access(reader, load);
  const std::vector<Place>& own = places_[reader];
  const std::vector<Place>& its = places_[load.tensor];
  for (std::size_t d = 0; d < load.indices.size(); ++d) {
    if (its[d].next == none) continue;
    const std::size_t a = read.axis_of[d];
    if (a != none && own[a].next != none && own[a].next == read.axis_of[its[d].next])
      tie(its[d].pair, own[a].pair);
    else
      forbid(its[d].pair);
  }
  for (std::size_t a = 0; a < own.size(); ++a) {
    if (own[a].next == none || (read.uses[a] == 0 && read.uses[own[a].next] == 0)) continue;
    const auto d =
        static_cast<std::size_t>(std::find(read.axis_of.begin(), read.axis_of.end(), a) - read.axis_of.begin());
    const bool is_read_as_pair =
        d < load.indices.size() && its[d].next != none && read.axis_of[its[d].next] == own[a].next;
    if (!is_read_as_pair) forbid(own[a].pair);
  }
}

TUNEWRIGHT_INLINE AxisMerger::Access AxisMerger::access(TensorId reader, const ExprNode& load) const {
  const Operator& op = graph_.op(reader);
  const Operator& source = graph_.op(load.tensor);
  Access read{std::vector<std::size_t>(load.indices.size(), none), std::vector<std::size_t>(op.axes.size(), 0)};
  const auto value_of = [&](Var var) { return places_[reader][var].is_kept ? IndexExpr::variable(var) : IndexExpr(0); };
  const auto range_of = [&](Var var) { return Range{0, op.axes[var].extent - 1}; };
  for (std::size_t d = 0; d < load.indices.size(); ++d) {
    const IndexExpr index = load.indices[d].substitute(value_of, range_of);
    for_each_variable(index, [&](Var var) { ++read.uses[var]; });
    const std::optional<Var> var = index.as_variable();
    if (var && places_[load.tensor][d].is_kept && op.axes[*var].extent == source.axes[d].extent) read.axis_of[d] = *var;
  }
  // An axis that is read twice is no whole row of either dimension.
  for (std::size_t& axis : read.axis_of)
    if (axis != none && read.uses[axis] > 1) axis = none;
  return read;
}

TUNEWRIGHT_INLINE void AxisMerger::tie(std::size_t a, std::size_t b) {
  a = root(a);
  b = root(b);
  if (forbidden_[a]) forbidden_[b] = true;
  parent_[a] = b;
}

TUNEWRIGHT_INLINE std::size_t AxisMerger::root(std::size_t pair) const {
  while (parent_[pair] != pair) pair = parent_[pair];
  return pair;
}

TUNEWRIGHT_INLINE ComputeGraph AxisMerger::merged() const {
  ComputeGraph graph;
  for (TensorId id = 0; id < graph_.size(); ++id) graph.add(merged(id));
  return graph;
}

TUNEWRIGHT_INLINE Operator AxisMerger::merged(TensorId id) const {
  const Operator& op = graph_.op(id);
  Operator result = op;
  result.axes.clear();
  std::vector<IndexExpr> value(op.axes.size());  // by axis of `op`; 0 for those that are not the first of a row
  for (std::size_t a = 0; a < op.axes.size(); ++a) {
    const Place& place = places_[id][a];
    if (!place.is_kept) continue;
    if (place.continues) {
      result.axes.back().name += '@' + op.axes[a].name;
      result.axes.back().extent *= op.axes[a].extent;
    } else {
      value[a] = IndexExpr::variable(static_cast<Var>(result.axes.size()));
      result.axes.push_back(op.axes[a]);
    }
  }
  if (!op.body) return result;
  const Expr body = substitute_indices(
      op.body, [&](Var var) -> const IndexExpr& { return value[var]; },
      [&](Var var) { return Range{0, result.axes[var].extent - 1}; });
  result.body = rewrite(body, [&](const Expr& node) -> Expr {
    if (node->op != Op::Load) return {};
    std::vector<IndexExpr> indices;
    for (std::size_t d = 0; d < node->indices.size(); ++d) {
      const Place& place = places_[node->tensor][d];
      if (place.is_kept && !place.continues) indices.push_back(node->indices[d]);
    }
    return load(node->tensor, node->type, std::move(indices));
  });
  return result;
}

}  // namespace tunewright::program::detail

namespace tunewright::program {

TUNEWRIGHT_INLINE std::optional<ComputeGraph> merge_axes(const ComputeGraph& graph) {
  const detail::AxisMerger merger(graph);
  if (!merger.merges_any()) return std::nullopt;
  return merger.merged();
}

}  // namespace tunewright::program

#endif
