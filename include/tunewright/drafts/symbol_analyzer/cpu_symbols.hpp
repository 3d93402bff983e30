// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/growing_footprint.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/tensor_operands.hpp"

namespace tunewright::drafts {

/// Register tiles of equal size; those at the end of an axis have fewer rows or vectors (`loops::trim_boundaries`).
struct TrimmedTiles {
  double share = 1;  ///< of the executions of the tile
  double rows = 1;   ///< or vectors, relative to a full tile
};

/// Symbols of one statement of a CPU nest, per worker.
struct CpuSymbols {
  /// Executions of the register tile: the innermost unrolled and vectorized loops, or squares that are transposed in
  /// registers.
  double tile_runs = 1;
  double tile_vectors = 1;         ///< vector operations per tile
  double accumulator_vectors = 1;  ///< stored per tile
  double loaded_vectors = 0;       ///< loaded per tile, each once
  double chained_updates = 1;      ///< dependent updates of one accumulator per tile
  bool fits = true;                ///< whether accumulators and two operands fit the registers
  double runs_in_registers = 1;    ///< executions of the tile between loading and storing its accumulators
  double operations = 1;           ///< simple operations per element; a multiply-add is one
  double conditions = 0;           ///< operations per tile that take no vectors
  std::array<TrimmedTiles, 4> tiles{};
  std::size_t sizes = 1;          ///< number of tile sizes: full, and trimmed along one axis, another, or both
  std::array<double, 3> bytes{};  ///< loaded into L1, L2 and the last level
  /// Prefetchers bring these bytes too late: into L1 and L2, because L1 evicts them; into the last level, because they
  /// do not follow the access. See `GrowingFootprint`.
  std::array<double, 3> late_bytes{};
  /// Whether what a copy loads into L2 is fetched while the register tiles use the copy before, as
  /// `codegen::llvm_backend::BlockPrefetcher` does.
  bool fetched_early = false;
};

/// Computes the symbols of the statements of CPU nests while it walks them. Reuses its memory.
class CpuSymbolReader {
 public:
  /// What the caches hold when a program begins.
  enum class Caches : std::uint8_t {
    Cold,  ///< nothing
    Warm   ///< all buffers, if they fit together: the program ran before
  };

  /// Calls `on_loop(loop)` for every loop, before its body, and `on_statement(statement, symbols)` for every statement.
  template <class OnLoop, class OnStatement>
  void read(const loops::NestSummary& summary, const Target& target, Caches caches, const OnLoop& on_loop,
            const OnStatement& on_statement) {
    start(summary, target, caches);
    reader_.read(
        summary,
        [&](const loops::LoopSummary& loop) {
          enter(loop);
          on_loop(loop);
        },
        [&](const loops::StatementSummary& statement) { on_statement(statement, symbols(statement)); },
        std::max(1U, target.threads));
  }

  [[nodiscard]] const NestReader& reader() const noexcept { return reader_; }
  /// Executions of the body of `depth` open loops.
  [[nodiscard]] double entries(std::size_t depth) const { return runs_[depth]; }
  /// The unroll limit of the open loop `depth`, at least that of the loops around it.
  [[nodiscard]] std::int64_t unroll_limit(std::size_t depth) const { return unroll_limit_[depth]; }

  /// Whether a loop belongs to a register tile.
  [[nodiscard]] static bool in_tile(loops::LoopKind kind) {
    return kind == loops::LoopKind::Unrolled || kind == loops::LoopKind::Vectorized;
  }

 private:
  void start(const loops::NestSummary& summary, const Target& target, Caches caches);
  void enter(const loops::LoopSummary& loop);

  [[nodiscard]] double lanes(const StatementFootprint::Access& a) const {
    return std::max(1.0, target_->vector_bytes() / footprint_.element_bytes(a));
  }

  [[nodiscard]] CpuSymbols symbols(const loops::StatementSummary& statement);

  /// Whether the statement copies a block of a tensor that L2 does not hold, another one in each iteration of the
  /// innermost loop around the copy's memory, and L2 holds such blocks beside what else is in use
  /// (`loops::prefetched_block_bytes`).
  [[nodiscard]] bool copies_blocks(const loops::StatementSummary& statement) const;

  /// Whether the two innermost loops copy squares with rows of a vector, which are transposed in registers.
  [[nodiscard]] bool transposes(const loops::StatementSummary& statement) const;

  /// Depth of the outermost loop of those that repeat an update in registers and are unrolled around the tile; `tile`
  /// if there is none.
  [[nodiscard]] std::size_t unrolled_from(const CpuSymbols& s, std::size_t tile) const;

  /// Vector loads of an access in all tiles of the unrolled loops from depth `first` on. What tiles have in common, as
  /// neighbouring windows do, counts once while registers can hold it.
  [[nodiscard]] double shared_vectors(const StatementFootprint::Access& a, const CpuSymbols& s, std::size_t first,
                                      std::size_t tile);

  /// Divides the executions of the tile by its number of rows and vectors.
  void find_trimmed(CpuSymbols& s, const loops::StatementSummary& statement, std::size_t tile) const;

  /// Register tiles along one axis.
  struct TilesOfAxis {
    double all = 1;      ///< those beyond the axis included
    double full = 1;     ///< within the axis
    double trimmed = 0;  ///< 0 or 1
    double left = 0;     ///< rows, or vectors, of the trimmed one, relative to a full one

    [[nodiscard]] double rows() const noexcept { return full + trimmed * left; }
  };
  /// Returns the tiles of the worker with most rows. If workers have consecutive parts of the axis, the last one has
  /// what is trimmed and what is beyond; otherwise all have the same share of it.
  [[nodiscard]] TilesOfAxis of_busiest_worker(const TilesOfAxis& axis, const loops::FlatIndex& value) const;
  /// The parallel loop whose consecutive iterations proceed along an axis with this value; null if there is none.
  [[nodiscard]] const loops::LoopSummary* divided_by(const loops::FlatIndex& value) const;

  /// Operations that take no vectors, because all lanes share their conditions.
  [[nodiscard]] double shared_conditions(const loops::BodyOperations& ops) const;

  /// Vector loads of the elements that an access touches in a tile.
  [[nodiscard]] double vectors(const StatementFootprint::Access& a, std::size_t tile) const;

  /// Computes the traffic of each level. The innermost loop whose footprint exceeds the level determines it, or the
  /// outermost loop if none does. Footprints only grow from a loop to the loops around it, so larger levels continue
  /// where smaller ones ended. From depth `held_from` on, accumulators are in registers. What the `at_once` innermost
  /// loops touch is loaded once.
  void find_traffic(CpuSymbols& s, std::size_t held_from, std::size_t at_once);
  /// Whether a level holds what the statement touches. The last one distributes rows over its sets by hashing.
  [[nodiscard]] bool holds(std::size_t level, std::size_t held_from) const;

  static constexpr std::size_t last_level = 2;

  const Target* target_ = nullptr;
  NestReader reader_;
  StatementFootprint footprint_;
  std::array<double, 3> capacity_{};                              // per level, in bytes
  std::size_t moving_levels_ = 0;                                 // number of caches, from L1 on, with traffic
  GrowingFootprint touched_;                                      // of one statement
  std::array<double, NestReader::max_depth + 1> runs_{1};         // per depth: executions of its body
  std::array<std::int64_t, NestReader::max_depth> unroll_limit_;  // per depth
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE void CpuSymbolReader::start(const loops::NestSummary& summary, const Target& target, Caches caches) {
  target_ = &target;
  constexpr double expected_share = 0.5;  // of the last level, which may be shared with programs nobody knows of
  const auto l2 = static_cast<double>(target.l2_bytes);
  capacity_ = {static_cast<double>(target.l1_bytes), l2,
               std::max(l2, expected_share * static_cast<double>(target.l3_bytes))};
  moving_levels_ = capacity_.size();
  if (caches == Caches::Cold) return;
  double buffers_bytes = 0;
  for (const loops::BufferSummary& buffer : summary.buffers) buffers_bytes += static_cast<double>(buffer.bytes());
  for (moving_levels_ = 0; moving_levels_ < capacity_.size(); ++moving_levels_)
    if (buffers_bytes <= capacity_[moving_levels_]) break;  // the buffers stay here from one run to the next
}

TUNEWRIGHT_INLINE void CpuSymbolReader::enter(const loops::LoopSummary& loop) {
  const std::size_t depth = reader_.open().size() - 1;
  runs_[depth + 1] = runs_[depth] * static_cast<double>(loop.extent);
  unroll_limit_[depth] = std::max(depth == 0 ? 0 : unroll_limit_[depth - 1], loop.unroll_limit);
}

TUNEWRIGHT_INLINE CpuSymbols CpuSymbolReader::symbols(const loops::StatementSummary& statement) {
  CpuSymbols s;
  footprint_.reset(reader_, statement);
  const std::span<const loops::LoopSummary> open = reader_.open();
  std::size_t tile = open.size();
  while (tile > 0 && in_tile(open[tile - 1].kind)) --tile;
  const bool transposed = transposes(statement);
  if (transposed) --tile;
  const StatementFootprint::Access& store = footprint_.accesses()[0];
  s.tile_runs = runs_[tile];
  for (std::size_t l = tile; l < open.size(); ++l) {
    const auto extent = static_cast<double>(open[l].extent);
    const bool vector = open[l].kind == loops::LoopKind::Vectorized;
    const double steps = vector ? std::ceil(extent / lanes(store)) : extent;
    s.tile_vectors *= steps;
    if ((store.moved_by >> l & 1U) == 0) s.chained_updates *= steps;
  }
  s.accumulator_vectors = vectors(store, tile);
  s.fits = s.accumulator_vectors + 2 <= target_->vector_registers();
  const bool update = statement.kind == loops::Statement::Kind::Update;
  std::size_t held_from = open.size() + 1;
  if (update && s.fits) {
    for (held_from = tile; held_from > 0 && (store.moved_by >> (held_from - 1) & 1U) == 0; --held_from)
      s.runs_in_registers *= static_cast<double>(open[held_from - 1].extent);
  }
  const double conditions = shared_conditions(statement.operations);
  s.operations = statement.operations.simple_fused() - conditions;
  if (transposed) s.operations += std::log2(lanes(store));  // a shuffle of each vector a step
  if (!statement.operations.skips_padding) s.conditions = conditions;
  const std::size_t first = update && s.fits && footprint_.has_sum_of_axes() ? unrolled_from(s, tile) : tile;
  for (const StatementFootprint::Access& a : footprint_.accesses().subspan(1))
    s.loaded_vectors += s.fits ? shared_vectors(a, s, first, tile) : s.tile_vectors;
  s.loaded_vectors /= reader_.iterations(NestReader::outermost(tile) & ~NestReader::outermost(first));
  if (!transposed) find_trimmed(s, statement, tile);
  find_traffic(s, held_from, transposed ? 2 : 1);
  s.fetched_early = copies_blocks(statement);
  return s;
}

TUNEWRIGHT_INLINE bool CpuSymbolReader::copies_blocks(const loops::StatementSummary& statement) const {
  const program::ExprNode& body = *(**statement.op).body;
  if (statement.kind != loops::Statement::Kind::Assign || body.op != program::Op::Load) return false;
  const StatementFootprint::Access &store = footprint_.accesses()[0], &load = footprint_.accesses()[1];
  if (StatementFootprint::buffer(store).role != loops::BufferRole::Temporary) return false;
  std::size_t around = reader_.allocated_at(store.buffer);
  while (around > 0 && reader_.open()[around - 1].extent == 1) --around;
  if (around == 0 || (load.moved_by >> (around - 1) & 1U) == 0) return false;
  const auto l2_bytes = static_cast<std::int64_t>(target_->l2_bytes);
  return StatementFootprint::buffer(load).bytes() > l2_bytes &&
         StatementFootprint::buffer(store).bytes() <= loops::prefetched_block_bytes(l2_bytes);
}

TUNEWRIGHT_INLINE bool CpuSymbolReader::transposes(const loops::StatementSummary& statement) const {
  const std::span<const loops::LoopSummary> open = reader_.open();
  if (open.size() < 2 || statement.kind != loops::Statement::Kind::Assign) return false;
  const std::size_t along_target = open.size() - 1, along_operand = along_target - 1;
  const StatementFootprint::Access& store = footprint_.accesses()[0];
  const double squares = static_cast<double>(open[along_target].extent) / lanes(store);
  if (open[along_target].kind != loops::LoopKind::Vectorized || open[along_operand].kind != loops::LoopKind::Serial ||
      static_cast<double>(open[along_operand].extent) != lanes(store) || squares != std::floor(squares) ||
      squares > loops::most_transposed_squares || !footprint_.contiguous(store, along_target))
    return false;
  using program::ScalarType;
  if ((**statement.op).type != ScalarType::Float32) return false;
  bool is_across = false;
  for (std::size_t load = 0; load < statement.loads.size(); ++load) {
    const StatementFootprint::Access& a = footprint_.accesses()[load + 1];
    if (statement.loads[load].node->type != ScalarType::Float32) return false;
    if ((a.moved_by >> along_operand & 1U) != 0 && !footprint_.contiguous(a, along_operand)) return false;
    is_across = is_across || (a.moved_by >> along_target & 1U) != 0;
  }
  return is_across;
}

TUNEWRIGHT_INLINE std::size_t CpuSymbolReader::unrolled_from(const CpuSymbols& s, std::size_t tile) const {
  const std::span<const loops::LoopSummary> open = reader_.open();
  const LoopSet moving_store = footprint_.accesses()[0].moved_by;
  double instances = s.tile_vectors;
  for (std::size_t l = tile; l-- > 0;) {
    instances *= static_cast<double>(open[l].extent);
    const bool unrolled = open[l].kind == loops::LoopKind::Serial && instances <= static_cast<double>(unroll_limit_[l]);
    if (!unrolled || (moving_store >> l & 1U) != 0) return l + 1;
  }
  return 0;
}

TUNEWRIGHT_INLINE double CpuSymbolReader::shared_vectors(const StatementFootprint::Access& a, const CpuSymbols& s,
                                                         std::size_t first, std::size_t tile) {
  constexpr double read_by_operations = 2;  // held elements that may remain operands in memory
  double own = vectors(a, tile);
  if (first == tile) return own;
  const bool overlaps = footprint_.has_sum_of_axes(a);
  if (overlaps) footprint_.vary(reader_.all_loops() & ~NestReader::outermost(tile));
  double elements = overlaps ? footprint_.elements(a) : 0;
  for (std::size_t l = tile; l-- > first;) {
    const auto extent = static_cast<double>(reader_.open()[l].extent);
    double growth = (a.moved_by >> l & 1U) != 0 ? extent : 1;
    if (overlaps) {
      footprint_.vary_also(l);
      const double before = std::exchange(elements, footprint_.elements(a));
      growth = elements / before;
    }
    const bool held = s.accumulator_vectors + own <= target_->vector_registers() + read_by_operations;
    own *= held ? growth : extent;
  }
  return own;
}

TUNEWRIGHT_INLINE void CpuSymbolReader::find_trimmed(CpuSymbols& s, const loops::StatementSummary& statement,
                                                     std::size_t tile) const {
  const program::Operator& op = **statement.op;
  const StatementFootprint::Access& store = footprint_.accesses()[0];
  for (std::size_t axis = 0; axis < op.rank() && s.sizes <= s.tiles.size() / 2; ++axis) {
    const LoopSet moved_by = footprint_.moved_by(axis) & ~NestReader::outermost(tile);
    if (moved_by == 0) continue;
    const loops::LoopSummary& innermost = reader_.open()[static_cast<std::size_t>(std::bit_width(moved_by)) - 1];
    const bool in_vectors = innermost.kind == loops::LoopKind::Vectorized;
    if (!in_vectors && innermost.kind != loops::LoopKind::Unrolled) continue;
    const auto cost = [&](std::int64_t part) {
      return in_vectors ? std::ceil(static_cast<double>(part) / lanes(store)) : static_cast<double>(part);
    };
    const std::int64_t reach = reader_.summary().indices.range(statement.axis_values[axis]).max + 1;
    const std::int64_t extent = op.axes[axis].extent, size = innermost.extent;
    if (reach <= extent || size > extent) continue;
    // Temporaries are overcomputed where all vectors of the last tile have elements within the axis.
    const bool is_whole = in_vectors && StatementFootprint::buffer(store).role == loops::BufferRole::Temporary &&
                          cost(extent % size) == cost(size);
    if (is_whole) continue;
    const TilesOfAxis all{.all = static_cast<double>(reach) / static_cast<double>(size),
                          .full = static_cast<double>(extent / size),
                          .trimmed = extent % size > 0 ? 1.0 : 0.0,
                          .left = cost(extent % size) / cost(size)};
    const TilesOfAxis own = of_busiest_worker(all, statement.axis_values[axis]);
    for (std::size_t t = 0; t < s.sizes; ++t) {
      s.tiles[s.sizes + t] = {s.tiles[t].share * own.trimmed / own.all, s.tiles[t].rows * own.left};
      s.tiles[t].share *= own.full / own.all;
    }
    s.sizes *= 2;
  }
}

TUNEWRIGHT_INLINE CpuSymbolReader::TilesOfAxis CpuSymbolReader::of_busiest_worker(const TilesOfAxis& axis,
                                                                                  const loops::FlatIndex& value) const {
  const loops::LoopSummary* loop = divided_by(value);
  if (loop == nullptr) return axis;
  const std::int64_t iterations = reader_.summary().indices.extents[loop->var];
  const std::int64_t most = loop->extent;  // of a worker; the last one has as many
  if (most == iterations) return axis;
  const std::int64_t workers = std::min<std::int64_t>(iterations, target_->threads);
  const bool others_have_most = iterations % workers != 1;
  const double tiles_of_one = axis.all / static_cast<double>(iterations);
  TilesOfAxis last = axis;
  last.all = static_cast<double>(most) * tiles_of_one;
  last.full = std::max(0.0, axis.full - static_cast<double>(iterations - most) * tiles_of_one);
  TilesOfAxis other{.all = last.all};
  other.full = std::min(axis.full, others_have_most ? last.all : static_cast<double>(most - 1) * tiles_of_one);
  return other.rows() > last.rows() ? other : last;
}

TUNEWRIGHT_INLINE const loops::LoopSummary* CpuSymbolReader::divided_by(const loops::FlatIndex& value) const {
  using Kind = loops::FlatIndex::Kind;
  for (const loops::FlatIndex::Term& term : value.terms()) {
    if (term.kind == Kind::Remainder) continue;
    loops::Var var = term.of;
    if (term.kind == Kind::Quotient) {
      const loops::FlatIndex& numerator = reader_.summary().indices.numerator(term);
      if (numerator.count != 1 || !numerator.is_plain()) continue;
      var = numerator.terms()[0].of;
    }
    const std::uint8_t depth = reader_.depth_of(var);
    if (depth != NestReader::none && reader_.open()[depth].kind == loops::LoopKind::Parallel)
      return &reader_.open()[depth];
  }
  return nullptr;
}

TUNEWRIGHT_INLINE double CpuSymbolReader::shared_conditions(const loops::BodyOperations& ops) const {
  if (ops.conditions == 0) return 0;
  LoopSet moved_by = 0;
  for (std::size_t axis = 0; axis < footprint_.axes(); ++axis)
    if ((ops.condition_axes >> std::min<std::size_t>(axis, 63) & 1U) != 0) moved_by |= footprint_.moved_by(axis);
  return (moved_by & reader_.loops_of(loops::LoopKind::Vectorized)) == 0 ? ops.conditions : 0;
}

TUNEWRIGHT_INLINE double CpuSymbolReader::vectors(const StatementFootprint::Access& a, std::size_t tile) const {
  double count = 1;
  const std::span<const loops::LoopSummary> open = reader_.open();
  for (std::size_t l = tile; l < open.size(); ++l) {
    if ((a.moved_by >> l & 1U) == 0) continue;
    const auto extent = static_cast<double>(open[l].extent);
    // The only serial loop of a tile is that along the rows of an operand that is transposed.
    const bool vector = open[l].kind != loops::LoopKind::Unrolled && footprint_.contiguous(a, l);
    count *= vector ? std::ceil(extent / lanes(a)) : extent;
  }
  return count;
}

TUNEWRIGHT_INLINE void CpuSymbolReader::find_traffic(CpuSymbols& s, std::size_t held_from, std::size_t at_once) {
  if (moving_levels_ == 0) return;
  const auto line = static_cast<double>(std::max<std::uint64_t>(target_->cache_line_bytes, 1));
  touched_.start(footprint_, reader_.open().size(), line, capacity_[0], at_once);
  for (std::size_t level = 0; level < moving_levels_; ++level) {
    while (touched_.depth() > 0 && holds(level, held_from)) touched_.grow();
    const double times = runs_[touched_.depth()];
    s.bytes[level] = times * touched_.all().bytes;
    s.late_bytes[level] = times * (level == last_level ? touched_.all().scattered_bytes : touched_.all().evicted_bytes);
  }
}

TUNEWRIGHT_INLINE bool CpuSymbolReader::holds(std::size_t level, std::size_t held_from) const {
  // Sixteen rows in the same sets of an L1 of twelve ways cost nothing: the few lines that it misses arrive in time.
  constexpr std::array<double, last_level> tolerance{4.0 / 3, 1};
  const Footprint& touched = touched_.all();
  if (touched.bytes > capacity_[level]) return false;
  if (level == last_level) return true;
  const double in_registers = touched_.depth() >= held_from ? touched.stored_cache_bytes : 0;
  return touched.cache_bytes - in_registers <= tolerance[level] * capacity_[level];
}

}  // namespace tunewright::drafts

#endif
