// SPDX-License-Identifier: Apache-2.0
#include "tunewright/json/writer.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace tunewright;

TEST_CASE("arrays and objects are written with what stands in them, names in quotes") {
  std::string line;
  json::write_array(line, std::vector<int>{1, 2, 3});
  CHECK(line == "[1, 2, 3]");
  line.clear();
  json::write_object(line, std::map<std::string, double>{{"a \"quoted\" name", 0.5}, {"b", 2}});
  CHECK(line == R"({"a \"quoted\" name": 0.5, "b": 2})");
  line.clear();
  json::write_object(line, std::map<std::string, double>{});
  CHECK(line == "{}");
  line.clear();
  const std::map<std::string, std::map<std::string, int>> nested{{"x", {{"y", 1}}}, {"z", {}}};
  json::write_object(line, nested, [&](const auto& inner) { json::write_object(line, inner); });
  CHECK(line == R"({"x": {"y": 1}, "z": {}})");
}

TEST_CASE("text that is not UTF-8 is JSON all the same") {
  std::string line;
  json::write_object(line, std::map<std::string, std::string>{{"key \x80", "caf\xc3\xa9 caf\xe9\n"}});
  CHECK(line == "{\"key \xef\xbf\xbd\": \"caf\xc3\xa9 caf\xef\xbf\xbd\\n\"}");
}
