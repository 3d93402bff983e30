// SPDX-License-Identifier: Apache-2.0
#include "tunewright/data/replaced_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "support/file_text.hpp"
#include "support/full_disk.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace tunewright;
using data::ReplacedFile;

namespace {

std::size_t files_in(const support::TemporaryFolder& folder) {
  const std::filesystem::directory_iterator files(folder.path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

unsigned permissions_of(const std::string& path) {
  return static_cast<unsigned>(std::filesystem::status(path).permissions());
}

}  // namespace

TEST_CASE("a file stays as it is until it is replaced, and for good if it is not") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("store");
  std::ofstream(path) << "old";
  {
    ReplacedFile file(path);
    file.stream() << "new" << std::flush;
    CHECK(support::file_text(path) == "old");
    CHECK(files_in(folder) == 2);
  }
  CHECK(support::file_text(path) == "old");
  CHECK(files_in(folder) == 1);
  ReplacedFile file(path);
  file.stream() << "new";
  file.complete();
  CHECK(support::file_text(path) == "old");
  file.replace();
  CHECK(support::file_text(path) == "new");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("of two writers at the same time each has its own file, and the last one to end replaces the other's") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("store");
  const std::string much(100'000, 'x');
  ReplacedFile one(path), two(path);
  one.stream() << much << std::flush;
  two.stream() << "two" << std::flush;
  one.stream() << "one";
  one.replace();
  CHECK(support::file_text(path) == much + "one");
  ReplacedFile three(path);  // takes the name that is free again
  three.stream() << "three";
  two.replace();
  CHECK(support::file_text(path) == "two");
  three.replace();
  CHECK(support::file_text(path) == "three");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("what a killed writer left behind stays as it is") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("store");
  std::ofstream(path + ".unfinished.0") << "left";
  std::filesystem::create_symlink(folder.file("elsewhere"), path + ".unfinished.1");
  ReplacedFile file(path);
  file.stream() << "new";
  file.replace();
  CHECK(support::file_text(path) == "new");
  CHECK(support::file_text(path + ".unfinished.0") == "left");
  CHECK_FALSE(std::filesystem::exists(folder.file("elsewhere")));
}

TEST_CASE("a file has the permissions of the one that it replaces, and a new one those of any other new one") {
  const support::TemporaryFolder folder;
  const mode_t usual = ::umask(027);
  const std::string fresh = folder.file("fresh");
  ReplacedFile(fresh).replace();
  CHECK(permissions_of(fresh) == 0640);
  for (const unsigned permissions : {0600U, 0666U, 0444U}) {
    const std::string path = folder.file("replaced");
    std::ofstream(path) << "old";
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(permissions));
    ReplacedFile file(path);
    CHECK((permissions_of(path + ".unfinished.0") & ~permissions & 077) == 0);
    file.replace();
    CHECK(permissions_of(path) == permissions);
  }
  ::umask(usual);
}

TEST_CASE("a file that cannot be written is refused with its path, and nothing is left behind") {
  const support::TemporaryFolder folder;
  const std::string path = folder.file("store"), taken = folder.file("taken");
  const auto refused = [](const std::string& at) {
    return test::refusal<std::runtime_error>([&] {
      ReplacedFile file(at);
      file.stream() << "new";
      file.replace();
    });
  };
  CHECK(refused("/no/such/folder/store") ==
        "cannot write '/no/such/folder/store'; check that the folder exists and has room");
  std::ofstream(path) << "old";
  {
    const support::FullDisk full(0);
    CHECK(refused(path) == "cannot write '" + path + "'; check that the folder exists and has room");
  }
  CHECK(support::file_text(path) == "old");
  std::filesystem::create_directories(taken + "/by a folder");
  CHECK(refused(taken).starts_with("cannot replace '" + taken + "'"));
  CHECK(files_in(folder) == 2);
}
