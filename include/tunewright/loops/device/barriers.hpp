// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/pass.hpp"

namespace tunewright::loops::device {

/// Inserts barriers where threads of a block access elements of shared memory that other threads accessed since the
/// last barrier, if one of the two accesses writes; also between consecutive iterations of a loop. Two accesses need
/// none if the element determines the thread (`is_same_thread`).
///
/// A barrier is inserted as far outside as the two accesses allow. Throws `DeviceFormError` if one is needed where not
/// all threads arrive.
class Barriers {
 public:
  Barriers(const LoopNest& nest, const ThreadIndices& threads) : nest_(nest), threads_(threads) {}

  void run(Body& body) const { insert(body, false); }

 private:
  using Accesses = std::vector<Access>;

  /// Accesses visible to other code: those before the first barrier and after the last.
  struct Exposure {
    Accesses head;
    Accesses tail;
    bool has_barrier = false;
  };

  static void extend(Accesses& all, const Accesses& more) { all.insert(all.end(), more.begin(), more.end()); }

  /// Whether both writes belong to one statement: its iterations store to different elements, or repeat only after
  /// others have read.
  static bool is_one_statement(const Access& a, const Access& b) noexcept {
    return a.writes && b.writes && a.writer == b.writer && a.kind == b.kind;
  }

  /// The access in `after` that needs a barrier because of accesses in `before`, or null.
  [[nodiscard]] const Access* conflict(const Accesses& before, const Accesses& after) const {
    for (const Access& a : before) {
      for (const Access& b : after) {
        if (a.buffer != b.buffer || !(a.writes || b.writes) || is_one_statement(a, b)) continue;
        if (!is_same_thread(nest_, threads_, a.offset, b.offset)) return &b;
      }
    }
    return nullptr;
  }

  [[nodiscard]] Exposure exposure(const Node& node) const {
    Exposure e;
    if (std::holds_alternative<Barrier>(node.content)) {
      e.has_barrier = true;
    } else if (const auto* loop = std::get_if<Loop>(&node.content)) {
      e = exposure(std::span<const Node>(loop->body));
    } else if (const auto* branch = std::get_if<Branch>(&node.content)) {
      e = exposure(std::span<const Node>(branch->then));
      const Exposure other = exposure(std::span<const Node>(branch->otherwise));
      extend(e.head, other.head);
      extend(e.tail, other.tail);
      e.has_barrier = false;  // the branch may not be taken
    } else {
      e.head = e.tail = accesses(node);
    }
    return e;
  }
  [[nodiscard]] Exposure exposure(std::span<const Node> body) const {
    Exposure total;
    for (const Node& node : body) {
      const Exposure e = exposure(node);
      if (!total.has_barrier) extend(total.head, e.head);
      if (e.has_barrier) total.tail.clear();
      extend(total.tail, e.tail);
      total.has_barrier = total.has_barrier || e.has_barrier;
    }
    return total;
  }

  [[nodiscard]] Accesses accesses(const Node& node) const {
    Accesses found;
    const auto is_shared = [&](BufferId id) { return nest_.buffers[id].scope == Scope::Shared; };
    if (const auto* statement = std::get_if<Statement>(&node.content)) {
      visit_accesses(nest_, *statement, [&](const Access& access) {
        if (is_shared(access.buffer)) found.push_back(access);
      });
    }
    const auto* reduction = std::get_if<CrossThreadReduction>(&node.content);
    if (reduction != nullptr && is_shared(reduction->target)) {
      found.push_back(
          {reduction->target, element_offset(nest_, nest_.buffers[reduction->target], reduction->axis_values), true});
    }
    return found;
  }

  /// `divided`: only some threads run `body`.
  void insert(Body& body, bool divided) const {
    for (Node& node : body) {
      if (auto* loop = std::get_if<Loop>(&node.content)) {
        insert_in_loop(*loop, divided || loop->kind == LoopKind::Vectorized);
      } else if (auto* branch = std::get_if<Branch>(&node.content)) {
        const bool some = divided || threads_.any_used_by(branch->conditions);
        insert(branch->then, some);
        insert(branch->otherwise, some);
      } else if (divided && std::holds_alternative<CrossThreadReduction>(node.content)) {
        throw DeviceFormError("kernel '" + nest_.name + "': threads are combined where only some of them run");
      }
    }
    separate(body, {}, divided);
  }

  void insert_in_loop(Loop& loop, bool divided) const {
    insert(loop.body, divided);
    if (nest_.variables[loop.var].extent == 1) return;
    std::set<std::size_t> before;  // nodes that need a barrier before them because of the previous iteration
    const Body plain = without_barriers(loop.body);
    while (true) {
      const Accesses tail = exposure(std::span<const Node>(loop.body)).tail;
      std::size_t n = 0;
      bool found = false;
      for (; n < plain.size() && !found; ++n) {
        const Exposure e = exposure(plain[n]);
        found = before.count(n) == 0 && meets(tail, e, divided);
        if (found || before.count(n) != 0 || e.has_barrier) break;
      }
      if (!found) return;
      before.insert(n);
      loop.body = plain;
      separate(loop.body, before, divided);
    }
  }

  /// Whether a barrier is needed between `before` and `after`; throws if there can be none.
  [[nodiscard]] bool meets(const Accesses& before, const Exposure& after, bool divided) const {
    const Access* touched = conflict(before, after.head);
    if (touched == nullptr) return false;
    if (divided) {
      throw DeviceFormError("kernel '" + nest_.name + "': '" + nest_.buffers[touched->buffer].name +
                            "' is passed between threads where only some of them run");
    }
    return true;
  }

  static Body without_barriers(const Body& body) {
    Body result;
    for (const Node& node : body) {
      if (!std::holds_alternative<Barrier>(node.content)) result.push_back(node);
    }
    return result;
  }

  /// Inserts barriers between the nodes of `body` where they are needed, and before those numbered `wanted`.
  void separate(Body& body, const std::set<std::size_t>& wanted, bool divided) const {
    Body result;
    Accesses pending;
    for (std::size_t n = 0; n < body.size(); ++n) {
      const Exposure e = exposure(body[n]);
      if (wanted.count(n) != 0 || meets(pending, e, divided)) {
        result.push_back(Barrier{});
        pending.clear();
      }
      if (e.has_barrier) pending.clear();
      extend(pending, e.tail);
      result.push_back(std::move(body[n]));
    }
    body = std::move(result);
  }

  const LoopNest& nest_;
  const ThreadIndices& threads_;
};

}  // namespace tunewright::loops::device
