// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/models/gbdt/binning.hpp"

namespace tunewright::models::gbdt {

/// A column that can be split. Its bins have the numbers `first_bin .. first_bin + bins` among those of all columns.
struct Column {
  std::uint32_t source = 0;  ///< column of the feature batch
  std::uint32_t first_bin = 0;
  std::uint32_t bins = 0;
  std::uint32_t common_bin = 0;   ///< the bin (counted over all columns) that holds most rows
  std::vector<float> thresholds;  ///< [bins - 1]
};

/// The rows of a feature batch in the form for trees, without irrelevant data. R = rows of the batch, U = distinct
/// rows, F = kept columns, B = total number of bins.
///
/// - Constant columns are dropped. Of columns that order all rows alike only the first is kept, because their splits
///   are the same.
/// - Rows with equal bins are merged, because they share every leaf. Programs of a search share many statements.
/// - A row lists only the bins that differ from the most common one of their column. Features are mostly zeros (absent
///   buffers, unused annotations); a histogram gets the share of the common bin by subtraction.
///
/// Both layouts are stored: lists by row to fill histograms, bytes by column to partition the rows at a split.
struct BinnedRows {
  std::vector<Column> columns;             ///< [F]
  std::uint32_t bins = 0;                  ///< B
  std::size_t rows = 0;                    ///< U
  std::vector<std::uint8_t> by_column;     ///< (F, U) bin within the column
  std::vector<std::size_t> list_offsets;   ///< [U + 1]
  std::vector<std::uint16_t> lists;        ///< bins over all columns, ascending within a row; used when B <= 65536
  std::vector<std::uint32_t> long_lists;   ///< the same for larger B
  std::vector<std::uint32_t> distinct_of;  ///< [R] the distinct row of each row

  [[nodiscard]] const std::uint8_t* column_bins(std::size_t f) const noexcept { return by_column.data() + f * rows; }
};

namespace binned_rows_detail {

/// Bins `width` neighbouring columns from `first` on: one pass over the batch reads whole cache lines.
struct Block {
  static constexpr std::size_t width = 16;
  std::vector<Column> columns;                  // those kept, bins unnumbered
  std::vector<std::vector<std::uint8_t>> bins;  // [R] each
};

Block bin_block(const FeatureBatch& x, std::size_t first, std::size_t max_bins, ColumnBinner& binner,
                std::vector<float>& scratch);

std::uint64_t hash_bytes(const std::uint8_t* bytes, std::size_t n) noexcept;

/// `representative[i]` = the first of `n` byte strings that equals string i. The hash only selects candidates, so
/// neither byte order nor collisions affect the result.
inline std::vector<std::uint32_t> first_equal(std::size_t n, std::size_t length, auto&& bytes_of,
                                              const std::vector<std::uint64_t>& hashes) {
  std::size_t slots = 16;
  while (slots < 2 * n) slots *= 2;
  constexpr std::uint32_t none = 0xffffffffU;
  std::vector<std::uint32_t> table(slots, none), representative(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t slot = hashes[i] & (slots - 1);
    while (table[slot] != none && (hashes[table[slot]] != hashes[i] ||
                                   (length > 0 && std::memcmp(bytes_of(table[slot]), bytes_of(i), length) != 0))) {
      slot = (slot + 1) & (slots - 1);
    }
    if (table[slot] == none) table[slot] = static_cast<std::uint32_t>(i);
    representative[i] = table[slot];
  }
  return representative;
}

template <class Id>
void fill_lists(BinnedRows& out, const std::vector<std::uint8_t>& by_row, const std::vector<std::uint32_t>& kept,
                std::vector<Id>& lists, ThreadTeam& team) {
  const std::size_t width = out.columns.size();
  constexpr std::size_t chunk = 1024;
  const std::size_t chunks = (out.rows + chunk - 1) / chunk;
  const auto each_row = [&](std::size_t part, auto&& visit) {
    for (std::size_t u = part * chunk; u < std::min(out.rows, (part + 1) * chunk); ++u)
      visit(u, by_row.data() + kept[u] * width);
  };
  std::vector<std::uint32_t> first(width), common(width);
  for (std::size_t f = 0; f < width; ++f) {
    first[f] = out.columns[f].first_bin;
    common[f] = out.columns[f].common_bin - first[f];
  }
  out.list_offsets.assign(out.rows + 1, 0);
  team.for_each(chunks, [&](std::size_t part, unsigned) {
    each_row(part, [&](std::size_t u, const std::uint8_t* row) {
      std::size_t count = 0;
      for (std::size_t f = 0; f < width; ++f) count += row[f] != common[f];
      out.list_offsets[u + 1] = count;
    });
  });
  for (std::size_t u = 0; u < out.rows; ++u) out.list_offsets[u + 1] += out.list_offsets[u];
  lists.resize(out.list_offsets[out.rows]);
  team.for_each(chunks, [&](std::size_t part, unsigned) {
    std::vector<Id> list(width + 1);
    each_row(part, [&](std::size_t u, const std::uint8_t* row) {
      std::size_t count = 0;
      for (std::size_t f = 0; f < width; ++f) {
        list[count] = static_cast<Id>(first[f] + row[f]);
        count += row[f] != common[f];
      }
      std::copy_n(list.begin(), count, lists.begin() + static_cast<std::ptrdiff_t>(out.list_offsets[u]));
    });
  });
}

}  // namespace binned_rows_detail

/// Bins a batch. Throws `std::invalid_argument` for a NaN feature. Determinism: the same at any number of threads.
[[nodiscard]] BinnedRows bin_rows(const FeatureBatch& x, std::size_t max_bins, ThreadTeam& team);

}  // namespace tunewright::models::gbdt

#if TUNEWRIGHT_DEFINES(models)

#include "tunewright/core/hash.hpp"

namespace tunewright::models::gbdt::binned_rows_detail {

TUNEWRIGHT_INLINE Block bin_block(const FeatureBatch& x, std::size_t first, std::size_t max_bins, ColumnBinner& binner,
                                  std::vector<float>& scratch) {
  const std::size_t rows = x.rows(), columns = std::min(Block::width, x.columns() - first);
  scratch.resize(columns * rows);
  const float* source = x.values().data() + first;
  for (std::size_t r = 0; r < rows; ++r, source += x.columns()) {
    for (std::size_t c = 0; c < columns; ++c) {
      if (source[c] != source[c]) {
        throw std::invalid_argument("models::Gbdt::fit: feature " + std::to_string(first + c) + " of row " +
                                    std::to_string(r) +
                                    " is not a number; leave a program that cannot be described without rows");
      }
      scratch[c * rows + r] = source[c];
    }
  }
  Block block;
  std::vector<std::uint8_t> bins(rows);
  for (std::size_t c = 0; c < columns; ++c) {
    const std::span<const float> values = std::span(scratch).subspan(c * rows, rows);
    if (std::all_of(values.begin(), values.end(), [v = values[0]](float other) { return other == v; })) continue;
    ColumnBins cut = binner.cut(values, max_bins, bins);
    if (cut.thresholds.empty()) continue;
    Column column;
    column.source = static_cast<std::uint32_t>(first + c);
    column.bins = static_cast<std::uint32_t>(cut.bins());
    column.thresholds = std::move(cut.thresholds);
    std::array<std::uint32_t, ColumnBinner::most_bins> counts{};
    for (const std::uint8_t bin : bins) ++counts[bin];
    column.common_bin = static_cast<std::uint32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    block.columns.push_back(std::move(column));
    block.bins.push_back(bins);
  }
  return block;
}

TUNEWRIGHT_INLINE std::uint64_t hash_bytes(const std::uint8_t* bytes, std::size_t n) noexcept {
  std::uint64_t state = n;
  for (; n >= 8; n -= 8, bytes += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    state = mix64(state ^ word) + 0x9e3779b97f4a7c15ULL;
  }
  std::uint64_t word = 0;
  if (n > 0) std::memcpy(&word, bytes, n);  // no bytes may mean no address either
  return mix64(state ^ word);
}

}  // namespace tunewright::models::gbdt::binned_rows_detail

namespace tunewright::models::gbdt {

TUNEWRIGHT_INLINE BinnedRows bin_rows(const FeatureBatch& x, std::size_t max_bins, ThreadTeam& team) {
  namespace detail = binned_rows_detail;
  const std::size_t rows = x.rows();
  BinnedRows out;
  out.distinct_of.resize(rows);
  if (rows == 0) return out;

  const std::size_t block_count = (x.columns() + detail::Block::width - 1) / detail::Block::width;
  std::vector<detail::Block> blocks(block_count);
  {
    std::vector<ColumnBinner> binners(team.threads());
    std::vector<std::vector<float>> scratch(team.threads());
    team.for_each(block_count, [&](std::size_t b, unsigned worker) {
      blocks[b] = detail::bin_block(x, b * detail::Block::width, max_bins, binners[worker], scratch[worker]);
    });
  }

  std::vector<std::vector<std::uint8_t>> columns;  // [F][R]
  {
    std::vector<Column> candidates;
    std::vector<std::vector<std::uint8_t>> bins;
    for (detail::Block& block : blocks) {
      std::move(block.columns.begin(), block.columns.end(), std::back_inserter(candidates));
      std::move(block.bins.begin(), block.bins.end(), std::back_inserter(bins));
    }
    std::vector<std::uint64_t> hashes(bins.size());
    team.for_each(bins.size(), [&](std::size_t c, unsigned) { hashes[c] = detail::hash_bytes(bins[c].data(), rows); });
    const auto first = detail::first_equal(bins.size(), rows, [&](std::size_t c) { return bins[c].data(); }, hashes);
    for (std::size_t c = 0; c < bins.size(); ++c) {
      if (first[c] != c) continue;
      candidates[c].first_bin = out.bins;
      candidates[c].common_bin += out.bins;
      out.bins += candidates[c].bins;
      out.columns.push_back(std::move(candidates[c]));
      columns.push_back(std::move(bins[c]));
    }
  }

  const std::size_t width = columns.size();
  std::vector<std::uint8_t> by_row(rows * width);  // (R, F)
  std::vector<std::uint64_t> hashes(rows);
  constexpr std::size_t chunk = 256;
  team.for_each((rows + chunk - 1) / chunk, [&](std::size_t part, unsigned) {
    const std::size_t begin = part * chunk, end = std::min(rows, begin + chunk);
    for (std::size_t f = 0; f < width; ++f) {
      for (std::size_t r = begin; r < end; ++r) by_row[r * width + f] = columns[f][r];
    }
    for (std::size_t r = begin; r < end; ++r) hashes[r] = detail::hash_bytes(by_row.data() + r * width, width);
  });
  const auto first = detail::first_equal(rows, width, [&](std::size_t r) { return by_row.data() + r * width; }, hashes);
  std::vector<std::uint32_t> kept;  // [U] row of the batch
  for (std::size_t r = 0; r < rows; ++r) {
    if (first[r] == r) {
      out.distinct_of[r] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(static_cast<std::uint32_t>(r));
    } else {
      out.distinct_of[r] = out.distinct_of[first[r]];
    }
  }
  out.rows = kept.size();

  out.by_column.resize(width * out.rows);
  team.for_each(width, [&](std::size_t f, unsigned) {
    std::uint8_t* bins = out.by_column.data() + f * out.rows;
    for (std::size_t u = 0; u < out.rows; ++u) bins[u] = columns[f][kept[u]];
  });
  if (out.bins <= 65536) {
    detail::fill_lists(out, by_row, kept, out.lists, team);
  } else {
    detail::fill_lists(out, by_row, kept, out.long_lists, team);
  }
  return out;
}

}  // namespace tunewright::models::gbdt

#endif
