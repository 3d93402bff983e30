// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/loops/nest.hpp"

/// What drafts read off a loop nest: the loops around each statement, and in `reach.hpp` how much memory its
/// accesses reach while some of them run. Exact for tiles that divide, an upper bound else.
namespace tunewright::drafts {

/// Loops of one statement by depth: bit l stands for the l-th from outside.
using LoopSet = std::uint64_t;

struct OpenLoop {
  loops::Var var = 0;
  std::int64_t extent = 1;
  loops::LoopKind kind = loops::LoopKind::Serial;
  bool reduction = false;
};

/// Walks a nest. Memory is kept between nests.
class NestReader {
 public:
  static constexpr std::uint8_t none = 255;

  /// Calls `on_loop(loop)` at every loop, before its body, and `on_statement(statement)` at every statement. A
  /// parallel loop has the iterations that one of `workers` runs.
  /// Throws `std::invalid_argument` for more than 64 nested loops and for loops that are not declared.
  template <class OnLoop, class OnStatement>
  void read(const loops::LoopNest& nest, const OnLoop& on_loop, const OnStatement& on_statement,
            std::int64_t workers = 1) {
    nest_ = &nest;
    workers_ = workers;
    open_.clear();
    of_kind_.fill(0);
    depth_of_.assign(nest.variables.size(), none);
    allocated_at_.assign(nest.buffers.size(), 0);
    kernel_ = 0;
    for (const loops::Node& node : nest.body) {
      visit(node, on_loop, on_statement);
      ++kernel_;
    }
  }

  [[nodiscard]] const loops::LoopNest& nest() const noexcept { return *nest_; }
  [[nodiscard]] std::span<const OpenLoop> open() const noexcept { return open_; }
  /// Number of the tree of the program's body that is being read; on a GPU a launch.
  [[nodiscard]] std::size_t kernel() const noexcept { return kernel_; }
  /// Loops open where a buffer was allocated; none for arguments.
  [[nodiscard]] std::size_t allocated_at(loops::BufferId buffer) const { return allocated_at_[buffer]; }
  /// Memory a buffer lies in; what is allocated outside all loops is workspace, whatever it was asked to be.
  [[nodiscard]] loops::Scope scope_of(loops::BufferId buffer) const {
    return allocated_at_[buffer] == 0 ? loops::Scope::Global : nest_->buffers[buffer].scope;
  }
  [[nodiscard]] std::uint8_t depth_of(loops::Var var) const { return depth_of_[var]; }

  /// The open loops of one kind.
  [[nodiscard]] LoopSet loops_of(loops::LoopKind kind) const {
    return of_kind_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] LoopSet block_loops() const {
    using loops::LoopKind;
    return loops_of(LoopKind::BlockX) | loops_of(LoopKind::BlockY) | loops_of(LoopKind::BlockZ);
  }
  [[nodiscard]] LoopSet thread_loops() const {
    using loops::LoopKind;
    return loops_of(LoopKind::ThreadX) | loops_of(LoopKind::ThreadY) | loops_of(LoopKind::ThreadZ);
  }
  [[nodiscard]] LoopSet all_loops() const {
    return open_.size() == 64 ? ~LoopSet{0} : (LoopSet{1} << open_.size()) - 1;
  }
  /// Product of the extents of loops.
  [[nodiscard]] double iterations(LoopSet set) const {
    double product = 1;
    for (; set != 0; set &= set - 1)
      product *= static_cast<double>(open_[static_cast<std::size_t>(std::countr_zero(set))].extent);
    return product;
  }

 private:
  template <class OnLoop, class OnStatement>
  void visit(const loops::Node& node, const OnLoop& on_loop, const OnStatement& on_statement) {
    const auto visit_all = [&](const loops::Body& body) {
      for (const loops::Node& inner : body) visit(inner, on_loop, on_statement);
    };
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      if (open_.size() == 64)
        throw std::invalid_argument("loop nest '" + nest_->name +
                                    "' is deeper than the 64 loops drafts can read");
      std::int64_t extent = loops::checked_extent(*nest_, *loop);
      if (loop->kind == loops::LoopKind::Parallel) extent = program::ceil_div(extent, workers_);
      open_.push_back({loop->var, extent, loop->kind, loop->reduction});
      depth_of_[loop->var] = static_cast<std::uint8_t>(open_.size() - 1);
      const LoopSet own = LoopSet{1} << (open_.size() - 1);
      of_kind_[static_cast<std::size_t>(loop->kind)] |= own;
      on_loop(*loop);
      visit_all(loop->body);
      of_kind_[static_cast<std::size_t>(loop->kind)] &= ~own;
      depth_of_[loop->var] = none;
      open_.pop_back();
    } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
      on_statement(*statement);
    } else if (const auto* allocate = std::get_if<loops::Allocate>(&node.content)) {
      allocated_at_[allocate->buffer] = open_.size();
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      visit_all(branch->then.empty() ? branch->otherwise : branch->then);  // both hold the same statements
    }
  }

  const loops::LoopNest* nest_ = nullptr;
  std::vector<OpenLoop> open_;
  std::array<LoopSet, schedule::loop_kind_names.size()> of_kind_{};
  std::vector<std::uint8_t> depth_of_;  // by variable
  std::vector<std::size_t> allocated_at_;
  std::size_t kernel_ = 0;
  std::int64_t workers_ = 1;
};

}  // namespace tunewright::drafts
