// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/checked_elements.hpp"

namespace tunewright::data {

/// Element type of a stored tensor. Types without a C++ counterpart are read and written as bytes.
enum class TensorType : std::uint8_t {
  Bool,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  F64,
  I64,
  U64
};

namespace safetensors_detail {

struct TypeName {
  std::string_view name;
  std::size_t bytes;
};
inline constexpr std::array<TypeName, 15> types{{{"BOOL", 1},
                                                 {"U8", 1},
                                                 {"I8", 1},
                                                 {"F8_E5M2", 1},
                                                 {"F8_E4M3", 1},
                                                 {"I16", 2},
                                                 {"U16", 2},
                                                 {"F16", 2},
                                                 {"BF16", 2},
                                                 {"I32", 4},
                                                 {"U32", 4},
                                                 {"F32", 4},
                                                 {"F64", 8},
                                                 {"I64", 8},
                                                 {"U64", 8}}};

[[nodiscard]] inline const TypeName& of(TensorType type) { return types[static_cast<std::size_t>(type)]; }

template <class T>
[[nodiscard]] constexpr TensorType type_of() {
  if constexpr (std::is_same_v<T, float>)
    return TensorType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return TensorType::F64;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return TensorType::U8;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return TensorType::U16;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return TensorType::U32;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return TensorType::U64;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return TensorType::I32;
  else {
    static_assert(std::is_same_v<T, std::int64_t>, "give float, double or an integer of fixed width");
    return TensorType::I64;
  }
}

// Swaps the bytes of elements on big-endian machines.
inline void to_little_endian(std::span<std::byte> bytes, std::size_t size) {
  if constexpr (std::endian::native == std::endian::little) return;
  for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
  }
}

}  // namespace safetensors_detail

[[nodiscard]] inline std::string_view name(TensorType type) { return safetensors_detail::of(type).name; }

/// A named array, row-major. `bytes` are the elements in file format, little-endian.
struct Tensor {
  std::string name;
  TensorType type = TensorType::F32;
  std::vector<std::size_t> shape;  ///< empty: one number
  std::vector<std::byte> bytes;

  bool operator==(const Tensor&) const = default;

  /// Throws `std::invalid_argument` unless `values` has the size of the shape.
  template <class T>
  static Tensor of(std::string name, std::vector<std::size_t> shape, std::span<const T> values) {
    Tensor out{std::move(name), safetensors_detail::type_of<T>(), std::move(shape), {}};
    const std::int64_t wanted = checked_elements(out.shape, "data::Tensor '" + out.name + "'");
    if (std::cmp_not_equal(wanted, values.size())) {
      throw std::invalid_argument("data::Tensor '" + out.name + "': " + std::to_string(values.size()) +
                                  " values for a shape of " + std::to_string(wanted));
    }
    out.bytes.resize(values.size_bytes());
    if (!values.empty()) std::memcpy(out.bytes.data(), values.data(), values.size_bytes());
    safetensors_detail::to_little_endian(out.bytes, sizeof(T));
    return out;
  }
  /// A tensor of one dimension.
  template <class T>
  static Tensor of(std::string name, const std::vector<T>& values) {
    return of(std::move(name), {values.size()}, std::span<const T>(values));
  }

  /// The elements. Throws `std::runtime_error` if they have another type.
  template <class T>
  [[nodiscard]] std::vector<T> values() const {
    if (type != safetensors_detail::type_of<T>()) {
      throw std::runtime_error("tensor '" + name + "' holds " + std::string(data::name(type)) + ", not " +
                               std::string(data::name(safetensors_detail::type_of<T>())));
    }
    std::vector<std::byte> native = bytes;
    safetensors_detail::to_little_endian(native, sizeof(T));
    std::vector<T> out(native.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), native.data(), out.size() * sizeof(T));
    return out;
  }
};

/// The contents of a safetensors file.
struct TensorFile {
  std::vector<Tensor> tensors;                  ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< free text by name

  [[nodiscard]] const Tensor* find(std::string_view tensor) const {
    const auto at =
        std::find_if(tensors.begin(), tensors.end(), [tensor](const Tensor& one) { return one.name == tensor; });
    return at == tensors.end() ? nullptr : &*at;
  }
  /// Throws `std::runtime_error` with the name of a missing tensor.
  [[nodiscard]] const Tensor& at(std::string_view tensor) const {
    if (const Tensor* found = find(tensor)) return *found;
    throw std::runtime_error("there is no tensor '" + std::string(tensor) + "'");
  }
};

}  // namespace tunewright::data
