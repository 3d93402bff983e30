// SPDX-License-Identifier: Apache-2.0
// A file of the folder that the processes of a study share. Each of its lines is a result, blank or bad, or the file is
// another study's; what is read is written and reads equal, and what is added is read behind it.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz/folder.hpp"
#include "fuzz/fuzz.hpp"
#include "tunewright/study/finalists.hpp"
#include "tunewright/study/finished_search.hpp"

using namespace tunewright;

namespace {

template <class Result>
void check_line(const std::string& line) {
  Result result;
  std::string name, again_name;
  if (!fuzz::accepts<FormatError>([&] { from_line(line, result, name); })) return;
  const std::string written = to_line(result, name);
  Result again;
  from_line(written, again, again_name);
  fuzz::require(again_name == name && to_line(again, name) == written, "a result reads equal");
}

template <class Result>
void check_file(const std::filesystem::path& folder, std::string_view contents) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "kind.1-of-1.jsonl", std::ios::binary) << contents;
  (void)fuzz::accepts<std::runtime_error>([&] {
    study::SharedLines<Result> before(folder, "kind", "s", 1, 1);
    const std::size_t read = before.all().size(), bad = before.bad().size();
    Result added;
    added.problem = "added";
    before.add(added);
    const study::SharedLines<Result> after(folder, "kind", "s", 1, 1);
    fuzz::require(after.all().size() == read + 1 && after.bad().size() == bad, "what is added is read");
    fuzz::require(after.all().back().problem == "added", "what is added comes last");
    for (std::size_t i = 0; i < read; ++i)
      fuzz::require(to_line(after.all()[i], "s") == to_line(before.all()[i], "s"), "results stay what they are");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const fuzz::Folder folder;
  std::istringstream lines(std::string(fuzz::text(bytes, size)));
  for (std::string line; std::getline(lines, line);) {
    check_line<study::FinishedSearch>(line);
    check_line<study::Finalists>(line);
  }
  check_file<study::FinishedSearch>(folder.path / "study", fuzz::text(bytes, size));
  check_file<study::Finalists>(folder.path / "study", fuzz::text(bytes, size));
  return 0;
}
