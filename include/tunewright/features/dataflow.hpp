// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <span>

#include "tunewright/features/concept.hpp"
#include "tunewright/features/dataflow/describer.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::features {

/// What moves between the levels of memory around the reduction that computes most, as a short sequence of rows:
/// the start of the result, both operands on their way through shared memory, the reduction, its result on the
/// way out. `dataflow::Row` names them, `dataflow::Column` the columns.
///
///   start | A -> A.shared | B -> B.shared | B.shared, A.shared -> result | result -> stored
///
/// On CPUs copies of operands to a tile of their own take the place of shared memory. A row whose access does not
/// exist is zero, as are all of a program that reduces nothing.
///
///   features::Joined<PerStatement, Dataflow>    what models::PatternAware takes
///
/// Paper:       Qiao et al., Pruner, ASPLOS 2025, section 4.2 ("temporal dataflow features").
/// Models:      FeaturizerFor<S> for every space whose program is a loops::LoopNest.
/// Shapes:      10 rows a configuration, or 8, 23 columns, or 24. Units: see the schema.
/// Determinism: a pure function of program and target.
/// Cost:        that of `PerStatement`.
/// Deviates:    the code looks for one string of scopes and gives zeros throughout where it does not occur; here
///              statements are found by what they do, so that a program that copies one operand keeps the rows of
///              the other. Within the reduction it reads operands in the order of a hash table, here from last to
///              first, which is what that order came to. That copies run ahead shows in the size of their
///              buffers; whether the device makes them by itself shows in a column that the paper does not have.
struct Dataflow {
  bool store_rows = true;            ///< the last two rows, which the paper has and its code leaves out
  bool squared_operations = false;   ///< operations times iterations twice, as its code has them
  bool asynchronous_copies = false;  ///< a column more, 1 for copies that the device makes by itself

  /// Describes nests, or their summaries, one by one; see `Joined`.
  [[nodiscard]] dataflow::Describer describer() const {
    return dataflow::Describer(store_rows, squared_operations, asynchronous_copies);
  }

  /// A configuration that cannot be lowered or described gives a program without rows.
  template <SearchSpace S>
    requires std::convertible_to<program_t<S>, loops::LoopNest>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(asynchronous_copies ? dataflow::columns_with_asynchronous_copies : dataflow::columns);
    dataflow::Describer own = describer();
    ProgramReader<S> reader(space, task);
    for (const config_t<S>& config : configs) describe_configuration(reader, config, own, task, batch);
    return batch;  // (10 N, 23 or 24) in N programs
  }

  [[nodiscard]] FeatureSchema schema() const { return dataflow::make_schema(squared_operations, asynchronous_copies); }
};

}  // namespace tunewright::features
