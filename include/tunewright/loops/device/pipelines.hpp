// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/loops/device/fragments.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/device/staging.hpp"

namespace tunewright::loops::device {

/// Software pipelining: prefetches copies to shared memory in the surrounding loop if their buffers hold several tiles
/// (`Buffer::stages`). With depth D, asynchronous copies on the left, copies through registers on the right:
///
///   for ahead in 0..D-1: fetch tile ahead; commit     for ahead in 0..D-1: fetch tile ahead
///   for t:                                            for t:
///     wait for all but D-2 groups                       barrier
///     barrier                                           if t+D-1 < tiles: load tile t+D-1 to registers
///     if t+D-1 < tiles: fetch tile t+D-1                compute on tile t
///     commit                                            if t+D-1 < tiles: store it to shared memory
///     compute on tile t
///
/// One barrier per iteration suffices: it ensures that tile t has arrived for all threads, and that all threads are
/// finished with tile t-1, which tile t+D-1 overwrites. Perfectly nested reduction loops are joined first, so that
/// prefetching continues across all of them.
///
/// Products of warp groups run asynchronously: the products of tile t run while threads wait for tile t+1, meet at the
/// barrier and start the next ones. A second barrier ensures that all groups are finished with tile t-1:
///
///   for t:
///     wait for all but D-2 groups
///     barrier
///     start products of tile t
///     wait for products but those of tile t
///     barrier
///     if t+D-1 < tiles: fetch tile t+D-1 (or: store it, loaded before the wait for products)
///     commit
///   wait for products
///
/// Runs after barriers have been inserted into the plain form, which shows whether threads need any.
class Pipelines {
 public:
  explicit Pipelines(LoopNest& nest) : nest_(nest) {}

  /// Throws `DeviceFormError` if a loop with prefetching is not serial, or a prefetched copy depends on results of the
  /// loop.
  void run(Body& body) { run(body, false); }

 private:
  struct Fetch {
    Body copies;
    std::set<BufferId> buffers;
    std::uint32_t depth = 1;
    bool asynchronous = false;
  };

  [[nodiscard]] auto range_of() const {
    return [this](Var v) { return nest_.range_of(v); };
  }

  /// `repeated`: a surrounding loop runs `body` several times.
  void run(Body& body, bool repeated) {
    Body result;
    for (Node& node : body) {
      if (auto* loop = std::get_if<Loop>(&node.content)) {
        if (Loop* fetching = loop_that_fetches(*loop)) {
          append(result, pipelined(joined(*loop, *fetching), repeated));
          continue;
        }
        run(loop->body, repeated || nest_.variables[loop->var].extent > 1);
      } else if (auto* branch = std::get_if<Branch>(&node.content)) {
        run(branch->then, repeated);
        run(branch->otherwise, repeated);
      } else if (const auto* allocate = std::get_if<Allocate>(&node.content)) {
        const Buffer& buffer = nest_.buffers[allocate->buffer];
        if (buffer.stages > 1)
          refuse("'" + buffer.name + "' is fetched ahead, but stands in no serial loop; pipeline one that is");
      }
      result.push_back(std::move(node));
    }
    body = std::move(result);
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw DeviceFormError("kernel '" + nest_.name + "': " + what);
  }

  /// The innermost of `loop` and the serial loops that are the only content of one another: the loop that prefetches.
  Loop* loop_that_fetches(Loop& loop) const {
    if (loop.kind != LoopKind::Serial) return nullptr;
    const bool fetches = std::any_of(loop.body.begin(), loop.body.end(), [this](const Node& node) {
      const auto* allocate = std::get_if<Allocate>(&node.content);
      return allocate != nullptr && nest_.buffers[allocate->buffer].stages > 1;
    });
    if (fetches) return &loop;
    auto* inner = loop.body.size() == 1 ? std::get_if<Loop>(&loop.body[0].content) : nullptr;
    return inner == nullptr ? nullptr : loop_that_fetches(*inner);
  }

  /// Joins `outermost`, and the loops that are alone in it, down to `innermost` into one loop.
  Loop joined(Loop& outermost, Loop& innermost) {
    std::vector<Var> vars;
    std::string name;
    std::int64_t extent = 1, unroll_limit = 0;
    for (Loop* loop = &outermost;; loop = std::get_if<Loop>(&loop->body[0].content)) {
      vars.push_back(loop->var);
      name += (name.empty() ? "" : "@") + nest_.variables[loop->var].name;
      extent *= nest_.variables[loop->var].extent;
      unroll_limit = std::max(unroll_limit, loop->unroll_limit);
      if (loop == &innermost) break;
    }
    Loop whole;
    whole.var = innermost.var;
    whole.reduction = innermost.reduction;
    whole.unroll_limit = unroll_limit;
    whole.body = std::move(innermost.body);
    if (vars.size() == 1) return whole;
    nest_.variables.push_back({name, extent});
    whole.var = static_cast<Var>(nest_.variables.size() - 1);
    std::map<Var, IndexExpr> values;
    IndexExpr rest = IndexExpr::variable(whole.var);
    for (std::size_t v = vars.size(); v-- > 1;) {
      const std::int64_t own = nest_.variables[vars[v]].extent;
      values[vars[v]] = IndexExpr::remainder(rest, own, range_of());
      rest = IndexExpr::quotient(rest, own, range_of());
    }
    values[vars[0]] = rest;
    substitute(whole.body, values);
    for (Buffer& buffer : nest_.buffers) substitute(buffer.origin, values);
    return whole;
  }

  Body pipelined(Loop loop, bool repeated) {
    Body result;
    Fetch fetch;
    Body rest;
    bool has_barrier = false;
    visit_nodes<Barrier>(loop.body, [&](const Barrier&) { has_barrier = true; });
    take_allocations(loop.body, fetch, result);
    for (Node& node : loop.body) {
      const bool leads = rest.empty() && std::holds_alternative<Barrier>(node.content);
      if (is_copy(node, fetch)) {
        fetch.copies.push_back(std::move(node));
      } else if (!leads) {
        rest.push_back(std::move(node));
      }
    }
    if (!rest.empty() && std::holds_alternative<Barrier>(rest.front().content)) rest.erase(rest.begin());
    check_independent(fetch, rest);
    // Loops inside may prefetch as well. Their groups of copies are between this loop's groups, so a wait can only wait
    // for more than necessary.
    run(rest, true);

    const std::int64_t tiles = nest_.variables[loop.var].extent;
    const std::int64_t before = std::min<std::int64_t>(fetch.depth - 1, tiles);
    const IndexExpr current = IndexExpr::variable(loop.var);
    for (const BufferId id : fetch.buffers) {
      nest_.buffers[id].stage = IndexExpr::remainder(current, fetch.depth, range_of());
    }
    if (has_barrier && (repeated || reads_shared(fetch.copies))) result.push_back(Barrier{});
    append(result, prologue(fetch, loop.var, before));
    const bool products_run_on = has_barrier && multiplies_by_warp_groups_alone(rest);
    loop.body = iteration(fetch, std::move(rest), loop.var, tiles, before, has_barrier, products_run_on);
    result.push_back(std::move(loop));
    if (products_run_on) result.push_back(WaitForProducts{});
    return result;
  }

  /// Moves the allocations of prefetched buffers from `body` to `result`.
  void take_allocations(Body& body, Fetch& fetch, Body& result) const {
    Body kept;
    for (Node& node : body) {
      const auto* allocate = std::get_if<Allocate>(&node.content);
      const Buffer* buffer = allocate == nullptr ? nullptr : &nest_.buffers[allocate->buffer];
      if (buffer == nullptr || buffer->stages == 1) {
        kept.push_back(std::move(node));
        continue;
      }
      if (!fetch.buffers.empty() && (buffer->stages != fetch.depth || buffer->asynchronous != fetch.asynchronous)) {
        refuse("'" + buffer->name + "' is fetched " + std::to_string(buffer->stages - 1) +
               " tiles ahead in a loop that fetches others differently; pipeline a loop once");
      }
      fetch.buffers.insert(allocate->buffer);
      fetch.depth = buffer->stages;
      fetch.asynchronous = buffer->asynchronous;
      result.push_back(std::move(node));
    }
    body = std::move(kept);
  }

  static bool is_copy(const Node& node, const Fetch& fetch) {
    bool some = false, all = true;
    const std::span<const Node> one(&node, 1);
    visit_nodes<Statement>(one, [&](const Statement& s) {
      some = true;
      all = all && s.kind == Statement::Kind::Assign && fetch.buffers.count(s.target) != 0;
    });
    visit_nodes<CrossThreadReduction>(one, [&](const CrossThreadReduction&) { all = false; });
    return some && all;
  }

  /// Throws if a prefetched copy reads what the loop computes or copies.
  void check_independent(const Fetch& fetch, const Body& rest) const {
    std::set<BufferId> written = fetch.buffers;
    const auto note = [&](const auto& content) {
      if (fetch.buffers.count(content.target) != 0)
        refuse("'" + nest_.buffers[content.target].name + "' is fetched ahead but not by copies alone");
      written.insert(content.target);
    };
    visit_nodes<Statement>(rest, note);
    visit_nodes<CrossThreadReduction>(rest, note);
    visit_nodes<Statement>(fetch.copies, [&](const Statement& s) {
      visit_accesses(nest_, s, [&](const Access& access) {
        if (!access.writes && written.count(access.buffer) != 0) {
          refuse("what is fetched ahead to '" + nest_.buffers[s.target].name + "' comes from '" +
                 nest_.buffers[access.buffer].name + "', which the same loop computes; do not pipeline it");
        }
      });
    });
  }

  [[nodiscard]] bool reads_shared(const Body& copies) const {
    bool found = false;
    visit_nodes<Statement>(copies, [&](const Statement& s) {
      visit_accesses(nest_, s, [&](const Access& access) {
        found = found || (!access.writes && nest_.buffers[access.buffer].scope == Scope::Shared);
      });
    });
    return found;
  }

  /// Fetches the first `count` tiles of loop `var`.
  Body prologue(const Fetch& fetch, Var var, std::int64_t count) {
    IndexExpr tile(0);
    Loop ahead;
    if (count > 1) {
      nest_.variables.push_back({nest_.variables[var].name + ".ahead", count});
      ahead.var = static_cast<Var>(nest_.variables.size() - 1);
      tile = IndexExpr::variable(ahead.var);
    }
    Body body = copies_of(fetch, var, tile);
    if (fetch.asynchronous) body.push_back(CommitCopies{});
    if (count == 1) return body;
    ahead.body = std::move(body);
    Body around;
    around.push_back(std::move(ahead));
    return around;
  }

  Body iteration(const Fetch& fetch, Body rest, Var var, std::int64_t tiles, std::int64_t before, bool has_barrier,
                 bool products_run_on) {
    Body body;
    if (fetch.asynchronous) body.push_back(WaitForCopies{static_cast<std::uint32_t>(before - 1)});
    if (has_barrier) body.push_back(Barrier{});
    const IndexExpr next = IndexExpr::variable(var) + IndexExpr(std::int64_t{fetch.depth} - 1);
    const auto if_any = [&](Body inside) {
      return Branch{{Guard{next, tiles, false, true, Guard::no_axis}}, std::move(inside), {}};
    };
    Body copies = fetch.depth - 1 < tiles ? copies_of(fetch, var, next) : Body{};
    std::optional<StagedCopies> staged;
    if (!fetch.asynchronous && !copies.empty()) staged = staged_copies(nest_, copies);
    if (staged) {
      append(body, std::move(staged->registers));
      body.push_back(if_any(std::move(staged->loads)));
    }
    if (products_run_on) {
      append(body, std::exchange(rest, {}));
      body.push_back(WaitForProducts{1});
      body.push_back(Barrier{});
    }
    if (!staged && !copies.empty()) body.push_back(if_any(std::move(copies)));
    if (fetch.asynchronous) body.push_back(CommitCopies{});
    append(body, std::move(rest));
    if (staged) body.push_back(if_any(std::move(staged->stores)));
    return body;
  }

  /// The copies of `fetch` for iteration `tile` of loop `var`.
  Body copies_of(const Fetch& fetch, Var var, const IndexExpr& tile) {
    const std::map<Var, IndexExpr> values{{var, tile}};
    std::map<BufferId, BufferId> views;
    for (const BufferId id : fetch.buffers) {
      Buffer view = nest_.buffers[id];
      view.view_of = id;
      substitute(view.origin, values);
      view.stage = IndexExpr::remainder(tile, fetch.depth, range_of());
      views[id] = static_cast<BufferId>(nest_.buffers.size());
      nest_.buffers.push_back(std::move(view));
    }
    Body copies = fetch.copies;
    substitute(copies, values);
    visit_nodes<Statement>(copies, [&](Statement& s) {
      s.asynchronous = fetch.asynchronous && is_plain_copy(*s.op->body);
      s.target = views.at(s.target);
    });
    return copies;
  }

  /// Whether a body can be copied by the device itself: elements of device memory, or zeros instead.
  [[nodiscard]] bool is_plain_copy(const program::ExprNode& body) const {
    if (body.op == program::Op::Select) {
      const program::ExprNode& otherwise = *body.args[2];
      return otherwise.op == program::Op::Constant && otherwise.value == 0 && !std::signbit(otherwise.value) &&
             body.args[1]->op == program::Op::Load && is_plain_copy(*body.args[1]);
    }
    if (body.op != program::Op::Load) return false;
    const BufferId id = nest_.buffer_of.at(body.tensor);
    return id != LoopNest::no_buffer && nest_.buffers[id].scope == Scope::Global;
  }

  void substitute(IndexExpr& e, const std::map<Var, IndexExpr>& values) const {
    if (std::none_of(values.begin(), values.end(), [&](const auto& one) { return e.uses(one.first); })) return;
    e = e.substitute(
        [&](Var v) {
          const auto found = values.find(v);
          return found == values.end() ? IndexExpr::variable(v) : found->second;
        },
        range_of());
  }
  void substitute(std::vector<IndexExpr>& list, const std::map<Var, IndexExpr>& values) const {
    for (IndexExpr& e : list) substitute(e, values);
  }
  void substitute(Body& body, const std::map<Var, IndexExpr>& values) const {
    const auto all = [&](auto& content) {
      substitute(content.axis_values, values);
      for (Guard& guard : content.guards) substitute(guard.value, values);
    };
    visit_nodes<Statement>(body, all);
    visit_nodes<CrossThreadReduction>(body, all);
    visit_nodes<Branch>(body, [&](Branch& branch) {
      for (Guard& guard : branch.conditions) substitute(guard.value, values);
    });
  }

  LoopNest& nest_;
};

}  // namespace tunewright::loops::device
