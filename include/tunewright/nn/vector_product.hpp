// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

/// Products of float matrices by 512-bit multiply-adds, on processors that have them, whatever the program is
/// compiled for: consumers of headers seldom name their machine to the compiler, and a training that keeps to
/// 128-bit vectors takes several times as long.
namespace tunewright::nn::vector_product {

/// Element (r, c) lies at `data[r * row + c * column]`.
struct Operand {
  const float* data = nullptr;
  std::size_t row = 0, column = 1;
};

#if defined(__x86_64__)

inline constexpr std::size_t lanes = 16;
inline constexpr std::size_t tile_rows = 14;     ///< with two vectors each, all registers but three
inline constexpr std::size_t panel_depth = 256;  ///< of b, which stays in L1
inline constexpr std::size_t panel_columns = 2 * lanes;

using Vector = float __attribute__((vector_size(4 * lanes)));
using Unaligned = float __attribute__((vector_size(4 * lanes), aligned(alignof(float)), may_alias));

[[nodiscard]] inline bool available() noexcept { return __builtin_cpu_supports("avx512f") != 0; }

/// `rows` x `vectors * lanes` elements of out: its own values, or 0 unless `add`, and a b[k] for one k after the other.
/// The order of an element's additions does not depend on where in a matrix it is.
template <std::size_t rows, std::size_t vectors>
__attribute__((target("avx512f"))) void tile(const Operand& a, const float* panel, std::size_t depth, float* out,
                                             std::size_t out_row, bool add) {
  Vector sum[rows][vectors] = {};
  if (add) {
#pragma GCC unroll 14
    for (std::size_t i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < vectors; ++v)
        sum[i][v] = *reinterpret_cast<const Unaligned*>(out + i * out_row + v * lanes);
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    const auto* b = reinterpret_cast<const Unaligned*>(panel + k * panel_columns);
    const float* left = a.data + k * a.column;
#pragma GCC unroll 14
    for (std::size_t i = 0; i < rows; ++i) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < vectors; ++v) sum[i][v] += left[i * a.row] * b[v];
    }
  }
#pragma GCC unroll 14
  for (std::size_t i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < vectors; ++v) *reinterpret_cast<Unaligned*>(out + i * out_row + v * lanes) = sum[i][v];
  }
}

/// As `tile`, for any number of rows up to `most`, and with `columns` of out alone.
template <std::size_t vectors, std::size_t most = tile_rows>
void tile_of(std::size_t rows, std::size_t columns, const Operand& a, const float* panel, std::size_t depth, float* out,
             std::size_t out_row, bool add) {
  if constexpr (most > 1) {
    if (rows < most) return tile_of<vectors, most - 1>(rows, columns, a, panel, depth, out, out_row, add);
  }
  if (columns == vectors * lanes) return tile<most, vectors>(a, panel, depth, out, out_row, add);
  alignas(64) float whole[most][vectors * lanes] = {};
  for (std::size_t i = 0; i < most && add; ++i) std::copy_n(out + i * out_row, columns, whole[i]);
  tile<most, vectors>(a, panel, depth, whole[0], vectors * lanes, add);
  for (std::size_t i = 0; i < most; ++i) std::copy_n(whole[i], columns, out + i * out_row);
}

/// panel (depth, panel_columns) = that part of b, zero where b ends.
inline void pack(const Operand& b, std::size_t depth, std::size_t columns, float* panel) {
  for (std::size_t k = 0; k < depth; ++k) {
    float* to = panel + k * panel_columns;
    const float* from = b.data + k * b.row;
    if (b.column == 1)
      std::copy_n(from, columns, to);
    else
      for (std::size_t c = 0; c < columns; ++c) to[c] = from[c * b.column];
    std::fill(to + columns, to + panel_columns, 0.0F);
  }
}

/// out = a b, or out += a b if `add`: (m, k) (k, n). `out` has rows `out_row` apart.
inline void multiply(Operand a, Operand b, float* out, std::size_t out_row, std::size_t m, std::size_t n, std::size_t k,
                     bool add) {
  if (k == 0 && !add) {
    for (std::size_t i = 0; i < m; ++i) std::fill_n(out + i * out_row, n, 0.0F);
  }
  alignas(64) float panel[panel_depth * panel_columns];
  for (std::size_t k0 = 0; k0 < k; k0 += panel_depth) {
    const std::size_t depth = std::min(panel_depth, k - k0);
    for (std::size_t j = 0; j < n; j += panel_columns) {
      const std::size_t columns = std::min(panel_columns, n - j);
      pack({b.data + k0 * b.row + j * b.column, b.row, b.column}, depth, columns, panel);
      const auto run = columns > lanes ? tile_of<2> : tile_of<1>;
      for (std::size_t i = 0; i < m; i += tile_rows)
        run(std::min(tile_rows, m - i), columns, {a.data + i * a.row + k0 * a.column, a.row, a.column}, panel, depth,
            out + i * out_row + j, out_row, add || k0 > 0);
    }
  }
}

#else

[[nodiscard]] inline bool available() noexcept { return false; }
inline void multiply(Operand, Operand, float*, std::size_t, std::size_t, std::size_t, std::size_t, bool) {}

#endif

}  // namespace tunewright::nn::vector_product
