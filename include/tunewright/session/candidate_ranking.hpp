// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tunewright/core/parallel.hpp"
#include "tunewright/core/reason_counts.hpp"
#include "tunewright/features/extract_in_parts.hpp"
#include "tunewright/recipe.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/session/described_rows.hpp"

namespace tunewright {

/// Scores candidates that have not been measured. The filter runs first; then the recipe's draft or, without a draft,
/// featurizer and model. A guide of the sampler that is not empty replaces the model.
///
/// If filter and draft, or filter and featurizer, can both read summaries, a candidate with a summary is not lowered.
/// If both can read programs, it is lowered once for both. Otherwise each part gets configurations. Rows that are
/// computed for the model are added to `rows` while there is room.
///
/// Stores references to its arguments, which must outlive it.
/// Determinism: the same scores and counts at any number of threads.
template <class Recipe>
class CandidateRanking {
 public:
  using Space = typename Recipe::space;
  using Config = config_t<Space>;

  static constexpr bool has_draft = !std::same_as<typename Recipe::draft, drafts::None>;

  CandidateRanking(const Parts<Recipe>& parts, const Task& task, DescribedRows& rows, const samplers::Guide& guide)
      : parts_(parts), task_(task), rows_(rows), guide_(guide) {}

  /// Scores each of `configs`, larger is better, on `Parts::threads` threads; rejected candidates get -infinity.
  /// Returns the number of rejections by reason.
  ReasonCounts rank(std::span<const Config> configs, std::span<float> score) const {
    ReasonCounts rejected;
    SharedReasonCounts counts(rejected);
    parallel_parts(parts_.threads, configs.size(), [&](std::size_t begin, std::size_t end) {
      const std::span<const Config> part = configs.subspan(begin, end - begin);
      const std::span<float> part_score = score.subspan(begin, part.size());
      ReasonCounts of_part;
      if constexpr (reads_programs)
        of_part = rank_programs(part, part_score);
      else
        of_part = rank_configs(part, part_score);
      counts.add(of_part);
    });
    return rejected;
  }

 private:
  static constexpr bool reads_programs =
      ProgramFilterFor<typename Recipe::filter, Space> &&
      (ProgramDraftFor<typename Recipe::draft, Space> ||
       (!has_draft && features::NestFeaturizerFor<typename Recipe::featurizer, Space>));
  static constexpr bool reads_summaries =
      SummaryFilterFor<typename Recipe::filter, Space> &&
      (SummaryDraftFor<typename Recipe::draft, Space> ||
       (!has_draft && features::SummaryFeaturizerFor<typename Recipe::featurizer, Space>));
  // The number of programs that `predict_programs` featurizes before it calls the model: their rows stay in a core's
  // own cache, in reused memory.
  static constexpr std::size_t block = 64;
  static constexpr float worst = -std::numeric_limits<float>::infinity();

  ReasonCounts rank_configs(std::span<const Config> configs, std::span<float> score) const {
    Kept kept = parts_.filter.keep(parts_.space, task_, configs);
    check_kept(kept, configs.size());
    if (kept.indices.size() == configs.size()) {
      score_configs(configs, score);
      return std::move(kept.rejected);
    }
    std::vector<Config> left;
    for (const std::size_t index : kept.indices) left.push_back(configs[index]);
    std::vector<float> left_score(left.size());
    score_configs(left, left_score);
    std::fill(score.begin(), score.end(), worst);
    for (std::size_t i = 0; i < left.size(); ++i) score[kept.indices[i]] = left_score[i];
    return std::move(kept.rejected);
  }

  void score_configs(std::span<const Config> configs, std::span<float> score) const {
    if constexpr (has_draft) {
      parts_.draft.score(parts_.space, task_, configs, score);
    } else {
      const FeatureBatch x = features::extract_checked(parts_.featurizer, parts_.space, task_, configs);
      predict(x, score);
      std::vector<std::uint64_t> keys;
      for (const Config& config : configs) keys.push_back(parts_.space.key(config));
      keep_rows(keys, x);
    }
  }
  void predict(const FeatureBatch& x, std::span<float> score) const {
    if (guide_)
      guide_(x, score);
    else
      parts_.model.predict(x, score);
  }
  void keep_rows(std::span<const std::uint64_t> keys, const FeatureBatch& x) const {
    const std::lock_guard lock(keeping_);
    rows_.add_if_room(keys, x);
  }

  ReasonCounts rank_programs(std::span<const Config> configs, std::span<float> score) const {
    std::fill(score.begin(), score.end(), worst);
    if constexpr (has_draft) {
      auto score_of = parts_.draft.score_of(task_);
      return each_kept(configs, [&](std::size_t i, const auto& program) { score[i] = score_of(program); });
    } else {
      return predict_programs(configs, score);
    }
  }

  ReasonCounts predict_programs(std::span<const Config> configs, std::span<float> score) const {
    auto describer = parts_.featurizer.describer();
    features::prepare_for(describer, task_);
    FeatureBatch x(width_of(parts_.featurizer.schema()));
    std::vector<std::size_t> described;  // positions of the programs in `x`
    std::vector<std::uint64_t> keys;     // likewise
    std::vector<float> predicted;
    const auto predict_described = [&] {
      if (described.empty()) return;
      predicted.resize(described.size());
      predict(x, predicted);
      for (std::size_t i = 0; i < described.size(); ++i) score[described[i]] = predicted[i];
      keep_rows(keys, x);
      described.clear();
      keys.clear();
      x.clear();
    };
    ReasonCounts rejected = each_kept(configs, [&](std::size_t i, const auto& program) {
      described.push_back(i);
      keys.push_back(parts_.space.key(configs[i]));
      features::describe_or_leave_out(describer, program, task_, x);  // a program without rows ranks last
      if (described.size() == block) predict_described();
    });
    predict_described();
    return rejected;
  }

  // Calls visit(position, program or summary) for the candidates that the filter keeps; returns the reasons of
  // rejections.
  template <class Visit>
  ReasonCounts each_kept(std::span<const Config> configs, const Visit& visit) const {
    ReasonCounts rejected;
    const auto take = [&](std::size_t i, const std::string& reason, const auto& program) {
      if (reason.empty())
        visit(i, program);
      else
        count_reason(rejected, reason);
    };
    ProgramReader<Space> reader(parts_.space, task_);
    for (std::size_t i = 0; i < configs.size(); ++i) {
      if (i + 1 < configs.size()) reader.prefetch(configs[i + 1]);
      if constexpr (reads_summaries) {
        if (const auto* summary = reader.summary(configs[i])) {
          const std::optional<std::string> reason = parts_.filter.why_rejected(parts_.space, task_, *summary);
          if (reason) {
            take(i, *reason, *summary);
            continue;
          }
        }
      }
      std::optional<program_t<Space>> program;
      try {
        program.emplace(parts_.space.lower(task_, configs[i]));
      } catch (const std::bad_alloc&) {
        throw;                           // not a property of the candidate
      } catch (const std::exception&) {  // the filter gives the reason
        add_counts(rejected, parts_.filter.keep(parts_.space, task_, configs.subspan(i, 1)).rejected);
        continue;
      }
      take(i, std::string(std::string_view(parts_.filter.why_rejected(parts_.space, task_, *program))), *program);
    }
    return rejected;
  }

  const Parts<Recipe>& parts_;
  const Task& task_;
  DescribedRows& rows_;
  const samplers::Guide& guide_;
  mutable std::mutex keeping_;
};

}  // namespace tunewright
