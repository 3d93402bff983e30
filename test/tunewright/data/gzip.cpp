// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/gzip.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace tunewright;

namespace {

void write_plain(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}
void write_gzip(const std::string& path, const std::string& text) {
  const gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(file);
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
      {"", {}},
      {"\n", {""}},
      {"one", {"one"}},
      {"one\ntwo\n", {"one", "two"}},
      {"one\r\n\r\ntwo", {"one", "", "two"}},
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
}

TEST_CASE("a stream that ends early gives what came before, and says so") {
  const support::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  write_gzip(folder.file("whole"), text);
  std::ifstream whole(folder.file("whole"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  write_plain(folder.file("cut"), bytes.substr(0, bytes.size() / 2));

  data::GzipLines lines(folder.file("cut"));
  std::string_view line;
  std::size_t count = 0;
  while (lines.next(line)) ++count;
  CHECK(count > 100);
  CHECK(count < 5000);
  CHECK(lines.damage() == "the compressed stream ends early");
  CHECK_THROWS_WITH_AS((void)data::read_text(folder.file("cut")), doctest::Contains("ends early"),
                       std::runtime_error);

  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  write_plain(folder.file("bent"), bytes);
  data::GzipLines bent(folder.file("bent"));
  while (bent.next(line)) {
  }
  CHECK(bent.damage().find("damaged") != std::string::npos);
}

TEST_CASE("a file that is not there, or holds more than it may, is refused with its name") {
  const support::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(data::GzipReader(folder.file("no")), doctest::Contains("/no'"), std::runtime_error);
  write_gzip(folder.file("zeros"), std::string(2'000'000, '0'));
  CHECK_THROWS_WITH_AS((void)data::read_text(folder.file("zeros"), 1'000'000),
                       doctest::Contains("more than 1000000"), std::runtime_error);
}
