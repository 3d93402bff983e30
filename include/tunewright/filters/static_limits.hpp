// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "tunewright/filters/concept.hpp"

namespace tunewright::filters {

/// Keeps the configurations that the space calls feasible, by limits that can be checked without compiling, such as
/// registers, stack and shared memory bytes, threads per block, unrolled statements.
///
/// Counts rejections by `space.why_infeasible(task, config)` if the space has it, else under "infeasible".
///
/// Models:      FilterFor<S> for every SearchSpace S.
/// Cost:        one `why_infeasible` or `feasible` per candidate.
struct StaticLimits {
  template <SearchSpace S>
  [[nodiscard]] Kept keep(const S& space, const Task& task, std::span<const config_t<S>> pool) const {
    Kept kept;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if constexpr (requires { std::string(space.why_infeasible(task, pool[i])); }) {
        const std::string reason(space.why_infeasible(task, pool[i]));  // includes the answer of `feasible`
        if (reason.empty())
          kept.indices.push_back(i);
        else
          count_reason(kept.rejected, reason);
      } else if (space.feasible(task, pool[i])) {
        kept.indices.push_back(i);
      } else {
        count_reason(kept.rejected, "infeasible");
      }
    }
    return kept;
  }

  template <SearchSpace S>
  [[nodiscard]] std::string why_rejected(const S& space, const Task& task, const program_t<S>& program) const
    requires requires {
      { space.why_infeasible(task, program) } -> std::convertible_to<std::string_view>;
    }
  {
    return std::string(std::string_view(space.why_infeasible(task, program)));
  }

  template <SummarizingSpace S>
  [[nodiscard]] std::optional<std::string> why_rejected(const S& space, const Task& task,
                                                        const typename S::summary_type& summary) const
    requires requires {
      { space.why_infeasible(task, summary) } -> std::convertible_to<std::optional<std::string_view>>;
    }
  {
    const std::optional<std::string_view> reason = space.why_infeasible(task, summary);
    if (!reason) return std::nullopt;
    return std::string(*reason);
  }
};

}  // namespace tunewright::filters
