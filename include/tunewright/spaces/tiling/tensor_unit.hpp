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

/// Matrix products, batches of them and convolutions by the tensor instructions of a CPU.
namespace tunewright::spaces::tiling {

/// Tiles a product for a tensor instruction of the target: S0 S1 R0 S2 R1 S3 around one instruction, where S3 counts
/// instructions in registers: of four accumulators that are tiles, two by two, in convolutions also four by one, and
/// one by four where tiles do not pair. Constants are packed ahead of time in the order in which it reads them, other
/// operands are copied into that order, which instructions for one row can do without; elementwise producers are
/// computed into copies, elementwise readers follow the tiling.
///
/// Where an instruction divides the product no other tiling is tried. Instructions for several rows come first. What
/// these leave over is run by loops, or padded: both operands are copied then, with zeros beyond what there is, and
/// sums leave through a tile of their own.
struct TensorizeProducts {
  [[nodiscard]] Answer meets(const Derivation& d, TensorId id, const Target& target) const;
  void apply(const Derivation& d, TensorId id, const Target& target, std::vector<Derivation>& out) const;

 private:
  /// One way to compute a product by an instruction.
  struct Use {
    const schedule::TensorIntrinsic* intrinsic = nullptr;
    ProductAxes axes;
    LeftOver left_over = LeftOver::InLoops;
    bool divides = false;
  };
  /// Most parts of the rows and of the columns in registers.
  struct Block {
    std::int64_t down = 1;
    std::int64_t across = 1;
  };
  [[nodiscard]] static std::vector<Block> blocks(const program::Operator& op,
                                                 const schedule::TensorIntrinsic& intrinsic, const ProductAxes& axes);
  /// Whether there are as many tiles down as the block has, with none left over.
  [[nodiscard]] static bool fills(const program::Operator& op, const InstructionTile& block);
  [[nodiscard]] static bool reduces_twice(const program::Operator& op);

  /// Those by instructions that the target has, down to the first that divides the product, those for several rows
  /// first. Only those are padded: what vectors leave over costs little.
  [[nodiscard]] static std::vector<Use> uses_of(const program::Operator& op, const Target& target);

  static Derivation tensorized(Derivation d, TensorId id, InstructionTile tile, TensorId reader,
                               std::size_t fuse_level);

  /// `reader` is `id` where nobody else takes the sums.
  static Derivation padded(Derivation d, TensorId id, InstructionTile tile, TensorId reader, std::size_t fuse_level);

  static Derivation tiled(Derivation d, TensorId id, const InstructionTile& tile, TensorId reader,
                          std::size_t fuse_level, const std::vector<TensorId>& copies);

  /// Whether a copy is of an input or constant: then the stage can read that itself.
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
  // Whose sums have been padded on the way to a cache of their own.
  const bool is_cache = std::find(d.cached.begin(), d.cached.end(), id) != d.cached.end();
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
  // Two by two read least for what they multiply. Four down read the columns least often, which are most of what is
  // read where windows of the rows overlap, as in a convolution.
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
  if (target.kind != DeviceKind::Cpu || target.isa != Isa::Avx512) return found;
  for (const bool several_rows : {true, false}) {
    for (const schedule::TensorIntrinsic& intrinsic : schedule::tensor_intrinsics) {
      if ((intrinsic.m > 1) != several_rows || !target.has(intrinsic.unit)) continue;
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
  // Copies change what the stage reads, and so come before its loops.
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
  axes.columns_are_neighbours = false;  // as they are they lack the zeros
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
    // An instruction for several rows reads no other layout than that of the copy.
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
