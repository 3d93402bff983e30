// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <xtensor/xstorage.hpp>

#if defined(__clang__) && __clang_major__ >= 19
// Clang 19 lets a template parameter with two arguments take a template with defaults for more (CWG 2398), which makes
// two partial specialisations of xtensor 0.24 fit its own shape type. A full one decides.
template <>
struct xt::rebind_container<std::ptrdiff_t, xt::svector<std::size_t, 4>> {
  using type = xt::svector<std::ptrdiff_t, 4>;
};
#endif

#include <xtensor/xarray.hpp>

#include "tunewright/program/expr.hpp"

namespace tunewright::reference {

using program::ScalarType;

/// Dense row-major tensor of any scalar type: what kernels are given and what they are compared with.
/// Booleans are bytes, as are elements of uint8.
class Array {
 public:
  using Storage = std::variant<xt::xarray<std::uint8_t>, xt::xarray<std::int32_t>, xt::xarray<std::int64_t>,
                               xt::xarray<float>, xt::xarray<double>, xt::xarray<program::Half>,
                               xt::xarray<program::BFloat>, xt::xarray<std::int8_t>>;

  Array() = default;
  /// All zeros.
  Array(ScalarType type, const std::vector<std::int64_t>& shape) : type_(type), storage_(make(type, shape)) {}
  /// Takes over an xtensor array of one of the element types; bytes without sign are taken for Booleans.
  template <class T>
  explicit Array(xt::xarray<T> values)
      : storage_(std::move(values)) {
    type_ = static_cast<ScalarType>(storage_.index());
  }

  [[nodiscard]] ScalarType type() const noexcept { return type_; }
  [[nodiscard]] std::vector<std::int64_t> shape() const {
    return std::visit(
        [](const auto& a) { return std::vector<std::int64_t>(a.shape().begin(), a.shape().end()); },
        storage_);
  }
  [[nodiscard]] std::size_t size() const {
    return std::visit([](const auto& a) { return a.size(); }, storage_);
  }
  [[nodiscard]] std::size_t size_in_bytes() const { return size() * program::size_in_bytes(type()); }
  [[nodiscard]] const void* data() const {
    return std::visit([](const auto& a) { return static_cast<const void*>(a.data()); }, storage_);
  }
  [[nodiscard]] void* data() {
    return std::visit([](auto& a) { return static_cast<void*>(a.data()); }, storage_);
  }
  /// The typed array. Throws `std::invalid_argument` for another element type.
  template <class T>
  [[nodiscard]] const xt::xarray<T>& as() const {
    if (const auto* typed = std::get_if<xt::xarray<T>>(&storage_)) return *typed;
    throw std::invalid_argument("an array of " + std::string(program::name(type())) +
                                " was asked for as another type; use its own");
  }
  template <class T>
  [[nodiscard]] xt::xarray<T>& as() {
    return const_cast<xt::xarray<T>&>(std::as_const(*this).template as<T>());
  }

  /// Element by its row-major number.
  [[nodiscard]] double get(std::size_t flat) const {
    return std::visit([flat](const auto& a) { return static_cast<double>(a.data()[flat]); }, storage_);
  }
  /// Stores `value` rounded to the element type; integers drop the fraction, those of 8 and 32 bits wrap around.
  void set(std::size_t flat, double value) {
    const bool wraps =
        type_ == ScalarType::Int8 || type_ == ScalarType::UInt8 || type_ == ScalarType::Int32;
    const double stored = wraps ? program::rounded(value, type_) : value;
    std::visit(
        [flat, stored](auto& a) {
          using T = typename std::decay_t<decltype(a)>::value_type;
          a.data()[flat] = static_cast<T>(stored);
        },
        storage_);
  }
  /// Calls `f` with the typed xtensor array.
  template <class F>
  decltype(auto) visit(const F& f) const {
    return std::visit(f, storage_);
  }
  template <class F>
  decltype(auto) visit(const F& f) {
    return std::visit(f, storage_);
  }

  bool operator==(const Array& other) const { return type_ == other.type_ && storage_ == other.storage_; }

 private:
  static Storage make(ScalarType type, const std::vector<std::int64_t>& extents) {
    const std::vector<std::size_t> shape(extents.begin(), extents.end());
    switch (type) {
      case ScalarType::Bool:
      case ScalarType::UInt8: return xt::xarray<std::uint8_t>(shape, std::uint8_t{0});
      case ScalarType::Int8: return xt::xarray<std::int8_t>(shape, std::int8_t{0});
      case ScalarType::Float16: return xt::xarray<program::Half>(shape, program::Half{});
      case ScalarType::BFloat16: return xt::xarray<program::BFloat>(shape, program::BFloat{});
      case ScalarType::Int32: return xt::xarray<std::int32_t>(shape, 0);
      case ScalarType::Int64: return xt::xarray<std::int64_t>(shape, std::int64_t{0});
      case ScalarType::Float32: return xt::xarray<float>(shape, 0.0F);
      case ScalarType::Float64: break;
    }
    return xt::xarray<double>(shape, 0.0);
  }

  ScalarType type_ = ScalarType::Bool;  // of the first storage
  Storage storage_;
};

}  // namespace tunewright::reference
