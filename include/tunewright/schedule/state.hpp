// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/step.hpp"

namespace tunewright::schedule {

using program::AxisKind;
using program::ComputeGraph;
using program::IndexExpr;
using program::Operator;

/// Lists with inline storage for the usual number of elements.
using IterIds = boost::container::small_vector<IterId, 4>;
using Factors = boost::container::small_vector<std::int64_t, 3>;

/// An iterator (future loop) of a stage; `iterator_name` returns its name.
struct Iterator {
  AxisKind kind = AxisKind::Spatial;
  LoopKind annotation = LoopKind::Serial;
  std::uint16_t origins = 1;  ///< axes that it comes from, one as often as there are ways; its name has as many parts
};

/// How iterators derive from others: one parent and several children (split), or several parents and one child (fuse).
struct Relation {
  IterIds parents;
  IterIds children;  ///< consecutive numbers
  Factors factors;   ///< for a split: extents of all children but the first
};

/// Loops of a stage that a tensor instruction replaces: `iter` and the loops inside it.
struct Tensorized {
  const TensorIntrinsic* intrinsic = nullptr;
  IterId iter = 0;
};

struct Stage {
  std::shared_ptr<const Operator> op;
  Scope scope = Scope::Global;
  std::vector<Iterator> iterators;  ///< by IterId; the first ones are the axes of `op`
  std::vector<IterId> order;        ///< current loops, outermost first
  std::vector<Relation> relations;  ///< in order of creation
  Location location;
  std::int64_t unroll_limit = 0;
  Tensorized tensorized;
  std::vector<std::int64_t> multiples;  ///< to which its axes were padded; empty if they were not

  [[nodiscard]] bool is_source() const noexcept { return op->role != program::Role::Computed; }
  /// Whether its loops are still its axes and it is at the root.
  [[nodiscard]] bool is_untouched() const noexcept {
    return relations.empty() && location.kind == Location::Kind::Root;
  }
  /// Position of `iter` in `order`, or `order.size()`.
  [[nodiscard]] std::size_t position(IterId iter) const noexcept {
    return static_cast<std::size_t>(std::find(order.begin(), order.end(), iter) - order.begin());
  }
};

/// The result of applying steps: stages with their loops and compute locations. The extents of loops inside a consumer
/// are known only after bound inference, so a state stores factors, not extents.
struct State {
  std::shared_ptr<const ComputeGraph> graph;
  std::vector<Stage> stages;    ///< by TensorId
  std::vector<TensorId> order;  ///< topological
  std::vector<Pack> packs;
  std::vector<TransformLayout> layouts;
  std::vector<Pipeline> pipelines;
  std::vector<std::int64_t> split_factors;  ///< of all split steps, concatenated
  std::vector<std::uint32_t> factors_end;   ///< by step: the end of its factors in `split_factors`

  /// Factors of step `index`; empty if it is not a split.
  [[nodiscard]] std::span<const std::int64_t> factors_of_step(std::size_t index) const;

  [[nodiscard]] const Stage& stage(TensorId id) const;

  /// Stages whose bodies read `tensor`, inlined ones included, in topological order.
  [[nodiscard]] std::vector<TensorId> readers_of(TensorId tensor) const;
};

namespace detail {
void append_name(std::string& text, const Stage& stage, IterId iter);
}  // namespace detail

/// Name of an iterator: an axis has its own, parts of a split are "i.0", "i.1", .., fused iterators "i@j". Built on
/// request, because replaying creates many iterators whose names are rarely needed.
[[nodiscard]] std::string iterator_name(const Stage& stage, IterId iter);

namespace detail {

void reset_iterators(Stage& stage);

std::string describe_iterator(const Stage& stage, IterId iter);

std::size_t live_position(const Stage& stage, IterId iter);

Stage& computed_stage(State& state, TensorId id);

/// Maximum product of the factors of one split; keeps arithmetic on extents within 64 bits.
inline constexpr std::int64_t max_split = std::int64_t{1} << 31;

/// Maximum origins of an iterator. Loops that are split and fused again double them each time, and with them names and
/// the values of axes.
inline constexpr std::size_t max_origins = 256;

/// Maximum size of what is substituted into a body, values of iterators or other bodies, as `program::size_of` counts
/// it; each substitution may multiply it.
inline constexpr std::size_t max_body = std::size_t{1} << 12;

/// Maximum levels of a body that steps make: bodies that are then inlined into it have at most one level a term.
inline constexpr std::size_t max_body_levels = program::most_levels - max_body;
static_assert(max_body_levels > program::most_body_levels);

/// Maximum letters of the name of an axis that is made of an iterator.
inline constexpr std::size_t max_name = std::size_t{1} << 14;

/// Maximum iterators of a stage that steps changed, and maximum stages that steps add: what follows calls itself for
/// each loop and for each stage inside.
inline constexpr std::size_t max_iterators = 1024, max_added_stages = 1024;

/// Throws `ScheduleError` if `more` iterators are too many for the stage.
void check_room(const Stage& stage, std::size_t more);

/// Multiplies `product` by `extent`; false if that makes more iterations than an operator may have.
[[nodiscard]] constexpr bool multiply_fused(std::int64_t& product, std::int64_t extent) noexcept {
  return !__builtin_mul_overflow(product, extent, &product) && product <= program::most_iterations;
}

/// Whether the numbers that say which factors a split may have can be those of any loop.
[[nodiscard]] inline bool has_possible_domain(const Split& s) noexcept {
  return s.extent >= 0 && s.extent <= program::most_iterations && s.max_innermost >= -1 && s.max_innermost <= max_split;
}

void split(State& state, TensorId id, IterId iter, std::span<const std::int64_t> factors);

/// Computes the extents of the parts of a split, one more than factors.
void split_extents(std::int64_t whole, std::span<const std::int64_t> factors, std::int64_t* part) noexcept;

/// Computes the extents of all iterators, by IterId, from those of the axes, which must be set. Throws `ScheduleError`
/// for a fused loop of more than `program::most_iterations`.
void propagate_extents(const Stage& stage, std::vector<std::int64_t>& extent);

/// Computes the values of all iterators, by IterId, as expressions over the values of the loops in `stage.order`, which
/// must be set.
void propagate_values(const Stage& stage, const std::vector<std::int64_t>& extent, std::vector<IndexExpr>& value,
                      IndexExpr::RangeOf range_of);

TensorId add_stage(State& state, std::shared_ptr<const Operator> op, Scope scope, TensorId before);

std::vector<IndexExpr> identity_indices(std::size_t rank);

Operator copy_operator(std::string name, const Operator& like, TensorId from);

/// Whether `order` has each of 0 .. count-1 once.
[[nodiscard]] bool names_each_once(std::vector<std::uint32_t> order, std::size_t count);

}  // namespace detail

/// The state before any step: one stage per operator, every stage at the root with its axes as loops. Throws
/// `std::invalid_argument` without a program.
[[nodiscard]] State initial_state(std::shared_ptr<const ComputeGraph> graph);

}  // namespace tunewright::schedule

#if TUNEWRIGHT_DEFINES(schedule)

#include "tunewright/core/order.hpp"

namespace tunewright::schedule {

TUNEWRIGHT_INLINE std::span<const std::int64_t> State::factors_of_step(std::size_t index) const {
  const std::uint32_t first = index == 0 ? 0 : factors_end[index - 1];
  return std::span(split_factors).subspan(first, factors_end[index] - first);
}

TUNEWRIGHT_INLINE const Stage& State::stage(TensorId id) const {
  if (id >= stages.size()) {
    throw ScheduleError(ScheduleFault::UnknownStage, "there is no stage " + std::to_string(id) + "; this program has " +
                                                         std::to_string(stages.size()));
  }
  return stages[id];
}

TUNEWRIGHT_INLINE std::vector<TensorId> State::readers_of(TensorId tensor) const {
  std::vector<TensorId> found;
  for (const TensorId id : order) {
    if (stages[id].is_source()) continue;
    bool reads = false;
    program::visit(stages[id].op->body, [&](const program::ExprNode& node) {
      reads = reads || (node.op == program::Op::Load && node.tensor == tensor);
    });
    if (reads) found.push_back(id);
  }
  return found;
}

}  // namespace tunewright::schedule

namespace tunewright::schedule::detail {

TUNEWRIGHT_INLINE void append_name(std::string& text, const Stage& stage, IterId iter) {
  if (iter < stage.op->axes.size()) {
    text += stage.op->axes[iter].name;
    return;
  }
  const auto made_by = std::find_if(stage.relations.begin(), stage.relations.end(),
                                    [iter](const Relation& r) { return iter <= r.children.back(); });
  append_name(text, stage, made_by->parents[0]);
  for (std::size_t p = 1; p < made_by->parents.size(); ++p) {
    text += '@';
    append_name(text, stage, made_by->parents[p]);
  }
  if (made_by->children.size() == 1) return;
  const IterId part = iter - made_by->children[0];
  text += '.';
  if (part >= 10) text += std::to_string(part / 10);
  text += static_cast<char>('0' + part % 10);
}

}  // namespace tunewright::schedule::detail

namespace tunewright::schedule {

TUNEWRIGHT_INLINE std::string iterator_name(const Stage& stage, IterId iter) {
  std::string text;
  detail::append_name(text, stage, iter);
  return text;
}

}  // namespace tunewright::schedule

namespace tunewright::schedule::detail {

TUNEWRIGHT_INLINE bool names_each_once(std::vector<std::uint32_t> order, std::size_t count) {
  sort_few(order);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != i) return false;
  return order.size() == count;
}

TUNEWRIGHT_INLINE void reset_iterators(Stage& stage) {
  stage.iterators.clear();
  stage.order.clear();
  stage.relations.clear();
  stage.tensorized = {};
  const std::size_t axes = stage.op->axes.size();
  const std::size_t expected = stage.is_source() ? axes : 5 * axes;  // tiling commonly splits an axis into four
  stage.iterators.reserve(expected);
  stage.order.reserve(expected);
  for (const program::Axis& axis : stage.op->axes) {
    stage.order.push_back(static_cast<IterId>(stage.iterators.size()));
    stage.iterators.push_back({axis.kind, LoopKind::Serial});
  }
}

TUNEWRIGHT_INLINE std::string describe_iterator(const Stage& stage, IterId iter) {
  return "iterator " + std::to_string(iter) +
         (iter < stage.iterators.size() ? " ('" + iterator_name(stage, iter) + "')" : std::string()) + " of stage '" +
         stage.op->name + "'";
}

TUNEWRIGHT_INLINE std::size_t live_position(const Stage& stage, IterId iter) {
  const std::size_t at = stage.position(iter);
  if (at == stage.order.size()) {
    throw ScheduleError(ScheduleFault::UnknownIterator,
                        describe_iterator(stage, iter) + " does not exist or was already split or fused");
  }
  return at;
}

TUNEWRIGHT_INLINE Stage& computed_stage(State& state, TensorId id) {
  if (state.stage(id).is_source()) {
    throw ScheduleError(ScheduleFault::UnknownStage, "'" + state.stages[id].op->name +
                                                         "' is an input or constant; only computed tensors have loops");
  }
  return state.stages[id];
}

TUNEWRIGHT_INLINE void check_room(const Stage& stage, std::size_t more) {
  if (more <= max_iterators && stage.iterators.size() <= max_iterators - more) return;
  throw ScheduleError(ScheduleFault::Unsupported,
                      "stage '" + stage.op->name + "' has " + std::to_string(stage.iterators.size()) +
                          " iterators and would get " + std::to_string(more) + " more, and at most " +
                          std::to_string(max_iterators) + " are possible; split and fuse less often");
}

TUNEWRIGHT_INLINE void split(State& state, TensorId id, IterId iter, std::span<const std::int64_t> factors) {
  Stage& stage = computed_stage(state, id);
  const std::size_t at = live_position(stage, iter);
  check_room(stage, factors.size() + 1);
  std::int64_t inner = 1;
  for (const std::int64_t factor : factors) {
    if (factor < 1) {
      throw ScheduleError(ScheduleFault::BadFactor, describe_iterator(stage, iter) + " cannot be split by " +
                                                        std::to_string(factor) + "; factors are at least 1");
    }
    if (factor > max_split / inner) {
      throw ScheduleError(ScheduleFault::BadFactor, describe_iterator(stage, iter) +
                                                        ": its factors multiply to more than 2^31; no loop is as long");
    }
    inner *= factor;
  }
  const Iterator part_of_it{stage.iterators[iter].kind, LoopKind::Serial, stage.iterators[iter].origins};
  if (stage.relations.empty())
    stage.relations.reserve(stage.op->axes.size() + 1);  // all axes split, and some loops fused
  Relation& relation = stage.relations.emplace_back();
  relation.parents.push_back(iter);
  relation.factors.assign(factors.begin(), factors.end());
  for (std::size_t part = 0; part <= factors.size(); ++part) {
    relation.children.push_back(static_cast<IterId>(stage.iterators.size()));
    stage.iterators.push_back(part_of_it);
  }
  stage.order[at] = relation.children[0];
  stage.order.insert(stage.order.begin() + static_cast<std::ptrdiff_t>(at + 1), relation.children.begin() + 1,
                     relation.children.end());
}

TUNEWRIGHT_INLINE void split_extents(std::int64_t whole, std::span<const std::int64_t> factors,
                                     std::int64_t* part) noexcept {
  std::int64_t inner = 1;
  for (std::size_t f = 0; f < factors.size(); ++f) {
    part[f + 1] = factors[f];
    inner *= factors[f];
  }
  part[0] = program::ceil_div(whole, inner);
  if (part[0] != 1) return;
  // Reduces factors that exceed the extent, the outermost first, so that windows inside consumers have no empty
  // iterations.
  std::int64_t rest = whole;
  for (std::size_t c = factors.size(); c > 0; --c) {
    part[c] = std::min(part[c], rest);
    rest = program::ceil_div(rest, part[c]);
  }
}

TUNEWRIGHT_INLINE void propagate_extents(const Stage& stage, std::vector<std::int64_t>& extent) {
  for (const Relation& r : stage.relations) {
    std::int64_t* const children = extent.data() + r.children[0];  // consecutive
    if (r.parents.size() == 1) {
      split_extents(extent[r.parents[0]], {r.factors.data(), r.factors.size()}, children);
    } else {
      std::int64_t product = 1;
      for (const IterId parent : r.parents) {
        if (!multiply_fused(product, extent[parent])) {
          throw ScheduleError(ScheduleFault::BadFactor, describe_iterator(stage, r.children[0]) +
                                                            " has more than 2^53 iterations; fuse fewer loops");
        }
      }
      *children = product;
    }
  }
}

TUNEWRIGHT_INLINE void propagate_values(const Stage& stage, const std::vector<std::int64_t>& extent,
                                        std::vector<IndexExpr>& value, IndexExpr::RangeOf range_of) {
  for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
    if (r->parents.size() == 1) {
      IndexExpr& sum = value[r->parents[0]];
      sum = IndexExpr(0);
      for (const IterId child : r->children) {
        sum *= extent[child];
        sum += value[child];
      }
    } else {
      IndexExpr rest = value[r->children[0]];
      for (std::size_t p = r->parents.size(); p-- > 0;) {
        const std::int64_t size = extent[r->parents[p]];
        value[r->parents[p]] = p == 0 ? rest : IndexExpr::remainder(rest, size, range_of);
        rest = IndexExpr::quotient(rest, size, range_of);
      }
    }
  }
}

TUNEWRIGHT_INLINE TensorId add_stage(State& state, std::shared_ptr<const Operator> op, Scope scope, TensorId before) {
  const auto id = static_cast<TensorId>(state.stages.size());
  if (id - state.graph->size() >= max_added_stages) {
    throw ScheduleError(ScheduleFault::Unsupported, "a schedule adds stage '" + op->name + "' to " +
                                                        std::to_string(max_added_stages) +
                                                        " that it added, and more are not possible; cache less");
  }
  Stage stage;
  stage.op = std::move(op);
  stage.scope = scope;
  reset_iterators(stage);
  state.stages.push_back(std::move(stage));
  state.order.insert(std::find(state.order.begin(), state.order.end(), before), id);
  return id;
}

TUNEWRIGHT_INLINE std::vector<IndexExpr> identity_indices(std::size_t rank) {
  std::vector<IndexExpr> indices;
  indices.reserve(rank);
  for (program::Var v = 0; v < rank; ++v) indices.push_back(IndexExpr::variable(v));
  return indices;
}

TUNEWRIGHT_INLINE Operator copy_operator(std::string name, const Operator& like, TensorId from) {
  Operator copy;
  copy.name = std::move(name);
  copy.type = like.type;
  copy.axes.assign(like.axes.begin(), like.axes.begin() + static_cast<std::ptrdiff_t>(like.rank()));
  copy.body = program::load(from, like.type, identity_indices(like.rank()));
  return copy;
}

}  // namespace tunewright::schedule::detail

namespace tunewright::schedule {

TUNEWRIGHT_INLINE State initial_state(std::shared_ptr<const ComputeGraph> graph) {
  if (graph == nullptr)
    throw std::invalid_argument("a schedule has no program; give it a graph, such as that of its task");
  State state;
  const std::size_t tensors = graph->size();
  constexpr std::size_t copies = 4;  // usual number of stages that steps add
  state.stages.reserve(tensors + copies);
  state.order.reserve(tensors + copies);
  for (TensorId id = 0; id < tensors; ++id) {
    Stage& stage = state.stages.emplace_back();
    stage.op = std::shared_ptr<const Operator>(graph, &graph->op(id));
    detail::reset_iterators(stage);
    state.order.push_back(id);
  }
  state.graph = std::move(graph);
  return state;
}

}  // namespace tunewright::schedule

#endif
