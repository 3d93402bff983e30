// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"

namespace tunewright {

/// Ragged rows of P programs: program p owns rows `offsets[p] .. offsets[p + 1]`, each of `columns` floats, row-major.
/// A program that could not be described has no rows.
///
/// Shapes: P = number of programs, R = total number of rows, D = columns.
class FeatureBatch {
 public:
  FeatureBatch();
  explicit FeatureBatch(std::size_t columns);
  FeatureBatch(const FeatureBatch& other);
  FeatureBatch(FeatureBatch&& other) noexcept;
  FeatureBatch& operator=(const FeatureBatch& other);
  FeatureBatch& operator=(FeatureBatch&& other) noexcept;
  ~FeatureBatch();

  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }                     // D
  [[nodiscard]] std::size_t programs() const noexcept { return offsets_.size() - 1; }         // P
  [[nodiscard]] std::size_t rows() const noexcept { return offsets_.back(); }                 // R
  [[nodiscard]] std::span<const std::uint32_t> offsets() const noexcept { return offsets_; }  // [P + 1]
  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }            // (R, D)
  [[nodiscard]] std::span<const float> row(std::size_t index) const noexcept {                // [D]
    return std::span(values_).subspan(index * columns_, columns_);
  }
  /// All rows of one program, (rows of p, D).
  [[nodiscard]] std::span<const float> program(std::size_t p) const noexcept {
    return std::span(values_).subspan(offsets_[p] * columns_, (offsets_[p + 1] - offsets_[p]) * columns_);
  }

  /// Removes every program and keeps the memory, so that batches filled one after the other allocate only once.
  void clear() noexcept {
    values_.clear();
    offsets_.resize(1);
  }
  /// Reserves memory for `rows` rows in total.
  void reserve_rows(std::size_t rows) { values_.reserve(rows * columns_); }

  /// Appends a zeroed row to the open program and returns it for filling; `close_program` ends the program.
  std::span<float> append_row() {
    values_.resize(values_.size() + columns_);
    return std::span(values_).last(columns_);
  }
  void close_program() {
    offsets_.push_back(columns_ == 0 ? 0U : static_cast<std::uint32_t>(values_.size() / columns_));
  }

  /// Appends one program, which has no rows if it could not be described. Throws `std::invalid_argument` unless `rows`
  /// has a multiple of `columns()` floats.
  void append_program(std::span<const float> rows);

  /// Appends every program of `other`. Throws `std::invalid_argument` if the widths differ.
  void append(const FeatureBatch& other);

 private:
  std::size_t columns_ = 0;
  std::vector<float> values_;
  std::vector<std::uint32_t> offsets_{0};
};

}  // namespace tunewright

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright {

TUNEWRIGHT_INLINE FeatureBatch::FeatureBatch() = default;
TUNEWRIGHT_INLINE FeatureBatch::FeatureBatch(std::size_t columns) : columns_(columns) {}
TUNEWRIGHT_INLINE FeatureBatch::FeatureBatch(const FeatureBatch& other) = default;
TUNEWRIGHT_INLINE FeatureBatch::FeatureBatch(FeatureBatch&& other) noexcept = default;
TUNEWRIGHT_INLINE FeatureBatch& FeatureBatch::operator=(const FeatureBatch& other) = default;
TUNEWRIGHT_INLINE FeatureBatch& FeatureBatch::operator=(FeatureBatch&& other) noexcept = default;
TUNEWRIGHT_INLINE FeatureBatch::~FeatureBatch() = default;

TUNEWRIGHT_INLINE void FeatureBatch::append_program(std::span<const float> rows) {
  if (!rows.empty() && (columns_ == 0 || rows.size() % columns_ != 0)) {
    throw std::invalid_argument("FeatureBatch::append_program: " + std::to_string(rows.size()) +
                                " values are not whole rows of " + std::to_string(columns_) + " columns");
  }
  values_.insert(values_.end(), rows.begin(), rows.end());
  close_program();
}

TUNEWRIGHT_INLINE void FeatureBatch::append(const FeatureBatch& other) {
  if (&other == this) return append(FeatureBatch(other));
  if (other.programs() == 0) return;
  if (columns_ == 0) columns_ = other.columns_;
  if (other.columns_ != columns_) {
    throw std::invalid_argument("FeatureBatch::append: a batch of " + std::to_string(other.columns_) +
                                " columns cannot join one of " + std::to_string(columns_));
  }
  const std::uint32_t base = offsets_.back();
  values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  for (std::size_t p = 1; p < other.offsets_.size(); ++p) offsets_.push_back(base + other.offsets_[p]);
}

}  // namespace tunewright

#endif
