// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <span>

#include "tunewright/features/concept.hpp"
#include "tunewright/features/dataflow/describer.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::features {

/// Describes the data movement between memory levels around the largest reduction, as a short sequence of rows: the
/// initialisation of the result, the path of both operands through shared memory, the reduction, and the path of its
/// result. `dataflow::Row` names the rows, `dataflow::Column` the columns.
///
///   start | A -> A.shared | B -> B.shared | B.shared, A.shared -> result | result -> stored
///
/// On CPUs copies of operands to separate tiles replace shared memory. Rows of absent accesses are zero, as are all
/// rows of a program without a reduction.
///
///   features::Joined<PerStatement, Dataflow>    the input of models::PatternAware
///
/// Paper:       Qiao et al., Pruner, ASPLOS 2025, section 4.2 ("temporal dataflow features").
/// Models:      FeaturizerFor<S> for every space whose program is a loops::LoopNest.
/// Shapes:      10 rows per configuration, or 8, with 23 columns, or 24. Units: see the schema.
/// Determinism: a pure function of program and target.
/// Cost:        that of `PerStatement`.
/// Deviates:    the code looks for one string of scopes and gives only zeros where it does not occur; here statements
///              are identified by their function, so that a program that copies one operand keeps the rows of the
///              other. Within the reduction the code reads operands in the order of a hash table; here from last to
///              first, which equals that order. Prefetching of copies shows in the size of their buffers, and
///              asynchronous copies in a column that the paper does not have.
struct Dataflow {
  bool store_rows = true;            ///< include the last two rows, which the paper has and its code omits
  bool squared_operations = false;   ///< multiply operations by the iterations twice, as the code does
  bool asynchronous_copies = false;  ///< add a column, 1 for asynchronous copies

  /// Describes nests or their summaries one by one; see `Joined`.
  [[nodiscard]] dataflow::Describer describer() const {
    return dataflow::Describer(store_rows, squared_operations, asynchronous_copies);
  }

  /// A configuration that cannot be lowered or described gives a program without rows.
  template <SearchSpace S>
    requires std::convertible_to<program_t<S>, loops::LoopNest>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(asynchronous_copies ? dataflow::columns_with_asynchronous_copies : dataflow::columns);
    dataflow::Describer own = describer();
    describe_configurations(own, space, task, configs, batch);
    return batch;  // (10 N, 23 or 24) in N programs
  }

  [[nodiscard]] FeatureSchema schema() const { return dataflow::make_schema(squared_operations, asynchronous_copies); }
};

}  // namespace tunewright::features
