// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tunewright/core/target.hpp"
#include "tunewright/detail/config.hpp"

/// Identifies and renames symbols in relocatable object files of Linux (64-bit ELF), as far as kernels need it.
namespace tunewright::codegen {

/// The family of processors of an object file; `Other` if it is not a 64-bit ELF.
[[nodiscard]] CpuFamily family_of_object(std::span<const char> object);

/// The object file with its global symbol `from` renamed to `to`: the string table, with the new name appended, moves
/// to the end. Throws `std::invalid_argument` if `object` is not an object file that defines `from`.
[[nodiscard]] std::vector<char> with_symbol_renamed(std::vector<char> object, const std::string& from,
                                                    const std::string& to);

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace tunewright::codegen {

TUNEWRIGHT_INLINE CpuFamily family_of_object(std::span<const char> object) {
  Elf64_Ehdr file;
  if (object.size() < sizeof file) return CpuFamily::Other;
  std::memcpy(&file, object.data(), sizeof file);
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64) return CpuFamily::Other;
  if (file.e_machine == EM_X86_64) return CpuFamily::X86_64;
  return file.e_machine == EM_AARCH64 ? CpuFamily::Aarch64 : CpuFamily::Other;
}

TUNEWRIGHT_INLINE std::vector<char> with_symbol_renamed(std::vector<char> object, const std::string& from,
                                                        const std::string& to) {
  const auto wrong = [&](const char* what) {
    return std::invalid_argument("the object file of kernel '" + from + "' " + what);
  };
  const auto part = [&](std::uint64_t at, std::uint64_t bytes) {
    if (at > object.size() || bytes > object.size() - at) throw wrong("is truncated");
    return std::span<const char>(object).subspan(at, bytes);
  };
  const auto read = [&](std::uint64_t at, auto& value) {
    std::memcpy(&value, part(at, sizeof value).data(), sizeof value);
  };
  const auto write = [&](std::uint64_t at, const auto& value) {
    std::memcpy(object.data() + at, &value, sizeof value);
  };
  Elf64_Ehdr file;
  read(0, file);
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64)
    throw wrong("is not 64-bit ELF");
  for (std::size_t s = 0; s < file.e_shnum; ++s) {
    Elf64_Shdr symbols;
    read(file.e_shoff + s * sizeof symbols, symbols);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const std::uint64_t names_at = file.e_shoff + symbols.sh_link * sizeof(Elf64_Shdr);
    Elf64_Shdr names;
    read(names_at, names);
    const std::span<const char> text = part(names.sh_offset, names.sh_size);
    const std::size_t count = part(symbols.sh_offset, symbols.sh_size).size() / sizeof(Elf64_Sym);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t at = symbols.sh_offset + i * sizeof(Elf64_Sym);
      Elf64_Sym symbol;
      read(at, symbol);
      if (symbol.st_name >= text.size()) throw wrong("is truncated");
      // A name ends with a zero byte, or with the table.
      const std::string_view rest(text.data() + symbol.st_name, text.size() - symbol.st_name);
      if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL || rest.substr(0, rest.find('\0')) != from) continue;
      std::vector<char> table(text.begin(), text.end());
      symbol.st_name = static_cast<Elf64_Word>(table.size());
      table.insert(table.end(), to.c_str(), to.c_str() + to.size() + 1);
      names.sh_offset = object.size();
      names.sh_size = table.size();
      write(at, symbol);
      write(names_at, names);
      object.insert(object.end(), table.begin(), table.end());
      return object;
    }
  }
  throw wrong("does not define it");
}

}  // namespace tunewright::codegen

#endif
