// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/loops/lower/pass.hpp"

namespace tunewright::loops::detail {

/// Creates buffers and determines their layouts.
class StorageLayout : Pass {
 public:
  explicit StorageLayout(Lowered& lowered) : Pass(lowered) {}

  void run() {
    make_buffers();
    pack_buffers();
    arrange_buffers();
    store_core_matrices();
    keep_rows_apart();
    pipeline_buffers();
    store_by_fragments();
  }

 private:
  void make_buffers() {
    nest_.buffer_of.assign(state_.stages.size(), LoopNest::no_buffer);
    nest_.buffers.reserve(state_.stages.size());
    nest_.arguments.reserve(state_.stages.size());
    std::vector<BufferId> outputs;
    std::vector<char> is_read(state_.stages.size(), 0);
    for (const StageInfo& info : info_) {
      if (!info.live) continue;
      for (const TensorId read : info.reads) is_read[read] = 1;
    }
    for (TensorId id = 0; id < state_.stages.size(); ++id) {
      const Stage& stage = state_.stages[id];
      StageInfo& info = info_[id];
      if (!info.live && !stage.is_source()) continue;
      const auto buffer = static_cast<BufferId>(nest_.buffers.size());
      Buffer& b = nest_.buffers.emplace_back();
      b.name = stage.op->name;
      b.tensor = id;
      b.type = stage.op->type;
      b.scope = scope_of(stage, info);
      if (stage.is_source()) {
        b.role = stage.op->role == program::Role::Constant ? BufferRole::Constant : BufferRole::Input;
        b.shape = stage.op->shape();
        b.origin.resize(b.shape.size());
        nest_.arguments.push_back(buffer);
      } else {
        const bool is_output = is_read[id] == 0;
        b.role = is_output ? BufferRole::Output : BufferRole::Temporary;
        b.origin = std::move(info.window.base);  // later passes read it from the buffer
        b.shape = is_output ? stage.op->shape() : stored_extents(stage, info);
        if (is_output) outputs.push_back(buffer);
      }
      nest_.buffer_of[id] = buffer;
    }
    nest_.arguments.insert(nest_.arguments.end(), outputs.begin(), outputs.end());
  }

  /// Extents of the stored window. If tiles do not divide it, the rest of the last tile is stored but unused. Nothing
  /// is stored beyond the end of a loop that another split created before it was split itself: guards exclude that
  /// (`Guard::no_axis`).
  [[nodiscard]] static std::vector<std::int64_t> stored_extents(const Stage& stage, const StageInfo& info) {
    std::vector<std::int64_t> last(stage.iterators.size(), 0);
    for (const IterId iter : stage.order) last[iter] = info.extent[iter] - 1;
    for (auto r = stage.relations.rbegin(); r != stage.relations.rend(); ++r) {
      for (const IterId parent : r->parents) last[parent] = info.extent[parent] - 1;
      const IterId whole = r->parents[0];
      if (r->parents.size() > 1 || whole >= info.op->axes.size()) continue;
      last[whole] = 0;
      for (const IterId part : r->children) last[whole] = last[whole] * info.extent[part] + last[part];
    }
    std::vector<std::int64_t> extents;
    extents.reserve(info.op->rank());
    for (std::size_t d = 0; d < info.op->rank(); ++d) extents.push_back(last[d] + 1);
    return extents;
  }

  /// Memory that is allocated inside a kernel's loops belongs to the thread, or to the block if it is outside the loops
  /// over threads.
  [[nodiscard]] Scope scope_of(const Stage& stage, const StageInfo& info) const {
    if (stage.scope != Scope::Global || stage.location.kind != Location::Kind::At) return stage.scope;
    Scope scope = Scope::Global;
    for (const Var v : info.path) {
      if (schedule::is_thread_index(kinds_[v])) return Scope::Local;
      if (schedule::is_hardware_index(kinds_[v])) scope = Scope::Shared;
    }
    return scope;
  }

  /// See `distance_of_rows`.
  void keep_rows_apart() {
    for (Buffer& buffer : nest_.buffers) {
      const auto element = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
      if (buffer.role != BufferRole::Temporary || !buffer.packing.empty() || buffer.shape.size() < 2) continue;
      if (state_.stages[buffer.tensor].location.kind != Location::Kind::At) continue;
      if (buffer.scope == Scope::Shared || is_in_kernel(buffer.tensor)) continue;  // those have banks, not sets
      buffer.shape.back() = distance_of_rows(buffer.shape.back(), element);
    }
  }

  [[nodiscard]] bool is_in_kernel(TensorId id) const {
    const std::vector<Var>& path = info_[id].path;
    return std::any_of(path.begin(), path.end(), [this](Var v) { return schedule::is_hardware_index(kinds_[v]); });
  }

  void pack_buffers() {
    for (const schedule::Pack& pack : state_.packs) {
      const BufferId id = nest_.buffer_of[pack.tensor];
      if (id == LoopNest::no_buffer) continue;  // inlined: nothing is stored
      Buffer& buffer = nest_.buffers[id];
      if (buffer.role == BufferRole::Output) {
        throw ScheduleError(ScheduleFault::NotPackable, "'" + buffer.name + "' is an output and keeps its layout");
      }
      const StageInfo& consumer = info_[pack.consumer];
      const program::ExprNode* only = nullptr;
      bool several = false;
      for (const StageInfo& reader : info_) {
        if (!reader.live) continue;
        program::visit(reader.op->body, [&](const program::ExprNode& node) {
          if (node.op != Op::Load || node.tensor != pack.tensor) return;
          // A body such as d * d reads one element twice, which is one access.
          several = several || &reader != &consumer || (only != nullptr && only->indices != node.indices);
          only = &node;
        });
      }
      if (only == nullptr || several) {
        throw ScheduleError(
            ScheduleFault::NotPackable,
            "'" + buffer.name + "' must be read at one element an iteration, by the stage it is packed for");
      }
      buffer.packing = packing_for(buffer, *only, pack.consumer);
    }
  }

  /// Applies the requested layouts of temporaries: permutations of whole dimensions.
  void arrange_buffers() {
    for (const schedule::TransformLayout& s : state_.layouts) {
      const BufferId id = nest_.buffer_of[s.stage];
      if (id == LoopNest::no_buffer) continue;  // inlined: nothing is stored
      Buffer& buffer = nest_.buffers[id];
      if (buffer.role != BufferRole::Temporary || !buffer.packing.empty()) {
        throw ScheduleError(ScheduleFault::NotPackable, "'" + buffer.name +
                                                            "' is an output or packed already; arrange "
                                                            "temporaries that are not");
      }
      const std::vector<std::uint32_t>& order = s.orders[s.order];
      const std::int64_t padding = s.paddings[s.padding];
      if (order.empty() || (padding == 0 && std::is_sorted(order.begin(), order.end()))) continue;
      for (const std::uint32_t d : order) buffer.packing.push_back({d, 1, buffer.shape[d]});
      buffer.packing.back().extent += padding;
    }
  }

  /// Stores operands of warp groups as core matrices: the fastest dimension is divided into pieces, and pieces with the
  /// same number are stored consecutively along the next fastest dimension. Pieces are swizzled rows of 128 bytes if
  /// they divide the dimension and no padding is chosen: copies then write whole lines. Otherwise they have 16 bytes,
  /// eight of them are a core matrix, and padding of rows becomes padding of the columns of pieces. Columns of a
  /// multiple of eight are padded in any case: the pieces of a row would meet in the same banks.
  void store_core_matrices() {
    for (TensorId id = 0; id < state_.stages.size(); ++id) {
      const schedule::TensorIntrinsic* intrinsic = state_.stages[id].tensorized.intrinsic;
      if (nest_.buffer_of[id] == LoopNest::no_buffer || intrinsic == nullptr || !intrinsic->by_warp_group()) continue;
      for (const TensorId read : info_[id].reads) {
        Buffer& buffer = nest_.buffers[nest_.buffer_of[read]];
        // So far, each dimension is a single piece.
        if (buffer.scope != Scope::Shared || buffer.shape.size() < 2 || buffer.packing.size() > buffer.shape.size())
          continue;
        for (std::uint32_t d = 0; buffer.packing.size() < buffer.shape.size(); ++d)
          buffer.packing.push_back({d, 1, buffer.shape[d]});
        const auto size = static_cast<std::int64_t>(program::size_in_bytes(buffer.type));
        PackedDimension fastest = buffer.packing.back();
        buffer.packing.pop_back();
        const std::int64_t inside = buffer.shape[fastest.dimension];
        buffer.swizzled = fastest.extent == inside && inside * size % swizzled_row_bytes == 0;
        const std::int64_t piece = (buffer.swizzled ? swizzled_row_bytes : matrix_row_bytes) / size;
        std::int64_t& column = buffer.packing.back().extent;
        column += program::ceil_div(fastest.extent - inside, piece);
        if (!buffer.swizzled && column % 8 == 0) ++column;
        buffer.packing.insert(buffer.packing.end() - 1, {fastest.dimension, piece, program::ceil_div(inside, piece)});
        buffer.packing.push_back({fastest.dimension, 1, piece});
      }
    }
  }

  /// Prefetched copies in shared memory have several tiles, at most as many as their loop has iterations.
  void pipeline_buffers() {
    for (const schedule::Pipeline& s : state_.pipelines) {
      const schedule::Pipelining& chosen = s.choices[s.selected];
      if (chosen.depth == 1) continue;
      const Stage& consumer = state_.stages[s.stage];
      const std::size_t place = consumer.position(s.iter);
      if (place == consumer.order.size() || consumer.iterators[s.iter].annotation != LoopKind::Serial) {
        throw ScheduleError(ScheduleFault::BadAnnotation, "copies cannot run ahead in " +
                                                              schedule::detail::describe_iterator(consumer, s.iter) +
                                                              ", which is no serial loop; pipeline one that stays one");
      }
      std::int64_t iterations = 1;
      for (std::size_t p = place + 1; p-- > 0;) {
        const IterId iter = consumer.order[p];
        if (consumer.iterators[iter].annotation != LoopKind::Serial) break;
        if (info_[s.stage].live) iterations *= info_[s.stage].extent[iter];
      }
      const std::int64_t stages = std::min<std::int64_t>(chosen.depth, iterations);
      for (TensorId id = 0; id < state_.stages.size(); ++id) {
        const BufferId buffer = nest_.buffer_of[id];
        const schedule::Location& at = state_.stages[id].location;
        if (buffer == LoopNest::no_buffer || at.kind != Location::Kind::At || at.stage != s.stage ||
            at.iter != s.iter || state_.stages[id].op->has_reduction())
          continue;
        if (nest_.buffers[buffer].scope != Scope::Shared) continue;
        nest_.buffers[buffer].stages = static_cast<std::uint32_t>(stages);
        nest_.buffers[buffer].asynchronous = chosen.asynchronous && stages > 1;
      }
    }
  }

  /// Stores sums that tensor instructions keep in fragments one fragment after the other.
  void store_by_fragments() {
    for (TensorId id = 0; id < state_.stages.size(); ++id) {
      const Stage& stage = state_.stages[id];
      if (nest_.buffer_of[id] == LoopNest::no_buffer || stage.tensorized.intrinsic == nullptr) continue;
      Buffer& buffer = nest_.buffers[nest_.buffer_of[id]];
      const std::size_t place = stage.position(stage.tensorized.iter);
      if (buffer.scope != Scope::Accumulator || place + 1 >= stage.order.size() || !buffer.packing.empty()) continue;
      const auto dimension_of = [&](IterId iter) {
        std::uint32_t d = 0;
        const std::optional<Var> var = info_[id].var[iter];
        while (d < buffer.shape.size() && !(var && info_[id].axis_values[d].uses(*var))) ++d;
        return d;
      };
      const std::uint32_t row = dimension_of(stage.order[place]), column = dimension_of(stage.order[place + 1]);
      if (row == column || row >= buffer.shape.size() || column >= buffer.shape.size()) continue;
      const schedule::TensorIntrinsic& intrinsic = *stage.tensorized.intrinsic;
      for (std::uint32_t d = 0; d < buffer.shape.size(); ++d) {
        if (d != row && d != column) buffer.packing.push_back({d, 1, buffer.shape[d]});
      }
      buffer.packing.push_back({row, intrinsic.m, program::ceil_div(buffer.shape[row], intrinsic.m)});
      buffer.packing.push_back({column, intrinsic.n, program::ceil_div(buffer.shape[column], intrinsic.n)});
      buffer.packing.push_back({row, 1, intrinsic.m});
      buffer.packing.push_back({column, 1, intrinsic.n});
    }
  }

  struct Piece {
    std::size_t place;  ///< position of its loop
    PackedDimension dimension;
  };

  using Pieces = boost::container::small_vector<Piece, 8>;

  /// The storage order that follows the consumer's loops; dimensions whose index is not a mixed-radix number of loop
  /// variables stay whole and come first.
  [[nodiscard]] std::vector<PackedDimension> packing_for(const Buffer& buffer, const program::ExprNode& load,
                                                         TensorId consumer) const {
    const StageInfo& info = info_[consumer];
    std::vector<Var> loops = info.path;
    loops.reserve(loops.size() + state_.stages[consumer].order.size());
    for (const IterId iter : state_.stages[consumer].order) {
      if (info.var[iter]) loops.push_back(*info.var[iter]);
    }
    std::vector<PackedDimension> order;
    Pieces pieces;
    for (std::uint32_t d = 0; d < load.indices.size(); ++d) {
      const IndexExpr index =
          load.indices[d].substitute([&](Var axis) -> const IndexExpr& { return info.axis_values[axis]; }, range_of());
      const Pieces own = pieces_of(d, index - buffer.origin[d], buffer.shape[d], loops);
      if (own.empty()) order.push_back({d, 1, buffer.shape[d]});
      pieces.insert(pieces.end(), own.begin(), own.end());
    }
    sort_few(pieces, [](const Piece& a, const Piece& b) {
      if (a.place != b.place) return a.place < b.place;
      if (a.dimension.divisor != b.dimension.divisor) return a.dimension.divisor > b.dimension.divisor;
      return a.dimension.dimension < b.dimension.dimension;
    });
    order.reserve(order.size() + pieces.size());
    for (const Piece& piece : pieces) order.push_back(piece.dimension);
    return order;
  }

  /// The index of dimension `d` as a mixed-radix number of `loops`, least significant digit first; empty if it is not
  /// one or does not cover the dimension.
  [[nodiscard]] Pieces pieces_of(std::uint32_t d, const IndexExpr& index, std::int64_t extent,
                                 const std::vector<Var>& loops) const {
    Pieces pieces;
    if (index.constant() != 0) return {};
    for (const IndexExpr::Term& term : index.terms()) {
      // A fused loop occurs as a quotient or remainder of its variable, and counts like a separate loop.
      const bool plain = term.kind == IndexExpr::Kind::Variable;
      const std::optional<Var> var = plain ? std::optional<Var>(term.var) : term.numerator->as_variable();
      const auto place = var ? std::find(loops.begin(), loops.end(), *var) : loops.end();
      if (place == loops.end() || term.coefficient <= 0) return {};
      IndexExpr::Term unit = term;
      unit.coefficient = 1;
      pieces.push_back({static_cast<std::size_t>(place - loops.begin()),
                        {d, term.coefficient, IndexExpr::from_term(unit).range(range_of()).max + 1}});
    }
    sort_few(pieces, [](const Piece& a, const Piece& b) { return a.dimension.divisor < b.dimension.divisor; });
    std::int64_t expected = 1;
    for (const Piece& piece : pieces) {
      if (piece.dimension.divisor != expected) return {};
      expected *= piece.dimension.extent;
    }
    return expected >= extent ? pieces : Pieces{};
  }
};

}  // namespace tunewright::loops::detail
