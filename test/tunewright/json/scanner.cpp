// SPDX-License-Identifier: Apache-2.0
#include "tunewright/json/scanner.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace tunewright;

namespace {

std::string skipped(const std::string& text) {
  json::Scanner in(text);
  const std::string value(in.skip_value());
  in.expect(';');
  in.expect_end();
  return value;
}
std::string reason(const std::string& text) {
  json::Scanner in(text);
  try {
    (void)in.skip_value();
  } catch (const FormatError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a value that is skipped ends where it ends, whatever its strings hold") {
  for (const std::string value :
       {"0", "-1.5e3", "NaN", "-Infinity", "true", "false", "null", "\"\"", "\"text\"", R"("a \" quote")",
        R"("ends in a backslash \\")", "[]", "{}", "[[],[{}]]", R"(["]", "}", "[{", "\"]"])",
        R"({"key with ] and }": [1, 2, {"deeper": "\\\""}], "next": null})", "[ 1,\n\t2 ]", "[\"\xc3\xa9\xdb\xfd\"]"}) {
    CAPTURE(value);
    CHECK(skipped(value + ";") == value);
    CHECK(skipped(" \n" + value + " ;") == value);
  }
}

TEST_CASE("where brackets and quotes stand in their eight characters makes no difference") {
  for (std::size_t before = 0; before < 17; ++before) {
    for (std::size_t inside = 0; inside < 17; ++inside) {
      const std::string value = "[" + std::string(before, ' ') + "{\"" + std::string(inside, 'k') + R"(\"]":[)" +
                                std::string(before, '1') + "]}]";
      CHECK(skipped(value + ";") == value);
      json::Scanner in(std::string_view(value).substr(before + 2));
      CHECK(in.string() == std::string(inside, 'k') + "\"]");
    }
  }
}

TEST_CASE("strings and keys are UTF-8, whatever the text is") {
  json::Scanner in("{\"caf\xe9\": \"na\xefve \\u00e9\", \"caf\xc3\xa9\": \"na\xc3\xafve\"}");
  std::vector<std::string> read;
  in.object([&](std::string_view key) {
    read.emplace_back(key);
    read.push_back(in.string());
  });
  CHECK(read ==
        std::vector<std::string>{"caf\xef\xbf\xbd", "na\xef\xbf\xbdve \xc3\xa9", "caf\xc3\xa9", "na\xc3\xafve"});
}

TEST_CASE("a value that is cut short, unbalanced or too deep is refused with its column") {
  CHECK(reason("") == "column 1: expected a number, but the text ends");
  CHECK(reason("[1, [2]") == "column 8: expected ']', but the text ends");
  CHECK(reason(R"({"a": [1, 2})") == "column 12: expected ']'");
  CHECK(reason(R"({"a": 1])") == "column 8: expected '}'");
  CHECK(reason("\"text") == "column 6: expected the end of a string, but the text ends");
  CHECK(reason("[\"text") == "column 7: expected the end of a string, but the text ends");
  CHECK(reason("\"text\\") == "column 7: expected the end of a string, but the text ends");
  CHECK(reason("\"text\\\"") == "column 8: expected the end of a string, but the text ends");
  for (const std::size_t levels : {64, 65, 128, 129, 1024})
    CHECK(reason(std::string(levels, '[') + std::string(levels, ']')) == "none");
  std::string mixed;  // an object around every list
  for (int i = 0; i < 100; ++i) mixed += R"({"a":[)";
  for (int i = 0; i < 100; ++i) mixed += "]}";
  CHECK(reason(mixed) == "none");
  mixed[mixed.size() - 4] = '}';  // the second list from outside
  CHECK(reason(mixed).find("expected") != std::string::npos);
  CHECK(reason(std::string(1025, '[') + std::string(1025, ']')) == "column 1025: nested too deeply");
  CHECK(reason("word") == "column 1: expected a number");
}

TEST_CASE("keys and strings are given without their escapes") {
  json::Scanner in(R"("a\"b")");
  CHECK_THROWS_WITH_AS((void)in.plain_string(), doctest::Contains("without escapes"), FormatError);
  json::Scanner plain(R"("eight chars and more")");
  CHECK(plain.plain_string() == "eight chars and more");
  json::Scanner escaped(R"("tab\tquote\"\u00e9\ud83d\ude00 end")");
  CHECK(escaped.string() == "tab\tquote\"\xc3\xa9\xf0\x9f\x98\x80 end");
  json::Scanner object(R"({"a\nb": {"c\u0064": 1}, "plain": {"": 2}})");
  std::vector<std::string> keys;
  object.object([&](std::string_view outer) {
    object.object([&](std::string_view inner) {
      keys.emplace_back(inner);
      (void)object.skip_value();
    });
    keys.emplace_back(outer);
  });
  CHECK(keys == std::vector<std::string>{"cd", "a\nb", "", "plain"});
}
