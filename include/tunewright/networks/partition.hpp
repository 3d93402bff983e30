// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/core/weighted_task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/networks/network.hpp"

namespace tunewright::networks {

/// One call of a task's kernel in a network.
struct TaskCall {
  std::size_t task = 0;           ///< index in `Partition::tasks`
  std::vector<TensorId> tensors;  ///< of the network, by tensor number of the task's graph
  TensorId output = 0;            ///< of the network: the result of the kernel
};

/// A network partitioned into tasks.
struct Partition {
  std::vector<WeightedTask> tasks;  ///< distinct ones, in the order of their first call; weights are occurrences
  std::vector<TaskCall> calls;      ///< in an order in which each reads what earlier ones computed
  /// For each tensor of the network, the tensor whose memory it uses: for a reshaped tensor, the original.
  std::vector<TensorId> storage;
  std::uint64_t graph_hash = 0;  ///< `program::stable_hash` of the network's graph
};

/// Partitions a network into tasks for `target`, each with one output.
///
/// A task starts with an operator and fuses operators that can be computed with it, if no other task needs the
/// intermediate values. Post-dominators determine them: if all readers of a task's last tensor t meet in one operator
/// p, then p and all operators between t and p may join it. They do
///
///   - after an operator with reuse (convolution, matrix product): if they have its shape and read each other
///     pointwise: bias, folded normalisation, residual addition, activation, mask;
///   - after other operators: also if they iterate over the same rows: softmax and layer normalisation, with their
///     reductions, become one task each, pooling includes its division, and elementwise operators fuse.
///
/// A task has at most 64 operators that fuse, 8 of them with costly functions such as tanh, and stops before one that
/// would have more than some thousand terms if all before it were inlined.
///
/// If two tasks could fuse the same residual addition, the one further from the inputs does: it is computed last, and
/// in all blocks of a network it is the same branch. An operator that only moves or pads a single tensor for a single
/// reader joins its reader within the same limits, and if at most 8 operators of the task are then paddings or others
/// that no schedule inlines; else it is a task, which those before it may join. Reshapes are not tasks, because they
/// share memory, except those of inputs and constants that the network returns, which are copies. Tasks are equal if
/// their graphs are (`program::stable_hash`), whatever the names of tensors.
///
/// Errors: `std::invalid_argument` for a network without a graph, for outputs that its graph does not compute, and
///         for output names of another number.
/// Cost: some milliseconds for a hundred layers.
/// Determinism: a function of the arguments.
/// Deviates from Ansor (Zheng et al., OSDI 2020), which takes its tasks from Relay's fusion: there softmax and layer
/// normalisation fuse by operator kind, here by data flow.
[[nodiscard]] Partition partition(const Network& network, const Target& target);

/// A table of the tasks: occurrences, floating-point operations per run, and the share of the network's.
[[nodiscard]] std::string to_string(const Partition& partition);

}  // namespace tunewright::networks

#if TUNEWRIGHT_DEFINES(whole_networks)

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "tunewright/program/analysis.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/schedule/state.hpp"
#include "tunewright/spaces/tiling_rules.hpp"

namespace tunewright::networks::detail {

using program::Operator;
using program::Role;

/// Assigns operators to tasks.
class Grouping {
 public:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  // Searching takes the square of the stages of a task, and few of their random schedules are valid if many stages of
  // costly functions stay apart.
  static constexpr std::size_t most_operators = 64, most_costly = spaces::tiling::MayInline::most_choices;
  // Schedules draw where to compute each stage that none inlines, and fit the less often the more there are.
  static constexpr std::ptrdiff_t most_apart = 8;
  // Each term that is read twice is there twice after inlining, and schedules with larger bodies are refused.
  static constexpr std::size_t most_terms = schedule::detail::max_body / 2;

  explicit Grouping(const Network& network);

  /// Operators of each task, in topological order; tasks by their last operator.
  [[nodiscard]] std::vector<std::vector<TensorId>> groups() const;
  [[nodiscard]] bool is_view(TensorId id) const { return view_[id]; }

 private:
  [[nodiscard]] const Operator& op(TensorId id) const { return graph_->op(id); }
  [[nodiscard]] bool is_free(TensorId id) const {
    return op(id).role == Role::Computed && !view_[id] && group_[id] == none;
  }
  [[nodiscard]] bool has_reuse(TensorId id) const {
    return op(id).has_reduction() && program::needs_multi_level_tiling(op(id));
  }
  /// Reshapes, except those of inputs and constants that the network returns: an output in the memory of an input would
  /// change when the next input is written.
  void find_views(const Network& network);
  /// The nearest operator on all paths from each tensor to the outputs; `size()` if there is none.
  void find_post_dominators(const Network& network);
  /// Whether an operator may join a group of others, as far as that depends on itself.
  [[nodiscard]] bool can_join(TensorId id) const { return is_free(id) && !has_reuse(id); }
  /// Operators after `from` on paths to its post-dominator `to`, which comes last; none if one of them cannot join, so
  /// that networks with many long ways around do not take the square of their size for each operator.
  [[nodiscard]] std::vector<TensorId> between(TensorId from, TensorId to) const;
  [[nodiscard]] bool may_join(TensorId id, TensorId anchor, const std::vector<TensorId>& region) const;
  /// Terms of an operator whose elementwise producers in the group of `anchor` or in `region` are all inlined into it.
  [[nodiscard]] std::size_t inlined_terms(TensorId id, TensorId anchor, const std::vector<TensorId>& region) const;
  /// Whether so many operators may be one group, as far as terms do not matter.
  [[nodiscard]] bool are_few(const std::vector<TensorId>& members) const;
  /// Starts a group at `anchor` and lets it grow.
  void grow(TensorId anchor);
  /// True for an operator that moves or pads one tensor, read once.
  [[nodiscard]] bool only_moves(TensorId id) const;
  /// Adds `id`, which only moves and only `reader` reads, to the group of `reader`. False if it does not fit there.
  [[nodiscard]] bool joins(TensorId id, TensorId reader);
  void join_readers();

  std::shared_ptr<const ComputeGraph> graph_;
  std::vector<bool> view_;
  std::vector<TensorId> post_dominator_;
  std::vector<std::size_t> group_;
  std::vector<std::size_t> terms_;              // of operators in groups, see `inlined_terms`
  std::vector<std::vector<TensorId>> members_;  // of each group, in topological order
};

TUNEWRIGHT_INLINE Grouping::Grouping(const Network& network)
    : graph_(network.graph), view_(graph_->size()), group_(graph_->size(), none), terms_(graph_->size(), 0) {
  find_views(network);
  find_post_dominators(network);
  std::vector<TensorId> anchors;
  std::vector<std::size_t> way(graph_->size(), 0);  // operators on the longest way from an input
  for (TensorId id = 0; id < graph_->size(); ++id) {
    for (const TensorId read : graph_->producers(id)) way[id] = std::max(way[id], way[read] + 1);
    if (is_free(id) && has_reuse(id)) anchors.push_back(id);
  }
  std::sort(anchors.begin(), anchors.end(),
            [&](TensorId a, TensorId b) { return way[a] != way[b] ? way[a] > way[b] : a < b; });
  for (const TensorId id : anchors) grow(id);
  for (TensorId id = 0; id < graph_->size(); ++id)
    if (is_free(id) && op(id).has_reduction()) grow(id);
  join_readers();
  for (TensorId id = 0; id < graph_->size(); ++id)
    if (is_free(id)) grow(id);
}

TUNEWRIGHT_INLINE std::vector<std::vector<TensorId>> Grouping::groups() const {
  std::vector<std::vector<TensorId>> all = members_;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.back() < b.back(); });
  return all;
}

TUNEWRIGHT_INLINE void Grouping::find_views(const Network& network) {
  std::vector<bool> is_output(graph_->size(), false);
  for (const TensorId id : network.outputs) is_output[id] = true;
  std::vector<TensorId> storage(graph_->size());
  for (TensorId id = 0; id < graph_->size(); ++id) {
    storage[id] = id;
    if (!program::operators::is_reshape(*graph_, id)) continue;
    const TensorId source = storage[graph_->producers(id)[0]];
    view_[id] = !is_output[id] || op(source).role == Role::Computed;
    if (view_[id]) storage[id] = source;
  }
}

TUNEWRIGHT_INLINE void Grouping::find_post_dominators(const Network& network) {
  // In an acyclic graph it is the nearest common ancestor of all readers in the tree of post-dominators, whose root is
  // an exit after all outputs.
  const auto exit = static_cast<TensorId>(graph_->size());
  post_dominator_.assign(graph_->size() + 1, exit);
  std::vector<std::size_t> depth(graph_->size() + 1, 0);
  for (TensorId id = exit; id-- > 0;) {
    TensorId common = exit;
    const std::vector<TensorId>& readers = graph_->consumers(id);
    const bool seen = std::find(network.outputs.begin(), network.outputs.end(), id) != network.outputs.end();
    if (!readers.empty() && !seen) {
      common = readers[0];
      for (TensorId reader : readers) {
        while (common != reader) {
          TensorId& deeper = depth[common] > depth[reader] ? common : reader;
          deeper = post_dominator_[deeper];
        }
      }
    }
    post_dominator_[id] = common;
    depth[id] = depth[common] + 1;
  }
}

TUNEWRIGHT_INLINE std::vector<TensorId> Grouping::between(TensorId from, TensorId to) const {
  std::set<TensorId> found;
  std::vector<TensorId> open{from};
  while (!open.empty()) {
    const TensorId id = open.back();
    open.pop_back();
    if (id == to) continue;
    for (const TensorId reader : graph_->consumers(id)) {
      if (!can_join(reader)) return {};
      if (found.insert(reader).second) open.push_back(reader);
    }
  }
  return {found.begin(), found.end()};
}

TUNEWRIGHT_INLINE bool Grouping::may_join(TensorId id, TensorId anchor, const std::vector<TensorId>& region) const {
  const Operator& reader = op(id);
  const std::size_t rows = op(anchor).rank();
  for (const TensorId read : graph_->producers(id)) {
    const bool inside = group_[read] == group_[anchor] || std::binary_search(region.begin(), region.end(), read);
    if (!inside) continue;
    if (reader.shape() == op(anchor).shape() && !reader.has_reduction()) {
      if (!program::reads_elementwise(reader, op(read), read)) return false;
    } else if (has_reuse(anchor) || !op(anchor).has_reduction() ||
               program::num_common_outer_axes(reader, op(read), read) < rows) {
      return false;
    }
  }
  return true;
}

TUNEWRIGHT_INLINE std::size_t Grouping::inlined_terms(TensorId id, TensorId anchor,
                                                      const std::vector<TensorId>& region) const {
  std::size_t terms = program::size_of(op(id).body);
  program::visit(op(id).body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load || op(node.tensor).has_reduction()) return;
    const bool inside =
        group_[node.tensor] == group_[anchor] || std::binary_search(region.begin(), region.end(), node.tensor);
    if (inside) terms += terms_[node.tensor];
  });
  return terms;
}

TUNEWRIGHT_INLINE bool Grouping::are_few(const std::vector<TensorId>& members) const {
  const auto is_costly = [&](TensorId id) { return spaces::tiling::MayInline::is_costly(op(id)); };
  return members.size() <= most_operators &&
         static_cast<std::size_t>(std::count_if(members.begin(), members.end(), is_costly)) <= most_costly;
}

TUNEWRIGHT_INLINE void Grouping::grow(TensorId anchor) {
  group_[anchor] = members_.size();
  terms_[anchor] = program::size_of(op(anchor).body);
  std::vector<TensorId>& members = members_.emplace_back(std::vector{anchor});
  const TensorId exit = static_cast<TensorId>(graph_->size());
  for (TensorId last = anchor; post_dominator_[last] != exit;) {
    const std::vector<TensorId> region = between(last, post_dominator_[last]);
    if (region.empty() ||
        !std::all_of(region.begin(), region.end(), [&](TensorId id) { return may_join(id, anchor, region); }))
      return;
    for (const TensorId id : region) {
      terms_[id] = inlined_terms(id, anchor, region);
      if (terms_[id] > most_terms) return;
    }
    std::vector<TensorId> grown = members;
    grown.insert(grown.end(), region.begin(), region.end());
    if (!are_few(grown)) return;
    members = std::move(grown);
    for (const TensorId id : region) group_[id] = group_[anchor];
    last = post_dominator_[last];
  }
}

TUNEWRIGHT_INLINE bool Grouping::only_moves(TensorId id) const {
  if (op(id).has_reduction() || graph_->producers(id).size() != 1) return false;
  bool moves = true;
  std::size_t loads = 0;
  program::visit(op(id).body, [&](const program::ExprNode& node) {
    if (node.op == program::Op::Load) {
      ++loads;
      moves = moves && program::access_pattern(op(id), node.indices).same_order;
      for (const program::IndexExpr& index : node.indices) moves = moves && index.is_affine();
    } else if (program::is_float(node.type)) {
      moves = moves && (node.op == program::Op::Select || node.op == program::Op::Constant);
    }
  });
  return moves && loads == 1;
}

TUNEWRIGHT_INLINE bool Grouping::joins(TensorId id, TensorId reader) {
  std::vector<TensorId>& members = members_[group_[reader]];
  std::vector<TensorId> joined = members;
  joined.insert(std::upper_bound(joined.begin(), joined.end(), id), id);
  // The terms of the reader alone tell most of those that do not fit, before all terms are counted again.
  if (terms_[reader] + program::size_of(op(id).body) > most_terms || !are_few(joined)) return false;
  const auto stays_apart = [&](TensorId member) {
    return !op(member).has_reduction() && !program::inlineable(op(member));
  };
  if (std::count_if(joined.begin(), joined.end(), stays_apart) > most_apart) return false;
  group_[id] = group_[reader];
  std::vector<std::size_t> before;
  bool fit = true;
  for (const TensorId member : joined) {
    before.push_back(terms_[member]);
    terms_[member] = inlined_terms(member, reader, {});
    fit = fit && terms_[member] <= most_terms;
  }
  if (fit) {
    members = std::move(joined);
  } else {
    group_[id] = none;
    for (std::size_t m = 0; m < joined.size(); ++m) terms_[joined[m]] = before[m];
  }
  return fit;
}

TUNEWRIGHT_INLINE void Grouping::join_readers() {
  const auto exit = static_cast<TensorId>(graph_->size());
  for (TensorId id = exit; id-- > 0;) {
    if (!is_free(id) || graph_->consumers(id).size() != 1 || post_dominator_[id] == exit || !only_moves(id)) continue;
    const TensorId reader = graph_->consumers(id)[0];
    if (view_[reader]) continue;
    if (group_[reader] == none) grow(reader);
    if (!joins(id, reader)) grow(id);
  }
}

/// The graph of one task, and the network's tensors by number in it.
struct TaskGraph {
  std::shared_ptr<const ComputeGraph> graph;
  std::vector<TensorId> tensors;
};

TUNEWRIGHT_INLINE TaskGraph task_graph(const ComputeGraph& network, const std::vector<TensorId>& group,
                                       const std::vector<TensorId>& storage) {
  auto graph = std::make_shared<ComputeGraph>();
  TaskGraph task;
  std::map<TensorId, TensorId> number;
  const auto added = [&](TensorId id, const program::Tensor& tensor) {
    number[id] = tensor.id;
    task.tensors.push_back(id);
  };
  for (const TensorId id : group) {
    for (const TensorId read : network.producers(id)) {
      if (number.contains(read)) continue;
      const Operator& source = network.op(read);
      // A reshaped weight is a weight.
      const bool constant = network.op(storage[read]).role == Role::Constant;
      added(read, constant ? graph->constant(source.name, source.shape(), source.type)
                           : graph->input(source.name, source.shape(), source.type));
    }
    Operator op = network.op(id);
    op.body = program::rewrite(op.body, [&](const program::Expr& node) -> program::Expr {
      if (node->op != program::Op::Load) return {};
      return program::load(number.at(node->tensor), node->type, node->indices);
    });
    added(id, graph->add(std::move(op)));
  }
  task.graph = std::move(graph);
  return task;
}

TUNEWRIGHT_INLINE std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "1" : text;
}

/// Its operators, the shape of its result, and the shapes of the inputs of its first reduction.
TUNEWRIGHT_INLINE std::string task_name(const ComputeGraph& graph) {
  std::string name;
  std::string from;
  for (TensorId id = 0; id < graph.size(); ++id) {
    const Operator& op = graph.op(id);
    if (op.role != Role::Computed) continue;
    name += (name.empty() ? "" : "+") + op.name;
    if (!from.empty() || (!op.has_reduction() && !program::is_output(graph, id))) continue;
    for (const TensorId read : graph.producers(id))
      from += (from.empty() ? " of " : ", ") + shape_text(graph.op(read).shape());
  }
  return name + " " + shape_text(graph.op(graph.outputs().at(0)).shape()) + from;
}

TUNEWRIGHT_INLINE void check_outputs(const Network& network) {
  const ComputeGraph& graph = graph_of(network);
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("network '" + network.name + "' " + what);
  };
  if (network.outputs.empty()) refuse("has no outputs; list what it computes in its member `outputs`");
  if (!network.output_names.empty() && network.output_names.size() != network.outputs.size()) {
    refuse("has " + std::to_string(network.output_names.size()) + " names for " +
           std::to_string(network.outputs.size()) + " outputs; give one an output, or none");
  }
  for (const TensorId id : network.outputs) {
    if (id >= graph.size() || graph.op(id).role != Role::Computed) {
      refuse("lists tensor " + std::to_string(id) + " as an output, which its graph does not compute; list others");
    }
  }
}

}  // namespace tunewright::networks::detail

namespace tunewright::networks {

TUNEWRIGHT_INLINE Partition partition(const Network& network, const Target& target) {
  detail::check_outputs(network);
  const ComputeGraph& graph = *network.graph;
  const detail::Grouping grouping(network);
  Partition result;
  result.graph_hash = program::stable_hash(graph);
  for (TensorId id = 0; id < graph.size(); ++id)
    result.storage.push_back(grouping.is_view(id) ? result.storage[graph.producers(id)[0]] : id);
  std::map<std::uint64_t, std::size_t> known;
  for (const std::vector<TensorId>& group : grouping.groups()) {
    detail::TaskGraph task = detail::task_graph(graph, group, result.storage);
    const auto [place, is_new] = known.try_emplace(program::stable_hash(*task.graph), result.tasks.size());
    if (is_new) result.tasks.push_back({program::make_task(detail::task_name(*task.graph), task.graph, target), 0});
    WeightedTask& weighted = result.tasks[place->second];
    weighted.weight += 1;
    weighted.task.weight = weighted.weight;
    result.calls.push_back({place->second, std::move(task.tensors), group.back()});
  }
  return result;
}

TUNEWRIGHT_INLINE std::string to_string(const Partition& partition) {
  double total = 0;
  for (const WeightedTask& task : partition.tasks) total += task.weight * task.task.flops;
  std::string text = " calls      MFLOP  share  task\n";
  for (const WeightedTask& task : partition.tasks) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "%6.0f %10.3f %5.1f%%  ", task.weight, task.task.flops / 1e6,
                  total > 0 ? 100 * task.weight * task.task.flops / total : 0);
    text += numbers + task.task.name + "\n";
  }
  return text;
}

}  // namespace tunewright::networks

#endif
