// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "tunewright/core/target.hpp"

/// The ELF relocations that LLVM writes for position-independent kernels on the processor of this process, as in the
/// ABI supplements "System V ABI, AMD64" and "ELF for the Arm 64-bit Architecture".
namespace tunewright::codegen::relocation {

/// The address of a symbol, and instructions that jump to it: code may be out of range of a relative jump.
struct Slot {
  std::uint64_t address = 0;
  std::uint32_t jump[2]{};
};

[[nodiscard]] inline Slot slot_for(std::uint64_t address) {
  Slot slot{address, {}};
  if constexpr (host_family == CpuFamily::Aarch64) {
    slot.jump[0] = 0x58ffffd0;  // ldr x16, the address 8 bytes before
    slot.jump[1] = 0xd61f0200;  // br x16
  } else {
    slot.jump[0] = 0xfff225ff;  // jmp *[rip - 14]
    slot.jump[1] = 0xccccffff;  // its last two bytes, and traps
  }
  return slot;
}

/// Number of bytes that a relocation changes.
[[nodiscard]] inline std::uint64_t width(std::uint32_t kind) {
  if constexpr (host_family == CpuFamily::Aarch64) return kind == R_AARCH64_ABS64 || kind == R_AARCH64_PREL64 ? 8 : 4;
  return kind == R_X86_64_64 || kind == R_X86_64_PC64 ? 8 : 4;
}

namespace bits {

template <class T>
[[nodiscard]] T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
bool write(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return true;
}
[[nodiscard]] inline bool fits(std::int64_t value, unsigned width) {
  const std::int64_t half = std::int64_t{1} << (width - 1);
  return value >= -half && value < half;
}

}  // namespace bits

/// Applies a relocation of x86-64; false if it is unknown or out of range.
[[nodiscard]] inline bool apply_x86_64(std::uint32_t kind, char* at, std::uint64_t target, std::int64_t addend,
                                       const Slot& slot, bool foreign) {
  const auto offset = static_cast<std::uint64_t>(addend) - reinterpret_cast<std::uintptr_t>(at);
  const auto relative = [&](std::uint64_t to) {
    const auto distance = static_cast<std::int64_t>(to + offset);
    return bits::fits(distance, 32) && bits::write(at, static_cast<std::int32_t>(distance));
  };
  switch (kind) {
    case R_X86_64_64: return bits::write(at, target + static_cast<std::uint64_t>(addend));
    case R_X86_64_PC64: return bits::write(at, target + offset);
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return relative(foreign ? reinterpret_cast<std::uintptr_t>(slot.jump) : target);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: return relative(reinterpret_cast<std::uintptr_t>(&slot.address));
    default: return false;
  }
}

/// Applies a relocation of aarch64; false if it is unknown or out of range.
[[nodiscard]] inline bool apply_aarch64(std::uint32_t kind, char* at, std::uint64_t target, std::int64_t addend,
                                        const Slot& slot, bool foreign) {
  const auto here = reinterpret_cast<std::uintptr_t>(at);
  const std::uint64_t value = target + static_cast<std::uint64_t>(addend);
  const auto insert = [&](std::uint32_t mask, std::uint32_t field) {
    return bits::write(at, (bits::read<std::uint32_t>(at) & ~mask) | (field & mask));
  };
  // The page of an address in the two fields of `adrp`.
  const auto page = [&](std::uint64_t to) {
    const std::int64_t pages =
        static_cast<std::int64_t>((to & ~std::uint64_t{0xfff}) - (here & ~std::uint64_t{0xfff})) / 4096;
    const auto raw = static_cast<std::uint32_t>(pages);
    return bits::fits(pages, 21) && insert(0x60ffffe0U, ((raw & 3U) << 29U) | (((raw >> 2U) & 0x7ffffU) << 5U));
  };
  // The lowest twelve bits of an address, in units of the access size.
  const auto low = [&](std::uint64_t to, unsigned shift) {
    const auto field = static_cast<std::uint32_t>(to & 0xfffU);
    return (field & ((1U << shift) - 1U)) == 0 && insert(0x003ffc00U, (field >> shift) << 10U);
  };
  const auto slot_address = reinterpret_cast<std::uintptr_t>(&slot.address);
  switch (kind) {
    case R_AARCH64_ABS64: return bits::write(at, value);
    case R_AARCH64_PREL64: return bits::write(at, value - here);
    case R_AARCH64_PREL32: {
      const auto distance = static_cast<std::int64_t>(value - here);
      return bits::fits(distance, 32) && bits::write(at, static_cast<std::int32_t>(distance));
    }
    case R_AARCH64_ADR_PREL_PG_HI21: return page(value);
    case R_AARCH64_ADR_GOT_PAGE: return page(slot_address);
    case R_AARCH64_LD64_GOT_LO12_NC: return low(slot_address, 3);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return low(value, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return low(value, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return low(value, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return low(value, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return low(value, 4);
    case R_AARCH64_JUMP26:
    case R_AARCH64_CALL26: {
      const std::uint64_t to = foreign ? reinterpret_cast<std::uintptr_t>(slot.jump) : value;
      const auto distance = static_cast<std::int64_t>(to - here);
      return bits::fits(distance, 28) && insert(0x03ffffffU, static_cast<std::uint32_t>(distance >> 2));
    }
    default: return false;
  }
}

/// Applies one relocation at `at`; `slot` is that of its symbol, `foreign` whether the symbol is a function of this
/// process. False for an unknown kind and for a target out of range.
[[nodiscard]] inline bool apply(std::uint32_t kind, char* at, std::uint64_t target, std::int64_t addend,
                                const Slot& slot, bool foreign) {
  if constexpr (host_family == CpuFamily::Aarch64) return apply_aarch64(kind, at, target, addend, slot, foreign);
  return apply_x86_64(kind, at, target, addend, slot, foreign);
}

}  // namespace tunewright::codegen::relocation
