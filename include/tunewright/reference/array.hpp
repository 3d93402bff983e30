// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tunewright/core/checked_elements.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/program/element_type.hpp"
#include "tunewright/program/scalar_type.hpp"

namespace tunewright::reference {

using program::ScalarType;

/// Whether elements of `type` are stored as `T`.
template <class T>
[[nodiscard]] constexpr bool is_element(ScalarType type) noexcept {
  return program::with_element_type(type, []<class Element>(Element) { return std::is_same_v<T, Element>; });
}

/// Dense row-major tensor of any scalar type: the inputs of kernels, and the values with which outputs are compared.
/// Elements of boolean and uint8 arrays are bytes. `xtensor.hpp` converts from and to arrays of xtensor.
class Array {
 private:
  template <class Self, class F>
  static decltype(auto) visit_elements(Self& self, const F& f) {
    return program::with_element_type(self.type_,
                                      [&]<class T>(T) -> decltype(auto) { return f(self.template elements<T>()); });
  }

 public:
  Array() = default;
  /// An array of zeros. Throws `std::invalid_argument` for a shape that `checked_elements` refuses.
  Array(ScalarType type, std::vector<std::int64_t> shape);

  [[nodiscard]] ScalarType type() const noexcept { return type_; }
  [[nodiscard]] const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() / program::size_in_bytes(type_); }
  [[nodiscard]] std::size_t size_in_bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] const void* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] void* data() noexcept { return bytes_.data(); }

  /// The elements in row-major order. Throws `std::invalid_argument` for another element type.
  template <class T>
  [[nodiscard]] std::span<const T> elements() const {
    check(is_element<T>(type_));
    return {static_cast<const T*>(data()), size()};
  }
  template <class T>
  [[nodiscard]] std::span<T> elements() {
    check(is_element<T>(type_));
    return {static_cast<T*>(data()), size()};
  }

  /// Calls `f` with the elements as a span of their type.
  template <class F>
  decltype(auto) visit(const F& f) const {
    return visit_elements(*this, f);
  }
  template <class F>
  decltype(auto) visit(const F& f) {
    return visit_elements(*this, f);
  }

  /// The element with row-major number `flat`.
  [[nodiscard]] double get(std::size_t flat) const {
    return visit([flat](const auto& elements) { return static_cast<double>(elements[flat]); });
  }
  /// Stores `value` rounded to the element type; integers truncate, those of 8 and 32 bits wrap around, and those of 64
  /// bits saturate. Of Booleans, every number but zero is true.
  void set(std::size_t flat, double value);

  bool operator==(const Array& other) const;

 private:
  void check(bool holds) const;

  ScalarType type_ = ScalarType::Bool;
  std::vector<std::int64_t> shape_{0};
  std::vector<std::byte> bytes_;
};

}  // namespace tunewright::reference

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::reference {

TUNEWRIGHT_INLINE Array::Array(ScalarType type, std::vector<std::int64_t> shape)
    : type_(type),
      shape_(std::move(shape)),
      bytes_(program::size_in_bytes(type) * static_cast<std::size_t>(checked_elements(shape_, "an array"))) {}

TUNEWRIGHT_INLINE void Array::set(std::size_t flat, double value) {
  double stored = value;
  switch (type_) {  // a conversion of numbers beyond an integer type is undefined
    case ScalarType::Bool:
    case ScalarType::Int8:
    case ScalarType::UInt8:
    case ScalarType::Int32: stored = program::rounded(value, type_); break;
    case ScalarType::Int64: stored = program::converted(value, ScalarType::Float64, type_); break;
    default: break;
  }
  visit([flat, stored](const auto& elements) {
    using T = typename std::decay_t<decltype(elements)>::value_type;
    if constexpr (std::is_same_v<T, std::int64_t>)
      elements[flat] = program::as_int64(stored);
    else
      elements[flat] = static_cast<T>(stored);
  });
}

TUNEWRIGHT_INLINE bool Array::operator==(const Array& other) const {
  return type_ == other.type_ && shape_ == other.shape_ && visit([&other](const auto& elements) {
           using T = typename std::decay_t<decltype(elements)>::value_type;
           return std::equal(elements.begin(), elements.end(), other.elements<T>().begin());
         });
}

TUNEWRIGHT_INLINE void Array::check(bool holds) const {
  if (holds) return;
  throw std::invalid_argument("an array of " + std::string(program::name(type_)) +
                              " was asked for as another type; use its own");
}

}  // namespace tunewright::reference

#endif
