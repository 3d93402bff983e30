// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

/// Products of float matrices with 512-bit or 256-bit fused multiply-adds on processors that have them, independently
/// of the program's compile options: users of headers seldom pass `-march`, and training with 128-bit vectors takes
/// several times as long.
///
/// Determinism: each element is one chain of fused multiply-adds in the order of k, so both widths give the same bits,
///              at any position in a matrix.
namespace tunewright::nn::vector_product {

/// Element (r, c) is at `data[r * row + c * column]`.
struct Operand {
  const float* data = nullptr;
  std::size_t row = 0, column = 1;
};

#if defined(__x86_64__)

inline constexpr std::size_t panel_depth = 256;  ///< rows of the panel of b, which stays in L1

// The same functions for both widths: the target instructions are part of their declaration.
//
//   tile       out (rows x vectors * lanes) = a b, plus the old values if `add`, one k after the other; rows of b are
//              `panel_row` apart
//   copy       copies a panel, with rows of `panel_columns`, from rows that are `from_row` apart
//   transpose  the same from columns that are `column` apart, in blocks of `lanes` x `lanes` in registers; only whole
//              blocks of the depth; returns their depth
#define TUNEWRIGHT_VECTOR_TILE(instructions)                                                                          \
  template <std::size_t rows, std::size_t vectors>                                                                    \
  __attribute__((target(instructions))) static void tile(const Operand& a, const float* panel, std::size_t panel_row, \
                                                         std::size_t depth, float* out, std::size_t out_row,          \
                                                         bool add) {                                                  \
    const auto place = [out, out_row](std::size_t i, std::size_t v) { return out + i * out_row + v * lanes; };        \
    Vector sum[rows][vectors] = {};                                                                                   \
    if (add) {                                                                                                        \
      _Pragma("GCC unroll 14") for (std::size_t i = 0; i < rows; ++i) {                                               \
        _Pragma("GCC unroll 2") for (std::size_t v = 0; v < vectors; ++v) {                                           \
          sum[i][v] = *reinterpret_cast<const Unaligned*>(place(i, v));                                               \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
    for (std::size_t k = 0; k < depth; ++k) {                                                                         \
      const Unaligned* b = reinterpret_cast<const Unaligned*>(panel + k * panel_row);                                 \
      const float* left = a.data + k * a.column;                                                                      \
      _Pragma("GCC unroll 14") for (std::size_t i = 0; i < rows; ++i) {                                               \
        _Pragma("GCC unroll 2") for (std::size_t v = 0; v < vectors; ++v) { sum[i][v] += left[i * a.row] * b[v]; }    \
      }                                                                                                               \
    }                                                                                                                 \
    _Pragma("GCC unroll 14") for (std::size_t i = 0; i < rows; ++i) {                                                 \
      _Pragma("GCC unroll 2") for (std::size_t v = 0; v < vectors; ++v) {                                             \
        *reinterpret_cast<Unaligned*>(place(i, v)) = sum[i][v];                                                       \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  __attribute__((target(instructions))) static void copy(const float* from, std::size_t from_row, std::size_t depth,  \
                                                         float* panel) {                                              \
    for (std::size_t k = 0; k < depth; ++k, from += from_row, panel += panel_columns) {                               \
      const Unaligned* source = reinterpret_cast<const Unaligned*>(from);                                             \
      Unaligned* target = reinterpret_cast<Unaligned*>(panel);                                                        \
      target[0] = source[0];                                                                                          \
      target[1] = source[1];                                                                                          \
    }                                                                                                                 \
  }                                                                                                                   \
  template <std::size_t distance, std::size_t... e>                                                                   \
  __attribute__((target(instructions), always_inline)) static inline void exchange(Vector& low, Vector& high,         \
                                                                                   std::index_sequence<e...>) {       \
    const Vector first = low, second = high;                                                                          \
    low = __builtin_shufflevector(first, second, ((e & distance) == 0 ? e : lanes + e - distance)...);                \
    high = __builtin_shufflevector(first, second, ((e & distance) == 0 ? e + distance : lanes + e)...);               \
  }                                                                                                                   \
  template <std::size_t distance>                                                                                     \
  __attribute__((target(instructions), always_inline)) static inline void exchange_all(Vector(&block)[lanes]) {       \
    _Pragma("GCC unroll 16") for (std::size_t i = 0; i < lanes; ++i) {                                                \
      if ((i & distance) == 0) exchange<distance>(block[i], block[i + distance], std::make_index_sequence<lanes>{});  \
    }                                                                                                                 \
    if constexpr (distance > 1) exchange_all<distance / 2>(block);                                                    \
  }                                                                                                                   \
  __attribute__((target(instructions))) static std::size_t transpose(const float* from, std::size_t column,           \
                                                                     std::size_t depth, float* panel) {               \
    for (std::size_t k = 0; k + lanes <= depth; k += lanes) {                                                         \
      for (std::size_t c = 0; c < panel_columns; c += lanes) {                                                        \
        Vector block[lanes];                                                                                          \
        _Pragma("GCC unroll 16") for (std::size_t i = 0; i < lanes; ++i) {                                            \
          block[i] = *reinterpret_cast<const Unaligned*>(from + (c + i) * column + k);                                \
        }                                                                                                             \
        exchange_all<lanes / 2>(block);                                                                               \
        _Pragma("GCC unroll 16") for (std::size_t i = 0; i < lanes; ++i) {                                            \
          *reinterpret_cast<Unaligned*>(panel + (k + i) * panel_columns + c) = block[i];                              \
        }                                                                                                             \
      }                                                                                                               \
    }                                                                                                                 \
    return depth / lanes * lanes;                                                                                     \
  }

// `Unaligned` is a typedef, and pointers to it are not declared with `auto`: an alias declaration or `auto` drops the
// alignment attribute, and loads would require full alignment.
struct Avx512 {
  static constexpr std::size_t lanes = 16;
  static constexpr std::size_t tile_rows = 14;  ///< with two vectors each: all registers but four hold accumulators
  static constexpr std::size_t panel_columns = 2 * lanes;
  using Vector = float __attribute__((vector_size(64)));
  typedef float Unaligned __attribute__((vector_size(64), aligned(alignof(float)), may_alias));

  [[nodiscard]] static bool available() noexcept { return __builtin_cpu_supports("avx512f") != 0; }
  TUNEWRIGHT_VECTOR_TILE("avx512f")
};

struct Avx2 {
  static constexpr std::size_t lanes = 8;
  static constexpr std::size_t tile_rows = 6;  ///< with two vectors each: all registers but four hold accumulators
  static constexpr std::size_t panel_columns = 2 * lanes;
  using Vector = float __attribute__((vector_size(32)));
  typedef float Unaligned __attribute__((vector_size(32), aligned(alignof(float)), may_alias));

  [[nodiscard]] static bool available() noexcept {
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  }
  TUNEWRIGHT_VECTOR_TILE("avx2,fma")
};

#undef TUNEWRIGHT_VECTOR_TILE

/// Calls `tile` for any number of rows up to `most`; writes only `columns` of out.
template <class Isa, std::size_t vectors, std::size_t most = Isa::tile_rows>
void tile_of(std::size_t rows, std::size_t columns, const Operand& a, const float* panel, std::size_t panel_row,
             std::size_t depth, float* out, std::size_t out_row, bool add) {
  if constexpr (most > 1) {
    if (rows < most)
      return tile_of<Isa, vectors, most - 1>(rows, columns, a, panel, panel_row, depth, out, out_row, add);
  }
  if (columns == vectors * Isa::lanes)
    return Isa::template tile<most, vectors>(a, panel, panel_row, depth, out, out_row, add);
  alignas(64) float whole[most][vectors * Isa::lanes] = {};
  for (std::size_t i = 0; i < most && add; ++i) std::copy_n(out + i * out_row, columns, whole[i]);
  Isa::template tile<most, vectors>(a, panel, panel_row, depth, whole[0], vectors * Isa::lanes, add);
  for (std::size_t i = 0; i < most; ++i) std::copy_n(whole[i], columns, out + i * out_row);
}

/// Copies a part of b into panel (depth, panel_columns); zero beyond the end of b.
template <class Isa>
void pack(const Operand& b, std::size_t depth, std::size_t columns, float* panel) {
  std::size_t k = 0;
  if (columns == Isa::panel_columns && b.column == 1) return Isa::copy(b.data, b.row, depth, panel);
  if (columns == Isa::panel_columns && b.row == 1) k = Isa::transpose(b.data, b.column, depth, panel);
  for (; k < depth; ++k) {
    float* to = panel + k * Isa::panel_columns;
    const float* from = b.data + k * b.row;
    for (std::size_t c = 0; c < columns; ++c) to[c] = from[c * b.column];
    std::fill(to + columns, to + Isa::panel_columns, 0.0F);
  }
}

/// `multiply` with the instructions of `Isa`, which must be available.
template <class Isa>
void multiply_by(Operand a, Operand b, float* out, std::size_t out_row, std::size_t m, std::size_t n, std::size_t k,
                 bool add) {
  if (k == 0 && !add) {
    for (std::size_t i = 0; i < m; ++i) std::fill_n(out + i * out_row, n, 0.0F);
  }
  alignas(64) float packed[panel_depth * Isa::panel_columns];
  for (std::size_t k0 = 0; k0 < k; k0 += panel_depth) {
    const std::size_t depth = std::min(panel_depth, k - k0);
    for (std::size_t j = 0; j < n; j += Isa::panel_columns) {
      const std::size_t columns = std::min(Isa::panel_columns, n - j);
      const Operand here{b.data + k0 * b.row + j * b.column, b.row, b.column};
      // A panel that a single tile reads once is not worth copying.
      const bool in_place = m <= Isa::tile_rows && b.column == 1 && columns == Isa::panel_columns;
      if (!in_place) pack<Isa>(here, depth, columns, packed);
      const float* panel = in_place ? here.data : packed;
      const std::size_t panel_row = in_place ? b.row : Isa::panel_columns;
      const auto run = columns > Isa::lanes ? tile_of<Isa, 2> : tile_of<Isa, 1>;
      for (std::size_t i = 0; i < m; i += Isa::tile_rows)
        run(std::min(Isa::tile_rows, m - i), columns, {a.data + i * a.row + k0 * a.column, a.row, a.column}, panel,
            panel_row, depth, out + i * out_row + j, out_row, add || k0 > 0);
    }
  }
}

[[nodiscard]] inline bool available() noexcept { return Avx512::available() || Avx2::available(); }

/// out = a b, or out += a b if `add`: (m, k) (k, n). Rows of `out` are `out_row` apart. Requires `available()`.
inline void multiply(Operand a, Operand b, float* out, std::size_t out_row, std::size_t m, std::size_t n, std::size_t k,
                     bool add) {
  const auto run = Avx512::available() ? multiply_by<Avx512> : multiply_by<Avx2>;
  run(a, b, out, out_row, m, n, k, add);
}

#else

[[nodiscard]] inline bool available() noexcept { return false; }
inline void multiply(Operand, Operand, float*, std::size_t, std::size_t, std::size_t, std::size_t, bool) {}

#endif

}  // namespace tunewright::nn::vector_product
