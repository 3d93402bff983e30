// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_core.hpp"
#include "tunewright/drafts/symbol_analyzer/growing_footprint.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/tensor_work.hpp"

namespace tunewright::drafts {

/// Register tiles of equal size; those at the end of an axis have fewer rows (`loops::trim_boundaries`).
struct TrimmedTiles {
  double share = 1;  ///< of the executions of the tile
  double rows = 1;   ///< relative to a full tile
};

/// Symbols of one statement of a CPU nest, per worker.
struct CpuSymbols {
  double tile_runs = 1;            ///< executions of the register tile: the innermost unrolled and vectorized loops
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
};

/// Minimum work and traffic of a program.
struct Roof {
  double peak_cycles = 0;   ///< of the worker with most operations, without padding that sums skip
  double memory_bytes = 0;  ///< of all workers
};

/// Pruner's idea on a CPU: instead of simulating a pipeline, it computes symbols of each statement at every level of
/// the machine, the cost of each level, and their maximum.
///
///   registers   vectors of the innermost unrolled and vectorized tile; operands are loaded once if it fits, and its
///               accumulators are loaded and stored each time the surrounding loops that do not move them are entered;
///               terms of unrolled sums share the elements that they have in common while registers can hold them
///   operations  those of the body; conditions that all lanes share are computed once per tile, and the padding of sums
///               is skipped by `loops::eliminate_padding`
///   tile        maximum of computing, loading and waiting for earlier sums + (1 - overlap) * the others + storing;
///               tiles at the end of an axis have the remaining rows
///   L1, L2, L3  the data that the first loop whose footprint does not fit touches, each time it is entered; nothing if
///               all buffers fit together, since a program runs repeatedly on the same buffers. L2 holds few rows that
///               begin in the same sets, see `GrowingFootprint`; L1 evicts lines before L2 does, lines in L2 arrive in
///               time, and the last level distributes rows over its sets by hashing
///   tensors     instructions replace the operations, and their loads and stores those of the tile, where the code
///               generator can use them: see `CpuTensorCost`
///   workers     the longest share of a parallel loop; the last one has the tiles with few rows
///   statement   maximum + (1 - overlap) * (sum of the others); program: sum of its statements and loops
class CpuAnalysis {
 public:
  /// Cycles of one run.
  [[nodiscard]] double cycles(const loops::LoopNest& nest, const Target& target, const CpuCore& core) {
    return cycles(summarizer_.summary(nest), target, core);
  }
  [[nodiscard]] double cycles(const loops::NestSummary& summary, const Target& target, const CpuCore& core);

  /// The symbols of a roofline model.
  [[nodiscard]] Roof roof(const loops::LoopNest& nest, const Target& target, const CpuCore& core) {
    return roof(summarizer_.summary(nest), target, core);
  }
  [[nodiscard]] Roof roof(const loops::NestSummary& summary, const Target& target, const CpuCore& core);

 private:
  [[nodiscard]] static bool in_tile(loops::LoopKind kind) {
    return kind == loops::LoopKind::Unrolled || kind == loops::LoopKind::Vectorized;
  }
  [[nodiscard]] double lanes(const StatementFootprint::Access& a) const {
    return std::max(1.0, target_->vector_bytes() / footprint_.element_bytes(a));
  }

  [[nodiscard]] bool in_parallel() const { return reader_.loops_of(loops::LoopKind::Parallel) != 0; }

  void note(const loops::LoopSummary& loop);
  void add_loop(const loops::LoopSummary& loop);

  /// The share of a loop's iterations that tensor instructions do not replace. Loops that fill sums with zeros have the
  /// same variables as those that add to the sums, and are replaced with them.
  [[nodiscard]] double share_of_plain_loops(std::size_t depth) const;
  /// The tensor statement that computes a statement; null if loops do.
  [[nodiscard]] const loops::TensorStatement* tensor_of(const loops::StatementSummary& statement) const;
  /// The share of a statement's iterations that an instruction computes.
  [[nodiscard]] static double share_of(const loops::TensorStatement& tensor) {
    return static_cast<double>(tensor.share) / static_cast<double>(loops::whole_share);
  }
  [[nodiscard]] double peak_cycles(const loops::TensorStatement& tensor, const loops::BodyOperations& operations) const;
  [[nodiscard]] loops::TensorWork work_of(const loops::TensorStatement& tensor) const;

  [[nodiscard]] CpuSymbols symbols(const loops::StatementSummary& statement);

  /// Counts once what terms of sums unrolled around the tile load in common, as neighbouring windows do.
  void share_loads(CpuSymbols& s, std::size_t tile);

  /// Divides the executions of the tile by its number of rows.
  void find_trimmed(CpuSymbols& s, const loops::StatementSummary& statement, std::size_t tile) const;

  /// Register tiles along one axis.
  struct TilesOfAxis {
    double all = 1;      ///< those beyond the axis included
    double full = 1;     ///< within the axis
    double trimmed = 0;  ///< 0 or 1
    double left = 0;     ///< rows of the trimmed one, relative to a full one

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

  void read_capacities();

  /// Computes the traffic of each level. The innermost loop whose footprint exceeds the level determines it, or the
  /// outermost loop if none does. Footprints only grow from a loop to the loops around it, so larger levels continue
  /// where smaller ones ended.
  void find_traffic(CpuSymbols& s);

  [[nodiscard]] double cost(const CpuSymbols& s, const loops::StatementSummary& statement) const;

  /// Cycles of one tile with a share `rows` of the rows of a full tile, if all operands are in L1.
  [[nodiscard]] double tile_cycles(const CpuSymbols& s, const loops::StatementSummary& statement, double rows) const;

  /// The cost with a tensor instruction; iterations at boundaries are computed by loops.
  [[nodiscard]] double cost(const CpuSymbols& s, const loops::StatementSummary& statement,
                            const loops::TensorStatement& tensor) const;

  /// Cycles of a statement that takes `computing` if all operands are in L1.
  [[nodiscard]] double with_traffic(double computing, const CpuSymbols& s) const;

  const Target* target_ = nullptr;
  const CpuCore* core_ = nullptr;
  double total_ = 0;
  std::size_t moving_levels_ = 0;  // number of caches, from L1 on, that do not hold all buffers together
  loops::NestSummarizer summarizer_;
  NestReader reader_;
  StatementFootprint footprint_;
  std::array<double, 3> capacity_{};                              // per level, in bytes
  GrowingFootprint touched_;                                      // of one statement
  std::array<double, NestReader::max_depth + 1> runs_{1};         // per depth: executions of its body
  std::array<std::int64_t, NestReader::max_depth> unroll_limit_;  // per depth
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

#include "tunewright/drafts/symbol_analyzer/cpu_tensor_cost.hpp"

namespace tunewright::drafts {

TUNEWRIGHT_INLINE double CpuAnalysis::cycles(const loops::NestSummary& summary, const Target& target,
                                             const CpuCore& core) {
  target_ = &target;
  core_ = &core;
  total_ = 0;
  double buffers_bytes = 0;
  for (const loops::BufferSummary& buffer : summary.buffers) buffers_bytes += static_cast<double>(buffer.bytes());
  read_capacities();
  for (moving_levels_ = 0; moving_levels_ < capacity_.size(); ++moving_levels_)
    if (buffers_bytes <= capacity_[moving_levels_]) break;  // the buffers stay here from one run to the next
  reader_.read(
      summary, [this](const loops::LoopSummary& loop) { add_loop(loop); },
      [this](const loops::StatementSummary& statement) {
        const CpuSymbols s = symbols(statement);
        const loops::TensorStatement* tensor = tensor_of(statement);
        total_ += tensor == nullptr ? cost(s, statement) : cost(s, statement, *tensor);
      },
      std::max(1U, target.threads));
  return total_;
}

TUNEWRIGHT_INLINE Roof CpuAnalysis::roof(const loops::NestSummary& summary, const Target& target, const CpuCore& core) {
  target_ = &target;
  core_ = &core;
  read_capacities();
  moving_levels_ = capacity_.size();
  Roof found;
  reader_.read(
      summary, [this](const loops::LoopSummary& loop) { note(loop); },
      [&](const loops::StatementSummary& statement) {
        const CpuSymbols s = symbols(statement);
        const loops::BodyOperations& ops = statement.operations;
        const loops::TensorStatement* tensor = tensor_of(statement);
        const double by_instruction = tensor == nullptr ? 0 : share_of(*tensor);
        if (tensor != nullptr) found.peak_cycles += by_instruction * peak_cycles(*tensor, ops);
        found.peak_cycles += (1 - by_instruction) * s.tile_runs * s.tile_vectors *
                             (s.operations + ops.divisions + ops.functions) / core.vectors_per_cycle;
        found.memory_bytes += s.bytes.back() * (in_parallel() ? std::max(1U, target.threads) : 1U);
      },
      std::max(1U, target.threads));
  return found;
}

TUNEWRIGHT_INLINE void CpuAnalysis::note(const loops::LoopSummary& loop) {
  const std::size_t depth = reader_.open().size() - 1;
  runs_[depth + 1] = runs_[depth] * static_cast<double>(loop.extent);
  unroll_limit_[depth] = std::max(depth == 0 ? 0 : unroll_limit_[depth - 1], loop.unroll_limit);
}

TUNEWRIGHT_INLINE void CpuAnalysis::add_loop(const loops::LoopSummary& loop) {
  note(loop);
  const std::size_t depth = reader_.open().size() - 1;
  if (loop.kind == loops::LoopKind::Parallel && target_->threads > 1) total_ += runs_[depth] * core_->fork_cycles;
  const bool unrolled = depth > 0 && loop.extent <= unroll_limit_[depth - 1];
  if (!in_tile(loop.kind) && !unrolled)
    total_ += runs_[depth + 1] * core_->loop_step_cycles * share_of_plain_loops(depth);
}

TUNEWRIGHT_INLINE double CpuAnalysis::share_of_plain_loops(std::size_t depth) const {
  for (const loops::TensorStatement& tensor : reader_.summary().tensors) {
    const std::uint8_t first = reader_.depth_of(tensor.loop->var);
    if (first <= depth && depth < first + tensor.own && loops::is_emitted(tensor, *target_))
      return 1 - share_of(tensor);
  }
  return 1;
}

TUNEWRIGHT_INLINE const loops::TensorStatement* CpuAnalysis::tensor_of(const loops::StatementSummary& statement) const {
  const loops::NestSummary& summary = reader_.summary();
  for (const loops::TensorStatement& tensor : summary.tensors)
    if (&summary.statements[tensor.number] == &statement && loops::is_emitted(tensor, *target_)) return &tensor;
  return nullptr;
}

TUNEWRIGHT_INLINE double CpuAnalysis::peak_cycles(const loops::TensorStatement& tensor,
                                                  const loops::BodyOperations& operations) const {
  const loops::TensorWork work = work_of(tensor);
  return CpuTensorCost(tensor, work, operations, *core_).cycles_at_peak();
}

TUNEWRIGHT_INLINE loops::TensorWork CpuAnalysis::work_of(const loops::TensorStatement& tensor) const {
  std::array<loops::WorkerLoop, NestReader::max_depth> around;
  const std::span<const loops::LoopSummary> open = reader_.open();
  for (std::size_t l = 0; l < open.size(); ++l) around[l] = {open[l].extent, open[l].kind, unroll_limit_[l]};
  return loops::tensor_work(tensor, std::span(around).first(open.size()), target_->vector_registers());
}

TUNEWRIGHT_INLINE CpuSymbols CpuAnalysis::symbols(const loops::StatementSummary& statement) {
  CpuSymbols s;
  footprint_.reset(reader_, statement);
  const std::span<const loops::LoopSummary> open = reader_.open();
  std::size_t tile = open.size();
  while (tile > 0 && in_tile(open[tile - 1].kind)) --tile;
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
  if (statement.kind == loops::Statement::Kind::Update && s.fits) {
    for (std::size_t l = tile; l-- > 0 && (store.moved_by >> l & 1U) == 0;)
      s.runs_in_registers *= static_cast<double>(open[l].extent);
  }
  const double conditions = shared_conditions(statement.operations);
  s.operations = statement.operations.simple_fused() - conditions;
  const bool is_sum =
      statement.kind == loops::Statement::Kind::Update && (*statement.op)->combiner == program::Combiner::Sum;
  if (!is_sum) s.conditions = conditions;
  for (const StatementFootprint::Access& a : footprint_.accesses().subspan(1))
    s.loaded_vectors += s.fits ? vectors(a, tile) : s.tile_vectors;
  if (statement.kind == loops::Statement::Kind::Update && s.fits && footprint_.has_sums_of_axes()) share_loads(s, tile);
  find_trimmed(s, statement, tile);
  find_traffic(s);
  return s;
}

TUNEWRIGHT_INLINE void CpuAnalysis::share_loads(CpuSymbols& s, std::size_t tile) {
  constexpr double read_by_operations = 2;  // held elements that may remain operands in memory
  const std::span<const loops::LoopSummary> open = reader_.open();
  const LoopSet moving_store = footprint_.accesses()[0].moved_by;
  const auto unrolled_instances = [&](std::size_t l, double inside) {
    return open[l].kind == loops::LoopKind::Serial && (moving_store >> l & 1U) == 0
               ? inside * static_cast<double>(open[l].extent)
               : std::numeric_limits<double>::infinity();
  };
  double instances = s.tile_vectors;
  std::size_t first = tile;  // of the unrolled loops
  while (first > 0 && unrolled_instances(first - 1, instances) <= static_cast<double>(unroll_limit_[first - 1]))
    instances = unrolled_instances(--first, instances);
  if (first == tile) return;
  double loads = 0;
  for (const StatementFootprint::Access& a : footprint_.accesses().subspan(1)) {
    footprint_.vary(reader_.all_loops() & ~NestReader::outermost(tile));
    double own = vectors(a, tile), elements = footprint_.elements(a);
    for (std::size_t l = tile; l-- > first;) {
      footprint_.vary_also(l);
      const bool held = s.accumulator_vectors + own <= target_->vector_registers() + read_by_operations;
      const double before = std::exchange(elements, footprint_.elements(a));
      own *= held ? elements / before : static_cast<double>(open[l].extent);
    }
    loads += own;
  }
  s.loaded_vectors = loads * s.tile_vectors / instances;
}

TUNEWRIGHT_INLINE void CpuAnalysis::find_trimmed(CpuSymbols& s, const loops::StatementSummary& statement,
                                                 std::size_t tile) const {
  const program::Operator& op = **statement.op;
  for (std::size_t axis = 0; axis < op.rank() && s.sizes <= s.tiles.size() / 2; ++axis) {
    const LoopSet moved_by = footprint_.moved_by(axis) & ~NestReader::outermost(tile);
    if (moved_by == 0) continue;
    const loops::LoopSummary& innermost = reader_.open()[static_cast<std::size_t>(std::bit_width(moved_by)) - 1];
    if (innermost.kind != loops::LoopKind::Unrolled) continue;
    const std::int64_t reach = reader_.summary().indices.range(statement.axis_values[axis]).max + 1;
    const std::int64_t extent = op.axes[axis].extent, size = innermost.extent;
    if (reach <= extent || size > extent) continue;
    const TilesOfAxis all{.all = static_cast<double>(reach) / static_cast<double>(size),
                          .full = static_cast<double>(extent / size),
                          .trimmed = extent % size > 0 ? 1.0 : 0.0,
                          .left = static_cast<double>(extent % size) / static_cast<double>(size)};
    const TilesOfAxis own = of_busiest_worker(all, statement.axis_values[axis]);
    for (std::size_t t = 0; t < s.sizes; ++t) {
      s.tiles[s.sizes + t] = {s.tiles[t].share * own.trimmed / own.all, s.tiles[t].rows * own.left};
      s.tiles[t].share *= own.full / own.all;
    }
    s.sizes *= 2;
  }
}

TUNEWRIGHT_INLINE CpuAnalysis::TilesOfAxis CpuAnalysis::of_busiest_worker(const TilesOfAxis& axis,
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

TUNEWRIGHT_INLINE const loops::LoopSummary* CpuAnalysis::divided_by(const loops::FlatIndex& value) const {
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

TUNEWRIGHT_INLINE double CpuAnalysis::shared_conditions(const loops::BodyOperations& ops) const {
  if (ops.conditions == 0) return 0;
  LoopSet moved_by = 0;
  for (std::size_t axis = 0; axis < footprint_.axes(); ++axis)
    if ((ops.condition_axes >> std::min<std::size_t>(axis, 63) & 1U) != 0) moved_by |= footprint_.moved_by(axis);
  return (moved_by & reader_.loops_of(loops::LoopKind::Vectorized)) == 0 ? ops.conditions : 0;
}

TUNEWRIGHT_INLINE double CpuAnalysis::vectors(const StatementFootprint::Access& a, std::size_t tile) const {
  double count = 1;
  const std::span<const loops::LoopSummary> open = reader_.open();
  for (std::size_t l = tile; l < open.size(); ++l) {
    if ((a.moved_by >> l & 1U) == 0) continue;
    const auto extent = static_cast<double>(open[l].extent);
    const bool vector = open[l].kind == loops::LoopKind::Vectorized && footprint_.contiguous(a, l);
    count *= vector ? std::ceil(extent / lanes(a)) : extent;
  }
  return count;
}

TUNEWRIGHT_INLINE void CpuAnalysis::read_capacities() {
  capacity_ = {static_cast<double>(target_->l1_bytes), static_cast<double>(target_->l2_bytes),
               static_cast<double>(std::max(target_->l2_bytes, target_->l3_bytes))};
}

TUNEWRIGHT_INLINE void CpuAnalysis::find_traffic(CpuSymbols& s) {
  constexpr std::size_t l2 = 1;  // index of the level
  if (moving_levels_ == 0) return;
  const auto line = static_cast<double>(std::max<std::uint64_t>(target_->cache_line_bytes, 1));
  touched_.start(footprint_, reader_.open().size(), line);
  for (std::size_t level = 0; level < moving_levels_; ++level) {
    while (touched_.depth() > 0 && touched_.all().bytes <= capacity_[level] &&
           (level > l2 || touched_.all().cache_bytes <= capacity_[l2]))
      touched_.grow();
    s.bytes[level] = runs_[touched_.depth()] * touched_.all().bytes;
  }
}

TUNEWRIGHT_INLINE double CpuAnalysis::cost(const CpuSymbols& s, const loops::StatementSummary& statement) const {
  double tile = 0;
  for (std::size_t t = 0; t < s.sizes; ++t)
    if (s.tiles[t].share > 0) tile += s.tiles[t].share * tile_cycles(s, statement, s.tiles[t].rows);
  return with_traffic(s.tile_runs * tile, s);
}

TUNEWRIGHT_INLINE double CpuAnalysis::tile_cycles(const CpuSymbols& s, const loops::StatementSummary& statement,
                                                  double rows) const {
  const bool update = statement.kind == loops::Statement::Kind::Update;
  const double computing = rows * s.tile_vectors * core_->cycles(s.operations, statement.operations);
  const double loading = rows * s.loaded_vectors / core_->loads_per_cycle;
  const double waiting = update ? s.chained_updates * core_->update_latency_cycles : 0;
  const double longest = std::max({computing, loading, waiting});
  double cycles = longest + (1 - core_->overlap) * (computing + loading + waiting - longest);
  cycles += rows * (s.fits ? s.accumulator_vectors : s.tile_vectors) / s.runs_in_registers *
            (1 / core_->stores_per_cycle + (update ? 1 / core_->loads_per_cycle : 0));
  cycles += s.conditions * core_->condition_cycles;
  return s.tile_vectors > core_->unrolled_statements ? 2 * cycles : cycles;
}

TUNEWRIGHT_INLINE double CpuAnalysis::cost(const CpuSymbols& s, const loops::StatementSummary& statement,
                                           const loops::TensorStatement& tensor) const {
  const double share = share_of(tensor);
  const loops::TensorWork work = work_of(tensor);
  const double computing = CpuTensorCost(tensor, work, statement.operations, *core_).cycles();
  return share * with_traffic(computing, s) + (share < 1 ? (1 - share) * cost(s, statement) : 0);
}

TUNEWRIGHT_INLINE double CpuAnalysis::with_traffic(double computing, const CpuSymbols& s) const {
  double longest = computing;
  double all = longest;
  for (std::size_t level = 0; level < moving_levels_; ++level) {
    double moving = s.bytes[level] / core_->bytes_per_cycle[level];
    if (level + 1 == s.bytes.size() && in_parallel()) moving *= std::max(1U, target_->threads);
    all += moving;
    longest = std::max(longest, moving);
  }
  return longest + (1 - core_->overlap) * (all - longest);
}

}  // namespace tunewright::drafts

#endif
