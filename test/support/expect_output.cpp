// SPDX-License-Identifier: Apache-2.0
// expect_output <expected file> <program> [argument...]
//
// Runs the program in a folder of its own, where nothing is left of earlier runs, and compares its standard output with
// the file, line by line. `<...>` in an expected line stands for
// any text within that line; an expected line that is `<...>` alone stands for any number of lines.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "temporary_folder.hpp"

namespace {

constexpr std::string_view anything = "<...>";

bool matches(std::string_view pattern, std::string_view line) {
  const std::size_t gap = pattern.find(anything);
  if (gap == std::string_view::npos) return pattern == line;
  if (line.substr(0, gap) != pattern.substr(0, gap)) return false;
  pattern.remove_prefix(gap + anything.size());
  line.remove_prefix(gap);
  for (std::size_t skipped = 0; skipped <= line.size(); ++skipped) {
    if (matches(pattern, line.substr(skipped))) return true;
  }
  return false;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// First expected line that nothing printed matches, counted from 1, or 0 when all match.
std::size_t first_difference(const std::vector<std::string>& expected, const std::vector<std::string>& printed) {
  std::size_t next = 0;
  for (std::size_t line = 0; line < expected.size(); ++line) {
    if (expected[line] == anything) {
      if (line + 1 == expected.size()) return 0;
      while (next < printed.size() && !matches(expected[line + 1], printed[next])) ++next;
      continue;
    }
    if (next == printed.size() || !matches(expected[line], printed[next])) return line + 1;
    ++next;
  }
  return next == printed.size() ? 0 : expected.size() + 1;
}

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: expect_output <expected file> <program> [argument...]\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  if (!file) {
    std::cerr << "cannot read " << argv[1] << '\n';
    return 2;
  }
  const std::string expected{std::istreambuf_iterator<char>(file), {}};

  const support::TemporaryFolder folder;
  std::string command = "cd " + in_quotes(folder.path()) + " && ";
  for (int i = 2; i < argc; ++i) command += in_quotes(argv[i]) + " ";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    std::cerr << "cannot run " << command << '\n';
    return 2;
  }
  std::string printed;
  char chunk[4096];
  while (const std::size_t size = std::fread(chunk, 1, sizeof chunk, pipe)) printed.append(chunk, size);
  const int status = ::pclose(pipe);

  std::cout << printed;
  const std::size_t line = first_difference(split_lines(expected), split_lines(printed));
  if (line != 0) std::cerr << "the output differs from line " << line << " of " << argv[1] << '\n';
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::cerr << "the program ended with status " << status << '\n';
    return 1;
  }
  return line == 0 ? 0 : 1;
}
