// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/feature_rows.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright {

struct FeatureColumn {
  std::string name;
  std::string unit;     ///< of the value stored, e.g. "log2(bytes + 1)", "one-hot", "count"
  std::string meaning;  ///< one sentence
  bool operator==(const FeatureColumn&) const = default;
};

/// Describes the columns of a `FeatureBatch`. Stored weights carry name and version; loading them for another schema is
/// an error.
struct FeatureSchema {
  std::string name;
  unsigned version = 1;  ///< grows with every change of meaning or order
  std::vector<FeatureColumn> columns;
  bool operator==(const FeatureSchema&) const = default;
};

/// The number of columns.
[[nodiscard]] std::size_t width_of(const FeatureSchema& schema);

/// Key of a schema, stored with weights: a hash of name, version, and name and unit of every column. The wording of
/// `meaning` does not change it.
[[nodiscard]] std::uint64_t stable_hash(const FeatureSchema& schema);

/// Describes configurations by numbers.
///
/// `extract(space, task, configs)` returns one program per configuration, in order: N programs with any number of rows,
/// each as wide as `schema().columns`. A configuration that cannot be described gives a program without rows, which
/// ranks last.
///
/// Semantics the compiler cannot see: every value is finite; the rows of a configuration do not depend on the others of
/// the call; equal configurations give equal rows; `extract` may be called from several threads at once.
template <class F, class S>
concept FeaturizerFor = SearchSpace<S> && requires(const F& featurizer, const S& space, const Task& task,
                                                   std::span<const config_t<S>> configs) {
  { featurizer.extract(space, task, configs) } -> std::same_as<FeatureBatch>;  // (R, D) in N programs
  { featurizer.schema() } -> std::convertible_to<FeatureSchema>;               // D columns
};

namespace features {

/// A featurizer whose `describer()` describes lowered programs one by one, so that several featurizers can share one
/// lowering.
template <class F, class S>
concept NestFeaturizerFor = FeaturizerFor<F, S> && requires(const F& featurizer, const S& space, const Task& task,
                                                            const config_t<S>& config, FeatureBatch& batch) {
  featurizer.describer().describe(space.lower(task, config), task, batch);
};

/// Refinement: the describer also reads the summaries of a space, and gives the same rows as for their programs.
template <class F, class S>
concept SummaryFeaturizerFor = NestFeaturizerFor<F, S> && SummarizingSpace<S> &&
                               requires(const F& featurizer, const typename S::summary_type& summary, const Task& task,
                                        FeatureBatch& batch) { featurizer.describer().describe(summary, task, batch); };

/// Calls `describer.prepare(task)`, if there is one. It throws what is wrong with options or target, which
/// `describe_or_leave_out` would take for a fault of every program.
template <class Describer>
void prepare_for(Describer& describer, const Task& task) {
  if constexpr (requires { describer.prepare(task); }) describer.prepare(task);
}

/// Appends `program` to `batch` by `describer`, which `prepare_for` prepared for the task; appends a program without
/// rows if the program makes it throw.
template <class Describer, class Program>
void describe_or_leave_out(Describer& describer, const Program& program, const Task& task, FeatureBatch& batch) {
  try {
    describer.describe(program, task, batch);
  } catch (const std::bad_alloc&) {
    throw;  // not a property of the program
  } catch (const std::exception&) {
    batch.close_program();
  }
}

/// Calls `describe` with the summary of each configuration or with its program, and `leave_out()` for one that cannot
/// be lowered.
template <SearchSpace S, class Describe, class LeaveOut>
void read_configurations(const S& space, const Task& task, std::span<const config_t<S>> configs,
                         const Describe& describe, const LeaveOut& leave_out) {
  ProgramReader<S> reader(space, task);
  for (const config_t<S>& config : configs) {
    try {
      reader.read(config, describe);
    } catch (const std::bad_alloc&) {
      throw;  // not a property of the configuration
    } catch (const std::exception&) {
      leave_out();
    }
  }
}

/// Appends configurations to `batch`, each by its summary if `describer` reads summaries and there is one, else
/// lowered. A configuration that cannot be lowered or described becomes a program without rows. Throws what
/// `prepare_for` throws.
template <SearchSpace S, class Describer>
void describe_configurations(Describer& describer, const S& space, const Task& task,
                             std::span<const config_t<S>> configs, FeatureBatch& batch) {
  prepare_for(describer, task);
  const auto describe = [&](const auto& program)
    requires requires { describer.describe(program, task, batch); }
  {
    describe_or_leave_out(describer, program, task, batch);
    // Configurations of one space have similar numbers of rows.
    if (batch.programs() == 1) batch.reserve_rows(batch.rows() * configs.size());
  };
  read_configurations(space, task, configs, describe, [&] { batch.close_program(); });
}

}  // namespace features
}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(features)

#include "tunewright/core/hash.hpp"

namespace tunewright {

TUNEWRIGHT_INLINE std::size_t width_of(const FeatureSchema& schema) { return schema.columns.size(); }

TUNEWRIGHT_INLINE std::uint64_t stable_hash(const FeatureSchema& schema) {
  StableHash hash;
  hash.add(std::string_view(schema.name)).add(schema.version).add(std::uint64_t{schema.columns.size()});
  for (const FeatureColumn& column : schema.columns)
    hash.add(std::string_view(column.name)).add(std::string_view(column.unit));
  return hash.value();
}

}  // namespace tunewright

#endif
