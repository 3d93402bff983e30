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

#include "tunewright/codegen/elf_file.hpp"

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
  const ElfFile file(object, from);
  const auto write = [&](std::uint64_t at, const auto& value) {
    std::memcpy(object.data() + at, &value, sizeof value);
  };
  const auto header = file.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    throw file.wrong("is not 64-bit ELF");
  for (std::size_t s = 0; s < header.e_shnum; ++s) {
    const auto symbols = file.at<Elf64_Shdr>(ElfFile::offset(header.e_shoff, s, sizeof(Elf64_Shdr)));
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const std::uint64_t names_at = ElfFile::offset(header.e_shoff, symbols.sh_link, sizeof(Elf64_Shdr));
    auto names = file.at<Elf64_Shdr>(names_at);
    const std::span<const char> text = file.part(names.sh_offset, names.sh_size);
    const std::size_t count = file.part(symbols.sh_offset, symbols.sh_size).size() / sizeof(Elf64_Sym);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t at = ElfFile::offset(symbols.sh_offset, i, sizeof(Elf64_Sym));
      auto symbol = file.at<Elf64_Sym>(at);
      const std::string name = file.text(names, symbol.st_name);
      if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL || name != from) continue;
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
  throw file.wrong("does not define it");
}

}  // namespace tunewright::codegen

#endif
