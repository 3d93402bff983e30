// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/summary/flat_index.hpp"
#include "tunewright/loops/summary/tensors.hpp"

/// Summaries of loop nests: loops, buffers, and the operations and accesses of each statement. A summary has no guards
/// and no branches. `ScheduleSummarizer` computes it from the steps of a schedule at a tenth of the cost of lowering,
/// so limits, drafts and featurizers read it instead of the program.
namespace tunewright::loops {

/// A buffer, see `loops::Buffer`.
struct BufferSummary {
  double element_bytes = 4;
  loops::Scope scope = loops::Scope::Global;
  loops::BufferRole role = loops::BufferRole::Temporary;
  std::uint32_t stages = 1;
  bool asynchronous = false;
  std::span<const PackedDimension> packing{};  ///< empty: row-major in `shape`
  std::span<const std::int64_t> shape{};
  std::span<const FlatIndex> origin{};  ///< over loops; empty if it is zero
  std::int64_t elements = 0;            ///< in memory
  std::string_view name{};

  void set_origin(std::span<const FlatIndex> indices) noexcept {
    const bool is_zero = std::all_of(indices.begin(), indices.end(),
                                     [](const FlatIndex& index) { return index.constant == 0 && index.count == 0; });
    origin = is_zero ? std::span<const FlatIndex>() : indices;
  }
  [[nodiscard]] bool is_packed() const noexcept { return !packing.empty(); }
  [[nodiscard]] std::int64_t bytes() const noexcept { return elements * static_cast<std::int64_t>(element_bytes); }
};

/// A tensor that a statement reads, with indices over the axes of its operator.
struct LoadSummary {
  loops::BufferId buffer = 0;
  const program::ExprNode* node = nullptr;
};

struct StatementSummary {
  loops::Statement::Kind kind = loops::Statement::Kind::Assign;
  loops::BufferId target = 0;
  loops::BodyOperations operations;
  std::span<const LoadSummary> loads{};      ///< distinct; empty for a fill
  std::span<const FlatIndex> axis_values{};  ///< by axis, over loops
  const std::shared_ptr<const program::Operator>* op = nullptr;
  std::uint64_t body_hash = 0;  ///< see `loops::body_hash`; 0 for a fill
};

struct LoopSummary {
  loops::Var var = 0;
  std::int64_t extent = 1;
  loops::LoopKind kind = loops::LoopKind::Serial;
  bool reduction = false;
  std::int64_t unroll_limit = 0;
  const schedule::TensorIntrinsic* intrinsic = nullptr;  ///< the instruction that computes it
};

/// A program's summary, in program order. Reuses its memory between programs.
struct NestSummary {
  enum class Event : std::uint8_t {
    Enter,     ///< the loop `of`
    Leave,     ///< the innermost loop
    Run,       ///< the statement `of`
    Fill,      ///< the fill `of`
    Allocate,  ///< the buffer `of`
    Next,      ///< next top-level tree; on a GPU, next launch
  };
  struct Step {
    Event event = Event::Leave;
    std::uint32_t of = 0;
  };

  IndexArena indices;  ///< indices, and the variables
  std::vector<BufferSummary> buffers;
  std::vector<LoopSummary> loops;
  std::vector<StatementSummary> statements;     ///< without fills
  std::vector<StatementSummary> fills;          ///< of reductions, with their identity
  std::vector<loops::TensorStatement> tensors;  ///< for CPUs
  std::size_t kernels = 0;
  std::span<const BufferId> buffer_of{};         ///< by TensorId, as in a nest
  BufferId last_argument = LoopNest::no_buffer;  ///< as in the nest's list

  void clear() {
    indices.clear();
    loops.clear();
    statements.clear();
    fills.clear();
    tensors.clear();
    step_count_ = 0;
    kernels = 0;
  }
  void add(Event event, std::size_t of = 0);
  [[nodiscard]] std::span<const Step> steps() const noexcept { return std::span(steps_).first(step_count_); }

 private:
  [[gnu::noinline]] void make_room() { steps_.resize(2 * step_count_ + 64); }

  std::vector<Step> steps_;  // the first ones are in use
  std::size_t step_count_ = 0;
};

/// The distinct loads of a body, in order of occurrence. Throws `std::invalid_argument` for tensors without a buffer.
void collect_loads(const program::Expr& body, std::span<const loops::BufferId> buffer_of, std::size_t buffers,
                   const std::string& name, std::vector<LoadSummary>& loads);

/// Content hash of what a statement of an operator computes at a point of its axes: its body, with the indices of its
/// loads, and how results are combined. Tensors count by their buffers, which must exist, and axes of one iteration as
/// 0. Independent of platform and run. Cost: O(terms of the body).
[[nodiscard]] std::uint64_t body_hash(const program::Operator& op, std::span<const BufferId> buffer_of);

/// Computes summaries of loop nests.
class NestSummarizer {
 public:
  /// Valid until the next call and while the nest lives. Throws `std::invalid_argument` for a nest with undeclared
  /// loops or reads of tensors without a buffer, `NoRoom` for indices that exceed a flat one.
  [[nodiscard]] const NestSummary& summary(const loops::LoopNest& nest);

 private:
  struct Part {
    std::size_t load = 0, loads = 0, value = 0, values = 0;
  };

  static void copy(const loops::Buffer& from, BufferSummary& to);
  void set_origins(const LoopNest& nest);

  void add(const loops::LoopNest& nest, const loops::Node& node);

  void add(const loops::LoopNest& nest, const loops::Statement& statement);

  void add_fill(const Statement& statement);

  NestSummary summary_;
  std::vector<LoadSummary> loads_;
  std::vector<FlatIndex> values_;
  std::vector<FlatIndex> origins_;
  std::vector<Part> parts_;        // by statement
  std::vector<Part> fill_values_;  // by fill
  SummaryTensors tensors_;
  bool has_tensors_ = false;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/core/hash.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE void NestSummary::add(Event event, std::size_t of) {
  if (step_count_ == steps_.size()) make_room();
  steps_[step_count_++] = {event, static_cast<std::uint32_t>(of)};
}

TUNEWRIGHT_INLINE void collect_loads(const program::Expr& body, std::span<const loops::BufferId> buffer_of,
                                     std::size_t buffers, const std::string& name, std::vector<LoadSummary>& loads) {
  const std::size_t first = loads.size();
  program::visit(body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load) return;
    const bool has_buffer = node.tensor < buffer_of.size() && buffer_of[node.tensor] < buffers;
    if (!has_buffer) throw std::invalid_argument(no_buffer_text("loop nest", name, node.tensor));
    const LoadSummary load{buffer_of[node.tensor], &node};
    for (std::size_t l = first; l < loads.size(); ++l)
      if (loads[l].buffer == load.buffer && loads[l].node->indices == node.indices) return;
    loads.push_back(load);
  });
}

TUNEWRIGHT_INLINE std::uint64_t body_hash(const program::Operator& op, std::span<const BufferId> buffer_of) {
  StableHash hash;
  hash.add(static_cast<unsigned>(op.type)).add(static_cast<unsigned>(op.combiner));
  if (!op.body) return hash.value();
  const auto value_of = [&op](Var axis) {
    return op.axes[axis].extent == 1 ? IndexExpr(0) : IndexExpr::variable(axis);
  };
  const auto range_of = [&op](Var axis) { return program::Range{0, op.axes[axis].extent - 1}; };
  const auto add = [&](const IndexExpr& index) { hash.add(index.substitute(value_of, range_of).hash()); };
  // Arguments come first, and an operation determines their number, so the order tells trees apart.
  program::visit(op.body, [&](const program::ExprNode& node) {
    hash.add(static_cast<unsigned>(node.op)).add(static_cast<unsigned>(node.type));
    if (node.op == program::Op::Constant) hash.add(node.value);
    if (node.op == program::Op::Index) add(node.index);
    if (node.op != program::Op::Load) return;
    hash.add(buffer_of[node.tensor]);
    for (const IndexExpr& index : node.indices) add(index);
  });
  return hash.value();
}

TUNEWRIGHT_INLINE const NestSummary& NestSummarizer::summary(const loops::LoopNest& nest) {
  summary_.clear();
  loads_.clear();
  values_.clear();
  origins_.clear();
  parts_.clear();
  fill_values_.clear();
  summary_.buffer_of = nest.buffer_of;
  summary_.last_argument = nest.arguments.empty() ? LoopNest::no_buffer : nest.arguments.back();
  has_tensors_ = false;
  for (const loops::LoopVariable& variable : nest.variables) summary_.indices.extents.push_back(variable.extent);
  summary_.buffers.resize(nest.buffers.size());
  for (std::size_t b = 0; b < nest.buffers.size(); ++b) copy(nest.buffers[b], summary_.buffers[b]);
  set_origins(nest);
  for (const loops::Node& node : nest.body) {
    add(nest, node);
    summary_.add(NestSummary::Event::Next);
    ++summary_.kernels;
  }
  if (has_tensors_) tensors_.find(nest, summary_.tensors);
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    summary_.statements[s].loads = std::span(loads_).subspan(parts_[s].load, parts_[s].loads);
    summary_.statements[s].axis_values = std::span(values_).subspan(parts_[s].value, parts_[s].values);
  }
  for (std::size_t f = 0; f < fill_values_.size(); ++f)
    summary_.fills[f].axis_values = std::span(values_).subspan(fill_values_[f].value, fill_values_[f].values);
  return summary_;
}

TUNEWRIGHT_INLINE void NestSummarizer::copy(const loops::Buffer& from, BufferSummary& to) {
  to.element_bytes = static_cast<double>(program::size_in_bytes(from.type));
  to.scope = from.scope;
  to.role = from.role;
  to.stages = from.stages;
  to.asynchronous = from.asynchronous;
  to.packing = from.packing;
  to.shape = from.shape;
  to.elements = from.elements();
  to.name = from.name;
}

TUNEWRIGHT_INLINE void NestSummarizer::set_origins(const LoopNest& nest) {
  for (const Buffer& buffer : nest.buffers)
    for (const IndexExpr& origin : buffer.origin) summary_.indices.copy(origin, origins_.emplace_back());
  std::size_t first = 0;
  for (std::size_t b = 0; b < nest.buffers.size(); ++b) {
    const std::size_t count = nest.buffers[b].origin.size();
    summary_.buffers[b].set_origin(std::span(origins_).subspan(first, count));
    first += count;
  }
}

TUNEWRIGHT_INLINE void NestSummarizer::add(const loops::LoopNest& nest, const loops::Node& node) {
  const auto add_all = [&](const loops::Body& body) {
    for (const loops::Node& inner : body) add(nest, inner);
  };
  if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
    summary_.add(NestSummary::Event::Enter, summary_.loops.size());
    summary_.loops.push_back({loop->var, loops::checked_extent(nest, *loop), loop->kind, loop->reduction,
                              loop->unroll_limit, loop->intrinsic});
    has_tensors_ = has_tensors_ || loops::is_for_cpu(loop->intrinsic);
    add_all(loop->body);
    summary_.add(NestSummary::Event::Leave);
  } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
    if (statement->kind == Statement::Kind::Initialise)
      add_fill(*statement);
    else
      add(nest, *statement);
  } else if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
    summary_.add(NestSummary::Event::Allocate, allocate->buffer);
  } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
    add_all(branch->then.empty() ? branch->otherwise : branch->then);  // both sides have the same statements
  }
}

TUNEWRIGHT_INLINE void NestSummarizer::add(const loops::LoopNest& nest, const loops::Statement& statement) {
  Part part{loads_.size(), 0, values_.size(), statement.axis_values.size()};
  if (statement.op->body) collect_loads(statement.op->body, nest.buffer_of, nest.buffers.size(), nest.name, loads_);
  part.loads = loads_.size() - part.load;
  for (const program::IndexExpr& value : statement.axis_values) summary_.indices.copy(value, values_.emplace_back());
  parts_.push_back(part);
  summary_.add(NestSummary::Event::Run, summary_.statements.size());
  summary_.statements.push_back({statement.kind,
                                 statement.target,
                                 operations(statement),
                                 {},
                                 {},
                                 &statement.op,
                                 body_hash(*statement.op, nest.buffer_of)});
}

TUNEWRIGHT_INLINE void NestSummarizer::add_fill(const Statement& statement) {
  fill_values_.push_back({0, 0, values_.size(), statement.axis_values.size()});
  for (const IndexExpr& value : statement.axis_values) summary_.indices.copy(value, values_.emplace_back());
  summary_.add(NestSummary::Event::Fill, summary_.fills.size());
  summary_.fills.push_back({statement.kind, statement.target, {}, {}, {}, &statement.op});
}

}  // namespace tunewright::loops

#endif
