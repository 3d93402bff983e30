// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "tunewright/codegen/llvm_statement.hpp"

/// Which targets of reductions can live in registers.
namespace tunewright::codegen::detail {

/// Loops around an update whose target they do not move, or move only in straight-line code, give a register
/// tile.
class TileEmitter : public StatementEmitter {
 public:
  using StatementEmitter::StatementEmitter;

 protected:
  /// The statement that is all there is in `loop`, if so.
  [[nodiscard]] static const loops::Statement* only_statement(const loops::Loop& loop) {
    const loops::Loop* current = &loop;
    while (current->body.size() == 1) {
      if (const auto* s = std::get_if<loops::Statement>(&current->body[0].content)) return s;
      current = std::get_if<loops::Loop>(&current->body[0].content);
      if (current == nullptr) return nullptr;
    }
    return nullptr;
  }
  [[nodiscard]] static std::vector<const loops::Loop*> chain(const loops::Loop& loop) {
    std::vector<const loops::Loop*> list{&loop};
    while (const auto* inner = std::get_if<loops::Loop>(&list.back()->body[0].content)) list.push_back(inner);
    return list;
  }
  [[nodiscard]] static bool varies_in(const loops::Loop& loop, const loops::IndexExpr& e) {
    for (const loops::Loop* inner : chain(loop)) {
      if (e.uses(inner->var)) return true;
    }
    return false;
  }

  /// Elements of the target that the loops write, when these are known and few; `at_first` becomes the
  /// address of the first.
  using Elements = std::set<std::pair<std::int64_t, unsigned>>;  ///< offset and lanes
  [[nodiscard]] std::optional<Elements> elements_of(const std::vector<const loops::Loop*>& around,
                                                    const loops::Statement& s, std::optional<Affine>& at_first) {
    const loops::IndexExpr& offset = plan_.of(s).target.offset;
    std::int64_t count = 1;
    for (const loops::Loop* loop : around) {
      const bool vectorised = loop->kind == loops::LoopKind::Vectorized;
      if (loop->kind == loops::LoopKind::Parallel) return std::nullopt;
      if (!vectorised && !offset.uses(loop->var)) continue;
      if (!plan_.is_static(*loop)) return std::nullopt;
      const std::int64_t extent = plan_.extent(loop->var);
      count *= vectorised ? static_cast<std::int64_t>(Plan::chunks(extent, plan_.lanes(loop->body)).size()) : extent;
    }
    if (count > 2 * static_cast<std::int64_t>(target_.vector_registers())) return std::nullopt;
    Elements elements;
    bool same_address = true;
    for_each_element(around, s, [&] {
      const Affine at = affine(offset);
      if (!at_first) at_first = at;
      same_address = same_address && at.terms == at_first->terms && at.lane_part == nullptr;
      elements.insert({at.constant, lanes_});
    });
    if (!same_address) return std::nullopt;
    return elements;
  }

  /// Registers for the target of the update in `loop`, when `loop` and what is inside allow it.
  [[nodiscard]] std::optional<RegisterTile> tile_of(const loops::Loop& loop) {
    const loops::Statement* s = only_statement(loop);
    if (s == nullptr || s->kind != loops::Statement::Kind::Update) return std::nullopt;
    RegisterTile tile;
    tile.statement = s;
    tile.loops = chain(loop);
    const auto first =
        std::find_if(tile.loops.begin(), tile.loops.end(), [&](const auto* l) { return plan_.extent(l->var) > 1; });
    if (first == tile.loops.end() || plan_.of(*s).target.offset.uses((*first)->var)) return std::nullopt;
    std::optional<Affine> at;
    if (!elements_of(tile.loops, *s, at)) return std::nullopt;
    tile.partial = lanes_ > 1 && at->uniform();
    for (const loops::Loop* l : tile.loops) {
      const bool vectorised = l->kind == loops::LoopKind::Vectorized && plan_.extent(l->var) > 1;
      tile.partial = tile.partial || (vectorised && !plan_.of(*s).target.offset.uses(l->var));
    }
    return tile;
  }

  ~TileEmitter() = default;
};

}  // namespace tunewright::codegen::detail
