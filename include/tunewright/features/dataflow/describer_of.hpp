// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/features/dataflow/schema.hpp"
#include "tunewright/features/per_statement/accesses.hpp"
#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/features/per_statement/describer_of.hpp"
#include "tunewright/features/per_statement/operations.hpp"
#include "tunewright/features/per_statement/program_walk.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"

namespace tunewright::features::dataflow {

/// Writes the rows of programs of one type, lowered or summarized; see `Describer`.
template <class Program>
class DescriberOf {
 public:
  DescriberOf(bool store_rows, bool squared_operations, bool asynchronous_copies)
      : rows_(store_rows ? rows : rows_without_store),
        columns_(asynchronous_copies ? columns_with_asynchronous_copies : columns),
        squared_operations_(squared_operations) {}

  void describe(const Program& nest, const Task& task, FeatureBatch& batch);

  // Called by `walk`. One walk lists the statements, another describes them.
  void enter(const per_statement::WalkedLoop& loop) {
    if (!loop.runs()) return;
    iterations_ *= static_cast<double>(loop.extent);
    if (lists_) return;
    depth_of_[loop.var] = static_cast<std::uint32_t>(extents_.size());
    history_.enter(extents_.size());
    extents_.push_back(loop.extent);
  }
  void leave(const per_statement::WalkedLoop& loop) {
    if (!loop.runs()) return;
    iterations_ /= static_cast<double>(loop.extent);
    if (lists_) return;
    extents_.pop_back();
    depth_of_[loop.var] = per_statement::AffineForms::none;
  }
  void allocate(loops::BufferId) {}
  void run(const per_statement::WalkedStatement& s) {
    if (lists_)
      seen_.push_back({s, iterations_});
    else
      describe(described_++);
  }

 private:
  using Statement = per_statement::WalkedStatement;

  struct Seen {
    Statement statement;
    double iterations = 1;
  };
  /// Statements on the path of the data; null if absent.
  struct Path {
    const Statement* start = nullptr;
    std::array<const Statement*, 2> copy{};
    const Statement* reduction = nullptr;
    const Statement* store = nullptr;
    std::array<loops::BufferId, 2> operand{loops::LoopNest::no_buffer, loops::LoopNest::no_buffer};
  };

  [[nodiscard]] loops::BufferId buffer_of(const program::ExprNode& load) const {
    if (load.tensor < nest_->buffer_of.size() && nest_->buffer_of[load.tensor] < nest_->buffers.size())
      return nest_->buffer_of[load.tensor];
    throw std::invalid_argument(loops::no_buffer_text("loop nest", per_statement::name_of(*nest_), load.tensor));
  }
  [[nodiscard]] bool reads(const Statement& s, loops::BufferId buffer) {
    if (s.kind == loops::Statement::Kind::Initialise) return false;
    const auto& loads = operations_.of(*s.op).loads;
    return std::any_of(loads.begin(), loads.end(),
                       [&](const program::ExprNode* load) { return buffer_of(*load) == buffer; });
  }
  [[nodiscard]] double float_operations(const Statement& s) {
    if (s.kind == loops::Statement::Kind::Initialise) return 0;
    const auto& counts = operations_.of(*s.op).counts;
    double sum = 0;
    for (std::size_t c = per_statement::FloatMad; c <= per_statement::FloatOther; ++c) sum += counts[c];
    const auto combiner = per_statement::column_of((*s.op)->combiner, (*s.op)->type);
    const bool of_floats = combiner && *combiner <= per_statement::FloatOther;
    return sum + (s.kind == loops::Statement::Kind::Update && of_floats ? 1 : 0);
  }

  /// Finds the largest reduction, and the statements on the paths to and from it.
  bool find_reduction() {
    path_ = {};
    double most = -1;
    std::size_t place = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].statement.kind != loops::Statement::Kind::Update) continue;
      const double operations = float_operations(seen_[i].statement) * seen_[i].iterations;
      if (operations <= most) continue;
      most = operations;
      place = i;
      path_.reduction = &seen_[i].statement;
    }
    if (path_.reduction == nullptr) return false;
    std::size_t operands = 0;
    for (const program::ExprNode* load : operations_.of(*path_.reduction->op).loads) {
      const loops::BufferId buffer = buffer_of(*load);
      if (operands < 2 && buffer != path_.operand[0]) path_.operand[operands++] = buffer;
    }
    for (std::size_t i = 0; i < place; ++i) {  // the last one before the reduction counts
      const Statement& s = seen_[i].statement;
      if (s.kind == loops::Statement::Kind::Initialise && s.target == path_.reduction->target) path_.start = &s;
      for (std::size_t o = 0; o < operands; ++o)
        if (s.kind == loops::Statement::Kind::Assign && s.target == path_.operand[o]) path_.copy[o] = &s;
    }
    for (std::size_t i = place + 1; i < seen_.size() && path_.store == nullptr; ++i)
      if (reads(seen_[i].statement, path_.reduction->target)) path_.store = &seen_[i].statement;
    return true;
  }

  void describe(std::size_t place) {
    const Statement& s = seen_[place].statement;
    using per_statement::AccessType;
    const bool start = s.kind == loops::Statement::Kind::Initialise;
    if (!start && (!(*s.op)->body || (*s.op)->body->op == program::Op::Constant)) return;
    const std::size_t rank = nest_->buffers.at(s.target).shape.size();
    if (s.axis_values.size() < rank) {
      throw std::invalid_argument("a statement of operator '" + (*s.op)->name + "' binds " +
                                  std::to_string(s.axis_values.size()) + " axes; bind all of them");
    }
    forms_.reset(extents_, depth_of_, s.axis_values);
    accesses_.reset(extents_.size());
    const bool update = s.kind == loops::Statement::Kind::Update;
    accesses_.add_store(*nest_, s.target, forms_, s.axis_values, rank,
                        update ? AccessType::ReadWrite : AccessType::Write);
    if (!start) {
      for (const program::ExprNode* load : operations_.of(*s.op).loads)
        accesses_.add_load(*nest_, buffer_of(*load), forms_, load->indices);
    }
    accesses_.find_regions(*nest_, forms_, history_);
    const bool on_path =
        &s == path_.start || &s == path_.copy[0] || &s == path_.copy[1] || &s == path_.reduction || &s == path_.store;
    if (!on_path) return;
    const auto numbers = accesses_.describe(*nest_, forms_, history_, extents_, iterations_, line_bytes_);
    if (&s == path_.start) write(Start, s, numbers[0]);
    for (std::size_t o = 0; o < 2; ++o) {
      if (&s != path_.copy[o]) continue;
      if (numbers.size() > 1) write(o == 0 ? FirstSource : SecondSource, s, numbers[1]);
      write(o == 0 ? FirstCopy : SecondCopy, s, numbers[0]);
    }
    if (&s == path_.reduction) {
      for (const per_statement::BufferNumbers& buffer : numbers) {
        if (buffer.buffer == path_.operand[0]) write(FirstOperand, s, buffer);
        if (buffer.buffer == path_.operand[1]) write(SecondOperand, s, buffer);
      }
      write(Result, s, numbers[0]);
    }
    if (&s == path_.store && rows_ == rows) {
      for (const per_statement::BufferNumbers& buffer : numbers)
        if (buffer.buffer == path_.reduction->target) write(StoredResult, s, buffer);
      write(Store, s, numbers[0]);
    }
  }

  void write(Row row, const Statement& s, const per_statement::BufferNumbers& numbers) {
    const std::span<float> values = std::span(values_).subspan(static_cast<std::size_t>(row) * columns_, columns_);
    const auto& buffer = nest_->buffers[numbers.buffer];
    const double times = squared_operations_ ? iterations_ * iterations_ : iterations_;
    values[FloatOperations] = per_statement::slog(float_operations(s) * times);
    values[memory_of(buffer, numbers.buffer)] = 1.0F;
    per_statement::write_buffer(values.subspan(FirstOfBuffer, per_statement::buffer_columns), numbers);
    double bytes = per_statement::element_bytes(buffer) * buffer.stages;
    for (std::size_t d = 0; d < per_statement::dimensions(buffer); ++d)
      bytes *= static_cast<double>(per_statement::extent(buffer, d));
    values[AllocationBytes] = per_statement::slog(bytes);
    const bool is_copy = row == FirstCopy || row == SecondCopy;
    if (columns_ > CopiedByItself && is_copy && buffer.asynchronous) values[CopiedByItself] = 1.0F;
  }

  /// CPUs have no shared memory; a tile copied for the reduction replaces it.
  [[nodiscard]] Column memory_of(const auto& buffer, loops::BufferId id) const {
    if (buffer.scope == loops::Scope::Global) return InGlobalMemory;
    const bool copied_tile = (path_.copy[0] != nullptr && id == path_.copy[0]->target) ||
                             (path_.copy[1] != nullptr && id == path_.copy[1]->target);
    return buffer.scope == loops::Scope::Shared || copied_tile ? InSharedMemory : InLocalMemory;
  }

  std::size_t rows_;
  std::size_t columns_;
  bool squared_operations_;
  const Program* nest_ = nullptr;
  double line_bytes_ = 64;
  std::vector<Seen> seen_;
  std::size_t described_ = 0;  // number of described statements in seen_
  Path path_;
  std::vector<float> values_;  // (rows_, columns_)
  std::vector<std::int64_t> extents_;
  double iterations_ = 1;
  bool lists_ = true;                    // this walk lists the statements
  std::vector<std::uint32_t> depth_of_;  // by variable
  per_statement::OperationTable operations_;
  per_statement::AffineForms forms_;
  per_statement::StatementAccesses accesses_;
  per_statement::TouchHistory history_;
};

template <class Program>
void DescriberOf<Program>::describe(const Program& nest, const Task& task, FeatureBatch& batch) {
  if (batch.columns() != columns_) {
    throw std::invalid_argument("rows of " + std::to_string(columns_) + " columns do not fit a batch of " +
                                std::to_string(batch.columns()) + "; construct it with schema().columns.size()");
  }
  nest_ = &nest;
  line_bytes_ = static_cast<double>(std::max<std::uint64_t>(1, task.target.cache_line_bytes));
  values_.assign(rows_ * columns_, 0.0F);
  seen_.clear();
  lists_ = true;
  iterations_ = 1;
  per_statement::walk(nest, *this);
  if (find_reduction()) {
    extents_.clear();
    iterations_ = 1;
    described_ = 0;
    lists_ = false;
    depth_of_.assign(per_statement::variables_of(nest), per_statement::AffineForms::none);
    per_statement::walk(nest, *this);
  }
  batch.append_program(values_);
}

}  // namespace tunewright::features::dataflow
