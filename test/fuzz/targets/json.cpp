// SPDX-License-Identifier: Apache-2.0
// A text that a general parser of JSON takes is the same value to `json::Scanner`. What is read as a literal is written
// and reads equal, and so does any text of UTF-8.
#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "tunewright/json/literal.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/utf8.hpp"
#include "tunewright/json/writer.hpp"

using namespace tunewright;

namespace {

constexpr std::size_t deepest = 100;

/// Reads the value as the scanner's callers would who expect what `parsed` is.
void check(json::Scanner& in, const nlohmann::json& parsed) {
  json::Scanner skips = in;
  (void)skips.skip_value();
  if (parsed.is_object()) {
    std::size_t members = 0;
    in.object([&](std::string_view key) {
      const auto member = parsed.find(key);
      fuzz::require(member != parsed.end(), "keys are the same");
      in.peek();
      check(in, *member);
      ++members;
    });
    fuzz::require(members == parsed.size(), "no member is lost");
  } else if (parsed.is_array()) {
    std::size_t place = 0;
    in.array([&] {
      fuzz::require(place < parsed.size(), "no element is made up");
      check(in, parsed[place++]);
    });
    fuzz::require(place == parsed.size(), "no element is lost");
  } else if (parsed.is_string()) {
    fuzz::require(in.string() == parsed.get_ref<const std::string&>(), "texts are the same");
  } else if (parsed.is_boolean()) {
    fuzz::require(in.boolean() == parsed.get<bool>(), "truth is the same");
  } else if (parsed.is_null()) {
    in.null();
  } else {
    json::Scanner whole = in;
    if (parsed.is_number_integer() && !(parsed.is_number_unsigned() && parsed.get<std::uint64_t>() >> 63 != 0))
      fuzz::require(whole.integer() == parsed.get<std::int64_t>(), "whole numbers are the same");
    fuzz::require(in.number() == parsed.get<double>(), "numbers are the same");
  }
  fuzz::require(in.position() == skips.position(), "skipping a value ends where it ends");
}

/// Whether the text repeats a key, of which the general parser keeps one, or is deeper than readers here follow, or has
/// a number that may be 0 only since doubles do not hold it, which the scanner refuses, or a mark of its byte order or
/// a zero byte, which the general parser takes for the beginning and the end.
bool is_beside_the_point(std::string_view text) {
  if (text.starts_with('\xef') || text.find('\0') != std::string_view::npos) return true;
  std::size_t depth = 0, most = 0;
  bool beside = false;
  std::vector<std::set<std::string>> keys;
  const auto see = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      keys.emplace_back();
      most = std::max(most, ++depth);
    } else if (event == Event::object_end || event == Event::array_end) {
      keys.pop_back();
      --depth;
    } else if (event == Event::key) {
      beside = beside || !keys.back().insert(value.get<std::string>()).second;
    } else if (value.is_number_float()) {
      beside = beside || value.get<double>() == 0;
    }
    return true;
  };
  [[maybe_unused]] const nlohmann::json parsed = nlohmann::json::parse(text, see, false);
  return beside || most > deepest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = fuzz::text(bytes, size);
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_discarded() && !is_beside_the_point(text)) {
    json::Scanner in(text);
    check(in, parsed);
    in.expect_end();
  }

  json::Literal literal;
  if (fuzz::accepts<FormatError>([&] { literal = json::parse_literal(text); })) {
    std::string written, again;
    json::write(written, literal);
    json::write(again, json::parse_literal(written));
    fuzz::require(again == written, "a literal reads equal");
  }
  std::string quoted;
  json::write(quoted, text);
  json::Scanner in(quoted);
  fuzz::require(in.string() == json::repaired(text), "a text reads equal as far as it is UTF-8");
  fuzz::require(nlohmann::json::accept(quoted), "a text is written as JSON");
  in.expect_end();
  return 0;
}
