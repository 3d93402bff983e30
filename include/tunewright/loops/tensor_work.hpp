// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tunewright/detail/config.hpp"
#include "tunewright/loops/tensor_statements.hpp"

namespace tunewright::loops {

/// A loop around a statement, for one worker.
struct WorkerLoop {
  std::int64_t iterations = 1;
  LoopKind kind = LoopKind::Serial;
  std::int64_t unroll_limit = 0;  ///< of this loop and the surrounding ones
};

/// The work of one worker in one run for a statement that tensor instructions compute: integer counts.
struct TensorWork {
  double products = 0;         ///< multiplication instructions
  double chained = 0;          ///< of these: length of the dependency chain of one accumulator
  double lines_loaded = 0;     ///< of factors into tile registers, rows of 64 bytes
  double sums_loaded = 0;      ///< lines, or vectors
  double sums_stored = 0;      ///< lines, or vectors
  double vectors_loaded = 0;   ///< of factors, and of copied data
  double vectors_stored = 0;   ///< by copies
  double shuffles = 0;         ///< to interleave vectors
  double sign_operations = 0;  ///< flips of factors, and subtractions from sums, if both factors have a sign or none
  double sign_products = 0;    ///< instructions that sum what is subtracted
  double widening_operations = 0;  ///< shifts and masks that make 16-bit integers of vectors of bytes
  double bodies = 0;               ///< evaluations of copies' bodies, each for a vector
};

/// Counts the instructions that replace the loops of `tensor`, over all surrounding loops.
class TensorWorkCount {
 public:
  TensorWorkCount(const TensorStatement& tensor, std::span<const WorkerLoop> open, std::int64_t vector_registers)
      : tensor_(tensor), open_(open), first_(open.size() - tensor.own), registers_(vector_registers) {}

  [[nodiscard]] TensorWork count() const;

 private:
  /// Factors are loaded once per straight-line block of products; sums each time the loops during which they stay in
  /// registers are entered.
  [[nodiscard]] TensorWork tile_registers() const;

  /// In the unrolled loops around the instruction, factors are loaded once if the sums fit the registers: a row as a
  /// broadcast, columns as one vector, or as one vector per term with shuffles to interleave them. Sums stay in
  /// registers during the loops outside that do not move them and contain nothing else.
  [[nodiscard]] TensorWork rows() const;

  /// One vector per term of all columns, the shuffles that join them, and one store.
  [[nodiscard]] TensorWork interleaving() const;

  /// Iterations of the loops in `of` from depth `from` to `to`.
  [[nodiscard]] double iterations(std::size_t from, std::size_t to, DepthSet of = ~DepthSet{0}) const;
  [[nodiscard]] static bool is_straight(LoopKind kind) {
    return kind == LoopKind::Unrolled || kind == LoopKind::Vectorized;
  }

  /// Outermost loop of the straight-line code around the instruction.
  [[nodiscard]] std::size_t straight_from() const;

  const TensorStatement& tensor_;
  std::span<const WorkerLoop> open_;  // outermost first
  std::size_t first_;                 // depth of the instruction
  std::int64_t registers_;
};

[[nodiscard]] inline TensorWork tensor_work(const TensorStatement& tensor, std::span<const WorkerLoop> open,
                                            std::int64_t vector_registers) {
  return TensorWorkCount(tensor, open, vector_registers).count();
}

}  // namespace tunewright::loops

#if TUNEWRIGHT_DEFINES(loops)

namespace tunewright::loops {

TUNEWRIGHT_INLINE TensorWork TensorWorkCount::count() const {
  if (tensor_.kind == TensorStatement::Kind::Interleaving) return interleaving();
  return tensor_.intrinsic->m > 1 ? tile_registers() : rows();
}

TUNEWRIGHT_INLINE TensorWork TensorWorkCount::tile_registers() const {
  const std::size_t kept = first_ - tensor_.kept;
  const std::size_t block = std::max(kept, straight_from());
  const auto m = static_cast<double>(tensor_.m);
  TensorWork work;
  work.products = iterations(0, first_);
  work.chained = iterations(0, block) * iterations(block, first_, ~tensor_.moves_sums);
  work.lines_loaded =
      iterations(0, block) * (iterations(block, first_, tensor_.moves_rows) * m +
                              iterations(block, first_, tensor_.moves_columns) * static_cast<double>(tensor_.steps));
  work.sums_stored = iterations(0, kept) * iterations(kept, first_, tensor_.moves_sums) * m;
  work.sums_loaded = tensor_.starts ? 0 : work.sums_stored;
  return work;
}

TUNEWRIGHT_INLINE TensorWork TensorWorkCount::rows() const {
  const std::size_t outermost = first_ - tensor_.around;
  std::size_t tile = first_;
  while (tile > outermost && is_straight(open_[tile - 1].kind)) --tile;
  const double runs = iterations(0, tile);
  const double sums = iterations(tile, first_, tensor_.moves_sums) * static_cast<double>(tensor_.vectors_of_sums);
  const bool flips = tensor_.row_widening == 0 && tensor_.intrinsic->k == 4 && tensor_.same_signs;
  const double column_sums = flips ? iterations(tile, first_, tensor_.moves_sums & tensor_.moves_columns) : 0;
  const bool fit = sums + column_sums + 2 <= static_cast<double>(registers_);
  const DepthSet all = ~DepthSet{0};
  const double row_loads = runs * iterations(tile, first_, fit ? tensor_.moves_rows : all);
  const double blocks = runs * iterations(tile, first_, fit ? tensor_.moves_columns : all);
  const double terms = tensor_.interleaved ? 1 : static_cast<double>(tensor_.terms);
  TensorWork work;
  work.products = runs * iterations(tile, first_);
  work.chained = runs * iterations(tile, first_, ~tensor_.moves_sums);
  work.vectors_loaded = row_loads + blocks * terms;
  work.shuffles = blocks * (terms - 1);
  if (tensor_.row_widening > 0) {
    work.widening_operations =
        row_loads * static_cast<double>(tensor_.row_widening) + blocks * static_cast<double>(tensor_.column_widening);
  }
  std::size_t kept = tile;
  while (fit && kept > outermost && (tensor_.moves_sums >> (kept - 1) & 1U) == 0) --kept;
  work.sums_loaded = work.sums_stored = iterations(0, kept) * sums;
  if (flips) {
    work.sign_operations = row_loads + work.sums_stored;
    work.sign_products = blocks;
  }
  return work;
}

TUNEWRIGHT_INLINE TensorWork TensorWorkCount::interleaving() const {
  const double runs = iterations(0, first_);
  TensorWork work;
  work.bodies = runs * static_cast<double>(tensor_.terms);
  work.vectors_loaded = work.bodies * static_cast<double>(tensor_.vectors_read);
  work.shuffles = runs * static_cast<double>(tensor_.terms - 1);
  work.vectors_stored = runs;
  return work;
}

TUNEWRIGHT_INLINE double TensorWorkCount::iterations(std::size_t from, std::size_t to, DepthSet of) const {
  double product = 1;
  for (std::size_t l = from; l < to; ++l)
    if ((of >> l & 1U) != 0) product *= static_cast<double>(open_[l].iterations);
  return product;
}

TUNEWRIGHT_INLINE std::size_t TensorWorkCount::straight_from() const {
  constexpr double most = 1024;  // instructions
  std::size_t from = first_;
  for (; from + tensor_.around > first_; --from) {
    const WorkerLoop& loop = open_[from - 1];
    const double instances = iterations(from - 1, first_);
    const bool is_short =
        loop.kind == LoopKind::Serial && !tensor_.guarded && instances <= static_cast<double>(loop.unroll_limit);
    const bool moves = (tensor_.moves_sums >> (from - 1) & 1U) != 0;
    const bool too_many =
        moves && iterations(from - 1, first_, tensor_.moves_sums) > 2 * static_cast<double>(registers_);
    if (loop.iterations != 1 && ((loop.kind != LoopKind::Unrolled && !is_short) || too_many || instances > most)) break;
  }
  return from;
}

}  // namespace tunewright::loops

#endif
