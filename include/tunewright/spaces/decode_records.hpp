// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::spaces {

/// Records that a space could read again, ordered by (round, slot).
template <class Config>
struct DecodedRecords {
  std::vector<Candidate<Config>> batch;  // [N], keys distinct
  std::vector<Outcome> outcomes;         // [N]
  ReasonCounts unusable;                 // why the others are not among them
};

/// Reads the configurations of `records` that belong to `task` and were compiled by `compiler`. Of several records of one
/// candidate the first in the order given counts.
template <SearchSpace S>
[[nodiscard]] DecodedRecords<config_t<S>> decode_records(const S& space, const Task& task, std::span<const Record> records,
                                                         const std::string& compiler) {
  using Config = config_t<S>;
  DecodedRecords<Config> decoded;
  std::vector<std::pair<Candidate<Config>, const Outcome*>> found;
  KeySet keys;
  for (const Record& record : records) {
    if (record.task != stable_hash(task)) {
      ++decoded.unusable["another task"];
    } else if (record.compiler != compiler) {
      ++decoded.unusable["another compiler"];
    } else if (auto config = space.decode(task, record.config); !config) {
      ++decoded.unusable["not in the search space"];
    } else if (const std::uint64_t key = space.key(*config); !keys.insert(key).second) {
      ++decoded.unusable["measured twice"];
    } else {
      found.push_back({{*std::move(config), key, record.round, record.slot}, &record.outcome});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.round, a.first.slot) < std::tie(b.first.round, b.first.slot);
  });
  for (auto& [candidate, outcome] : found) {
    decoded.batch.push_back(std::move(candidate));
    decoded.outcomes.push_back(*outcome);
  }
  return decoded;
}

}  // namespace tunewright::spaces
