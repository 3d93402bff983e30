// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tunewright {

/// A featurizer that gives every configuration exactly one row (none if it cannot be described), and says so
/// by `static constexpr bool one_row = true`. Such rows can be joined to those of any other featurizer.
template <class F>
concept OneRowFeaturizer = requires { requires F::one_row; };

/// Kinds of rows that a featurizer gives; column 0 says which a row is, 0, 1, ..., where there are several. It says how
/// many by `static constexpr std::size_t row_kinds`; one that does not has one.
template <class F>
inline constexpr std::size_t row_kinds = 1;
template <class F>
  requires requires { F::row_kinds; }
inline constexpr std::size_t row_kinds<F> = F::row_kinds;

/// Relation of a model or a sampler to the featurizer whose rows it reads: it can read them. It says which it can by
///
///   template <class Featurizer>
///   static constexpr bool reads_rows_of = OneRowFeaturizer<Featurizer>;
///
/// and can read any where it says nothing. A model of models says what they do: `ReadsRowsOf<M, Featurizer>`.
template <class Reader, class Featurizer>
concept ReadsRowsOf = !requires { Reader::template reads_rows_of<Featurizer>; } ||
                      requires { requires Reader::template reads_rows_of<Featurizer>; };

}  // namespace tunewright
