// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/feature_rows.hpp"

#include <doctest/doctest.h>

#include <cstddef>

#include "tunewright/adaptations/alignment/columns.hpp"
#include "tunewright/adaptations/mapped.hpp"
#include "tunewright/adaptations/transferred.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/models/committee.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/with_dropout.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/samplers/uncertainty_ping_pong.hpp"

namespace {

using namespace tunewright;

struct Statements {};
struct OwnParts {
  static constexpr std::size_t row_kinds = 2;
};
using OneKind = features::Joined<Statements, features::Knobs>;
using TwoKinds = features::Joined<Statements, Statements>;

TEST_CASE("a featurizer says how many kinds of rows it gives, one if it says nothing") {
  CHECK(row_kinds<Statements> == 1);
  CHECK(row_kinds<OwnParts> == 2);
  CHECK(row_kinds<OneKind> == 1);
  CHECK(row_kinds<TwoKinds> == 2);
  CHECK(row_kinds<features::Joined<Statements, features::Knobs, Statements, Statements>> == 3);
}

TEST_CASE("a reader that says nothing reads any rows, others those that they say") {
  CHECK(ReadsRowsOf<models::Gbdt, TwoKinds>);
  CHECK(ReadsRowsOf<models::PatternAware, TwoKinds>);
  CHECK(ReadsRowsOf<models::PatternAware, OwnParts>);
  CHECK_FALSE(ReadsRowsOf<models::PatternAware, OneKind>);
  CHECK_FALSE(ReadsRowsOf<adaptations::Mapped<models::PatternAware, adaptations::alignment::Columns>, OneKind>);
  CHECK(ReadsRowsOf<samplers::TopK, Statements>);
  CHECK(ReadsRowsOf<samplers::UncertaintyPingPong<models::Gbdt>, features::Knobs>);
  CHECK_FALSE(ReadsRowsOf<samplers::UncertaintyPingPong<models::Gbdt>, OneKind>);
}

TEST_CASE("a model of models reads what they read") {
  CHECK(ReadsRowsOf<models::Committee<models::Gbdt>, OneKind>);
  CHECK_FALSE(ReadsRowsOf<models::Committee<models::PatternAware>, OneKind>);
  CHECK_FALSE(ReadsRowsOf<models::WithDropout<models::PatternAware>, OneKind>);
  CHECK_FALSE(ReadsRowsOf<adaptations::Transferred<models::Gbdt, models::PatternAware>, OneKind>);
  CHECK(ReadsRowsOf<adaptations::Transferred<models::PatternAware>, TwoKinds>);
}

}  // namespace
