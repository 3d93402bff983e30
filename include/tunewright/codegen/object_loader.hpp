// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "tunewright/codegen/kernel.hpp"
#include "tunewright/detail/config.hpp"

/// Loads compiled kernels without LLVM, as a worker on a small board does.
namespace tunewright::codegen {

/// The machine code of one relocatable object file (64-bit ELF), linked into this process. Code is executable and
/// constants are readable; neither is writable. Writable data are on separate pages.
///
/// The object can only use the functions that the code generator calls: `memcpy`, `memmove`, `memset`, `fma`, `fmaf`,
/// `exp`, `log`, `tanh`, `erf`. Cost: a copy of the file's sections and two system calls.
class ObjectCode {
 public:
  /// Throws `std::invalid_argument` if `object` is not a complete object file for this family of processors or has no
  /// function `symbol`; `std::runtime_error` for an unknown function or relocation.
  ObjectCode(std::span<const char> object, const std::string& symbol);
  ObjectCode(const ObjectCode&) = delete;
  ObjectCode& operator=(const ObjectCode&) = delete;
  ~ObjectCode();

  [[nodiscard]] tunewright_kernel entry() const noexcept { return entry_; }

 private:
  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
  tunewright_kernel entry_ = nullptr;
};

}  // namespace tunewright::codegen

#if TUNEWRIGHT_DEFINES(codegen)

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "tunewright/codegen/elf_file.hpp"
#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/relocation.hpp"
#include "tunewright/core/rounded_up.hpp"

namespace tunewright::codegen::object_code {

/// Address of a function that kernels may call; null for others.
[[nodiscard]] inline const void* provided(const std::string& name) {
  struct Function {
    const char* name;
    const void* address;
  };
  const auto real = [](double (*function)(double)) { return reinterpret_cast<const void*>(function); };
  static const Function functions[] = {
      {"memcpy", reinterpret_cast<const void*>(&std::memcpy)},
      {"memmove", reinterpret_cast<const void*>(&std::memmove)},
      {"memset", reinterpret_cast<const void*>(&std::memset)},
      {"fma", reinterpret_cast<const void*>(static_cast<double (*)(double, double, double)>(&::fma))},
      {"fmaf", reinterpret_cast<const void*>(static_cast<float (*)(float, float, float)>(&::fmaf))},
      {"exp", real(&::exp)},
      {"log", real(&::log)},
      {"tanh", real(&::tanh)},
      {"erf", real(&::erf)},
  };
  for (const Function& function : functions) {
    if (name == function.name) return function.address;
  }
  return nullptr;
}

/// An object file for this family of processors, with its sections.
class File : public ElfFile {
 public:
  File(std::span<const char> bytes, const std::string& symbol) : ElfFile(bytes, symbol) {
    if (family_of_object(bytes) != host_family) {
      throw std::invalid_argument("kernel '" + symbol + "' is " +
                                  (family_of_object(bytes) == CpuFamily::Other
                                       ? std::string("no object file that is known here")
                                       : "machine code for " + std::string(name(family_of_object(bytes)))) +
                                  ", and this program runs on " + std::string(name(host_family)) +
                                  "; compile it for this machine");
    }
    const auto header = at<Elf64_Ehdr>(0);
    for (std::size_t s = 0; s < header.e_shnum; ++s)
      sections.push_back(at<Elf64_Shdr>(offset(header.e_shoff, s, sizeof(Elf64_Shdr))));
  }

  [[nodiscard]] const Elf64_Shdr& section(std::uint64_t number) const {
    if (number >= sections.size()) throw wrong("names a section that it does not have");
    return sections[number];
  }

  std::vector<Elf64_Shdr> sections;
};

/// Skips unwind tables: the code never throws, and they would need other relocations.
[[nodiscard]] inline bool is_placed(const File& file, const Elf64_Shdr& names, const Elf64_Shdr& section) {
  return (section.sh_flags & SHF_ALLOC) != 0 && section.sh_size > 0 &&
         !file.text(names, section.sh_name).starts_with(".eh_frame");
}

}  // namespace tunewright::codegen::object_code

namespace tunewright::codegen {

TUNEWRIGHT_INLINE ObjectCode::ObjectCode(std::span<const char> object, const std::string& symbol) {
  using namespace object_code;
  constexpr std::uint64_t not_placed = ~std::uint64_t{0}, limit = std::uint64_t{1} << 30;
  const File file(object, symbol);
  const Elf64_Shdr& names = file.section(file.at<Elf64_Ehdr>(0).e_shstrndx);

  const auto table = std::find_if(file.sections.begin(), file.sections.end(),
                                  [](const Elf64_Shdr& section) { return section.sh_type == SHT_SYMTAB; });
  if (table == file.sections.end()) throw file.wrong("has no symbols");
  // The file bounds the table before memory is reserved for it.
  std::vector<Elf64_Sym> symbols(file.part(table->sh_offset, table->sh_size).size() / sizeof(Elf64_Sym));
  for (std::size_t s = 0; s < symbols.size(); ++s)
    symbols[s] = file.at<Elf64_Sym>(File::offset(table->sh_offset, s, sizeof(Elf64_Sym)));
  const Elf64_Shdr& symbol_names = file.section(table->sh_link);

  // Slots of symbols first, then read-only data, then writable data from a new page on.
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<std::uint64_t> place(file.sections.size(), not_placed);
  std::uint64_t end = symbols.size() * sizeof(relocation::Slot);
  std::uint64_t protected_end = 0;
  for (const bool written : {false, true}) {
    for (std::size_t s = 0; s < file.sections.size(); ++s) {
      const Elf64_Shdr& section = file.sections[s];
      if (!is_placed(file, names, section) || ((section.sh_flags & SHF_WRITE) != 0) != written) continue;
      const std::uint64_t alignment = std::max<std::uint64_t>(section.sh_addralign, 1);
      if (alignment > page || section.sh_size > limit) throw file.wrong("has a section that is too large");
      place[s] = rounded_up(end, alignment);
      end = place[s] + section.sh_size;
      if (end > limit) throw file.wrong("is too large");
    }
    end = rounded_up(end, page);
    if (!written) protected_end = end;
  }

  void* mapped = ::mmap(nullptr, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of a kernel's code");
  // The destructor does not run if the constructor throws.
  struct Unmap {
    void* memory;
    std::size_t bytes;
    ~Unmap() {
      if (memory != nullptr) ::munmap(memory, bytes);
    }
  } guard{mapped, end};
  auto* const memory = static_cast<char*>(mapped);
  for (std::size_t s = 0; s < place.size(); ++s) {
    if (place[s] == not_placed || file.sections[s].sh_type == SHT_NOBITS) continue;
    const auto contents = file.part(file.sections[s].sh_offset, file.sections[s].sh_size);
    std::copy(contents.begin(), contents.end(), memory + place[s]);
  }

  const auto address_of = [&](std::size_t number) -> std::uint64_t {
    if (number >= symbols.size()) throw file.wrong("names a symbol that it does not have");
    const Elf64_Sym& entry = symbols[number];
    if (entry.st_shndx == SHN_UNDEF) {
      const std::string name = file.text(symbol_names, entry.st_name);
      const void* found = provided(name);
      if (found == nullptr)
        throw std::runtime_error("kernel '" + symbol + "' calls '" + name + "', which kernels are not given");
      return reinterpret_cast<std::uintptr_t>(found);
    }
    if (entry.st_shndx >= place.size() || place[entry.st_shndx] == not_placed)
      throw file.wrong("refers to a section that is not loaded");
    return reinterpret_cast<std::uintptr_t>(memory + place[entry.st_shndx]) + entry.st_value;
  };

  for (const Elf64_Shdr& section : file.sections) {
    if (section.sh_type != SHT_RELA || section.sh_info >= place.size() || place[section.sh_info] == not_placed)
      continue;
    const std::uint64_t room = file.sections[section.sh_info].sh_size;
    for (std::size_t r = 0; r < section.sh_size / sizeof(Elf64_Rela); ++r) {
      const auto entry = file.at<Elf64_Rela>(File::offset(section.sh_offset, r, sizeof(Elf64_Rela)));
      const auto number = static_cast<std::size_t>(ELF64_R_SYM(entry.r_info));
      const auto kind = static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info));
      if (entry.r_offset > room || relocation::width(kind) > room - entry.r_offset)
        throw file.wrong("has a relocation outside of its section");
      const std::uint64_t target = address_of(number);
      auto* slot = reinterpret_cast<relocation::Slot*>(memory) + number;
      *slot = relocation::slot_for(target);
      const bool foreign = symbols[number].st_shndx == SHN_UNDEF;
      if (!relocation::apply(kind, memory + place[section.sh_info] + entry.r_offset, target, entry.r_addend, *slot,
                             foreign)) {
        throw std::runtime_error("kernel '" + symbol + "' has a relocation of type " + std::to_string(kind) +
                                 " that cannot be made here");
      }
    }
  }

  for (std::size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbols[s].st_info) != STT_FUNC ||
        file.text(symbol_names, symbols[s].st_name) != symbol)
      continue;
    const std::uint64_t address = address_of(s);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    if (address < begin || address >= begin + protected_end) throw file.wrong("begins outside of its code");
    entry_ = reinterpret_cast<tunewright_kernel>(address);  // NOLINT: an address in this process
  }
  if (entry_ == nullptr) throw file.wrong("does not define it");

  __builtin___clear_cache(memory, memory + protected_end);
  if (::mprotect(memory, protected_end, PROT_READ | PROT_EXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect of a kernel's code");
  memory_ = memory;
  bytes_ = end;
  guard.memory = nullptr;
}

TUNEWRIGHT_INLINE ObjectCode::~ObjectCode() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace tunewright::codegen

#endif
