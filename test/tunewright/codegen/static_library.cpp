// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/static_library.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/c_program.hpp"

namespace {

using namespace tunewright;

/// The object file of a function that returns `value`, with `filler` bytes of data besides.
std::vector<char> object_of(const test::CProgram& folder, const std::string& symbol, int value, int filler) {
  std::ofstream(folder.file(symbol + ".c")) << "const char " << symbol << "_data[" << filler << "] = {1};\nint "
                                            << symbol << "(void) { return " << value << "; }\n";
  REQUIRE(test::runs_in(folder.path(), test::c_compiler + " -c " + symbol + ".c"));
  std::ifstream file(folder.file(symbol + ".o"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the bytes of a library with one member of three bytes") {
  const std::vector<codegen::LibraryMember> members{{"f", {'a', 'b', 'c'}}};
  const std::string pad(80, ' ');
  const auto column = [&](const std::string& text, std::size_t width) { return (text + pad).substr(0, width); };
  const auto header = [&](const std::string& name, const std::string& bytes) {
    return column(name, 16) + column("0", 12) + column("0", 6) + column("0", 6) + column("644", 8) + column(bytes, 10) +
           "`\n";
  };
  // The index: one symbol, of the member whose header begins at 8 + (60 + 10) + (60 + 6) = 144.
  const std::string index{'\0', '\0', '\0', '\1', '\0', '\0', '\0', '\x90', 'f', '\0'};
  const std::string expected =
      "!<arch>\n" + header("/", "10") + index + header("//", "5") + "f.o/\n\n" + header("/0", "3") + "abc\n";
  const std::vector<char> library = codegen::static_library(members);
  CHECK(std::string(library.begin(), library.end()) == expected);
}

TEST_CASE("the linker takes from a library what is called, whatever sizes and names its members have") {
  const test::CProgram folder;
  std::vector<codegen::LibraryMember> members;
  std::string main_text = "#include <stdio.h>\n";
  std::string sum = "0";
  for (int i = 0; i < 5; ++i) {
    const std::string symbol = "a_name_longer_than_sixteen_characters_" + std::string(static_cast<std::size_t>(i), 'x');
    members.push_back({symbol, object_of(folder, symbol, 1 << i, 100 + i)});
    if (i % 2 == 1) members.back().object.push_back('\0');  // an odd number of bytes
    main_text += "int " + symbol + "(void);\n";
    sum += " + " + symbol + "()";
  }
  const std::vector<char> library = codegen::static_library(members);
  std::ofstream(folder.file("liball.a"), std::ios::binary)
      .write(library.data(), static_cast<std::streamsize>(library.size()));
  folder.write_main(main_text + "int main(void) { return " + sum + " == 31 ? 0 : 1; }\n");
  REQUIRE_MESSAGE(folder.compiles("liball.a"), folder.said());
  CHECK(folder.succeeds());
}

TEST_CASE("a library without members and two of one symbol are refused") {
  CHECK_THROWS_WITH_AS((void)codegen::static_library({}), "a library without members; give at least one object file",
                       std::invalid_argument);
  const std::vector<codegen::LibraryMember> twice{{"f", {'a'}}, {"f", {'b'}}};
  CHECK_THROWS_WITH_AS((void)codegen::static_library(twice), "two members of a library define 'f'; give each a symbol",
                       std::invalid_argument);
}
