// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tunewright {

/// A featurizer that gives every configuration exactly one row (none if it cannot be described), declared by `static
/// constexpr bool one_row = true`. Such rows can be joined to those of any other featurizer.
template <class F>
concept OneRowFeaturizer = requires { requires F::one_row; };

/// The number of kinds of rows of a featurizer, declared by `static constexpr std::size_t row_kinds`; 1 without the
/// declaration. With several kinds, column 0 has the kind of a row: 0, 1, ...
template <class F>
inline constexpr std::size_t row_kinds = 1;
template <class F>
  requires requires { F::row_kinds; }
inline constexpr std::size_t row_kinds<F> = F::row_kinds;

/// A featurizer whose last column, equal in all rows of a program, is the logarithm to base 2 of an estimated
/// throughput, declared by `static constexpr bool ends_with_estimate = true`. The unit may differ between tasks.
template <class F>
concept EndsWithEstimate = requires { requires F::ends_with_estimate; };

/// A model or sampler that can read the rows of a featurizer. It declares which ones it can read by
///
///   template <class Featurizer>
///   static constexpr bool reads_rows_of = OneRowFeaturizer<Featurizer>;
///
/// and reads all without the declaration. A model made of models declares the condition of its parts: `ReadsRowsOf<M,
/// Featurizer>`.
template <class Reader, class Featurizer>
concept ReadsRowsOf = !requires { Reader::template reads_rows_of<Featurizer>; } ||
                      requires { requires Reader::template reads_rows_of<Featurizer>; };

}  // namespace tunewright
