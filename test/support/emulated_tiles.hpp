// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/called_intrinsic.hpp"
#include "tunewright/codegen/llvm.hpp"

/// Tile registers of AMX for machines that have none: functions of this program in place of the instructions.
namespace tunewright::test {

/// The tile registers as the manual of the instruction set describes them: shapes come from the configuration, and
/// there is nothing to use before there is one.
struct TileRegisters {
  struct Tile {
    std::size_t rows = 0;
    std::size_t row_bytes = 0;
    std::array<std::array<std::uint8_t, 64>, 16> bytes{};
  };
  std::array<Tile, 8> tiles{};
  bool configured = false;
  std::size_t misuses = 0;
  std::size_t products = 0;
  std::size_t lines_loaded = 0;
  std::size_t lines_stored = 0;
};
inline TileRegisters registers;  // what stands for a processor's

inline TileRegisters::Tile& tile(std::uint8_t number) {
  if (!registers.configured || number >= registers.tiles.size()) ++registers.misuses;
  return registers.tiles[number % registers.tiles.size()];
}
inline void ldtilecfg(const std::uint8_t* bytes) {
  registers.configured = bytes[0] == 1 && bytes[1] == 0;
  for (std::size_t t = 0; t < registers.tiles.size(); ++t) {
    std::uint16_t row_bytes = 0;
    std::memcpy(&row_bytes, bytes + 16 + 2 * t, sizeof row_bytes);
    registers.tiles[t] = {bytes[48 + t], row_bytes, {}};
    if (row_bytes > 64 || bytes[48 + t] > 16) ++registers.misuses;
  }
}
inline void tilerelease() { registers.configured = false; }
inline void tileloadd64(std::uint8_t number, const std::uint8_t* from, std::int64_t stride) {
  TileRegisters::Tile& t = tile(number);
  registers.lines_loaded += t.rows;
  for (std::size_t r = 0; r < t.rows; ++r)
    std::memcpy(t.bytes[r].data(), from + static_cast<std::int64_t>(r) * stride, t.row_bytes);
}
inline void tilezero(std::uint8_t number) {
  for (auto& row : tile(number).bytes) row.fill(0);
}
inline void tilestored64(std::uint8_t number, std::uint8_t* to, std::int64_t stride) {
  const TileRegisters::Tile& t = tile(number);
  registers.lines_stored += t.rows;
  for (std::size_t r = 0; r < t.rows; ++r)
    std::memcpy(to + static_cast<std::int64_t>(r) * stride, t.bytes[r].data(), t.row_bytes);
}

template <class T>
T element(const TileRegisters::Tile& t, std::size_t row, std::size_t column) {
  T value{};
  std::memcpy(&value, t.bytes[row].data() + column * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void set_element(TileRegisters::Tile& t, std::size_t row, std::size_t column, T value) {
  std::memcpy(t.bytes[row].data() + column * sizeof(T), &value, sizeof(T));
}

/// A processor refuses products of registers whose shapes do not agree.
inline void check_shapes(const TileRegisters::Tile& c, const TileRegisters::Tile& a, const TileRegisters::Tile& b) {
  const bool agree = c.rows > 0 && a.rows == c.rows && b.rows == a.row_bytes / 4 && b.row_bytes == c.row_bytes;
  if (!agree || a.row_bytes % 4 != 0) ++registers.misuses;
  ++registers.products;
}

template <class A, class B>
void product_of_bytes(std::uint8_t sum, std::uint8_t rows, std::uint8_t columns) {
  TileRegisters::Tile& c = tile(sum);
  const TileRegisters::Tile& a = tile(rows);
  const TileRegisters::Tile& b = tile(columns);
  check_shapes(c, a, b);
  for (std::size_t m = 0; m < c.rows; ++m) {
    for (std::size_t k = 0; k < a.row_bytes / 4; ++k) {
      for (std::size_t n = 0; n < c.row_bytes / 4; ++n) {
        auto total = static_cast<std::uint32_t>(element<std::int32_t>(c, m, n));
        for (std::size_t i = 0; i < 4; ++i)
          total += static_cast<std::uint32_t>(element<A>(a, m, 4 * k + i) * element<B>(b, k, 4 * n + i));
        set_element(c, m, n, total);
      }
    }
  }
}
inline void product_of_pairs(std::uint8_t sum, std::uint8_t rows, std::uint8_t columns) {
  TileRegisters::Tile& c = tile(sum);
  const TileRegisters::Tile& a = tile(rows);
  const TileRegisters::Tile& b = tile(columns);
  check_shapes(c, a, b);
  const auto value = [](const TileRegisters::Tile& t, std::size_t row, std::size_t column) {
    const std::uint32_t bits = std::uint32_t{element<std::uint16_t>(t, row, column)} << 16;
    float wide = 0;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
  };
  for (std::size_t m = 0; m < c.rows; ++m) {
    for (std::size_t n = 0; n < c.row_bytes / 4; ++n) {
      float even = 0;
      float odd = 0;
      for (std::size_t k = 0; k < a.row_bytes / 4; ++k) {
        even += value(a, m, 2 * k) * value(b, k, 2 * n);
        odd += value(a, m, 2 * k + 1) * value(b, k, 2 * n + 1);
      }
      set_element(c, m, n, element<float>(c, m, n) + (even + odd));
    }
  }
}

/// The kernel with a call of the function above for each tile instruction.
[[nodiscard]] inline codegen::Kernel with_emulated_tiles(const loops::LoopNest& nest, const Target& target) {
  const auto address = [](auto* function) { return reinterpret_cast<std::uintptr_t>(function); };
  const std::vector<CalledIntrinsic> functions{
      {"@llvm.x86.ldtilecfg", address(&ldtilecfg)},
      {"@llvm.x86.tilerelease", address(&tilerelease)},
      {"@llvm.x86.tileloadd64", address(&tileloadd64)},
      {"@llvm.x86.tilezero", address(&tilezero)},
      {"@llvm.x86.tilestored64", address(&tilestored64)},
      {"@llvm.x86.tdpbf16ps", address(&product_of_pairs)},
      {"@llvm.x86.tdpbssd", address(&product_of_bytes<std::int8_t, std::int8_t>)},
      {"@llvm.x86.tdpbsud", address(&product_of_bytes<std::int8_t, std::uint8_t>)},
      {"@llvm.x86.tdpbusd", address(&product_of_bytes<std::uint8_t, std::int8_t>)},
      {"@llvm.x86.tdpbuud", address(&product_of_bytes<std::uint8_t, std::uint8_t>)}};
  codegen::LlvmCompiler compiler(target, {.verify = true});
  return with_functions_for(functions, nest, compiler);
}

}  // namespace tunewright::test
