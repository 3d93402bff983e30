// SPDX-License-Identifier: Apache-2.0
#include "tunewright/study/recipe_name.hpp"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

namespace elsewhere {
template <class T, int n>
struct Recipe {
  struct Inner {};
};
struct Named {
  static constexpr std::string_view name = "a-name";
};
struct Heir : Named {};
}  // namespace elsewhere

namespace {

using namespace tunewright;
struct Hidden {};

TEST_CASE("a recipe is called as its type, without namespaces and arguments, or as it says") {
  struct Local {};
  CHECK(study::recipe_name<elsewhere::Recipe<std::vector<elsewhere::Recipe<int, 1>>, 2>>() == "Recipe");
  CHECK(study::recipe_name<elsewhere::Recipe<std::vector<int>, 2>::Inner>() == "Inner");
  CHECK(study::recipe_name<Hidden>() == "Hidden");
  CHECK(study::recipe_name<Local>() == "Local");
  CHECK(study::recipe_name<elsewhere::Named>() == "a-name");
  CHECK(study::recipe_name<elsewhere::Heir>() == "a-name");
}

}  // namespace
