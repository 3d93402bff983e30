// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"

/// Parts of `features::PerStatement`. Reading order: this header (the columns), `operations.hpp` and `affine.hpp`
/// (analysis of a statement), `accesses.hpp` (its memory accesses), `describer.hpp` (a whole program).
namespace tunewright::features::per_statement {

inline constexpr std::size_t buffer_blocks = 5;   ///< buffers described in a row; further ones are left out
inline constexpr std::size_t curve_samples = 10;  ///< points of the arithmetic-intensity curve

/// Columns of one group of annotated loops: their number around the statement, and their position.
enum LoopColumn : std::size_t {
  LoopCount,
  LoopProduct,
  LoopLength,
  PositionNone,
  PositionInnerSpatial,
  PositionMiddleSpatial,
  PositionOuterSpatial,
  PositionInnerReduce,
  PositionMiddleReduce,
  PositionOuterReduce,
  PositionMixed,
  loop_columns
};

/// Columns of one buffer that the statement accesses.
enum BufferColumn : std::size_t {
  AccessRead,
  AccessWrite,
  AccessReadWrite,
  Bytes,
  UniqueBytes,
  Lines,
  UniqueLines,
  ReuseLoop,
  ReuseSerial,
  ReuseNone,
  ReuseIterations,
  ReuseBytes,
  ReuseCount,
  BytesPerReuse,
  UniqueBytesPerReuse,
  LinesPerReuse,
  UniqueLinesPerReuse,
  Stride,
  buffer_columns
};

/// Columns of a row. A `LoopColumn` is relative to the start of its group, a `BufferColumn` to the start of its block.
enum Column : std::size_t {
  FloatMad,
  FloatAddSub,
  FloatMul,
  FloatDivMod,
  FloatCompare,
  FloatMath,
  FloatOther,
  IntMad,
  IntAddSub,
  IntMul,
  IntDivMod,
  IntCompare,
  IntMath,
  IntOther,
  BoolOps,
  SelectOps,
  VectorizedLoops,
  UnrolledLoops = VectorizedLoops + loop_columns,
  ParallelLoops = UnrolledLoops + loop_columns,
  IsGpu = ParallelLoops + loop_columns,
  BlockX,
  BlockY,
  BlockZ,
  ThreadX,
  ThreadY,
  ThreadZ,
  VirtualThread,
  FirstBuffer,
  IntensityCurve = FirstBuffer + buffer_blocks * buffer_columns,
  AllocationBytes = IntensityCurve + curve_samples,
  AllocationProduct,
  AllocationOuterProduct,
  AllocationInnerProduct,
  OuterProduct,
  LoopsAround,
  AutoUnrollLimit,
  columns
};
static_assert(columns == 164);

/// Columns within a group of loops and within the block of the `block`-th buffer.
[[nodiscard]] constexpr std::size_t column_of(Column group, LoopColumn part) noexcept {
  return static_cast<std::size_t>(group) + static_cast<std::size_t>(part);
}
[[nodiscard]] constexpr std::size_t column_of(std::size_t block, BufferColumn part) noexcept {
  return FirstBuffer + block * buffer_columns + static_cast<std::size_t>(part);
}

/// Number of leading columns that count operations.
inline constexpr std::size_t operation_columns = VectorizedLoops;

namespace detail {

struct ColumnText {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
};

inline constexpr std::string_view count_unit = "log2(count + 1)";
inline constexpr std::string_view bytes_unit = "log2(bytes + 1)";
inline constexpr std::string_view lines_unit = "log2(cache lines + 1)";
inline constexpr std::string_view flag_unit = "one-hot";

inline constexpr ColumnText operation_text[] = {
    {"float_mad", count_unit,
     "Fused multiply-adds of floats; always zero, they count as one multiplication and one addition."},
    {"float_addsub", count_unit, "Float additions, subtractions and negations over all iterations."},
    {"float_mul", count_unit, "Float multiplications over all iterations."},
    {"float_divmod", count_unit, "Float divisions over all iterations."},
    {"float_cmp", count_unit, "Float minima and maxima over all iterations."},
    {"float_math_func", count_unit, "Calls of exp, log, sqrt, tanh, erf and abs on floats over all iterations."},
    {"float_other_func", count_unit, "Other calls on floats; always zero, there are none."},
    {"int_mad", count_unit, "Fused multiply-adds of integers; always zero."},
    {"int_addsub", count_unit,
     "Integer additions and subtractions over all iterations, those of read indices included."},
    {"int_mul", count_unit, "Integer multiplications over all iterations, those of read indices included."},
    {"int_divmod", count_unit, "Integer divisions and remainders over all iterations, those of read indices included."},
    {"int_cmp", count_unit, "Integer minima and maxima, and comparisons of any type, over all iterations."},
    {"int_math_func", count_unit, "Calls of mathematical functions on integers over all iterations."},
    {"int_other_func", count_unit, "Other calls on integers; always zero, there are none."},
    {"bool_op", count_unit, "Logical and, or, not over all iterations."},
    {"select_op", count_unit, "Selections over all iterations."},
};
static_assert(std::size(operation_text) == operation_columns);

inline constexpr ColumnText loop_text[] = {
    {"num", count_unit, "How many such loops are around the statement."},
    {"prod", count_unit, "Product of their extents; zero without one."},
    {"len", count_unit, "Extent of the innermost of them; zero without one."},
    {"type_none", flag_unit, "There is no such loop."},
    {"type_inner_spatial", flag_unit, "Unused: positions are not told apart."},
    {"type_middle_spatial", flag_unit, "Unused: positions are not told apart."},
    {"type_outer_spatial", flag_unit, "Unused: positions are not told apart."},
    {"type_inner_reduce", flag_unit, "Unused: positions are not told apart."},
    {"type_middle_reduce", flag_unit, "Unused: positions are not told apart."},
    {"type_outer_reduce", flag_unit, "Unused: positions are not told apart."},
    {"type_mixed", flag_unit, "There is such a loop."},
};
static_assert(std::size(loop_text) == loop_columns);

inline constexpr ColumnText thread_text[] = {
    {"is_gpu", flag_unit, "The task's target is a GPU."},
    {"block_x_len", count_unit, "Extent of the outermost loop bound to block x, 1 without one."},
    {"block_y_len", count_unit, "Extent of the outermost loop bound to block y, 1 without one."},
    {"block_z_len", count_unit, "Extent of the outermost loop bound to block z, 1 without one."},
    {"thread_x_len", count_unit, "Extent of the outermost loop bound to thread x, 1 without one."},
    {"thread_y_len", count_unit, "Extent of the outermost loop bound to thread y, 1 without one."},
    {"thread_z_len", count_unit, "Extent of the outermost loop bound to thread z, 1 without one."},
    {"vthread_len", count_unit, "Extent of the outermost virtual-thread loop, 1 without one."},
};
static_assert(std::size(thread_text) == FirstBuffer - IsGpu);

inline constexpr ColumnText buffer_text[] = {
    {"acc_read", flag_unit, "The buffer is only read."},
    {"acc_write", flag_unit, "The buffer is only written."},
    {"acc_read_write", flag_unit, "The buffer is read and written, as by a reduction."},
    {"bytes", bytes_unit, "Bytes accessed over all iterations."},
    {"unique_bytes", bytes_unit, "Bytes of the region accessed by the whole loop nest."},
    {"lines", lines_unit, "Cache lines accessed, each run of iterations in one line counted once."},
    {"unique_lines", lines_unit, "Cache lines of the region accessed."},
    {"reuse_loop_multiple_read", flag_unit,
     "A loop does not move the access: each of its iterations uses the elements again."},
    {"reuse_serial_multiple_read_write", flag_unit, "Statements inside one loop use the buffer one after another."},
    {"reuse_none", flag_unit, "No reuse found."},
    {"reuse_dis_iter", "log2(iterations + 1)", "Iterations between two uses of an element."},
    {"reuse_dis_bytes", bytes_unit, "Bytes touched between two uses of an element."},
    {"reuse_ct", count_unit, "How often an element is used."},
    {"bytes_d_reuse_ct", bytes_unit, "Bytes accessed divided by uses, doubled without reuse."},
    {"unique_bytes_d_reuse_ct", bytes_unit, "Unique bytes divided by uses, doubled without reuse."},
    {"lines_d_reuse_ct", lines_unit, "Lines accessed divided by uses, doubled without reuse."},
    {"unique_lines_d_reuse_ct", lines_unit, "Unique lines divided by uses, doubled without reuse."},
    {"stride", "log2(elements + 1)", "Distance between the accesses of two iterations of the innermost loop."},
};
static_assert(std::size(buffer_text) == buffer_columns);

inline constexpr ColumnText tail_text[] = {
    {"alloc_size", bytes_unit, "Size of the buffer that is written."},
    {"alloc_prod", count_unit, "Its elements times how often it is allocated."},
    {"alloc_outer_prod", count_unit, "Product of the extents of the loops around its allocation."},
    {"alloc_inner_prod", count_unit, "Product of the extents of the loops between its allocation and the statement."},
    {"outer_prod", count_unit, "Product of the extents of all loops around the statement."},
    {"num_loops", count_unit, "Loops around the statement."},
    {"auto_unroll_max_step", count_unit,
     "Statement instances up to which serial loops may be unrolled, 0 where not asked for."},
};
static_assert(std::size(tail_text) == columns - AllocationBytes);

FeatureSchema make_schema();

}  // namespace detail

/// Name, unit and meaning of the 164 columns. Built once.
[[nodiscard]] const FeatureSchema& schema();

}  // namespace tunewright::features::per_statement

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features::per_statement::detail {

TUNEWRIGHT_INLINE FeatureSchema make_schema() {
  FeatureSchema schema{"per_statement", 1, {}};
  const auto add = [&](const std::string& prefix, std::span<const ColumnText> texts) {
    for (const ColumnText& text : texts) {
      schema.columns.push_back({prefix + std::string(text.name), std::string(text.unit), std::string(text.meaning)});
    }
  };
  add("", operation_text);
  add("vec_", loop_text);
  add("unroll_", loop_text);
  add("parallel_", loop_text);
  add("", thread_text);
  for (std::size_t b = 0; b < buffer_blocks; ++b) add("buffer" + std::to_string(b) + "_", buffer_text);
  for (std::size_t i = 1; i <= curve_samples; ++i) {
    schema.columns.push_back({"arith_intensity_" + std::to_string(i), "log2(operations / byte + 1)",
                              "Float operations a byte of the working set, in the loops that do " + std::to_string(i) +
                                  "/" + std::to_string(curve_samples) + " of the statement's operations."});
  }
  add("", tail_text);
  return schema;
}

}  // namespace tunewright::features::per_statement::detail

namespace tunewright::features::per_statement {

TUNEWRIGHT_INLINE const FeatureSchema& schema() {
  static const FeatureSchema built = detail::make_schema();
  return built;
}

}  // namespace tunewright::features::per_statement

#endif
