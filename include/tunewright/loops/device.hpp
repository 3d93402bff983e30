// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/nest.hpp"

/// Converts the loop nest of a schedule to GPU kernels.
namespace tunewright::loops {

namespace device {

class DeviceForm {
 public:
  explicit DeviceForm(LoopNest& nest) : nest_(nest) {}

  void run();

 private:
  /// The buffer that the single statement in `node` initialises.
  static BufferId only_initialises(const Node& node);
  static bool updates(const Node& node, BufferId target);

  /// One kernel with the given nodes.
  Node kernel(Body body);

  static Body around_body(Var var, LoopKind kind, Body body);

  /// Removes the outermost loops over blocks from `body`, down to the first loop that is none.
  std::vector<Loop> blocks_around(Body& body) const;

  LoopNest& nest_;
};

}  // namespace device

/// Converts a lowered nest to device form:
///
/// * Every top-level node except allocations is one kernel: loops over blocks, then over threads, each index once, then
///   the code of one thread. Top-level allocations are global workspace.
/// * The code of a thread has no bound or parallel loops and no loops over virtual threads. A virtual thread is an
///   unrolled loop around the nodes that depend on it; buffers that differ between virtual threads are `private_to` it.
/// * Shared buffers belong to the block, Local ones to the thread. There is a `Barrier` where threads exchange data
///   through shared memory, as few as the analysis allows, and only where all threads of a block arrive.
/// * Copies to shared memory are prefetched in a loop with a prologue if the schedule asks for it (`Pipelines`).
/// * Reductions across threads end in a `CrossThreadReduction`.
/// * Loops that tensor instructions compute are marked: see `device/fragments.hpp`.
/// * Stores to shared or global memory that do not depend on a thread index are executed by one thread.
///
/// `eliminate_guards` may be applied before, and `partition` after it.
///
/// Throws `DeviceFormError` for a nest that is not a GPU program: loops over blocks or threads inside other loops,
/// parallel loops, shared memory outside of kernels, Local memory that another thread reads, or data exchange between
/// threads where only some of them run. Cost: some tens of microseconds per kernel.
[[nodiscard]] LoopNest to_device(LoopNest nest);

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/loops/device/barriers.hpp"
#include "tunewright/loops/device/fragments.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/device/pipelines.hpp"
#include "tunewright/loops/device/reductions.hpp"
#include "tunewright/loops/device/threads.hpp"
#include "tunewright/loops/device/virtual_threads.hpp"

namespace tunewright::loops::device {

TUNEWRIGHT_INLINE void DeviceForm::run() {
  Body result;
  for (std::size_t n = 0; n < nest_.body.size(); ++n) {
    if (const auto* allocate = std::get_if<Allocate>(&nest_.body[n].content)) {
      Buffer& buffer = nest_.buffers.at(allocate->buffer);
      if (buffer.scope == Scope::Shared) {
        throw DeviceFormError("'" + buffer.name +
                              "' is shared memory outside of kernels; compute it in a loop over blocks");
      }
      buffer.scope = Scope::Global;  // kernels share only global memory
      result.push_back(std::move(nest_.body[n]));
      continue;
    }
    Body whole;
    const BufferId initialised = only_initialises(nest_.body[n]);
    whole.push_back(std::move(nest_.body[n]));
    if (initialised != LoopNest::no_buffer && n + 1 < nest_.body.size() && updates(nest_.body[n + 1], initialised))
      whole.push_back(std::move(nest_.body[++n]));
    result.push_back(kernel(std::move(whole)));
  }
  nest_.body = std::move(result);
}

TUNEWRIGHT_INLINE BufferId DeviceForm::only_initialises(const Node& node) {
  const Node* inner = &node;
  while (const auto* loop = std::get_if<Loop>(&inner->content)) {
    if (loop->body.size() != 1) return LoopNest::no_buffer;
    inner = &loop->body[0];
  }
  const auto* statement = std::get_if<Statement>(&inner->content);
  const bool yes = statement != nullptr && statement->kind == Statement::Kind::Initialise;
  return yes ? statement->target : LoopNest::no_buffer;
}

TUNEWRIGHT_INLINE bool DeviceForm::updates(const Node& node, BufferId target) {
  bool found = false;
  const std::span<const Node> one(&node, 1);
  visit_nodes<Statement>(
      one, [&](const Statement& s) { found = found || (s.target == target && s.kind == Statement::Kind::Update); });
  return found;
}

TUNEWRIGHT_INLINE Node DeviceForm::kernel(Body body) {
  visit_nodes<Loop>(body, [this](const Loop& loop) { static_cast<void>(checked_extent(nest_, loop)); });
  std::vector<Loop> around = blocks_around(body);
  ReductionsByThreads(nest_).run(body, around);
  ThreadIndices threads;
  Fragments fragments(nest_, threads);
  fragments.prepare(body);
  ThreadBody(nest_, threads, fragments.any()).run(body);
  VirtualThreads(nest_).run(body);
  fragments.mark(body);
  SingleStores(nest_, threads).run(body);
  Barriers(nest_, threads).run(body);
  Pipelines(nest_).run(body);
  hoist_branches(body);
  for (std::size_t i = threads.x_y_z.size(); i-- > 0;) {
    const ThreadIndices::Index& index = threads.x_y_z[i];
    if (index.extent == 1) continue;
    const auto kind = static_cast<LoopKind>(static_cast<std::size_t>(LoopKind::ThreadX) + i);
    body = around_body(index.var, kind, std::move(body));
  }
  while (!around.empty()) {
    const Loop& loop = around.back();
    body = around_body(loop.var, loop.kind, std::move(body));
    around.pop_back();
  }
  if (body.size() == 1 && std::holds_alternative<Loop>(body[0].content) &&
      schedule::is_hardware_index(std::get<Loop>(body[0].content).kind))
    return std::move(body[0]);
  nest_.variables.push_back({"block", 1});
  return std::move(around_body(static_cast<Var>(nest_.variables.size() - 1), LoopKind::BlockX, std::move(body))[0]);
}

TUNEWRIGHT_INLINE Body DeviceForm::around_body(Var var, LoopKind kind, Body body) {
  Loop loop;
  loop.var = var;
  loop.kind = kind;
  loop.body = std::move(body);
  Body around;
  around.push_back(std::move(loop));
  return around;
}

TUNEWRIGHT_INLINE std::vector<Loop> DeviceForm::blocks_around(Body& body) const {
  std::vector<Loop> around;
  while (body.size() == 1) {
    auto* loop = std::get_if<Loop>(&body[0].content);
    const bool of_blocks =
        loop != nullptr && schedule::is_hardware_index(loop->kind) && !schedule::is_thread_index(loop->kind);
    if (!of_blocks) break;
    for (const Loop& other : around) {
      if (other.kind == loop->kind) {
        throw DeviceFormError("kernel '" + nest_.name + "': " + quoted(nest_, loop->var) + " is bound to " +
                              std::string(name(loop->kind)) + " as is one around it");
      }
    }
    Body inside = std::move(loop->body);
    inherit_unroll_limit(inside, loop->unroll_limit);
    Loop& taken = around.emplace_back();
    taken.var = loop->var;
    taken.kind = loop->kind;
    body = std::move(inside);
  }
  return around;
}

}  // namespace tunewright::loops::device

namespace tunewright::loops {

TUNEWRIGHT_INLINE LoopNest to_device(LoopNest nest) {
  device::DeviceForm(nest).run();
  return nest;
}

}  // namespace tunewright::loops

#endif
