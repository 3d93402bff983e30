// SPDX-License-Identifier: Apache-2.0
#include "tunewright/spaces/draw.hpp"

#include <doctest/doctest.h>

#include "support/toy_space.hpp"

using namespace tunewright;

TEST_CASE("draws are distinct and leave out what is excluded") {
  const toy::Space space;
  const auto first = spaces::draw(space, toy::task(), 200, {}, 1, Rng(1));
  REQUIRE(first.size() == 200);
  KeySet keys;
  for (const auto& tiles : first) keys.insert(space.key(tiles));
  CHECK(keys.size() == 200);
  for (const auto& tiles : spaces::draw(space, toy::task(), 200, keys, 1, Rng(1)))
    CHECK(keys.count(space.key(tiles)) == 0);
}

TEST_CASE("draws are the same at any number of threads") {
  const toy::Space space;
  const auto one = spaces::draw(space, toy::task(), 100, {}, 1, Rng(5));
  CHECK(one == spaces::draw(space, toy::task(), 100, {}, 2, Rng(5)));
  CHECK(one == spaces::draw(space, toy::task(), 100, {}, 7, Rng(5)));
  CHECK(one != spaces::draw(space, toy::task(), 100, {}, 1, Rng(6)));
}

TEST_CASE("draws end after five waves of 16 that gave nothing new") {
  struct Late : toy::Space {
    std::size_t failing;
    mutable std::size_t samples = 0;
    explicit Late(std::size_t first) : failing(first) {}
    std::optional<toy::Tiles> sample(const Task& task, Rng& rng) const {
      return samples++ < failing ? std::nullopt : Space::sample(task, rng);
    }
  };
  CHECK(spaces::draw(Late(79), toy::task(), 1, {}, 1, Rng(1)).size() == 1);
  CHECK(spaces::draw(Late(80), toy::task(), 1, {}, 1, Rng(1)).empty());
}

TEST_CASE("a small space is drawn almost empty, then draws end") {
  const toy::Space space;
  const auto all = spaces::draw(space, toy::task(), 100000, {}, 2, Rng(1));
  CHECK(all.size() == 4096);
  KeySet keys;
  for (const auto& tiles : all) keys.insert(space.key(tiles));
  CHECK(spaces::draw(space, toy::task(), 10, keys, 1, Rng(2)).empty());
}
