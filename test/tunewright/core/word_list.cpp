// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/word_list.hpp"

#include <doctest/doctest.h>

using tunewright::contains_word;

TEST_CASE("words are found as a whole, at both ends too") {
  constexpr const char* words = " and or not ";
  CHECK(contains_word(words, "and"));
  CHECK(contains_word(words, "or"));
  CHECK(contains_word(words, "not"));
  CHECK_FALSE(contains_word(words, "an"));
  CHECK_FALSE(contains_word(words, "nd"));
  CHECK_FALSE(contains_word(words, "nor"));
  CHECK_FALSE(contains_word(words, ""));
}
