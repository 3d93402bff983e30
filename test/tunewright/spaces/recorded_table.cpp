// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/recorded_table.hpp"

#include <doctest/doctest.h>

#include <map>

#include "support/small_table.hpp"
#include "tunewright/spaces/concept.hpp"

using namespace tunewright;
using spaces::Neighbours;
using spaces::RecordedTable;

static_assert(KnobSpace<RecordedTable>);

namespace {

RecordedTable space_of(data::Table table, Neighbours neighbours = Neighbours::Hamming) {
  return RecordedTable(std::make_shared<const data::Table>(std::move(table)), neighbours);
}

std::vector<std::string> around(const RecordedTable& space, const char* text) {
  std::vector<std::string> texts;
  for (const std::uint32_t row : space.neighbours(*space.decode({}, text)))
    texts.push_back(space.encode(space.at(row)));
  return texts;
}

}  // namespace

TEST_CASE("every recorded configuration can be drawn, named and found again, and no other") {
  const RecordedTable space = space_of(small_table());
  const Task task = data::task_of(space.table());
  Rng rng(1);
  std::map<std::string, int> drawn;
  for (int i = 0; i < 11000; ++i) {
    const auto config = space.sample(task, rng);
    REQUIRE(config);
    CHECK(space.feasible(task, *config));
    ++drawn[space.encode(*config)];
  }
  CHECK(drawn.size() == 11);
  for (const auto& [text, count] : drawn) {
    CHECK(count > 800);  // 1000 +- 30
    CHECK(space.encode(*space.decode(task, text)) == text);
    CHECK(space.key(*space.decode(task, text)) == data::row_key(text));
  }
  CHECK(!space.decode(task, "8,0"));
  CHECK(!space.decode(task, "8,0,1"));
  CHECK(!space.decode(task, ""));
  CHECK(!space.feasible(task, {.row = 11, .key = 0}));
  CHECK(!space.feasible(task, {.row = 0, .key = 1}));
}

TEST_CASE("neighbours differ in one parameter, or every parameter moves by one value at most") {
  CHECK(around(space_of(small_table()), "2,0") == std::vector<std::string>{"1,0", "2,1", "2,2", "4,0"});
  const RecordedTable adjacent = space_of(small_table(), Neighbours::Adjacent);
  CHECK(around(adjacent, "4,0") == std::vector<std::string>{"2,0", "2,1", "4,1", "8,1"});
  CHECK(around(space_of(small_table(), Neighbours::StrictlyAdjacent), "4,0") == around(adjacent, "4,0"));
}

TEST_CASE("a declared value that never occurs keeps strictly adjacent values apart") {
  data::Table table = small_table();
  table.parameters[0].values = {"1", "2", "3", "4", "8"};
  for (std::size_t i = 0; i < table.choices.size(); i += 2) {
    if (table.choices[i] >= 2) ++table.choices[i];  // 4 and 8 are where they were
  }
  CHECK(around(space_of(table, Neighbours::Adjacent), "2,1") ==
        std::vector<std::string>{"1,0", "1,1", "1,2", "2,0", "2,2", "4,0", "4,1", "4,2"});
  CHECK(around(space_of(table, Neighbours::StrictlyAdjacent), "2,1") ==
        std::vector<std::string>{"1,0", "1,1", "1,2", "2,0", "2,2"});
}

TEST_CASE("a change leads to each neighbour alike, and nowhere from a row without any") {
  const RecordedTable space = space_of(small_table());
  Rng rng(5);
  std::map<std::string, int> reached;
  for (int i = 0; i < 4000; ++i) ++reached[space.encode(*space.mutate({}, *space.decode({}, "2,0"), rng))];
  CHECK(reached.size() == 4);
  for (const auto& [text, count] : reached) CHECK(count > 850);

  data::Table lone = small_table();
  lone.choices.resize(2);
  lone.outcomes.resize(1);
  CHECK(!space_of(lone).mutate({}, {}, rng));
}

TEST_CASE("configurations have one key and one text on every device") {
  const RecordedTable one = space_of(small_table("one"));
  data::Table shorter = small_table("two");
  shorter.choices.erase(shorter.choices.begin(), shorter.choices.begin() + 2);
  shorter.outcomes.erase(shorter.outcomes.begin());
  const RecordedTable two = space_of(shorter);
  CHECK(two.decode({}, one.encode(one.at(4)))->row == 3);
  CHECK(one.key(one.at(4)) == two.key(two.at(3)));
  CHECK(stable_hash(data::task_of(one.table())) != stable_hash(data::task_of(two.table())));
}

TEST_CASE("parameters are knobs: numbers with a scale, words as categories") {
  data::Table table = small_table();
  table.parameters[1] = {"b", {"row", "column", "none"}};
  const RecordedTable space = space_of(table);
  const std::vector<Knob> knobs = space.knobs();
  REQUIRE(knobs.size() == 2);
  CHECK(knobs[0] == Knob{"a", KnobScale::Log2, {1, 2, 4, 8}, {}});
  CHECK(knobs[1] == Knob{"b", KnobScale::Category, {0, 1, 2}, {"row", "column", "none"}});
  CHECK(space.knob_values(*space.decode({}, "4,column")) == std::vector<double>{4, 1});
  CHECK(data::knobs_of(small_table())[1] == Knob{"b", KnobScale::Linear, {0, 1, 2}, {}});
}

TEST_CASE("tables that are no space are refused") {
  CHECK_THROWS_WITH_AS(space_of({}), doctest::Contains("no rows"), std::invalid_argument);
  Rng rng(1);
  CHECK_THROWS_WITH_AS((void)RecordedTable().sample({}, rng), doctest::Contains("no table"), std::invalid_argument);
  data::Table twice = small_table();
  twice.choices[2] = 0;
  twice.choices[3] = 0;
  CHECK_THROWS_WITH_AS(space_of(twice), doctest::Contains("configuration 1,0 has two rows"), std::invalid_argument);
  data::Table beyond = small_table();
  beyond.choices[2] = 9;
  CHECK_THROWS_WITH_AS(space_of(beyond), doctest::Contains("choice 9 of parameter 'a'"), std::invalid_argument);
}

TEST_CASE("a row of a larger table is refused") {
  const RecordedTable space = space_of(small_table());
  const spaces::TableRow foreign{.row = 11, .key = 1};
  CHECK_FALSE(space.feasible({}, foreign));
  Rng rng(1);
  const auto refused = doctest::Contains("row 11 of 11");
  CHECK_THROWS_WITH_AS((void)space.encode(foreign), refused, std::out_of_range);
  CHECK_THROWS_WITH_AS((void)space.knob_values(foreign), refused, std::out_of_range);
  CHECK_THROWS_WITH_AS((void)space.neighbours(foreign), refused, std::out_of_range);
  CHECK_THROWS_WITH_AS((void)space.mutate({}, foreign, rng), refused, std::out_of_range);
}
