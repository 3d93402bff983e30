// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/features/per_statement/accesses.hpp"
#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/features/per_statement/intensity.hpp"
#include "tunewright/features/per_statement/operations.hpp"
#include "tunewright/features/per_statement/program_walk.hpp"
#include "tunewright/features/per_statement/schema.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"

namespace tunewright::features::per_statement {

/// log2(x + 1) for x >= 0; saturates for values too large for a float.
[[nodiscard]] inline float slog(double x) noexcept {
  constexpr double largest = 1e300;  // larger products of extents are not distinguished
  return x == 0 ? 0.0F : static_cast<float>(std::log2((x < largest ? x : largest) + 1.0));
}

/// Fills the columns of one buffer; columns that are zero are not written.
inline void write_buffer(std::span<float> block, const BufferNumbers& buffer) {
  const double uses = buffer.reuse_count > 0.5 ? buffer.reuse_count : 0.5;
  block[AccessRead + static_cast<std::size_t>(buffer.type)] = 1.0F;
  block[Bytes] = slog(buffer.bytes);
  block[UniqueBytes] = slog(buffer.unique_bytes);
  block[Lines] = slog(buffer.lines);
  block[UniqueLines] = slog(buffer.unique_lines);
  block[ReuseLoop + static_cast<std::size_t>(buffer.reuse)] = 1.0F;
  block[ReuseIterations] = slog(buffer.reuse_iterations);
  block[ReuseBytes] = slog(buffer.reuse_bytes);
  block[ReuseCount] = slog(buffer.reuse_count);
  block[BytesPerReuse] = slog(buffer.bytes / uses);
  block[UniqueBytesPerReuse] = slog(buffer.unique_bytes / uses);
  block[LinesPerReuse] = slog(buffer.lines / uses);
  block[UniqueLinesPerReuse] = slog(buffer.unique_lines / uses);
  block[Stride] = slog(buffer.stride);
}

/// Writes the rows of programs of one type, lowered or summarized; see `Describer`.
template <class Program>
class DescriberOf {
 public:
  void describe(const Program& nest, const Task& task, FeatureBatch& batch);

  // Called by `walk`.
  void enter(const WalkedLoop& loop) {
    unroll_limits_.push_back(loop.unroll_limit > 0 ? loop.unroll_limit : unroll_limits_.back());
    if (!loop.runs()) return;
    depth_of_[loop.var] = static_cast<std::uint32_t>(extents_.size());
    history_.enter(extents_.size());
    extents_.push_back(loop.extent);
    kinds_.push_back(loop.kind);
    outer_iterations_.push_back(iterations_);
    iterations_ *= static_cast<double>(loop.extent);
  }
  void leave(const WalkedLoop& loop) {
    unroll_limits_.pop_back();
    if (!loop.runs()) return;
    iterations_ = outer_iterations_.back();
    outer_iterations_.pop_back();
    kinds_.pop_back();
    extents_.pop_back();
    depth_of_[loop.var] = AffineForms::none;
  }
  void allocate(loops::BufferId buffer) { allocations_[checked(buffer)] = iterations_; }
  void run(const WalkedStatement& statement) {
    using Kind = loops::Statement::Kind;
    const program::Operator& op = **statement.op;
    if (statement.kind == Kind::Initialise || !op.body || op.body->op == program::Op::Constant) return;
    const std::size_t rank = nest_->buffers[checked(statement.target)].shape.size();
    if (statement.axis_values.size() < std::max(op.axes.size(), rank)) {
      throw std::invalid_argument("a statement of operator '" + op.name + "' binds " +
                                  std::to_string(statement.axis_values.size()) + " axes; bind all " +
                                  std::to_string(op.axes.size()));
    }
    const Operations& operations = operations_.of(*statement.op);
    counts_ = operations.counts;
    forms_.reset(extents_, depth_of_, statement.axis_values);
    accesses_.reset(extents_.size());

    const bool update = statement.kind == Kind::Update;
    const auto stored = accesses_.add_store(*nest_, statement.target, forms_, statement.axis_values, rank,
                                            update ? AccessType::ReadWrite : AccessType::Write);
    if (update) {
      count_indices(stored);  // an update also reads the running result there
      if (const auto column = column_of(op.combiner, op.type)) ++counts_[*column];
    }
    for (const program::ExprNode* load : operations.loads)
      count_indices(accesses_.add_load(*nest_, buffer_of(load->tensor), forms_, load->indices));
    for (const program::ExprNode* position : operations.positions) {
      const AffineForms::Id form = forms_.zero();
      forms_.add(form, position->index, 1, AffineForms::Over::Axes);
      count_indices(std::span(&form, 1));
    }
    accesses_.find_regions(*nest_, forms_, history_);

    std::size_t& row = row_of_[statement.target];
    if (row == no_row) {
      row = rows_.size();
      rows_.resize(rows_.size() + columns);
    }
    const std::span<float> values =
        std::span(rows_).subspan(row, columns);  // the last statement of a buffer describes it
    std::fill(values.begin(), values.end(), 0.0F);
    write_loops(values);
    write_buffers(values);
    write_allocation(values, statement.target);
  }

 private:
  static constexpr std::size_t no_row = ~std::size_t{0};

  void count_indices(std::span<const AffineForms::Id> indices) {
    AffineForms::Arithmetic arithmetic;
    for (const AffineForms::Id index : indices) forms_.count(index, arithmetic);
    counts_[IntAddSub] += arithmetic.additions;
    counts_[IntMul] += arithmetic.multiplications;
    counts_[IntDivMod] += arithmetic.divisions;
  }

  void write_loops(std::span<float> values) const {
    for (std::size_t c = 0; c < operation_columns; ++c) values[c] = slog(counts_[c] * iterations_);
    write_group(values.subspan(VectorizedLoops, loop_columns), loops::LoopKind::Vectorized);
    write_group(values.subspan(UnrolledLoops, loop_columns), loops::LoopKind::Unrolled);
    write_group(values.subspan(ParallelLoops, loop_columns), loops::LoopKind::Parallel);
    values[IsGpu] = is_gpu_ ? 1.0F : 0.0F;
    values[BlockX] = slog(bound_extent(loops::LoopKind::BlockX));
    values[BlockY] = slog(bound_extent(loops::LoopKind::BlockY));
    values[BlockZ] = slog(bound_extent(loops::LoopKind::BlockZ));
    values[ThreadX] = slog(bound_extent(loops::LoopKind::ThreadX));
    values[ThreadY] = slog(bound_extent(loops::LoopKind::ThreadY));
    values[ThreadZ] = slog(bound_extent(loops::LoopKind::ThreadZ));
    values[VirtualThread] = slog(bound_extent(loops::LoopKind::VirtualThread));
    values[OuterProduct] = slog(iterations_);
    values[LoopsAround] = slog(static_cast<double>(extents_.size()));
    values[AutoUnrollLimit] = slog(static_cast<double>(unroll_limits_.back()));

    double float_operations = 0;
    for (std::size_t c = FloatMad; c <= FloatOther; ++c) float_operations += counts_[c];
    const auto curve = intensity_curve(float_operations, extents_, accesses_.touched_bytes());
    for (std::size_t i = 0; i < curve_samples; ++i) values[IntensityCurve + i] = slog(curve[i]);
  }

  void write_group(std::span<float> group, loops::LoopKind kind) const {
    double count = 0;
    double product = 1;
    double length = 0;
    for (std::size_t l = 0; l < extents_.size(); ++l) {
      if (kinds_[l] != kind) continue;
      ++count;
      length = static_cast<double>(extents_[l]);
      product *= length;
    }
    group[LoopCount] = slog(count);
    group[LoopProduct] = slog(count == 0 ? 0 : product);
    group[LoopLength] = slog(length);
    group[count == 0 ? PositionNone : PositionMixed] = 1.0F;
  }

  [[nodiscard]] double bound_extent(loops::LoopKind kind) const {
    const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
    return found == kinds_.end() ? 1.0
                                 : static_cast<double>(extents_[static_cast<std::size_t>(found - kinds_.begin())]);
  }

  void write_buffers(std::span<float> values) {
    const auto numbers = accesses_.describe(*nest_, forms_, history_, extents_, iterations_, line_bytes_);
    order_.clear();
    for (const BufferNumbers& buffer : numbers) order_.push_back(&buffer);
    const std::size_t shown = std::min(order_.size(), buffer_blocks);
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(shown), order_.end(),
                      [&](const BufferNumbers* a, const BufferNumbers* b) {
                        if (a->lines != b->lines) return a->lines > b->lines;
                        if (a->bytes != b->bytes) return a->bytes > b->bytes;
                        const int names = nest_->buffers[a->buffer].name.compare(nest_->buffers[b->buffer].name);
                        return names != 0 ? names < 0 : a->buffer < b->buffer;
                      });
    for (std::size_t b = 0; b < shown; ++b) {
      write_buffer(values.subspan(FirstBuffer + b * buffer_columns, buffer_columns), *order_[b]);
    }
  }

  void write_allocation(std::span<float> values, loops::BufferId stored) const {
    const auto& buffer = nest_->buffers[stored];
    double elements = buffer.stages;
    for (std::size_t d = 0; d < dimensions(buffer); ++d) elements *= static_cast<double>(extent(buffer, d));
    values[AllocationBytes] = slog(elements * element_bytes(buffer));
    values[AllocationProduct] = slog(elements * allocations_[stored]);
    values[AllocationOuterProduct] = slog(allocations_[stored]);
    values[AllocationInnerProduct] = slog(iterations_ / allocations_[stored]);
  }

  [[nodiscard]] loops::BufferId checked(loops::BufferId buffer) const {
    if (buffer >= nest_->buffers.size()) {
      throw std::invalid_argument("loop nest '" + std::string(name_of(*nest_)) + "' uses buffer " +
                                  std::to_string(buffer) + " of " + std::to_string(nest_->buffers.size()) +
                                  "; declare it");
    }
    return buffer;
  }
  [[nodiscard]] loops::BufferId buffer_of(loops::TensorId tensor) const {
    if (tensor >= nest_->buffer_of.size())
      throw std::invalid_argument(loops::no_buffer_text("loop nest", name_of(*nest_), tensor));
    return checked(nest_->buffer_of[tensor]);
  }

  const Program* nest_ = nullptr;
  bool is_gpu_ = false;
  double line_bytes_ = 64;
  std::vector<std::int64_t> extents_;        // of the open loops, outermost first
  std::vector<loops::LoopKind> kinds_;       // of the open loops, outermost first
  double iterations_ = 1;                    // product of extents_
  std::vector<double> outer_iterations_;     // for each open loop: iterations of the loops outside it
  std::vector<std::int64_t> unroll_limits_;  // for each open loop: of the innermost loop with a limit
  std::vector<std::uint32_t> depth_of_;      // by loop variable
  std::vector<std::size_t> row_of_;          // by buffer: start of its row in rows_
  std::vector<double> allocations_;          // by buffer: number of allocations
  std::vector<float> rows_;                  // (rows, columns) of the program
  std::array<double, operation_columns> counts_{};
  OperationTable operations_;
  AffineForms forms_;
  StatementAccesses accesses_;
  TouchHistory history_;
  std::vector<const BufferNumbers*> order_;
};

template <class Program>
void DescriberOf<Program>::describe(const Program& nest, const Task& task, FeatureBatch& batch) {
  if (batch.columns() != columns) {
    throw std::invalid_argument("rows of " + std::to_string(columns) + " columns do not fit a batch of " +
                                std::to_string(batch.columns()) + "; construct it with schema().columns.size()");
  }
  nest_ = &nest;
  is_gpu_ = task.target.kind == DeviceKind::Gpu;
  line_bytes_ = static_cast<double>(std::max<std::uint64_t>(1, task.target.cache_line_bytes));
  extents_.clear();
  kinds_.clear();
  outer_iterations_.clear();
  unroll_limits_.assign(1, 0);
  iterations_ = 1;
  rows_.clear();
  depth_of_.assign(variables_of(nest), AffineForms::none);
  row_of_.assign(nest.buffers.size(), no_row);
  allocations_.assign(nest.buffers.size(), 1.0);
  walk(nest, *this);
  batch.append_program(rows_);
}

}  // namespace tunewright::features::per_statement
