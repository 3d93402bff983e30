// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/summary/work.hpp"

namespace tunewright::loops {

/// Buffers and the parts of their layouts that drafts read, as `loops::detail::StorageLayout` computes them.
class SummaryBuffers : SummaryPass {
 public:
  explicit SummaryBuffers(SummaryWork& all) : SummaryPass(all), all_(all) {}

  /// False for schedules that lowering rejects.
  [[nodiscard]] bool run();

 private:
  [[nodiscard]] BufferSummary& buffer_of(TensorId id) { return summary_.buffers[plan_.stages[id].buffer]; }

  /// The default scope of a window.
  [[nodiscard]] static loops::Scope scope_inside(const Work& w);

  using Piece = SummaryWork::Piece;
  using Pieces = std::vector<Piece>;

  void pack(TensorId id);

  static bool is_inside(const Piece& x, const Piece& y) noexcept;

  /// Numbers the loops of a stage and the surrounding ones, from the innermost.
  void find_places_around(TensorId reader);

  /// False if the index is not a mixed-radix number of the surrounding loops.
  [[nodiscard]] bool add_pieces(std::uint32_t d, const FlatIndex& index, std::int64_t extent, Pieces& all) const;

  /// False if it is not a layout, or a second one.
  [[nodiscard]] bool arrange(const schedule::TransformLayout& s);

  /// Pads the rows of an attached stage as lowering does.
  void keep_rows_apart(TensorId id);

  bool pipeline(const schedule::Pipeline& s);

  SummaryWork& all_;
};

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

#include "tunewright/core/order.hpp"
#include "tunewright/schedule/apply/storage_steps.hpp"

namespace tunewright::loops {

TUNEWRIGHT_INLINE bool SummaryBuffers::run() {
  summary_.buffers = plan_.buffers;
  for (const TensorId id : plan_.stored) {
    BufferSummary& b = buffer_of(id);
    if (b.role == loops::BufferRole::Temporary) b.shape = std::span(work_[id].reached).first(plan_.stages[id].rank);
    if (plan_.stages[id].is_attached && b.scope == loops::Scope::Global) b.scope = scope_inside(work_[id]);
  }
  // In this order, because packed buffers are not padded.
  for (const schedule::Pack& pack : plan_.state.packs)
    if (plan_.stages[pack.tensor].buffer != loops::LoopNest::no_buffer) this->pack(pack.tensor);
  for (const std::uint32_t step : plan_.arranging)
    if (!arrange(*std::get_if<schedule::TransformLayout>(&all_.candidate->steps[step]))) return false;
  for (const TensorId id : plan_.stored)
    if (plan_.stages[id].is_attached) keep_rows_apart(id);
  for (const std::uint32_t step : plan_.pipelining)
    if (!pipeline(*std::get_if<schedule::Pipeline>(&all_.candidate->steps[step]))) return false;
  for (const TensorId id : plan_.stored) {
    BufferSummary& b = buffer_of(id);
    if (plan_.stages[id].is_attached) b.set_origin(work_[id].base);
    if (b.role == loops::BufferRole::Temporary && !b.is_packed()) {
      b.elements = 1;
      for (const std::int64_t extent : b.shape) b.elements *= extent;
    }
    b.elements *= b.stages;
  }
  return true;
}

TUNEWRIGHT_INLINE loops::Scope SummaryBuffers::scope_inside(const Work& w) {
  if (w.is_inside(LoopKind::ThreadX, LoopKind::ThreadZ)) return loops::Scope::Local;
  return w.is_inside(LoopKind::BlockX, LoopKind::BlockZ) ? loops::Scope::Shared : loops::Scope::Global;
}

TUNEWRIGHT_INLINE void SummaryBuffers::pack(TensorId id) {
  const StagePlan& plan = plan_.stages[id];
  if (plan.packed_by.empty()) return;
  BufferSummary& b = buffer_of(id);
  find_places_around(plan.packed_by[0].reader);
  b.elements = 1;
  std::vector<PackedDimension>& packing = work_[id].packing;
  packing.clear();
  Pieces& all = all_.pieces;
  all.clear();
  for (std::uint32_t d = 0; d < plan.packed_by.size(); ++d) {
    FlatIndex room;
    const FlatIndex* index = &over_loops(plan.packed_by[d], room);
    if (plan.is_attached) {
      if (index != &room) room = *index;
      summary_.indices.add(room, work_[id].base[d], -1);
      index = &room;
    }
    const std::size_t first = all.size();
    if (!add_pieces(d, *index, b.shape[d], all)) {
      all.resize(first);
      b.elements *= b.shape[d];
      packing.push_back({d, 1, b.shape[d]});
    }
  }
  sort_few(all, [](const Piece& x, const Piece& y) { return is_inside(y, x); });
  for (const Piece& piece : all) {
    b.elements *= piece.dimension.extent;
    packing.push_back(piece.dimension);
  }
  b.packing = packing;
}

TUNEWRIGHT_INLINE bool SummaryBuffers::is_inside(const Piece& x, const Piece& y) noexcept {
  if (x.place != y.place) return x.place < y.place;
  if (x.dimension.divisor != y.dimension.divisor) return x.dimension.divisor < y.dimension.divisor;
  return x.dimension.dimension > y.dimension.dimension;
}

TUNEWRIGHT_INLINE void SummaryBuffers::find_places_around(TensorId reader) {
  all_.place_around.assign(all_.variables, SchedulePlan::none);
  std::uint32_t place = 0;
  const std::vector<SchedulePlan::Loop>& loops = plan_.stages[reader].loops;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    if (const Var var = work_[reader].var[loop->iter]; var != no_var) all_.place_around[var] = place++;
  for_each_loop_around(reader, [&](Var var, const auto&) { all_.place_around[var] = place++; });
}

TUNEWRIGHT_INLINE bool SummaryBuffers::add_pieces(std::uint32_t d, const FlatIndex& index, std::int64_t extent,
                                                  Pieces& all) const {
  if (index.constant != 0 || index.count == 0) return false;
  const std::size_t first = all.size();
  for (const FlatIndex::Term& term : index.terms()) {
    Var var = term.of;
    if (term.kind != FlatIndex::Kind::Variable) {
      const FlatIndex& numerator = summary_.indices.numerator(term);
      const bool plain = numerator.constant == 0 && numerator.count == 1 && numerator.terms()[0].coefficient == 1 &&
                         numerator.terms()[0].kind == FlatIndex::Kind::Variable;
      if (!plain) return false;
      var = numerator.terms()[0].of;
    }
    const std::uint32_t place = all_.place_around[var];
    if (place == SchedulePlan::none || term.coefficient <= 0) return false;
    all.push_back({place, {d, term.coefficient, summary_.indices.range(term).max + 1}});
  }
  std::span<Piece> own(all.data() + first, all.size() - first);
  sort_few(own, [](const Piece& a, const Piece& b) { return a.dimension.divisor < b.dimension.divisor; });
  std::int64_t expected = 1;
  for (const Piece& piece : own) {
    if (piece.dimension.divisor != expected) return false;
    expected *= piece.dimension.extent;
  }
  return expected >= extent;
}

TUNEWRIGHT_INLINE bool SummaryBuffers::arrange(const schedule::TransformLayout& s) {
  if (s.order >= s.orders.size() || s.padding >= s.paddings.size()) return false;
  const std::vector<std::uint32_t>& order = s.orders[s.order];
  const std::int64_t padding = s.paddings[s.padding];
  std::uint64_t named = 0;
  for (const std::uint32_t d : order) named |= d < 64 ? std::uint64_t{1} << d : 0;
  const std::size_t rank = plan_.state.stages[s.stage].op->rank();
  if (padding < 0 || padding > schedule::detail::max_padding || order.size() != rank || rank >= 64 ||
      named != (std::uint64_t{1} << rank) - 1)
    return false;
  if (plan_.stages[s.stage].buffer == loops::LoopNest::no_buffer) return true;
  BufferSummary& b = buffer_of(s.stage);
  if (b.is_packed()) return false;  // has a layout already
  if (order.empty() || (padding == 0 && std::is_sorted(order.begin(), order.end()))) return true;
  std::vector<PackedDimension>& packing = work_[s.stage].packing;
  packing.clear();
  for (const std::uint32_t d : order) packing.push_back({d, 1, b.shape[d]});
  packing.back().extent += padding;
  b.elements = 1;
  for (const PackedDimension& piece : packing) b.elements *= piece.extent;
  b.packing = packing;
  return true;
}

TUNEWRIGHT_INLINE void SummaryBuffers::keep_rows_apart(TensorId id) {
  const BufferSummary& b = buffer_of(id);
  if (b.role != loops::BufferRole::Temporary || b.is_packed() || b.shape.size() < 2) return;
  if (b.scope == loops::Scope::Shared || work_[id].is_inside(LoopKind::BlockX, LoopKind::ThreadZ)) return;
  std::int64_t& row = work_[id].reached[b.shape.size() - 1];
  row = loops::distance_of_rows(row, static_cast<std::int64_t>(b.element_bytes));
}

TUNEWRIGHT_INLINE bool SummaryBuffers::pipeline(const schedule::Pipeline& s) {
  if (s.selected >= s.choices.size()) return false;
  const schedule::Pipelining& chosen = s.choices[s.selected];
  if (chosen.depth < 1 || chosen.depth > schedule::max_pipeline_depth || (chosen.asynchronous && chosen.depth == 1))
    return false;
  if (chosen.depth == 1) return true;
  const schedule::Stage& consumer = plan_.state.stages[s.stage];
  const std::size_t place = consumer.position(s.iter);
  if (place == consumer.order.size() || consumer.iterators[s.iter].annotation != LoopKind::Serial) return false;
  std::int64_t iterations = 1;
  for (std::size_t p = place + 1; p-- > 0;) {
    const IterId iter = consumer.order[p];
    if (consumer.iterators[iter].annotation != LoopKind::Serial) break;
    if (plan_.stages[s.stage].is_live) iterations *= work_[s.stage].extent[iter];
  }
  const std::int64_t stages = std::min<std::int64_t>(chosen.depth, iterations);
  for (const TensorId id : plan_.stages[s.stage].inside) {
    if (plan_.stages[id].place != place || plan_.state.stages[id].op->has_reduction()) continue;
    BufferSummary& b = buffer_of(id);
    if (b.scope != loops::Scope::Shared) continue;
    b.stages = static_cast<std::uint32_t>(stages);
    b.asynchronous = chosen.asynchronous && stages > 1;
  }
  return true;
}

}  // namespace tunewright::loops

#endif
