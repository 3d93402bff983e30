// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/core/history.hpp"
#include "tunewright/core/latency.hpp"
#include "tunewright/core/order.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/core/record.hpp"
#include "tunewright/spaces/concept.hpp"

namespace tunewright::spaces {

/// Records that a space could decode, ordered by (round, slot).
template <class Config>
struct DecodedRecords {
  struct Refused {
    std::size_t record;  // position among the given records
    std::string_view reason;
  };
  std::vector<Candidate<Config>> batch;  // [N], keys distinct
  std::vector<Outcome> outcomes;         // [N]
  std::vector<Refused> refused;          // the others, in the given order
  ReasonCounts unusable;                 // number of records by reason
};

/// Decodes the configurations of those `records` that belong to `task` and were compiled by `compiler`. If a candidate
/// has several such records, the one of possible outcome that says most counts (`says_more`), of equals the first.
template <SearchSpace S>
[[nodiscard]] DecodedRecords<config_t<S>> decode_records(const S& space, const Task& task,
                                                         std::span<const Record> records, const std::string& compiler) {
  DecodedRecords<config_t<S>> decoded;
  std::vector<Candidate<config_t<S>>> found;
  std::vector<const Record*> sources;                     // of `found`
  std::unordered_map<std::uint64_t, std::size_t> places;  // in `found`, by key
  const auto refuse = [&](const Record& record, std::string_view reason) {
    decoded.refused.push_back({static_cast<std::size_t>(&record - records.data()), reason});
    ++decoded.unusable[std::string(reason)];
  };
  for (const Record& record : records) {
    if (record.task != stable_hash(task)) {
      refuse(record, "another task");
    } else if (record.compiler != compiler) {
      refuse(record, "another compiler");
    } else if (impossible_latency(record.outcome)) {
      refuse(record, "a latency that is none");
    } else if (auto config = space.decode(task, record.config); !config) {
      refuse(record, "not in the search space");
    } else {
      constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
      const std::uint64_t key = space.key(*config);
      Candidate<config_t<S>> candidate{*std::move(config), key, record.round, record.slot,
                                       record.predicted.value_or(unknown)};
      const auto [at, is_new] = places.try_emplace(key, found.size());
      if (is_new) {
        found.push_back(std::move(candidate));
        sources.push_back(&record);
      } else if (const Record*& source = sources[at->second]; says_more(record.outcome, source->outcome)) {
        refuse(*std::exchange(source, &record), "measured twice");
        found[at->second] = std::move(candidate);
      } else {
        refuse(record, "measured twice");
      }
    }
  }
  std::sort(decoded.refused.begin(), decoded.refused.end(),
            [](const auto& a, const auto& b) { return a.record < b.record; });
  const auto order = first_in_order(positions(found.size()), found.size(), [&](std::size_t a, std::size_t b) {
    return std::tie(found[a].round, found[a].slot, a) < std::tie(found[b].round, found[b].slot, b);
  });
  for (const std::size_t i : order) {
    decoded.batch.push_back(std::move(found[i]));
    decoded.outcomes.push_back(sources[i]->outcome);
  }
  return decoded;
}

}  // namespace tunewright::spaces
