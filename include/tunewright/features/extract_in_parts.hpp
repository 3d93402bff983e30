// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/parallel.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// The result of `featurizer.extract(space, task, configs)`. Throws `std::logic_error` unless it has one program for
/// each configuration, in rows as wide as the schema: readers find programs by position and columns by the schema.
template <SearchSpace S, FeaturizerFor<S> F>
[[nodiscard]] FeatureBatch extract_checked(const F& featurizer, const S& space, const Task& task,
                                           std::span<const config_t<S>> configs) {
  FeatureBatch x = featurizer.extract(space, task, configs);
  const FeatureSchema& schema = featurizer.schema();  // a copy would copy the texts of hundreds of columns
  if (x.programs() != configs.size()) {
    throw std::logic_error("featurizer '" + schema.name + "' gave " + std::to_string(x.programs()) + " programs for " +
                           std::to_string(configs.size()) +
                           " configurations; close_program() once for each, without rows if it cannot be described");
  }
  if (x.rows() > 0 && x.columns() != width_of(schema)) {
    throw std::logic_error("featurizer '" + schema.name + "' gave rows of " + std::to_string(x.columns()) +
                           " columns, and its schema names " + std::to_string(width_of(schema)) +
                           "; name each column, in order");
  }
  return x;  // (R, D) in N programs
}

/// The same, computed in parts on `threads` threads (0: all hardware threads).
///
/// Determinism: the same at any number of threads, because the rows of one configuration do not depend on others.
template <SearchSpace S, FeaturizerFor<S> F>
[[nodiscard]] FeatureBatch extract_in_parts(const F& featurizer, const S& space, const Task& task,
                                            std::span<const config_t<S>> configs, unsigned threads) {
  const std::size_t parts = std::min<std::size_t>(threads == 0 ? hardware_threads() : threads, configs.size());
  if (parts <= 1) return extract_checked(featurizer, space, task, configs);
  std::vector<FeatureBatch> batches(parts);
  parallel_parts(threads, parts, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      const std::size_t first = configs.size() * part / parts;
      const std::size_t last = configs.size() * (part + 1) / parts;
      batches[part] = extract_checked(featurizer, space, task, configs.subspan(first, last - first));
    }
  });
  FeatureBatch all = std::move(batches[0]);
  for (std::size_t part = 1; part < parts; ++part) all.append(batches[part]);
  return all;  // (R, D) in N programs
}

}  // namespace tunewright::features
