// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "tunewright/adaptations/concept.hpp"
#include "tunewright/adaptations/growth.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/core/require.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/stats/ranking.hpp"

namespace tunewright::adaptations {

/// Protects against negative transfer: uses `A` as long as its model ranks the own programs at least as well as a model
/// trained only on them, and otherwise that model.
///
///   each of `folds` parts of the own programs is ranked by the model that A makes from the others, and by one
///   fitted on the others; pairwise accuracies are averaged.  transfer iff  with A + margin >= without
///
/// The comparison is repeated whenever there are `min_growth` more programs, or fewer, which are another session's: the
/// verdict on the others does not hold for them. A verdict can change both ways.
///
///   adaptations::Guarded<adaptations::FineTune, models::Mlp>{.transfer = {.frozen = {"encoder"}}}
///
/// Paper:       motivated by Verma et al., arXiv 2304.05430, table 7, where transfer to one of four devices makes
///              programs many times slower; the method is ours.
/// Models:      AdaptationFor<M> if A is one.
/// Cost:        2 `folds` trainings for a comparison, at most two otherwise.
/// Determinism: that of A and M.
/// Errors:      `std::invalid_argument` for options out of range; errors of A and M.
template <class A, CostModel M>
  requires AdaptationFor<A, M>
struct Guarded {
  A transfer{};
  unsigned folds = 3;               ///< at least 2
  std::size_t least_programs = 32;  ///< transfers without a comparison below this number
  double margin = 0;                ///< accepted loss of accuracy by the transfer
  double min_growth = 0.5;          ///< share of new programs that triggers another one, at least 0; infinity: only one

  bool fell_back = false;                          ///< run-time state: the verdict
  double accuracy_with = 0, accuracy_without = 0;  ///< run-time state: what it was based on
  std::size_t judged_candidates = 0;               ///< run-time state: programs at the last verdict
  std::optional<M> source{}, transferred{};        ///< run-time state: the model before and after A
  std::optional<A> fresh{};                        ///< run-time state: A before its first update

  /// Throws `std::invalid_argument` for options out of range.
  void check_options() const {
    require(folds >= 2, "Guarded", "folds", folds, "at least 2");
    require(!std::isnan(margin), "Guarded", "margin", margin, "a number, 0 to accept no loss");
    require(min_growth >= 0, "Guarded", "min_growth", min_growth, "a share, 0 to judge after every batch");
    check_options_of(transfer);
  }

  void update(M& model, const FeatureBatch& x, std::span<const float> y, std::span<const std::uint32_t> group) {
    check_options();
    models::check_fit_sizes("adaptations::Guarded", x, y.size(), group.size());
    if (!source) {
      source = model;
      transferred = model;
      fresh = transfer;
    }
    if (y.size() < judged_candidates) {
      fell_back = false;
      judged_candidates = 0;
    }
    if (y.size() >= least_programs && y.size() >= folds && has_grown(y.size(), judged_candidates, min_growth))
      judge({x, {y.begin(), y.end()}, {group.begin(), group.end()}});
    transfer.update(*transferred, x, y, group);
    if (fell_back)
      model.fit(x, y, group);
    else
      model = *transferred;
  }

 private:
  void judge(const LabelledPrograms& own) {
    accuracy_with = 0;
    accuracy_without = 0;
    // Position in a fixed random order modulo the number of folds.
    std::vector<unsigned> fold(own.size());
    for (std::size_t p = 0; p < fold.size(); ++p) fold[p] = static_cast<unsigned>(mix64(p + 1) % folds);
    unsigned judgements = 0;
    for (unsigned f = 0; f < folds; ++f) {
      std::vector<std::size_t> train, test;
      for (std::size_t p = 0; p < fold.size(); ++p) (fold[p] == f ? test : train).push_back(p);
      if (train.empty() || test.empty()) continue;
      const LabelledPrograms learned = own.subset(train), unseen = own.subset(test);
      M with = *source, without = *source;
      A(*fresh).update(with, learned.x, learned.y, learned.group);
      without.fit(learned.x, learned.y, learned.group);
      accuracy_with += accuracy(with, unseen);
      accuracy_without += accuracy(without, unseen);
      ++judgements;
    }
    if (judgements == 0) return;
    accuracy_with /= judgements;
    accuracy_without /= judgements;
    fell_back = accuracy_with + margin < accuracy_without;
    judged_candidates = own.size();
  }

  static double accuracy(const M& model, const LabelledPrograms& unseen) {
    std::vector<float> score(unseen.size());
    model.predict(unseen.x, score);
    // A training that diverged has scores that are not numbers, which agree with nothing.
    for (float& one : score)
      if (std::isnan(one)) one = -std::numeric_limits<float>::infinity();
    return unseen.group.empty() ? stats::pairwise_accuracy(score, unseen.y)
                                : stats::pairwise_accuracy(score, unseen.y, unseen.group);
  }
};

}  // namespace tunewright::adaptations
