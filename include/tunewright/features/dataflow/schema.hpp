// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/features/per_statement/schema.hpp"

/// Parts of `features::Dataflow`: its columns and rows; `describer.hpp` fills them.
namespace tunewright::features::dataflow {

/// Columns of a row. Those of the buffer are `per_statement::BufferColumn`, starting at `FirstOfBuffer`.
enum Column : std::size_t {
  FloatOperations,
  InGlobalMemory,
  InSharedMemory,
  InLocalMemory,
  FirstOfBuffer,
  AllocationBytes = FirstOfBuffer + per_statement::buffer_columns,
  columns,                   ///< of the paper
  CopiedByItself = columns,  ///< optional
  columns_with_asynchronous_copies
};
static_assert(columns == 23);

/// Rows of a program, in the order of the data movement. "First" and "second" are the operands in the order in which
/// the body reads them.
enum Row : std::size_t {
  Start,        ///< the result, filled before the reduction
  FirstSource,  ///< source of the copy of the first operand
  FirstCopy,    ///< destination of that copy
  SecondSource,
  SecondCopy,
  SecondOperand,  ///< read by the reduction
  FirstOperand,
  Result,        ///< updated by the reduction
  StoredResult,  ///< the result as read by the first later statement
  Store,         ///< destination of that statement
  rows
};
inline constexpr std::size_t rows_without_store = StoredResult;

FeatureSchema make_schema(bool squared_operations, bool asynchronous_copies = false);

}  // namespace tunewright::features::dataflow

#if TUNEWRIGHT_DEFINES(features)

namespace tunewright::features::dataflow {

TUNEWRIGHT_INLINE FeatureSchema make_schema(bool squared_operations, bool asynchronous_copies) {
  std::string schema_name = squared_operations ? "dataflow_squared_operations" : "dataflow";
  if (asynchronous_copies) schema_name += "_asynchronous_copies";
  FeatureSchema schema{std::move(schema_name), 1, {}};
  schema.columns.push_back({"float_operations", "log2(count + 1)",
                            squared_operations ? "Float operations of the statement times its iterations."
                                               : "Float operations of the statement over all iterations."});
  const char* memory[][2] = {{"in_global", "The buffer is in device memory, on CPUs an argument or workspace."},
                             {"in_shared", "It is in shared memory, on CPUs a copied tile of an operand."},
                             {"in_local", "It belongs to a thread."}};
  for (const auto& [name, meaning] : memory) schema.columns.push_back({name, "one-hot", meaning});
  const FeatureSchema& statement = per_statement::schema();
  for (std::size_t c = 0; c < per_statement::buffer_columns; ++c) {
    FeatureColumn column = statement.columns[per_statement::FirstBuffer + c];
    column.name = column.name.substr(column.name.find('_') + 1);
    schema.columns.push_back(column);
  }
  schema.columns.push_back({"alloc_size", "log2(bytes + 1)", "Size of the buffer."});
  if (asynchronous_copies) {
    schema.columns.push_back(
        {"asynchronous", "0 or 1", "The device copies to the buffer by itself, while threads compute."});
  }
  return schema;
}

}  // namespace tunewright::features::dataflow

#endif
