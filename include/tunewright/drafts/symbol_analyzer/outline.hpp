// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/drafts/symbol_analyzer/flat_index.hpp"
#include "tunewright/drafts/symbol_analyzer/outline_tensors.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/operations.hpp"

/// What drafts read of a program: its loops, and of each statement what it computes and where its accesses go. No
/// guards, no bodies, no names, and no fills of reductions.
namespace tunewright::drafts {

/// As `loops::Buffer`.
struct OutlineBuffer {
  double element_bytes = 4;
  loops::Scope scope = loops::Scope::Global;
  loops::BufferRole role = loops::BufferRole::Temporary;
  std::uint32_t stages = 1;
  bool asynchronous = false;
  bool packed = false;
  loops::PackedDimension innermost{};  ///< where packed
  std::span<const std::int64_t> shape{};
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t bytes() const noexcept { return elements * static_cast<std::int64_t>(element_bytes); }
};

/// A tensor that a statement reads, with indices over the axes of its operator.
struct OutlineLoad {
  loops::BufferId buffer = 0;
  const program::ExprNode* node = nullptr;
};

struct OutlineStatement {
  loops::Statement::Kind kind = loops::Statement::Kind::Assign;
  loops::BufferId target = 0;
  loops::BodyOperations operations;
  std::span<const OutlineLoad> loads{};      ///< distinct
  std::span<const FlatIndex> axis_values{};  ///< by axis, over loops
};

struct OutlineLoop {
  loops::Var var = 0;
  std::int64_t extent = 1;
  loops::LoopKind kind = loops::LoopKind::Serial;
  bool reduction = false;
  std::int64_t unroll_limit = 0;
  const schedule::TensorIntrinsic* intrinsic = nullptr;  ///< that computes it
};

/// In program order. Memory is kept from one program to the next.
struct Outline {
  enum class Event : std::uint8_t {
    Enter,     ///< the loop `of`
    Leave,     ///< the innermost loop
    Run,       ///< the statement `of`
    Allocate,  ///< the buffer `of`
    Next,      ///< tree of the program's body, on a GPU a launch
  };
  struct Step {
    Event event = Event::Leave;
    std::uint32_t of = 0;
  };

  IndexArena indices;  ///< and the variables
  std::vector<OutlineBuffer> buffers;
  std::vector<OutlineLoop> loops;
  std::vector<OutlineStatement> statements;
  std::vector<loops::TensorStatement> tensors;  ///< of CPUs
  std::size_t kernels = 0;

  void clear() {
    indices.clear();
    loops.clear();
    statements.clear();
    tensors.clear();
    step_count_ = 0;
    kernels = 0;
  }
  void add(Event event, std::size_t of = 0) {
    if (step_count_ == steps_.size()) make_room();
    steps_[step_count_++] = {event, static_cast<std::uint32_t>(of)};
  }
  [[nodiscard]] std::span<const Step> steps() const noexcept { return std::span(steps_).first(step_count_); }

 private:
  [[gnu::noinline]] void make_room() { steps_.resize(2 * step_count_ + 64); }

  std::vector<Step> steps_;  // the first ones count
  std::size_t step_count_ = 0;
};

/// The distinct loads of a body, in the order met. Throws `std::invalid_argument` for tensors without buffer.
inline void collect_loads(const program::Expr& body, std::span<const loops::BufferId> buffer_of, std::size_t buffers,
                          const std::string& name, std::vector<OutlineLoad>& loads) {
  const std::size_t first = loads.size();
  program::visit(body, [&](const program::ExprNode& node) {
    if (node.op != program::Op::Load) return;
    const bool has_buffer = node.tensor < buffer_of.size() && buffer_of[node.tensor] < buffers;
    if (!has_buffer) {
      throw std::invalid_argument("loop nest '" + name + "' reads tensor " + std::to_string(node.tensor) +
                                  " which has no buffer; add it to buffer_of");
    }
    const OutlineLoad load{buffer_of[node.tensor], &node};
    for (std::size_t l = first; l < loads.size(); ++l)
      if (loads[l].buffer == load.buffer && loads[l].node->indices == node.indices) return;
    loads.push_back(load);
  });
}

/// Outlines of loop nests.
class NestOutliner {
 public:
  /// Valid until the next call, as long as the nest is. Throws `std::invalid_argument` for a nest that reads tensors
  /// without buffer or loops that are not declared, `NoRoom` for indices beyond what a flat one holds.
  [[nodiscard]] const Outline& outline(const loops::LoopNest& nest) {
    outline_.clear();
    loads_.clear();
    values_.clear();
    parts_.clear();
    has_tensors_ = false;
    for (const loops::LoopVariable& variable : nest.variables) outline_.indices.extents.push_back(variable.extent);
    outline_.buffers.resize(nest.buffers.size());
    for (std::size_t b = 0; b < nest.buffers.size(); ++b) copy(nest.buffers[b], outline_.buffers[b]);
    for (const loops::Node& node : nest.body) {
      add(nest, node);
      outline_.add(Outline::Event::Next);
      ++outline_.kernels;
    }
    if (has_tensors_) tensors_.find(nest, outline_.tensors);
    for (std::size_t s = 0; s < parts_.size(); ++s) {
      outline_.statements[s].loads = std::span(loads_).subspan(parts_[s].load, parts_[s].loads);
      outline_.statements[s].axis_values = std::span(values_).subspan(parts_[s].value, parts_[s].values);
    }
    return outline_;
  }

 private:
  struct Part {
    std::size_t load = 0, loads = 0, value = 0, values = 0;
  };

  static void copy(const loops::Buffer& from, OutlineBuffer& to) {
    to.element_bytes = static_cast<double>(program::size_in_bytes(from.type));
    to.scope = from.scope;
    to.role = from.role;
    to.stages = from.stages;
    to.asynchronous = from.asynchronous;
    to.packed = !from.packing.empty();
    if (to.packed) to.innermost = from.packing.back();
    to.shape = from.shape;
    to.elements = from.elements();
  }

  void add(const loops::LoopNest& nest, const loops::Node& node) {
    const auto add_all = [&](const loops::Body& body) {
      for (const loops::Node& inner : body) add(nest, inner);
    };
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      outline_.add(Outline::Event::Enter, outline_.loops.size());
      outline_.loops.push_back({loop->var, loops::checked_extent(nest, *loop), loop->kind, loop->reduction,
                                loop->unroll_limit, loop->intrinsic});
      has_tensors_ = has_tensors_ || loops::is_for_cpu(loop->intrinsic);
      add_all(loop->body);
      outline_.add(Outline::Event::Leave);
    } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
      if (statement->kind != loops::Statement::Kind::Initialise) add(nest, *statement);
    } else if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
      outline_.add(Outline::Event::Allocate, allocate->buffer);
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      add_all(branch->then.empty() ? branch->otherwise : branch->then);  // both hold the same statements
    }
  }

  void add(const loops::LoopNest& nest, const loops::Statement& statement) {
    Part part{loads_.size(), 0, values_.size(), statement.axis_values.size()};
    if (statement.op->body) collect_loads(statement.op->body, nest.buffer_of, nest.buffers.size(), nest.name, loads_);
    part.loads = loads_.size() - part.load;
    for (const program::IndexExpr& value : statement.axis_values) outline_.indices.copy(value, values_.emplace_back());
    parts_.push_back(part);
    outline_.add(Outline::Event::Run, outline_.statements.size());
    outline_.statements.push_back({statement.kind, statement.target, loops::operations(statement)});
  }

  Outline outline_;
  std::vector<OutlineLoad> loads_;
  std::vector<FlatIndex> values_;
  std::vector<Part> parts_;  // by statement
  OutlineTensors tensors_;
  bool has_tensors_ = false;
};

}  // namespace tunewright::drafts
