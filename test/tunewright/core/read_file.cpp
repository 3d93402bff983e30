// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/read_file.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <ostream>
#include <string>

#include "support/temporary_folder.hpp"
#include "tunewright/core/write_file.hpp"

using namespace tunewright;

TEST_CASE("a file is read as it is, and one that is missing differs from an empty one") {
  const support::TemporaryFolder folder;
  const std::string text("a\r\n\0b", 5), path = folder.file("file"), empty = folder.file("empty");
  write_file(path, "", [&](std::ostream& out) { out << text; });
  write_file(empty, "", [](std::ostream&) {});
  CHECK(read_file(path) == text);
  CHECK(read_file(empty) == "");
  CHECK_FALSE(read_file(folder.file("missing")).has_value());
}
