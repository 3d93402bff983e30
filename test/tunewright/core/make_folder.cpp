// SPDX-License-Identifier: Apache-2.0
#include "tunewright/core/make_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace tunewright;

TEST_CASE("a folder is made with those above it; one that is there stays as it is, and no path is the current folder") {
  const support::TemporaryFolder folder;
  make_folder(folder.file("deep/er"));
  CHECK(std::filesystem::is_directory(folder.file("deep/er")));
  std::ofstream(folder.file("deep/er/file")) << "text";
  make_folder(folder.file("deep/er"));
  CHECK(std::filesystem::file_size(folder.file("deep/er/file")) == 4);
  CHECK_NOTHROW(make_folder({}));
}

TEST_CASE("a folder that cannot be made is named, with the cause and the remedy") {
  const support::TemporaryFolder folder;
  std::ofstream(folder.file("file")) << "text";
  const std::string cause = std::make_error_code(std::errc::not_a_directory).message();
  for (const std::string& refused : {folder.file("file"), folder.file("file/deep")}) {
    CHECK(test::refusal<std::runtime_error>([&] { make_folder(refused); }) ==
          "the folder '" + refused + "' cannot be made (" + cause + "); name one that you may write");
    CHECK(test::refusal<std::runtime_error>([&] {
            make_folder(refused, "name another by --out=DIR");
          }).ends_with("); name another by --out=DIR"));
  }
}
