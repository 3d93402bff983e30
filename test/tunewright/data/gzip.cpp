// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/gzip.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace tunewright;

namespace {

void write_plain(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string packed(std::string text) {
  std::string bytes(text.size() + 1024, '\0');
  isal_zstream stream{};
  ::isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(text.data());
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(bytes.data());
  stream.avail_out = static_cast<std::uint32_t>(bytes.size());
  REQUIRE(::isal_deflate_stateless(&stream) == COMP_OK);
  bytes.resize(stream.total_out);
  return bytes;
}
void write_gzip(const std::string& path, const std::string& text) { write_plain(path, packed(text)); }
std::string damage_of(const std::string& path) {
  data::GzipReader reader(path);
  char some[100];
  while (reader.read(some, sizeof some) > 0) {
  }
  CHECK(reader.read(some, sizeof some) == 0);
  return reader.damage();
}
std::vector<std::string> lines_of(const std::string& path, std::size_t max_line = 1 << 20) {
  data::GzipLines lines(path, max_line);
  std::vector<std::string> all;
  for (std::string_view line; lines.next(line);) all.emplace_back(lines.too_long() ? "(long)" : line);
  CHECK(lines.number() == all.size());
  return all;
}

}  // namespace

TEST_CASE("lines of plain and compressed files are the same, whatever ends them") {
  const support::TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"", {}}, {"\n", {""}}, {"one", {"one"}}, {"one\ntwo\n", {"one", "two"}}, {"one\r\n\r\ntwo", {"one", "", "two"}},
  };
  for (const auto& [text, expected] : cases) {
    write_plain(folder.file("plain"), text);
    write_gzip(folder.file("packed"), text);
    CHECK(lines_of(folder.file("plain")) == expected);
    CHECK(lines_of(folder.file("packed")) == expected);
    CHECK(data::read_text(folder.file("packed")) == text);
  }
}

TEST_CASE("lines longer than the buffer are whole; lines longer than the limit are passed over") {
  const support::TemporaryFolder folder;
  const std::string big(700'000, 'x');
  write_gzip(folder.file("f"), "a\n" + big + "\nb\n" + big);
  CHECK(lines_of(folder.file("f")) == std::vector<std::string>{"a", big, "b", big});
  CHECK(lines_of(folder.file("f"), 1000) == std::vector<std::string>{"a", "(long)", "b", "(long)"});
  // The limit holds for lines that fit into the buffer, too.
  write_gzip(folder.file("g"),
             std::string(1000, 'y') + "\r\n" + std::string(1001, 'y') + "\n" + std::string(1001, 'y'));
  CHECK(lines_of(folder.file("g"), 1000) == std::vector<std::string>{std::string(1000, 'y'), "(long)", "(long)"});
}

TEST_CASE("a stream that ends early gives what came before, and says so") {
  const support::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  std::string bytes = packed(text);
  write_plain(folder.file("cut"), bytes.substr(0, bytes.size() / 2));

  data::GzipLines lines(folder.file("cut"));
  std::string_view line;
  std::size_t count = 0;
  while (lines.next(line)) ++count;
  CHECK(count > 100);
  CHECK(count < 5000);
  CHECK(lines.damage() == "the compressed stream ends early");
  CHECK_THROWS_WITH_AS((void)data::read_text(folder.file("cut")), doctest::Contains("ends early"), std::runtime_error);

  for (const std::size_t length : {std::size_t{2}, std::size_t{7}, std::size_t{10}, bytes.size() - 1}) {
    write_plain(folder.file("cut"), bytes.substr(0, length));
    CHECK(damage_of(folder.file("cut")) == "the compressed stream ends early");
  }
}

TEST_CASE("damage inside of a stream is told by its kind") {
  const support::TemporaryFolder folder;
  const std::string text = "some text, some more text, and more";
  const std::string whole = packed(text);
  const auto damage = [&](std::size_t at, char byte) {
    std::string bytes = whole;
    bytes[at] = byte;
    write_plain(folder.file("bent"), bytes);
    return damage_of(folder.file("bent"));
  };
  CHECK(damage(whole.size() - 5, static_cast<char>(~whole[whole.size() - 5])) ==
        "the compressed stream is damaged (wrong checksum)");
  CHECK(damage(whole.size() - 4, 7) == "the compressed stream is damaged (wrong checksum)");  // length of the text
  CHECK(damage(2, 9) == "the compressed stream is damaged (unknown method of compression)");
  CHECK(damage(10, 7) == "the compressed stream is damaged (invalid block)");  // last block, of the reserved kind
  CHECK_THROWS_WITH_AS((void)data::read_text(folder.file("bent")), doctest::Contains("/bent': the compressed stream"),
                       std::runtime_error);
}

TEST_CASE("members follow each other, zeros may follow the last, other bytes may not") {
  const support::TemporaryFolder folder;
  const std::string big(400'000, 'b');
  std::string bytes = packed("one\n") + packed("") + packed(big) + packed("\ntwo");
  write_plain(folder.file("f"), bytes);
  CHECK(lines_of(folder.file("f")) == std::vector<std::string>{"one", big, "two"});
  write_plain(folder.file("f"), bytes + std::string(600'000, '\0'));
  CHECK(data::read_text(folder.file("f")) == "one\n" + big + "\ntwo");
  write_plain(folder.file("f"), bytes + "more");
  CHECK(damage_of(folder.file("f")) == "the compressed stream is damaged (other bytes follow it)");
  write_plain(folder.file("f"), bytes + packed("three").substr(0, 12));
  CHECK(damage_of(folder.file("f")) == "the compressed stream ends early");
}

TEST_CASE("what a file says of its size is a hint only") {
  const support::TemporaryFolder folder;
  write_plain(folder.file("plain"), std::string(300'000, 'x'));
  CHECK(data::GzipReader(folder.file("plain")).expected_bytes() == 300'000);
  const std::string bytes = packed(std::string(300'000, 'x'));
  write_plain(folder.file("packed"), bytes);
  CHECK(data::GzipReader(folder.file("packed")).expected_bytes() == 300'000);
  write_plain(folder.file("two"), bytes + packed("y"));
  CHECK(data::GzipReader(folder.file("two")).expected_bytes() == 1);
  CHECK(data::read_text(folder.file("two")).size() == 300'001);
  write_plain(folder.file("bent"), bytes + std::string(4, '\xff'));  // claims 4 GiB
  CHECK(data::GzipReader(folder.file("bent")).expected_bytes() == 1032 * (bytes.size() + 4));
  CHECK(data::GzipReader("/dev/null").expected_bytes() == 0);
}

TEST_CASE("a file that is not there, or holds more than it may, is refused with its name") {
  const support::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(data::GzipReader(folder.file("no")), doctest::Contains("/no'"), std::runtime_error);
  CHECK(damage_of(folder.path()).find("cannot be read: ") == 0);
  write_gzip(folder.file("zeros"), std::string(2'000'000, '0'));
  CHECK_THROWS_WITH_AS((void)data::read_text(folder.file("zeros"), 1'000'000), doctest::Contains("more than 1000000"),
                       std::runtime_error);
}
