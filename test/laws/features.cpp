// SPDX-License-Identifier: Apache-2.0
// What every featurizer owes, whatever it is: see features/concept.hpp.
#include "tunewright/features/concept.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/small_table.hpp"
#include "support/tiled_products.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/features/curve.hpp"
#include "tunewright/features/dataflow.hpp"
#include "tunewright/features/draft_score.hpp"
#include "tunewright/features/extract_in_parts.hpp"
#include "tunewright/features/factor_products.hpp"
#include "tunewright/features/hardware.hpp"
#include "tunewright/features/joined.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/features/none.hpp"
#include "tunewright/features/per_statement.hpp"
#include "tunewright/features/primitives.hpp"
#include "tunewright/features/tags.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/spaces/scheduled.hpp"

using namespace tunewright;

namespace {

struct TiledOnGpu {
  void operator()(schedule::ScheduleBuilder& s) const {
    const auto rows = s.choose_tile(2, 0, 1);
    s.cache_read(0, 2, schedule::Scope::Local);
    s.bind(2, rows[0], schedule::LoopKind::BlockX);
    s.bind(2, rows[1], schedule::LoopKind::ThreadX);
  }
};

/// A space and configurations of it. Number 0 comes again at the end; the one before cannot be described.
template <class Define>
struct Schedules {
  using Space = spaces::Scheduled<Define>;
  Schedules() {
    Rng rng(3);
    while (configs.size() < 9) {
      if (auto config = space.sample(task, rng)) configs.push_back(*std::move(config));
    }
    schedule::Schedule broken = configs[0];
    broken.steps.push_back(schedule::ComputeLocation{99, {{schedule::Location::Kind::Root, 0, 0}}, 0});
    configs.push_back(broken);
    configs.push_back(configs[0]);
  }
  Space space{};
  Task task =
      small_product(std::is_same_v<Define, TiledOnCpu> ? Target{.threads = 2, .isa = Isa::Avx2} : gpu_target("T4"));
  std::vector<schedule::Schedule> configs;
  bool last_but_one_is_broken = true;
};
struct Rows {
  using Space = spaces::RecordedTable;
  Rows() {
    for (std::size_t row = 0; row < space.size(); ++row) configs.push_back(space.at(row));
    configs.push_back(configs[0]);
  }
  Space space{std::make_shared<const data::Table>(small_table())};
  Task task = data::task_of(space.table());
  std::vector<spaces::TableRow> configs;
  bool last_but_one_is_broken = false;
};

/// A featurizer and what it describes. `seen` is false where it says nothing of the configuration itself, and so has
/// rows for one that cannot be lowered.
template <class F, class On, bool sees = true>
struct Case : On {
  F featurizer{};
  static constexpr bool seen = sees;
};
using OnCpu = Schedules<TiledOnCpu>;
using OnGpu = Schedules<TiledOnGpu>;

using StatementsOnCpu = Case<features::PerStatement, OnCpu>;
using StatementsOnGpu = Case<features::PerStatement, OnGpu>;
using DataflowOnCpu = Case<features::Dataflow, OnCpu>;
struct DataflowOnGpu : Case<features::Dataflow, OnGpu> {
  DataflowOnGpu() { featurizer = {.squared_operations = true, .asynchronous_copies = true}; }
};
using CurveOnCpu = Case<features::Curve, OnCpu>;
using CurveOnGpu = Case<features::Curve, OnGpu>;
using PrimitivesOnCpu = Case<features::Primitives, OnCpu>;
struct PrimitivesOnGpu : Case<features::Primitives, OnGpu> {
  PrimitivesOnGpu() {
    featurizer = features::Primitives::gpu();
    featurizer.fill_up = true;
  }
};
struct KnobsOfRows : Case<features::Knobs, Rows> {
  KnobsOfRows() { featurizer.knobs = space.knobs(); }
};
struct ProductsOfRows : Case<features::FactorProducts, Rows> {
  ProductsOfRows() { featurizer.axes = features::FactorProducts::axes_of(space.knobs()); }
};
using HardwareOfRows = Case<features::Hardware, Rows, false>;
using TagsOnCpu = Case<features::Tags, OnCpu, false>;
using NoneOnGpu = Case<features::None, OnGpu, false>;
using PrunersOnGpu = Case<features::Joined<features::PerStatement, features::Dataflow>, OnGpu>;
using WithDevice = Case<features::Joined<features::Primitives, features::Hardware, features::Tags>, OnCpu>;
using DraftedOnCpu = Case<features::DraftScore<drafts::SymbolAnalyzer>, OnCpu>;
using DraftedOnGpu =
    Case<features::Joined<features::PerStatement, features::DraftScore<drafts::SymbolAnalyzer>>, OnGpu>;
using OneRowJoined = Case<features::Joined<features::Curve, features::Tags>, OnCpu>;

template <class C>
FeatureBatch extracted(const C& c, std::span<const config_t<typename C::Space>> configs) {
  return c.featurizer.extract(c.space, c.task, configs);
}
template <class C>
FeatureBatch extracted(const C& c) {
  return extracted(c, std::span<const config_t<typename C::Space>>(c.configs));
}

bool same(const FeatureBatch& a, const FeatureBatch& b) {
  return a.columns() == b.columns() && std::ranges::equal(a.offsets(), b.offsets()) &&
         std::ranges::equal(a.values(), b.values());
}

}  // namespace

#define FEATURES                                                                                                    \
  StatementsOnCpu, StatementsOnGpu, DataflowOnCpu, DataflowOnGpu, CurveOnCpu, CurveOnGpu, PrimitivesOnCpu,          \
      PrimitivesOnGpu, KnobsOfRows, ProductsOfRows, HardwareOfRows, TagsOnCpu, NoneOnGpu, PrunersOnGpu, WithDevice, \
      OneRowJoined, DraftedOnCpu, DraftedOnGpu

TEST_CASE_TEMPLATE("one program a configuration, as wide as the schema, of finite numbers", C, FEATURES) {
  using F = decltype(C::featurizer);
  static_assert(FeaturizerFor<F, typename C::Space>);
  const C c{};
  const FeatureBatch x = extracted(c);
  const FeatureSchema schema = c.featurizer.schema();
  CHECK(x.columns() == schema.columns.size());
  REQUIRE(x.programs() == c.configs.size());
  CHECK(std::ranges::all_of(x.values(), [](float value) { return std::isfinite(value); }));
  for (std::size_t p = 0; p < x.programs(); ++p) {
    const bool broken = c.last_but_one_is_broken && C::seen && p + 2 == x.programs();
    CAPTURE(p);
    CHECK(x.program(p).empty() == broken);
    if (OneRowFeaturizer<F> && !broken) CHECK(x.program(p).size() == x.columns());
  }
  const FeatureBatch none = extracted(c, {});
  CHECK(none.programs() == 0);
  CHECK(none.columns() == x.columns());
}

TEST_CASE_TEMPLATE("a schema names each of its columns once, and its key follows from it", C, FEATURES) {
  const C c{};
  const FeatureSchema schema = c.featurizer.schema();
  CHECK_FALSE(schema.name.empty());
  CHECK(schema.version > 0);
  std::set<std::string> names;
  for (const FeatureColumn& column : schema.columns) {
    CAPTURE(column.name);
    CHECK(names.insert(column.name).second);
    CHECK_FALSE(column.name.empty());
    CHECK_FALSE(column.unit.empty());
    CHECK(column.meaning.ends_with('.'));
  }
  CHECK(schema == C{}.featurizer.schema());
  FeatureSchema changed = schema;
  changed.columns.back().unit += "?";
  CHECK(stable_hash(changed) != stable_hash(schema));
}

TEST_CASE_TEMPLATE("rows depend on their own configuration alone", C, FEATURES) {
  const C c{};
  const FeatureBatch x = extracted(c);
  for (std::size_t p = x.programs(); p-- > 0;) {  // neither company nor order matters
    const FeatureBatch alone = extracted(c, std::span(c.configs).subspan(p, 1));
    REQUIRE(alone.programs() == 1);
    CHECK(alone.columns() == x.columns());
    CHECK(std::ranges::equal(alone.program(0), x.program(p)));
  }
  CHECK(std::ranges::equal(x.program(0), x.program(x.programs() - 1)));  // equal configurations
  CHECK(same(extracted(c), x));
  CHECK(same(extracted(C{}), x));
}

TEST_CASE_TEMPLATE("configurations that differ are told apart by those that look at them", C, StatementsOnCpu,
                   StatementsOnGpu, DataflowOnCpu, CurveOnCpu, CurveOnGpu, PrimitivesOnCpu, PrimitivesOnGpu,
                   KnobsOfRows, PrunersOnGpu, WithDevice) {
  const C c{};
  const FeatureBatch x = extracted(c);
  std::size_t others = 0;
  for (std::size_t p = 1; p < 9; ++p) others += std::ranges::equal(x.program(p), x.program(0)) ? 0 : 1;
  CHECK(others > 4);
}

TEST_CASE_TEMPLATE("several threads may ask one featurizer at once", C, FEATURES) {
  const FeatureBatch expected = extracted(C{});
  const C c{};
  FeatureBatch there;
  std::thread other([&] { there = extracted(c); });
  const FeatureBatch here = extracted(c);
  other.join();
  CHECK(same(here, expected));
  CHECK(same(there, expected));
  const std::span<const config_t<typename C::Space>> all(c.configs);
  CHECK(same(features::extract_in_parts(c.featurizer, c.space, c.task, all, 3), expected));
}
