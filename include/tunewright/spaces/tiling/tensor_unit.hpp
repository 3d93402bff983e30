// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/tiling/instruction_tile.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"
#include "tunewright/spaces/tiling/product_axes.hpp"

/// Matrix products, batched products and convolutions with the tensor instructions of a CPU.
namespace tunewright::spaces::tiling {

/// Tiles a product for a tensor instruction of the target: S0 S1 R0 S2 R1 S3 around one instruction, where S3 counts
/// instructions in registers: for accumulators in tile registers four, as two by two, in convolutions also four by one,
/// and one by four if tiles do not pair. Constants are packed ahead of time in the order in which the instruction reads
/// them. Other operands are copied into that order, which is optional for instructions of one row. Elementwise
/// producers are computed into the copies; elementwise readers follow the tiling.
///
/// If an instruction divides the product, no other tiling is tried. Instructions of several rows are tried first.
/// Iterations that do not fill them run as loops or are padded: then both operands are copied, with zeros beyond their
/// ends, and sums are written through a separate tile.
struct TensorizeProducts {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// One way to compute a product with an instruction.
  struct Use {
    const schedule::TensorIntrinsic* intrinsic = nullptr;
    ProductAxes axes;
    LeftOver left_over = LeftOver::InLoops;
    bool divides = false;
  };
  /// Maximum number of row tiles and column tiles in registers.
  struct Block {
    std::int64_t down = 1;
    std::int64_t across = 1;
  };
  [[nodiscard]] static std::vector<Block> blocks(const program::Operator& op,
                                                 const schedule::TensorIntrinsic& intrinsic, const ProductAxes& axes);
  /// Whether the row tiles fill the block without a remainder.
  [[nodiscard]] static bool fills(const program::Operator& op, const InstructionTile& block);
  [[nodiscard]] static bool reduces_twice(const program::Operator& op);

  /// The uses of the target's instructions up to the first that divides the product, those of several rows first. Only
  /// those are padded: for vector instructions, the remaining loops cost little.
  [[nodiscard]] static std::vector<Use> uses_of(const program::Operator& op, const Target& target);

  static Derivation tensorized(Derivation d, TensorId id, InstructionTile tile, TensorId reader,
                               std::size_t fuse_level);

  /// `reader` is `id` if no other stage reads the sums.
  static Derivation padded(Derivation d, TensorId id, InstructionTile tile, TensorId reader, std::size_t fuse_level);

  static Derivation tiled(Derivation d, TensorId id, const InstructionTile& tile, TensorId reader,
                          std::size_t fuse_level, const std::vector<TensorId>& copies);

  /// Whether a copy is of an input or constant, which the stage can read directly.
  static bool is_plain(const ScheduleBuilder& s, TensorId copy);
};

}  // namespace tunewright::spaces::tiling

#if TUNEWRIGHT_DEFINES(spaces)

#include "tunewright/program/analysis.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"

namespace tunewright::spaces::tiling {

TUNEWRIGHT_INLINE Answer TensorizeProducts::meets(const Derivation& d, TensorId id, const Target& target) const {
  const program::Operator& op = *d.builder.state().stages[id].op;
  const std::vector<Use> all = uses_of(op, target);
  if (all.empty()) return Answer::Skip;
  return all.back().divides ? Answer::ApplyAndSkipRest : Answer::Apply;
}

TUNEWRIGHT_INLINE void TensorizeProducts::apply(const Derivation& d, TensorId id, const Target& target,
                                                std::vector<Derivation>& out) const {
  const State& state = d.builder.state();
  const TensorId reader = elementwise_reader(state, id);
  const bool follows = reader != id && state.stages[reader].is_untouched();
  // The step that made this cache has padded its sums.
  const bool is_cache = is_cached(d, id);
  for (const Use& use : uses_of(*state.stages[id].op, target)) {
    for (const Block& block : blocks(*state.stages[id].op, *use.intrinsic, use.axes)) {
      const InstructionTile tile{use.intrinsic, use.axes, block.down, block.across};
      for (const std::size_t fuse_level : {std::size_t{1}, std::size_t{2}}) {
        if (use.left_over == LeftOver::Padded) {
          if (!is_cache) out.push_back(padded(d, id, tile, follows ? reader : id, fuse_level));
        } else if (follows) {
          out.push_back(tensorized(d, id, tile, reader, fuse_level));
        } else if (fuse_level == 1) {
          out.push_back(tensorized(d, id, tile, id, 0));
        }
      }
    }
  }
}

TUNEWRIGHT_INLINE std::vector<TensorizeProducts::Block> TensorizeProducts::blocks(
    const program::Operator& op, const schedule::TensorIntrinsic& intrinsic, const ProductAxes& axes) {
  if (intrinsic.m == 1) return {{64, 64}};
  // Two by two needs the fewest loads per product. Four by one reads the columns least often; these are most of the
  // reads if windows of the rows overlap, as in a convolution.
  std::vector<Block> found{{2, 2}};
  const bool pairs_across = op.axes[axes.column].extent % (2 * intrinsic.n) == 0;
  if (fills(op, {&intrinsic, axes, 4, 1}) && (reduces_twice(op) || !pairs_across)) {
    found.push_back({4, 1});
  } else if (!pairs_across || !fills(op, {&intrinsic, axes, 2, 1})) {
    found.push_back({1, 4});
  }
  return found;
}

TUNEWRIGHT_INLINE bool TensorizeProducts::fills(const program::Operator& op, const InstructionTile& block) {
  const std::vector<std::int64_t> most = parts_in_registers(op, block);
  std::int64_t down = 1;
  for (IterId axis = 0; axis <= block.axes.row; ++axis)
    down *= tiles_down(op, block.axes, axis) % most[axis] == 0 ? most[axis] : 1;
  return down == block.down;
}

TUNEWRIGHT_INLINE bool TensorizeProducts::reduces_twice(const program::Operator& op) {
  return std::count_if(op.axes.begin() + static_cast<std::ptrdiff_t>(op.rank()), op.axes.end(),
                       [](const program::Axis& axis) { return axis.extent > 1; }) > 1;
}

TUNEWRIGHT_INLINE std::vector<TensorizeProducts::Use> TensorizeProducts::uses_of(const program::Operator& op,
                                                                                 const Target& target) {
  std::vector<Use> found;
  if (target.kind != DeviceKind::Cpu) return found;
  for (const bool several_rows : {true, false}) {
    for (const schedule::TensorIntrinsic& intrinsic : schedule::tensor_intrinsics) {
      if ((intrinsic.m > 1) != several_rows || !schedule::is_on(intrinsic, target)) continue;
      if (const auto axes = product_axes(op, intrinsic)) {
        found.push_back({&intrinsic, *axes, LeftOver::InLoops, divides(op, intrinsic, *axes)});
        if (found.back().divides) return found;
      }
      if (!several_rows) continue;
      if (const auto axes = product_axes(op, intrinsic, LeftOver::Padded))
        found.push_back({&intrinsic, *axes, LeftOver::Padded, false});
    }
  }
  return found;
}

TUNEWRIGHT_INLINE Derivation TensorizeProducts::tensorized(Derivation d, TensorId id, InstructionTile tile,
                                                           TensorId reader, std::size_t fuse_level) {
  ScheduleBuilder& s = d.builder;
  ProductAxes& axes = tile.axes;
  // Copies change the reads of the stage, so they are made before its loops are split.
  const bool pack_ahead = s.state().stages[axes.columns].op->role == program::Role::Constant &&
                          readers(s.state(), axes.columns).size() == 1;
  std::vector<TensorId> copies;
  if (!pack_ahead) axes.columns = copies.emplace_back(s.cache_read(axes.columns, id, Scope::Local));
  if (!s.state().stages[axes.rows].is_source() && program::inlineable(*s.state().stages[axes.rows].op))
    copies.push_back(s.cache_read(axes.rows, id, Scope::Local));
  return tiled(std::move(d), id, tile, reader, fuse_level, copies);
}

TUNEWRIGHT_INLINE Derivation TensorizeProducts::padded(Derivation d, TensorId id, InstructionTile tile, TensorId reader,
                                                       std::size_t fuse_level) {
  ScheduleBuilder& s = d.builder;
  ProductAxes& axes = tile.axes;
  const TensorId sums = reader == id ? s.cache_write(id, Scope::Local) : id;
  axes.columns = s.cache_read(axes.columns, sums, Scope::Local);
  axes.rows = s.cache_read(axes.rows, sums, Scope::Local);
  axes.columns_are_neighbours = false;  // without a copy they are not padded
  const program::Operator& op = *s.state().stages[sums].op;
  s.pad(sums, padded_multiples(op, *tile.intrinsic, axes));
  return tiled(std::move(d), sums, tile, reader, fuse_level, {axes.columns, axes.rows});
}

TUNEWRIGHT_INLINE Derivation TensorizeProducts::tiled(Derivation d, TensorId id, const InstructionTile& tile,
                                                      TensorId reader, std::size_t fuse_level,
                                                      const std::vector<TensorId>& copies) {
  ScheduleBuilder& s = d.builder;
  const ProductAxes& axes = tile.axes;
  const Tiled loops = tile_around(s, id, tile);
  if (reader == id) {
    s.parallel(id, s.choose_fuse(id, columns_first(loops, 0)));
  } else {
    follow_instructions(s, id, reader, loops, fuse_level, tile);
  }
  for (const TensorId copy : copies) {
    // An instruction of several rows reads only the layout of the copy.
    const bool may_stay = axes.m == 1 && copy == axes.columns && axes.columns_are_neighbours && is_plain(s, copy);
    std::vector<Location> choices;
    if (may_stay) choices.push_back({Location::Kind::Inline, 0, 0});
    for (const Location& point : attach_points(s.state(), id)) {
      if (!may_vanish(s, point)) choices.push_back(point);
    }
    if (choices.empty()) choices.push_back({Location::Kind::Root, 0, 0});
    s.choose_location(copy, std::move(choices));
    if (copy == axes.columns) {
      interleave(s, copy, tile);
    } else {
      const auto last = static_cast<IterId>(s.state().stages[copy].op->rank() - 1);
      s.vectorize(copy, s.split(copy, last, {tile.intrinsic->n})[1]);
    }
  }
  s.pack(axes.columns, id);
  d.place = place_of(s.state(), id);
  return d;
}

TUNEWRIGHT_INLINE bool TensorizeProducts::is_plain(const ScheduleBuilder& s, TensorId copy) {
  const program::Operator& op = *s.state().stages[copy].op;
  return s.state().stages[program::reads_of(op).front().tensor].is_source();
}

}  // namespace tunewright::spaces::tiling

#endif
