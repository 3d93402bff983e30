// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/core/order.hpp"
#include "tunewright/explorers/concept.hpp"

namespace tunewright::explorers {

/// All configurations of one exploration, each scored once. Explorers work with positions in it and return its best. N
/// = number of configurations.
template <SearchSpace S>
class Archive {
 public:
  using Config = config_t<S>;

  Archive(const S& space, const Guidance<Config>& guidance) : space_(space), guidance_(guidance) {}

  /// Position of `config`, which is added if its key is new.
  std::size_t add(Config config) {
    const std::uint64_t key = space_.key(config);
    const auto [entry, is_new] = position_.try_emplace(key, configs_.size());
    if (is_new) {
      configs_.push_back(std::move(config));
      keys_.push_back(key);
      measured_.push_back(guidance_.measured.count(key) != 0);
    }
    return entry->second;
  }

  /// Ranks the configurations added since the last call, in one batch.
  void score_added() {
    const std::size_t old = score_.size();
    score_.resize(configs_.size());
    if (old == configs_.size()) return;
    guidance_.rank(std::span<const Config>(configs_).subspan(old), std::span(score_).subspan(old));
  }

  [[nodiscard]] std::size_t size() const noexcept { return configs_.size(); }
  [[nodiscard]] const Config& config(std::size_t position) const noexcept { return configs_[position]; }
  [[nodiscard]] float score(std::size_t position) const noexcept { return score_[position]; }

  /// Whether `position` may be returned: scored, not measured and not rejected.
  [[nodiscard]] bool eligible(std::size_t position) const {
    return position < score_.size() && score_[position] > -std::numeric_limits<float>::infinity() &&
           !measured_[position];
  }

  /// Up to `count` eligible positions, best first; equal scores are ordered by key, so the order of discovery does not
  /// matter.
  [[nodiscard]] std::vector<std::size_t> best(std::size_t count) const { return best(count, positions(size())); }
  /// The same among some positions. As scores do not change, the best of all are those of the former best and of what
  /// was added since.
  [[nodiscard]] std::vector<std::size_t> best(std::size_t count, std::vector<std::size_t> among) const {
    std::erase_if(among, [&](std::size_t position) { return !eligible(position); });
    return first_in_order(std::move(among), count, [&](std::size_t a, std::size_t b) {
      return score_[a] != score_[b] ? score_[a] > score_[b] : keys_[a] < keys_[b];
    });
  }

  /// Moves the configurations at `positions` out of the archive, which is then unusable.
  [[nodiscard]] std::vector<Config> release(std::span<const std::size_t> positions) && {
    std::vector<Config> configs;
    configs.reserve(positions.size());
    for (const std::size_t position : positions) configs.push_back(std::move(configs_[position]));
    return configs;
  }

 private:
  const S& space_;
  const Guidance<Config>& guidance_;
  std::vector<Config> configs_;      // [N]
  std::vector<std::uint64_t> keys_;  // [N]
  std::vector<bool> measured_;       // [N]
  std::vector<float> score_;         // [N] after `score_added`
  std::unordered_map<std::uint64_t, std::size_t> position_;
};

}  // namespace tunewright::explorers
