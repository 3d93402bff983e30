// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#if __has_include(<xtensor/containers/xarray.hpp>)  // since xtensor 0.26
#include <xtensor/containers/xstorage.hpp>
#else
#include <xtensor/xstorage.hpp>
#endif

#if defined(__clang__) && __clang_major__ >= 19
// In Clang 19, a template template parameter with two arguments also matches a template that has more with defaults
// (CWG 2398), so two partial specialisations of xtensor 0.24 match its own shape type. A full specialisation resolves
// this.
template <>
struct xt::rebind_container<std::ptrdiff_t, xt::svector<std::size_t, 4>> {
  using type = xt::svector<std::ptrdiff_t, 4>;
};
#endif

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#else
#include <xtensor/xarray.hpp>
#endif

#include "tunewright/reference/array.hpp"

/// Conversion to and from arrays of xtensor, for arithmetic on whole tensors. A separate header, because xtensor takes
/// a second to compile and checking kernels does not need it.
namespace tunewright::reference {

/// A copy of the elements. Throws `std::invalid_argument` unless they are stored as `T`.
template <class T>
[[nodiscard]] xt::xarray<T> to_xtensor(const Array& array) {
  const std::span<const T> elements = array.elements<T>();
  xt::xarray<T> copy(std::vector<std::size_t>(array.shape().begin(), array.shape().end()));
  std::copy(elements.begin(), elements.end(), copy.data());
  return copy;
}

/// An array of `type` with the values of `values`. Throws `std::invalid_argument` unless elements of `type` are stored
/// as `T`.
template <class T>
[[nodiscard]] Array from_xtensor(const xt::xarray<T>& values, ScalarType type) {
  Array array(type, std::vector<std::int64_t>(values.shape().begin(), values.shape().end()));
  std::copy(values.data(), values.data() + values.size(), array.elements<T>().begin());
  return array;
}

}  // namespace tunewright::reference
