// SPDX-License-Identifier: Apache-2.0
// What every search space owes, whatever it is: see spaces/concept.hpp.
#include "tunewright/spaces/concept.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/small_table.hpp"
#include "support/tiled_products.hpp"
#include "support/toy_space.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/task.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/spaces/scheduled.hpp"

using namespace tunewright;

namespace {

Target cpu() { return {.threads = 2, .isa = Isa::Avx2}; }

std::shared_ptr<const data::Table> table() { return std::make_shared<const data::Table>(small_table()); }

/// A space, a task of it, and texts that do not belong to that task.
struct OfToys {
  using Space = toy::Space;
  Space space{};
  Task task = toy::task();
  std::vector<std::string> foreign{"12345", "1", "9999"};
};
struct OfRows {
  using Space = spaces::RecordedTable;
  Space space{table()};
  Task task = data::task_of(*table());
  std::vector<std::string> foreign{"2", "2,3", "3,1", "2,1,0", "2, 1", "8,0"};  // the last one is absent
};
struct OfAdjacentRows : OfRows {
  OfAdjacentRows() { space = Space(table(), spaces::Neighbours::Adjacent); }
};
struct OfSchedules {
  OfSchedules() {}  // g++ 12 warns of a cache that is not initialized where an aggregate is
  using Space = spaces::Scheduled<TiledOnCpu>;
  Space space{};
  Task task = small_product(cpu());
  std::vector<std::string> foreign{R"([["nap", 2]])", R"({"steps": []})", R"([["SP", 99, 0, 48, [4], 1]])"};
};
struct OfCpuTiles {
  OfCpuTiles() {}
  using Space = spaces::MultiLevelTiling;
  Space space{};
  Task task = small_product(cpu());
  std::vector<std::string> foreign = of_softmax(task.target);

  /// What belongs to another computation on the same machine.
  static std::vector<std::string> of_softmax(const Target& target) {
    const Task other =
        program::make_task("softmax", program::operators::softmax_graph({.rows = 16, .columns = 24}), target);
    std::vector<std::string> texts;
    Rng rng(9);
    for (int i = 0; i < 40 && texts.size() < 4; ++i) {
      if (const auto config = Space{}.sample(other, rng)) texts.push_back(Space{}.encode(*config));
    }
    return texts;
  }
};
struct OfGpuTiles : OfCpuTiles {
  OfGpuTiles() {
    task = small_product(gpu_target("T4"));
    foreign = of_softmax(task.target);
  }
};

template <class Case>
std::vector<config_t<typename Case::Space>> sampled(const Case& c, std::size_t wanted, std::uint64_t seed = 3) {
  std::vector<config_t<typename Case::Space>> configs;
  Rng rng(seed);
  for (std::size_t tries = 0; configs.size() < wanted && tries < 10 * wanted; ++tries) {
    if (auto config = c.space.sample(c.task, rng)) configs.push_back(*std::move(config));
  }
  REQUIRE(configs.size() == wanted);
  return configs;
}

/// What a generator draws from a space, as text: "-" where a draw led nowhere.
template <class Case>
std::vector<std::string> drawn(const Case& c, std::uint64_t seed) {
  std::vector<std::string> texts;
  Rng rng(seed);
  for (int i = 0; i < 12; ++i) {
    const auto config = c.space.sample(c.task, rng);
    texts.push_back(config ? c.space.encode(*config) : "-");
    if (!config) continue;
    const auto mutant = c.space.mutate(c.task, *config, rng);
    texts.push_back(mutant ? c.space.encode(*mutant) : "-");
  }
  return texts;
}

}  // namespace

#define SPACES OfToys, OfRows, OfAdjacentRows, OfSchedules, OfCpuTiles, OfGpuTiles

TEST_CASE_TEMPLATE("samples and mutants depend on the arguments alone", Case, SPACES) {
  static_assert(SearchSpace<typename Case::Space>);
  const Case c{}, fresh{};
  const auto texts = drawn(c, 5);
  (void)drawn(c, 6);
  CHECK(drawn(c, 5) == texts);
  CHECK(drawn(fresh, 5) == texts);
  CHECK(drawn(c, 6) != texts);
  const auto config = sampled(c, 1)[0];
  const std::string before = c.space.encode(config);
  Rng rng(1);
  (void)c.space.mutate(c.task, config, rng);
  CHECK(c.space.encode(config) == before);
}

TEST_CASE_TEMPLATE("a configuration is restored from its line of text, with its key", Case, SPACES) {
  const Case c{};
  for (const auto& config : sampled(c, 16)) {
    const std::string text = c.space.encode(config);
    CHECK(text.find('\n') == std::string::npos);
    const auto restored = c.space.decode(c.task, text);
    REQUIRE(restored);
    CHECK(c.space.key(*restored) == c.space.key(config));
    CHECK(c.space.encode(*restored) == text);
    CHECK(c.space.feasible(c.task, *restored) == c.space.feasible(c.task, config));
  }
}

TEST_CASE_TEMPLATE("equal texts have equal keys, other texts others", Case, SPACES) {
  const Case c{};
  const auto configs = sampled(c, 24);
  for (const auto& one : configs) {
    for (const auto& other : configs)
      CHECK((c.space.key(one) == c.space.key(other)) == (c.space.encode(one) == c.space.encode(other)));
  }
}

TEST_CASE_TEMPLATE("text that does not belong to the task is no configuration", Case, SPACES) {
  const Case c{};
  for (const char* text : {"", " ", "x", "[", "{}", "null", "\"\"", "[[]]", "1e400", "-1,-1"}) {
    CAPTURE(text);
    CHECK_FALSE(c.space.decode(c.task, text));
  }
  REQUIRE(c.foreign.size() > 2);
  for (const std::string& text : c.foreign) {
    CAPTURE(text);
    CHECK_FALSE(c.space.decode(c.task, text));
  }
  for (const auto& config : sampled(c, 2)) {
    const std::string text = c.space.encode(config);
    for (std::size_t length = 0; length < text.size(); length += 1 + length / 16)
      CHECK_FALSE(c.space.decode(c.task, text.substr(0, length)));
    CHECK_FALSE(c.space.decode(c.task, text + "]"));
  }
}

TEST_CASE_TEMPLATE("what is feasible lowers, and the reasons say the same", Case, SPACES) {
  const Case c{};
  std::size_t feasible = 0;
  for (const auto& config : sampled(c, 24)) {
    const bool good = c.space.feasible(c.task, config);
    feasible += good ? 1 : 0;
    if (good) CHECK_NOTHROW((void)c.space.lower(c.task, config));
    if constexpr (requires { c.space.why_infeasible(c.task, config); }) {
      CHECK(c.space.why_infeasible(c.task, config).empty() == good);
      if constexpr (requires { c.space.why_infeasible(c.task, c.space.lower(c.task, config)); }) {
        if (good) CHECK(c.space.why_infeasible(c.task, c.space.lower(c.task, config)).empty());
      }
    }
  }
  CHECK(feasible > 12);
}

TEST_CASE_TEMPLATE("mutants are others, and feasible as a rule", Case, SPACES) {
  const Case c{};
  std::size_t asked = 0, changed = 0, feasible = 0;
  Rng rng(7);
  for (const auto& config : sampled(c, 20)) {
    if (!c.space.feasible(c.task, config)) continue;
    for (int i = 0; i < 8; ++i) {
      ++asked;
      const auto mutant = c.space.mutate(c.task, config, rng);
      if (!mutant) continue;
      changed += c.space.key(*mutant) != c.space.key(config) ? 1 : 0;
      feasible += c.space.feasible(c.task, *mutant) ? 1 : 0;
    }
  }
  CHECK(2 * changed > asked);
  CHECK(4 * feasible > asked);
}

TEST_CASE_TEMPLATE("several threads may ask one space at once", Case, SPACES) {
  const auto expected = drawn(Case{}, 5);
  const Case c{};  // asked by both threads for the first time
  std::vector<std::string> there;
  std::thread other([&] { there = drawn(c, 5); });
  const auto here = drawn(c, 5);
  other.join();
  CHECK(here == expected);
  CHECK(there == expected);
}

TEST_CASE_TEMPLATE("several threads may judge the same configurations at once", Case, SPACES) {
  const Case c{};
  auto configs = sampled(c, 24);
  Rng rng(11);
  for (std::size_t i = 0; i < 24; ++i)
    if (auto mutant = c.space.mutate(c.task, configs[i], rng)) configs.push_back(*std::move(mutant));
  const auto judge = [&] {
    std::vector<bool> feasible;
    for (int again = 0; again < 20; ++again)
      for (const auto& config : configs) feasible.push_back(c.space.feasible(c.task, config));
    return feasible;
  };
  const auto expected = judge();
  std::vector<bool> there;
  std::thread other([&] { there = judge(); });
  const auto here = judge();
  other.join();
  CHECK(here == expected);
  CHECK(there == expected);
}

TEST_CASE("keys are the same in every run and on every platform") {
  CHECK(OfToys{}.space.key({3, 4, 5, 2}) == 436186530278149322U);
  const OfRows rows;
  CHECK(rows.space.key(rows.space.decode(rows.task, "2,1").value()) == 15032917342738493577U);
  const OfSchedules schedules;
  schedule::ScheduleBuilder s(schedules.task.graph);
  s.parallel(2, s.split(2, 0, {4})[0]);
  CHECK(schedules.space.key(s.schedule()) == 6859614337493255917U);
}

TEST_CASE("a space without any configuration says so") {
  Rng rng(1);
  CHECK_THROWS_AS((void)spaces::RecordedTable{}.sample(toy::task(), rng), std::invalid_argument);
  CHECK_THROWS_AS((void)spaces::MultiLevelTiling{}.sample(toy::task(), rng), std::invalid_argument);
  CHECK_THROWS_AS((void)spaces::Scheduled<TiledOnCpu>{}.sample(toy::task(), rng), std::invalid_argument);
}

TEST_CASE("knobs have names of their own and a value each") {
  static_assert(KnobSpace<spaces::RecordedTable>);
  const OfRows c;
  const std::vector<Knob> knobs = c.space.knobs();
  std::set<std::string> names;
  for (const Knob& knob : knobs) CHECK(names.insert(knob.name).second);
  for (const auto& config : sampled(c, 12)) {
    const std::vector<double> values = c.space.knob_values(config);
    REQUIRE(values.size() == knobs.size());
    for (const double value : values) CHECK(std::isfinite(value));
    CHECK(c.space.knob_values(config) == values);
  }
}
