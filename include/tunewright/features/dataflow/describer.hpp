// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/dataflow/schema.hpp"
#include "tunewright/features/per_statement/accesses.hpp"
#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/features/per_statement/operations.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::features::dataflow {

/// Writes the rows of lowered programs. Holds options and memory to work in; what it writes does not depend on
/// what it described before. Not for several threads at once: give each its own.
class Describer {
 public:
  explicit Describer(bool store_rows = true, bool squared_operations = false, bool asynchronous_copies = false);

  /// Appends the program `nest` to `batch`. Throws `std::invalid_argument` for a batch of another width or a
  /// nest that is not well formed; `batch` is then unchanged.
  void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch);

 private:
  struct Seen {
    const loops::Statement* statement = nullptr;
    double iterations = 1;
  };
  /// Statements that data pass through on their way; null where there is none.
  struct Path {
    const loops::Statement* start = nullptr;
    std::array<const loops::Statement*, 2> copy{};
    const loops::Statement* reduction = nullptr;
    const loops::Statement* store = nullptr;
    std::array<loops::BufferId, 2> operand{loops::LoopNest::no_buffer, loops::LoopNest::no_buffer};
  };

  template <class F>
  void for_each_statement(const loops::Body& body, const F& f) {
    for (const loops::Node& node : body) {
      if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
        const std::int64_t extent = loops::checked_extent(*nest_, *loop);
        const bool runs = extent > 1 || loop->kind != loops::LoopKind::Serial;
        if (runs) open(*loop, extent);
        for_each_statement(loop->body, f);
        if (runs) close(*loop, extent);
      } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
        f(*statement);
      } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
        for_each_statement(branch->then.empty() ? branch->otherwise : branch->then, f);
      }
    }
  }
  void open(const loops::Loop& loop, std::int64_t extent);
  void close(const loops::Loop& loop, std::int64_t extent);

  [[nodiscard]] loops::BufferId buffer_of(const program::ExprNode& load) const;
  [[nodiscard]] bool reads(const loops::Statement& s, loops::BufferId buffer);
  [[nodiscard]] double float_operations(const loops::Statement& s);

  /// Finds the reduction that computes most, and what lies on the way to and from it.
  bool find_reduction();

  void describe(const loops::Statement& s);

  void write(Row row, const loops::Statement& s, const per_statement::BufferNumbers& numbers);

  /// On a CPU nothing is shared by a block; a tile copied for the reduction takes its place.
  [[nodiscard]] Column memory_of(const loops::Buffer& buffer, loops::BufferId id) const;

  std::size_t rows_;
  std::size_t columns_;
  bool squared_operations_;
  const loops::LoopNest* nest_ = nullptr;
  double line_bytes_ = 64;
  std::vector<Seen> seen_;
  Path path_;
  std::vector<float> values_;  // (rows_, columns_)
  std::vector<std::int64_t> extents_;
  double iterations_ = 1;
  std::vector<std::uint32_t> depth_of_;  // by variable; empty while statements are only listed
  per_statement::OperationTable operations_;
  per_statement::AffineForms forms_;
  per_statement::StatementAccesses accesses_;
  per_statement::TouchHistory history_;
};

}  // namespace tunewright::features::dataflow

#if TUNEWRIGHT_DEFINES(program_features)

#include "tunewright/features/per_statement/describer.hpp"

namespace tunewright::features::dataflow {

TUNEWRIGHT_INLINE Describer::Describer(bool store_rows, bool squared_operations, bool asynchronous_copies)
    : rows_(store_rows ? rows : rows_without_store),
      columns_(asynchronous_copies ? columns_with_asynchronous_copies : columns),
      squared_operations_(squared_operations) {}

TUNEWRIGHT_INLINE void Describer::describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) {
  if (batch.columns() != columns_) {
    throw std::invalid_argument("rows of " + std::to_string(columns_) + " columns do not fit a batch of " +
                                std::to_string(batch.columns()) + "; construct it with schema().columns.size()");
  }
  nest_ = &nest;
  line_bytes_ = static_cast<double>(std::max<std::uint64_t>(1, task.target.cache_line_bytes));
  values_.assign(rows_ * columns_, 0.0F);
  seen_.clear();
  depth_of_.clear();
  iterations_ = 1;
  for_each_statement(nest.body, [this](const loops::Statement& s) { seen_.push_back({&s, iterations_}); });
  if (find_reduction()) {
    extents_.clear();
    iterations_ = 1;
    depth_of_.assign(nest.variables.size(), per_statement::AffineForms::none);
    for_each_statement(nest.body, [this](const loops::Statement& s) { describe(s); });
  }
  batch.append_program(values_);
}

TUNEWRIGHT_INLINE void Describer::open(const loops::Loop& loop, std::int64_t extent) {
  iterations_ *= static_cast<double>(extent);
  if (depth_of_.empty()) return;
  depth_of_[loop.var] = static_cast<std::uint32_t>(extents_.size());
  history_.enter(extents_.size());
  extents_.push_back(extent);
}

TUNEWRIGHT_INLINE void Describer::close(const loops::Loop& loop, std::int64_t extent) {
  iterations_ /= static_cast<double>(extent);
  if (depth_of_.empty()) return;
  extents_.pop_back();
  depth_of_[loop.var] = per_statement::AffineForms::none;
}

TUNEWRIGHT_INLINE loops::BufferId Describer::buffer_of(const program::ExprNode& load) const {
  if (load.tensor < nest_->buffer_of.size() && nest_->buffer_of[load.tensor] < nest_->buffers.size())
    return nest_->buffer_of[load.tensor];
  throw std::invalid_argument("loop nest '" + nest_->name + "' reads tensor " + std::to_string(load.tensor) +
                              " which has no buffer; add it to buffer_of");
}

TUNEWRIGHT_INLINE bool Describer::reads(const loops::Statement& s, loops::BufferId buffer) {
  if (s.kind == loops::Statement::Kind::Initialise) return false;
  const auto& loads = operations_.of(s.op).loads;
  return std::any_of(loads.begin(), loads.end(),
                     [&](const program::ExprNode* load) { return buffer_of(*load) == buffer; });
}

TUNEWRIGHT_INLINE double Describer::float_operations(const loops::Statement& s) {
  if (s.kind == loops::Statement::Kind::Initialise) return 0;
  const auto& counts = operations_.of(s.op).counts;
  double sum = 0;
  for (std::size_t c = per_statement::FloatMad; c <= per_statement::FloatOther; ++c) sum += counts[c];
  const auto combiner = per_statement::column_of(s.op->combiner, s.op->type);
  const bool of_floats = combiner && *combiner <= per_statement::FloatOther;
  return sum + (s.kind == loops::Statement::Kind::Update && of_floats ? 1 : 0);
}

TUNEWRIGHT_INLINE bool Describer::find_reduction() {
  path_ = {};
  double most = -1;
  std::size_t place = 0;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].statement->kind != loops::Statement::Kind::Update) continue;
    const double operations = float_operations(*seen_[i].statement) * seen_[i].iterations;
    if (operations <= most) continue;
    most = operations;
    place = i;
    path_.reduction = seen_[i].statement;
  }
  if (path_.reduction == nullptr) return false;
  std::size_t operands = 0;
  for (const program::ExprNode* load : operations_.of(path_.reduction->op).loads) {
    const loops::BufferId buffer = buffer_of(*load);
    if (operands < 2 && buffer != path_.operand[0]) path_.operand[operands++] = buffer;
  }
  for (std::size_t i = 0; i < place; ++i) {  // the last before the reduction counts
    const loops::Statement& s = *seen_[i].statement;
    if (s.kind == loops::Statement::Kind::Initialise && s.target == path_.reduction->target) path_.start = &s;
    for (std::size_t o = 0; o < operands; ++o)
      if (s.kind == loops::Statement::Kind::Assign && s.target == path_.operand[o]) path_.copy[o] = &s;
  }
  for (std::size_t i = place + 1; i < seen_.size() && path_.store == nullptr; ++i)
    if (reads(*seen_[i].statement, path_.reduction->target)) path_.store = seen_[i].statement;
  return true;
}

TUNEWRIGHT_INLINE void Describer::describe(const loops::Statement& s) {
  using Over = per_statement::AffineForms::Over;
  using per_statement::AccessType;
  const bool start = s.kind == loops::Statement::Kind::Initialise;
  if (!start && (!s.op->body || s.op->body->op == program::Op::Constant)) return;
  const std::size_t rank = nest_->buffers.at(s.target).shape.size();
  const std::span<const program::IndexExpr> axis_values(s.axis_values);
  if (axis_values.size() < rank) {
    throw std::invalid_argument("a statement of operator '" + s.op->name + "' binds " +
                                std::to_string(axis_values.size()) + " axes; bind all of them");
  }
  forms_.reset(extents_, depth_of_, axis_values);
  accesses_.reset(extents_.size());
  const bool update = s.kind == loops::Statement::Kind::Update;
  accesses_.add(*nest_, s.target, forms_, axis_values.first(rank), Over::Loops,
                update ? AccessType::ReadWrite : AccessType::Write);
  if (!start) {
    for (const program::ExprNode* load : operations_.of(s.op).loads)
      accesses_.add(*nest_, buffer_of(*load), forms_, load->indices, Over::Axes, AccessType::Read);
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

TUNEWRIGHT_INLINE void Describer::write(Row row, const loops::Statement& s,
                                        const per_statement::BufferNumbers& numbers) {
  const std::span<float> values = std::span(values_).subspan(static_cast<std::size_t>(row) * columns_, columns_);
  const loops::Buffer& buffer = nest_->buffers[numbers.buffer];
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

TUNEWRIGHT_INLINE Column Describer::memory_of(const loops::Buffer& buffer, loops::BufferId id) const {
  if (buffer.scope == loops::Scope::Global) return InGlobalMemory;
  const bool copied_tile = (path_.copy[0] != nullptr && id == path_.copy[0]->target) ||
                           (path_.copy[1] != nullptr && id == path_.copy[1]->target);
  return buffer.scope == loops::Scope::Shared || copied_tile ? InSharedMemory : InLocalMemory;
}

}  // namespace tunewright::features::dataflow

#endif
