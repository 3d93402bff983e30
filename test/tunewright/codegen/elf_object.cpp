// SPDX-License-Identifier: Apache-2.0
#include "tunewright/codegen/elf_object.hpp"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/refusal.hpp"

using namespace tunewright;

namespace {

/// An object file: its header, two sections (symbols and their names), one global symbol "kernel", the names.
struct Object {
  Elf64_Ehdr header{};
  Elf64_Shdr symbols{}, names{};
  Elf64_Sym symbol{};
  std::string text = std::string("\0kernel", 8);

  Object() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = EM_X86_64;
    header.e_shoff = sizeof header;
    header.e_shnum = 2;
    symbols.sh_type = SHT_SYMTAB;
    symbols.sh_offset = sizeof header + 2 * sizeof symbols;
    symbols.sh_size = sizeof symbol;
    symbols.sh_link = 1;
    names.sh_offset = symbols.sh_offset + sizeof symbol;
    names.sh_size = text.size();
    symbol.st_name = 1;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  }

  [[nodiscard]] std::vector<char> bytes() const {
    std::vector<char> file;
    const auto append = [&file](const auto& value) {
      const auto* from = reinterpret_cast<const char*>(&value);
      file.insert(file.end(), from, from + sizeof value);
    };
    append(header);
    append(symbols);
    append(names);
    append(symbol);
    file.insert(file.end(), text.begin(), text.end());
    return file;
  }
};

std::string refusal(const Object& object) {
  return test::refusal<std::invalid_argument>(
      [&] { (void)codegen::with_symbol_renamed(object.bytes(), "kernel", "another"); });
}

}  // namespace

TEST_CASE("a symbol gets another name, and the first one back") {
  const Object object;
  CHECK(codegen::family_of_object(object.bytes()) == CpuFamily::X86_64);
  const std::vector<char> renamed = codegen::with_symbol_renamed(object.bytes(), "kernel", "another");
  CHECK(renamed.size() == object.bytes().size() + object.text.size() + sizeof "another");
  CHECK(std::string(renamed.end() - 16, renamed.end()) == object.text + std::string("another", 8));
  CHECK_THROWS_AS((void)codegen::with_symbol_renamed(renamed, "kernel", "another"), std::invalid_argument);
  CHECK_NOTHROW((void)codegen::with_symbol_renamed(renamed, "another", "kernel"));
}

TEST_CASE("places and sizes that wrap around lie beyond the end of the file") {
  constexpr std::uint64_t before_the_file = ~std::uint64_t{0};
  Object object;
  object.header.e_shoff = before_the_file;
  CHECK(refusal(object).find("is truncated") != std::string::npos);
  object = {};
  object.symbols.sh_offset = before_the_file;
  object.symbols.sh_size = 2;  // no whole symbol, which begins before the end
  CHECK(refusal(object).find("is truncated") != std::string::npos);
  object = {};
  object.names.sh_offset = before_the_file - 1;
  object.names.sh_size = 8;
  CHECK(refusal(object).find("is truncated") != std::string::npos);
  object = {};
  object.symbols.sh_size = before_the_file;
  CHECK(refusal(object).find("is truncated") != std::string::npos);
}

TEST_CASE("a name ends with the table of names at the latest") {
  Object object;
  object.text.pop_back();  // the zero byte behind it
  object.names.sh_size = object.text.size();
  CHECK(codegen::with_symbol_renamed(object.bytes(), "kernel", "another").size() > object.bytes().size());
  object.text += "_of_another_section";
  CHECK(codegen::with_symbol_renamed(object.bytes(), "kernel", "another").size() > object.bytes().size());
}
