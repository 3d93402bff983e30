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
// Clang 19 lets a template parameter with two arguments take a template with defaults for more (CWG 2398), which makes
// two partial specialisations of xtensor 0.24 fit its own shape type. A full one decides.
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

/// Arrays as arrays of xtensor, for arithmetic on whole tensors. A header of its own, because xtensor takes a second to
/// compile and checking kernels needs none of it.
namespace tunewright::reference {

/// A copy of the elements. Throws `std::invalid_argument` unless they are kept as `T`.
template <class T>
[[nodiscard]] xt::xarray<T> to_xtensor(const Array& array) {
  const std::span<const T> elements = array.elements<T>();
  xt::xarray<T> copy(std::vector<std::size_t>(array.shape().begin(), array.shape().end()));
  std::copy(elements.begin(), elements.end(), copy.data());
  return copy;
}

/// An array of `type` with the values of `values`. Throws `std::invalid_argument` unless elements of `type` are kept as
/// `T`.
template <class T>
[[nodiscard]] Array from_xtensor(const xt::xarray<T>& values, ScalarType type) {
  Array array(type, std::vector<std::int64_t>(values.shape().begin(), values.shape().end()));
  std::copy(values.data(), values.data() + values.size(), array.elements<T>().begin());
  return array;
}

}  // namespace tunewright::reference
