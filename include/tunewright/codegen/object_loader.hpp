// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

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
#include <optional>
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

struct Symbols {
  explicit Symbols(const File& file) {
    const auto table = std::find_if(file.sections.begin(), file.sections.end(),
                                    [](const Elf64_Shdr& section) { return section.sh_type == SHT_SYMTAB; });
    if (table == file.sections.end()) throw file.wrong("has no symbols");
    // The file bounds the table before memory is reserved for it.
    all.resize(file.part(table->sh_offset, table->sh_size).size() / sizeof(Elf64_Sym));
    for (std::size_t s = 0; s < all.size(); ++s)
      all[s] = file.at<Elf64_Sym>(File::offset(table->sh_offset, s, sizeof(Elf64_Sym)));
    names = file.section(table->sh_link);
  }

  std::vector<Elf64_Sym> all;
  Elf64_Shdr names{};  ///< the section of their names
};

/// Where sections lie in memory: after the slots of symbols, read-only data, then writable data from a new page on.
struct Places {
  Places(const File& file, std::size_t symbols) : of_section(file.sections.size()) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 30;
    const Elf64_Shdr& names = file.section(file.at<Elf64_Ehdr>(0).e_shstrndx);
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    end = symbols * sizeof(relocation::Slot);
    for (const bool written : {false, true}) {
      for (std::size_t s = 0; s < file.sections.size(); ++s) {
        const Elf64_Shdr& section = file.sections[s];
        if (!is_placed(file, names, section) || ((section.sh_flags & SHF_WRITE) != 0) != written) continue;
        const std::uint64_t alignment = std::max<std::uint64_t>(section.sh_addralign, 1);
        if (alignment > page || section.sh_size > limit) throw file.wrong("has a section that is too large");
        of_section[s] = rounded_up(end, alignment);
        end = *of_section[s] + section.sh_size;
        if (end > limit) throw file.wrong("is too large");
      }
      end = rounded_up(end, page);
      if (!written) protected_end = end;
    }
  }

  /// The place of a section; empty for one that is not loaded, or that the file does not have.
  [[nodiscard]] std::optional<std::uint64_t> of(std::size_t section) const {
    return section < of_section.size() ? of_section[section] : std::nullopt;
  }

  std::vector<std::optional<std::uint64_t>> of_section;
  std::uint64_t end = 0;
  std::uint64_t protected_end = 0;  ///< of what is not writable
};

/// A file in the memory of its places.
struct Image {
  const File& file;
  const std::string& symbol;
  const Symbols& symbols;
  const Places& places;
  char* memory;

  void copy_sections() const {
    for (std::size_t s = 0; s < file.sections.size(); ++s) {
      const std::optional<std::uint64_t> place = places.of(s);
      if (!place || file.sections[s].sh_type == SHT_NOBITS) continue;
      const auto contents = file.part(file.sections[s].sh_offset, file.sections[s].sh_size);
      std::copy(contents.begin(), contents.end(), memory + *place);
    }
  }

  [[nodiscard]] std::uint64_t address_of(std::size_t number) const {
    if (number >= symbols.all.size()) throw file.wrong("names a symbol that it does not have");
    const Elf64_Sym& entry = symbols.all[number];
    if (entry.st_shndx == SHN_UNDEF) {
      const std::string name = file.text(symbols.names, entry.st_name);
      const void* found = provided(name);
      if (found == nullptr)
        throw std::runtime_error("kernel '" + symbol + "' calls '" + name + "', which kernels are not given");
      return reinterpret_cast<std::uintptr_t>(found);
    }
    const std::optional<std::uint64_t> place = places.of(entry.st_shndx);
    if (!place) throw file.wrong("refers to a section that is not loaded");
    return reinterpret_cast<std::uintptr_t>(memory + *place) + entry.st_value;
  }

  void relocate() const {
    for (const Elf64_Shdr& section : file.sections) {
      if (section.sh_type != SHT_RELA || !places.of(section.sh_info)) continue;
      for (std::size_t r = 0; r < section.sh_size / sizeof(Elf64_Rela); ++r)
        relocate(section.sh_info, file.at<Elf64_Rela>(File::offset(section.sh_offset, r, sizeof(Elf64_Rela))));
    }
  }
  /// Makes one relocation in a section.
  void relocate(std::size_t section, const Elf64_Rela& entry) const {
    const auto number = static_cast<std::size_t>(ELF64_R_SYM(entry.r_info));
    const auto kind = static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info));
    const std::uint64_t room = file.sections[section].sh_size;
    if (entry.r_offset > room || relocation::width(kind) > room - entry.r_offset)
      throw file.wrong("has a relocation outside of its section");
    const std::uint64_t target = address_of(number);
    auto* slot = reinterpret_cast<relocation::Slot*>(memory) + number;
    *slot = relocation::slot_for(target);
    const bool foreign = symbols.all[number].st_shndx == SHN_UNDEF;
    if (!relocation::apply(kind, memory + *places.of(section) + entry.r_offset, target, entry.r_addend, *slot,
                           foreign)) {
      throw std::runtime_error("kernel '" + symbol + "' has a relocation of type " + std::to_string(kind) +
                               " that cannot be made here");
    }
  }

  [[nodiscard]] tunewright_kernel entry() const {
    std::uint64_t found = 0;
    for (std::size_t s = 0; s < symbols.all.size(); ++s) {
      const Elf64_Sym& one = symbols.all[s];
      if (one.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(one.st_info) != STT_FUNC ||
          file.text(symbols.names, one.st_name) != symbol)
        continue;
      found = address_of(s);
      const auto begin = reinterpret_cast<std::uintptr_t>(memory);
      if (found < begin || found >= begin + places.protected_end) throw file.wrong("begins outside of its code");
    }
    if (found == 0) throw file.wrong("does not define it");
    return reinterpret_cast<tunewright_kernel>(found);  // NOLINT: an address in this process
  }
};

}  // namespace tunewright::codegen::object_code

namespace tunewright::codegen {

TUNEWRIGHT_INLINE ObjectCode::ObjectCode(std::span<const char> object, const std::string& symbol) {
  using namespace object_code;
  const File file(object, symbol);
  const Symbols symbols(file);
  const Places places(file, symbols.all.size());

  void* mapped = ::mmap(nullptr, places.end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap of a kernel's code");
  // The destructor does not run if the constructor throws.
  struct Unmap {
    void* memory;
    std::size_t bytes;
    ~Unmap() {
      if (memory != nullptr) ::munmap(memory, bytes);
    }
  } guard{mapped, places.end};
  auto* const memory = static_cast<char*>(mapped);

  const Image image{file, symbol, symbols, places, memory};
  image.copy_sections();
  image.relocate();
  entry_ = image.entry();

  __builtin___clear_cache(memory, memory + places.protected_end);
  if (::mprotect(memory, places.protected_end, PROT_READ | PROT_EXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "mprotect of a kernel's code");
  memory_ = memory;
  bytes_ = places.end;
  guard.memory = nullptr;
}

TUNEWRIGHT_INLINE ObjectCode::~ObjectCode() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace tunewright::codegen

#endif
