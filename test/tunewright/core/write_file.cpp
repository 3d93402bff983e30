// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/write_file.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <string>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace tunewright;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a file is written as it is, in place of a longer one, and out of order where that is wanted") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("file");
  write_file(path, "", [](std::ostream& out) { out << "longer than what follows"; });
  write_file(path, "", [](std::ostream& out) {
    out << "?\r\nb\n";
    out.seekp(0);
    out << 'a';
  });
  CHECK(text_of(path) == "a\r\nb\n");
}

TEST_CASE("a file that cannot be opened is named with the remedy, and nothing is made for it") {
  const support::TemporaryFolder folder;
  bool asked = false;
  const auto content = [&](std::ostream&) { asked = true; };
  for (const std::string& refused : {folder.file("missing/file"), folder.path()}) {
    CHECK(test::refusal<std::runtime_error>([&] { write_file(refused, "name another folder", content); }) ==
          "cannot write '" + refused + "'; name another folder");
  }
  CHECK_FALSE(asked);
}

TEST_CASE("a disk without room is noticed, for a few bytes as late as the file is closed") {
  const std::string full = "/dev/full";
  if (!std::filesystem::exists(full)) return;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1} << 20}) {
    CHECK(test::refusal<std::runtime_error>([&] {
            write_file(full, "make room", [&](std::ostream& out) { out << std::string(bytes, 'x'); });
          }) == "cannot write '/dev/full'; make room");
  }
}
