// SPDX-License-Identifier: Apache-2.0
// What every adaptation owes, whatever it is: see adaptations/concept.hpp.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/descent_line.hpp"
#include "support/recording_model.hpp"
#include "tunewright/adaptations/coral.hpp"
#include "tunewright/adaptations/feature_map.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/guarded.hpp"
#include "tunewright/adaptations/incremental_refit.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/core/rng.hpp"

using namespace tunewright;
using test::DescentLine;

namespace {

using Labels = std::vector<float>;
using Groups = std::vector<std::uint32_t>;

/// An adaptation and a model that fits it, both as they are before the first measurement.
template <class A, class M = DescentLine>
struct Case {
  A adaptation{};
  M model{};
};

DescentLine trained_elsewhere() {
  DescentLine model;
  model.weights = {0.5F, 0.25F};
  return model;
}

template <class C>
C make() {
  C made{};
  if constexpr (requires { made.adaptation.source.x; })
    made.adaptation.source = {test::one_column({3, 4, 5}), {0.5F, 0.75F, 1}, {0, 0, 1}};
  if constexpr (requires { made.model.source; })
    made.model.source = trained_elsewhere();
  else
    made.model = trained_elsewhere();
  return made;
}

using None = Case<adaptations::None>;
using Refit = Case<adaptations::Refit>;
using IncrementalRefit = Case<adaptations::IncrementalRefit>;
using WarmStart = Case<adaptations::WarmStart, adaptations::Transferred<DescentLine>>;
using FineTune = Case<adaptations::FineTune>;
using Momentum = Case<adaptations::Momentum>;
using FeatureMap = Case<adaptations::FeatureMap>;
using Coral = Case<adaptations::Coral>;
using Guarded = Case<adaptations::Guarded<adaptations::Momentum, DescentLine>>;

struct Measured {
  FeatureBatch x{FeatureBatch(1)};
  Labels y;
  Groups group;
};
Measured measured(std::size_t n, std::uint64_t seed) {
  Measured m;
  Rng rng(seed);
  for (std::size_t p = 0; p < n; ++p) {
    const float value = static_cast<float>(rng.uniform());
    if (p % 7 == 6)
      m.x.close_program();  // could not be described
    else
      m.x.append_program(std::span(&value, 1));
    m.y.push_back(p % 5 == 4 ? 0 : 0.2F + 0.8F * value);
    m.group.push_back(static_cast<std::uint32_t>(p % 3));
  }
  return m;
}

template <class C>
Labels after(const std::vector<Measured>& rounds, std::span<const float> asked) {
  C made = make<C>();
  for (const Measured& round : rounds) made.adaptation.update(made.model, round.x, round.y, round.group);
  Labels score(asked.size());
  made.model.predict(test::one_column(asked), score);
  return score;
}

}  // namespace

#define ADAPTATIONS None, Refit, IncrementalRefit, WarmStart, FineTune, Momentum, FeatureMap, Coral, Guarded

TEST_CASE_TEMPLATE("the same calls leave the same model", C, ADAPTATIONS) {
  const std::vector<Measured> rounds{measured(8, 1), measured(40, 1), measured(96, 1)};
  const Labels asked{0, 0.25F, 0.5F, 1, 7};
  CHECK(after<C>(rounds, asked) == after<C>(rounds, asked));
}

TEST_CASE_TEMPLATE("any measurements will do: none, one, only failures, one task, fewer than before", C, ADAPTATIONS) {
  C made = make<C>();
  const auto update = [&](const Measured& m) {
    CHECK_NOTHROW(made.adaptation.update(made.model, m.x, m.y, m.group));
    Labels score(m.y.size());
    made.model.predict(m.x, score);
    for (std::size_t p = 0; p < score.size(); ++p) {
      CHECK(!std::isnan(score[p]));
      CHECK(std::isinf(score[p]) == m.x.program(p).empty());
    }
  };
  update(measured(0, 2));
  update(measured(1, 2));
  Measured failed = measured(12, 2);
  failed.y.assign(failed.y.size(), 0);
  update(failed);
  Measured one_task = measured(64, 2);
  one_task.group.clear();
  update(one_task);
  update(measured(5, 3));
}

TEST_CASE_TEMPLATE("an adaptation is a value: a copy goes on alike and leaves the original alone", C, ADAPTATIONS) {
  C made = make<C>();
  const Measured first = measured(20, 4), second = measured(50, 4);
  made.adaptation.update(made.model, first.x, first.y, first.group);
  C copy = made;
  copy.adaptation.update(copy.model, second.x, second.y, second.group);
  made.adaptation.update(made.model, second.x, second.y, second.group);
  Labels of_copy(2), of_original(2);
  copy.model.predict(test::one_column({0.25F, 0.75F}), of_copy);
  made.model.predict(test::one_column({0.25F, 0.75F}), of_original);
  CHECK(of_copy == of_original);
}
