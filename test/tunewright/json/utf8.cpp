// SPDX-License-Identifier: Apache-2.0
#include "tunewright/json/utf8.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

using namespace tunewright;

TEST_CASE("characters of UTF-8 stay what they are, and what is none becomes U+FFFD") {
  const std::string instead = "\xef\xbf\xbd";
  for (const std::string text : {"", "plain", "\x7f", "\xc2\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    CAPTURE(text);
    CHECK(json::repaired(text) == text);
    CHECK(json::repaired("a" + text + "b") == "a" + text + "b");
  }
  // None of UTF-8, one within a character, overlong ones, halves of pairs, numbers beyond Unicode, and ones cut short
  for (const std::string text : {"\xff", "\x80", "\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc2",
                                 "\xe2\x82", "\xf0\x9f\x98"}) {
    CAPTURE(text);
    CHECK(json::repaired(text) == instead);
    CHECK(json::repaired("a" + text + "b") == "a" + instead + "b");
  }
  CHECK(json::repaired(instead) == instead);
  CHECK(json::repaired("\x80\x80\x81\x81\x81") == instead + instead + instead + instead + instead);
  CHECK(json::repaired("\xf8\x88\x80") == instead + instead + instead);
}

TEST_CASE("code points are read one after the other") {
  const std::string text = "a\xc3\xa9\xf0\x9f\x98\x80\xff";
  std::size_t at = 0;
  CHECK(json::next_code_point(text, at) == U'a');
  CHECK(json::next_code_point(text, at) == U'\u00e9');
  CHECK(json::next_code_point(text, at) == U'\U0001F600');
  CHECK(json::next_code_point(text, at) == U'\uFFFD');
  CHECK(at == text.size());
  CHECK(json::is_ascii("plain"));
  CHECK_FALSE(json::is_ascii(text));
}
