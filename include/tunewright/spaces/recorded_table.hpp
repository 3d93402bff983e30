// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tunewright/core/knob.hpp"
#include "tunewright/core/rng.hpp"
#include "tunewright/core/table.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"

namespace tunewright::spaces {

/// Which configurations of a table are neighbours, as defined by Kernel Tuner.
enum class Neighbours : std::uint8_t {
  Hamming,          ///< exactly one parameter differs, by any amount
  Adjacent,         ///< every parameter stays or moves to the next value that occurs in some row
  StrictlyAdjacent  ///< every parameter stays or moves to the next declared value, whether or not it occurs
};

/// A configuration of a recorded table: its row number.
struct TableRow {
  std::uint32_t row = 0;
  std::uint64_t key = 0;  ///< of the configuration, the same on every device
  bool operator==(const TableRow&) const = default;
};

/// The space of configurations that were measured before: compares search policies without hardware, with the same
/// tuner that runs on hardware.
///
///   auto imported = data::read_table("convolution_A100.json.gz");
///   spaces::RecordedTable space(std::make_shared<data::Table>(std::move(imported.table)));
///   measurers::Replay<spaces::TableRow> replay;
///   replay.load(data::records_of(space.table(), task));      // Task task = data::task_of(space.table());
///
/// The rows are the space: configurations that violate restrictions of the kernel have no rows and cannot be drawn.
/// Configurations that failed when they were measured are rows, and fail again.
///
/// `encode` returns the values separated by commas ("16,1,1,1,0"), which another table of the same kernel decodes to
/// its own row.
///
/// Models:      SettableKnobSpace, with program_type = config_type = TableRow.
/// Cost:        `sample` O(1); `mutate` O(1), but its first call finds the neighbours of all rows, O(K log N) for each
///              neighbour, and stores them, 4 bytes each; copies of the space share them.
/// Determinism: bit-identical everywhere.
/// Errors:      `std::invalid_argument` without a table, for a table without rows or with choices that are no values,
///              and for two rows with equal configurations; `std::out_of_range` for a row of another table that this
///              one does not have.
class RecordedTable {
 public:
  using config_type = TableRow;
  using program_type = TableRow;

  /// A space without a table, for recipes that get it later. Drawing from it throws.
  RecordedTable() = default;

  /// Throws `std::invalid_argument` for a table without rows, for two rows with equal configurations, and as
  /// `check(table)`.
  explicit RecordedTable(std::shared_ptr<const Table> table, Neighbours neighbours = Neighbours::Hamming);

  /// Throws `std::invalid_argument` if there is none.
  [[nodiscard]] const Table& table() const;
  [[nodiscard]] std::size_t size() const noexcept { return table_ ? table_->size() : 0; }
  /// Throws `std::out_of_range` for a row that does not exist.
  [[nodiscard]] TableRow at(std::size_t row) const;

  [[nodiscard]] std::optional<TableRow> sample(const Task&, Rng& rng) const {
    return at(static_cast<std::size_t>(rng.below(table().size())));
  }
  /// A uniformly drawn neighbour; empty for a row without neighbours.
  [[nodiscard]] std::optional<TableRow> mutate(const Task&, const TableRow& from, Rng& rng) const;
  [[nodiscard]] bool feasible(const Task&, const TableRow& config) const {
    return config.row < size() && index_->key[config.row] == config.key;
  }
  [[nodiscard]] std::uint64_t key(const TableRow& config) const { return config.key; }
  [[nodiscard]] std::string encode(const TableRow& config) const { return table().text(at(config.row).row); }
  [[nodiscard]] std::optional<TableRow> decode(const Task&, std::string_view text) const;
  [[nodiscard]] TableRow lower(const Task&, const TableRow& config) const { return config; }

  [[nodiscard]] std::vector<Knob> knobs() const;
  [[nodiscard]] std::vector<double> knob_values(const TableRow& config) const;
  /// The row with these knob values; empty if no row has them or their number differs from that of the knobs.
  [[nodiscard]] std::optional<TableRow> at_knobs(const Task&, std::span<const double> values) const;

  /// The neighbours of a row, ordered by their values.
  [[nodiscard]] std::vector<std::uint32_t> neighbours(const TableRow& of) const;

 private:
  /// The neighbours of all rows, concatenated; computed at the first request, from any thread.
  struct Neighbourhood {
    std::once_flag found;
    std::vector<std::size_t> first;  // offsets in `rows`, [N + 1]
    std::vector<std::uint32_t> rows;
  };
  [[nodiscard]] std::span<const std::uint32_t> kept_neighbours(std::uint32_t row) const;

  struct Index {
    explicit Index(const Table& table);
    std::vector<Knob> knobs;                               // [K]
    std::vector<std::uint64_t> key;                        // [N]
    std::vector<double> values;                            // (N, K), as knobs
    std::unordered_map<std::uint64_t, std::uint32_t> row;  // by key
    std::vector<std::uint32_t> sorted;                     // [N], rows by choices, first parameter first
    std::vector<std::vector<std::uint16_t>> occurring;     // [K], choices of at least one row, ascending
  };

  // The rows among `rows` with value `choice` of parameter k. `rows` must be sorted and equal in all parameters before
  // k.
  [[nodiscard]] std::span<const std::uint32_t> with(std::span<const std::uint32_t> rows, std::size_t k,
                                                    std::uint16_t choice) const;

  void differ_once(std::span<const std::uint16_t> own, std::span<const std::uint32_t> rows, std::size_t k, bool differs,
                   std::vector<std::uint32_t>& found) const;

  void move_by_one(std::span<const std::uint16_t> own, std::span<const std::uint32_t> rows, std::size_t k,
                   std::vector<std::uint32_t>& found) const;

  std::shared_ptr<const Table> table_;
  std::shared_ptr<const Index> index_;
  std::shared_ptr<Neighbourhood> neighbourhood_;
  Neighbours kind_ = Neighbours::Hamming;
};

}  // namespace tunewright::spaces

#if TUNEWRIGHT_DEFINES(core)

namespace tunewright::spaces {

TUNEWRIGHT_INLINE RecordedTable::RecordedTable(std::shared_ptr<const Table> table, Neighbours neighbours)
    : table_(std::move(table)), kind_(neighbours) {
  if (!table_ || table_->size() == 0)
    throw std::invalid_argument("RecordedTable: the table has no rows; give one with measurements");
  index_ = std::make_shared<const Index>(*table_);
  neighbourhood_ = std::make_shared<Neighbourhood>();
}

TUNEWRIGHT_INLINE const Table& RecordedTable::table() const {
  if (!table_) {
    throw std::invalid_argument("RecordedTable has no table; construct it with one, and pass that space to the tuner");
  }
  return *table_;
}

TUNEWRIGHT_INLINE TableRow RecordedTable::at(std::size_t row) const {
  if (row >= size()) {
    throw std::out_of_range("RecordedTable: row " + std::to_string(row) + " of " + std::to_string(size()) +
                            " was asked for; give a row of this table");
  }
  return {static_cast<std::uint32_t>(row), index_->key[row]};
}

TUNEWRIGHT_INLINE std::optional<TableRow> RecordedTable::mutate(const Task&, const TableRow& from, Rng& rng) const {
  const std::span<const std::uint32_t> rows = kept_neighbours(from.row);
  if (rows.empty()) return std::nullopt;
  return at(rows[static_cast<std::size_t>(rng.below(rows.size()))]);
}

TUNEWRIGHT_INLINE std::optional<TableRow> RecordedTable::decode(const Task&, std::string_view text) const {
  if (!index_) return std::nullopt;
  const auto found = index_->row.find(row_key(text));
  if (found == index_->row.end() || table_->text(found->second) != text) return std::nullopt;
  return at(found->second);
}

TUNEWRIGHT_INLINE std::vector<Knob> RecordedTable::knobs() const {
  (void)table();
  return index_->knobs;
}

TUNEWRIGHT_INLINE std::vector<double> RecordedTable::knob_values(const TableRow& config) const {
  const auto values =
      index_->values.begin() + static_cast<std::ptrdiff_t>(at(config.row).row * table().parameters.size());
  return {values, values + static_cast<std::ptrdiff_t>(table().parameters.size())};
}

TUNEWRIGHT_INLINE std::optional<TableRow> RecordedTable::at_knobs(const Task&, std::span<const double> values) const {
  const std::size_t count = table().parameters.size();
  if (values.size() != count) return std::nullopt;
  std::span<const std::uint32_t> rows(index_->sorted);
  for (std::size_t k = 0; k < count && !rows.empty(); ++k) {
    const auto number_of = [&](std::uint32_t row) { return index_->values[row * count + k]; };
    std::span<const std::uint32_t> chosen;
    for (const std::uint16_t choice : index_->occurring[k]) {
      const auto part = with(rows, k, choice);
      if (part.empty() || number_of(part[0]) != values[k]) continue;
      chosen = part;
      break;
    }
    rows = chosen;
  }
  if (rows.empty()) return std::nullopt;
  return at(rows[0]);
}

TUNEWRIGHT_INLINE std::vector<std::uint32_t> RecordedTable::neighbours(const TableRow& of) const {
  const std::span<const std::uint16_t> own = table().row(at(of.row).row);
  const std::span<const std::uint32_t> all(index_->sorted);
  std::vector<std::uint32_t> found;
  if (kind_ == Neighbours::Hamming) {
    differ_once(own, all, 0, false, found);
  } else {
    move_by_one(own, all, 0, found);
    std::erase(found, of.row);
  }
  return found;
}

TUNEWRIGHT_INLINE std::span<const std::uint32_t> RecordedTable::kept_neighbours(std::uint32_t row) const {
  (void)table();
  (void)at(row);  // throws for a row that does not exist
  Neighbourhood& kept = *neighbourhood_;
  std::call_once(kept.found, [&] {
    std::vector<std::size_t> first{0};
    std::vector<std::uint32_t> rows;
    for (std::size_t of = 0; of < size(); ++of) {
      const std::vector<std::uint32_t> found = neighbours(at(of));
      rows.insert(rows.end(), found.begin(), found.end());
      first.push_back(rows.size());
    }
    kept.first = std::move(first);
    kept.rows = std::move(rows);
  });
  return std::span(kept.rows).subspan(kept.first[row], kept.first[row + 1] - kept.first[row]);
}

TUNEWRIGHT_INLINE RecordedTable::Index::Index(const Table& table) : knobs(knobs_of(table)) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string text = table.text(i);
    key.push_back(row_key(text));
    if (!row.try_emplace(key.back(), static_cast<std::uint32_t>(i)).second) {
      throw std::invalid_argument("RecordedTable: configuration " + text +
                                  " has two rows; keep one measurement of each");
    }
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::vector<double> numbers = tunewright::knob_values(table, i);
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  sorted.resize(table.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::sort(sorted.begin(), sorted.end(), [&table](std::uint32_t a, std::uint32_t b) {
    const auto x = table.row(a), y = table.row(b);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  for (std::size_t k = 0; k < table.parameters.size(); ++k) {
    std::vector<std::uint16_t>& column = occurring.emplace_back();
    for (std::size_t i = 0; i < table.size(); ++i) column.push_back(table.row(i)[k]);
    std::sort(column.begin(), column.end());
    column.erase(std::unique(column.begin(), column.end()), column.end());
  }
}

TUNEWRIGHT_INLINE std::span<const std::uint32_t> RecordedTable::with(std::span<const std::uint32_t> rows, std::size_t k,
                                                                     std::uint16_t choice) const {
  if (index_->occurring[k].size() == 1) return rows;
  if (rows.size() == 1) return rows.first(table_->row(rows[0])[k] == choice ? 1 : 0);
  const auto first =
      std::partition_point(rows.begin(), rows.end(), [&](std::uint32_t row) { return table_->row(row)[k] < choice; });
  const auto last =
      std::partition_point(first, rows.end(), [&](std::uint32_t row) { return table_->row(row)[k] == choice; });
  return {first, last};
}

TUNEWRIGHT_INLINE void RecordedTable::differ_once(std::span<const std::uint16_t> own,
                                                  std::span<const std::uint32_t> rows, std::size_t k, bool differs,
                                                  std::vector<std::uint32_t>& found) const {
  if (rows.empty()) return;
  if (k == own.size()) {
    if (differs) found.push_back(rows[0]);
    return;
  }
  if (differs) return differ_once(own, with(rows, k, own[k]), k + 1, true, found);
  for (const std::uint16_t choice : index_->occurring[k])
    differ_once(own, with(rows, k, choice), k + 1, choice != own[k], found);
}

TUNEWRIGHT_INLINE void RecordedTable::move_by_one(std::span<const std::uint16_t> own,
                                                  std::span<const std::uint32_t> rows, std::size_t k,
                                                  std::vector<std::uint32_t>& found) const {
  if (rows.empty()) return;
  if (k == own.size()) {
    found.push_back(rows[0]);
    return;
  }
  const std::vector<std::uint16_t>& column = index_->occurring[k];
  auto at = std::lower_bound(column.begin(), column.end(), own[k]);
  const auto near = [&](std::uint16_t choice) {
    return kind_ == Neighbours::Adjacent || choice + 1 == own[k] || choice == own[k] + 1;
  };
  if (at != column.begin() && near(*std::prev(at))) move_by_one(own, with(rows, k, *std::prev(at)), k + 1, found);
  move_by_one(own, with(rows, k, own[k]), k + 1, found);
  if (++at != column.end() && near(*at)) move_by_one(own, with(rows, k, *at), k + 1, found);
}

}  // namespace tunewright::spaces

#endif
