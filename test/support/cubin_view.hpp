// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What a cubin says of its kernels: machine code of a GPU is an ELF file.
namespace tunewright::test {

struct CubinKernel {
  std::int64_t static_shared_bytes = 0;
  std::size_t parameters = 0;               ///< of 8 bytes each
  std::array<std::uint32_t, 3> threads{0};  ///< at most, by the kernel's launch bounds; 0: no bounds
};

class CubinView {
 public:
  /// `image` is trusted once its first bytes are right, as a driver does.
  explicit CubinView(const void* image) : bytes_(static_cast<const char*>(image)) {
    std::memcpy(&header_, bytes_, sizeof header_);
  }
  [[nodiscard]] static bool is_cubin(const void* image) {
    constexpr std::uint16_t machine_cuda = 190;
    Elf64_Ehdr header;
    std::memcpy(&header, image, sizeof header);
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == machine_cuda;
  }

  /// 90 for compute capability 9.0.
  [[nodiscard]] int architecture() const { return static_cast<int>(header_.e_flags >> 8 & 0xff); }

  [[nodiscard]] std::optional<CubinKernel> kernel(const std::string& name) const {
    if (!section(".text." + name)) return std::nullopt;
    CubinKernel found;
    if (const auto shared = section(".nv.shared." + name))
      found.static_shared_bytes = static_cast<std::int64_t>(shared->sh_size);
    if (const auto info = section(".nv.info." + name)) read_attributes({at(info->sh_offset), info->sh_size}, found);
    return found;
  }

 private:
  [[nodiscard]] const char* at(std::uint64_t offset) const { return bytes_ + offset; }
  [[nodiscard]] Elf64_Shdr section(std::size_t number) const {
    Elf64_Shdr entry;
    std::memcpy(&entry, at(header_.e_shoff + number * header_.e_shentsize), sizeof entry);
    return entry;
  }
  [[nodiscard]] std::optional<Elf64_Shdr> section(const std::string& name) const {
    const Elf64_Shdr names = section(std::size_t{header_.e_shstrndx});
    for (std::size_t i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr entry = section(i);
      if (name == at(names.sh_offset + entry.sh_name)) return entry;
    }
    return std::nullopt;
  }

  /// A byte of format, a byte of attribute, 16 bits of value; in format 4 the value is how many bytes follow.
  static void read_attributes(std::span<const char> info, CubinKernel& to) {
    constexpr int sized = 4, max_threads = 5, parameter_bytes = 0x19;
    for (std::size_t i = 0; i + 4 <= info.size();) {
      const int format = info[i], attribute = info[i + 1];
      std::uint16_t value = 0;
      std::memcpy(&value, info.data() + i + 2, sizeof value);
      i += 4;
      if (attribute == parameter_bytes) to.parameters = value / 8U;
      if (format != sized) continue;
      if (attribute == max_threads) std::memcpy(to.threads.data(), info.data() + i, sizeof to.threads);
      i += value;
    }
  }

  const char* bytes_;
  Elf64_Ehdr header_{};
};

}  // namespace tunewright::test
