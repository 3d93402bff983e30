// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/schedule/ansor/from_schedule.hpp"
#include "tunewright/schedule/ansor/steps.hpp"
#include "tunewright/schedule/schedule.hpp"

namespace tunewright::features {

/// Describes the schedule as a sequence with one row per step, its kind and its numbers, without lowering.
///
///   row = one-hot of the kind (11) | stage, loop, numbers of the step..., zeros
///
///   split               stage, loop, extent (0: unknown), lengths..., 1    annotation   stage, loop, kind
///   follow split        stage, loop, step, parts                           fuse         stage, loops...
///   follow fused split  stage, loop, steps..., level, 1                    reorder      stage, order...
///   compute at          stage, target stage, loop                          rfactor      stage, loop, axis
///   inline, root        stage                                              pragma       stage, loop, token
///   cache read          stage, 1, readers...                               cache write  stage, scope token
///
/// Numbers are those of TVM's auto_scheduler logs (stages and loops by their position at that step), so schedules of
/// this library and steps of logs have the same description. The unroll limit has tokens, as has the scope (local 1,
/// shared 2, global 3). Rows and columns beyond the size limits are cut off.
///
/// Paper:       Zhai et al., TLP, ASPLOS 2023, doi:10.1145/3575693.3575737, sections 4.1 to 4.3; tables and sizes are
///              those of its code: 25 rows of 22 on CPUs, 40 rows of 20 on GPUs.
/// Models:      FeaturizerFor<S> for every space of schedules; `describe` for steps of logs.
/// Shapes:      a program has as many rows as steps, at most `max_rows`; D = `columns`. Units: none, raw.
/// Determinism: a pure function of the steps.
/// Cost:        a microsecond per program for steps of a log, a replay for a schedule of this library.
/// Errors:      `std::invalid_argument` for options that leave no room for a row, and in `extract` for a target that is
///              not a `device`: by the other table kinds of steps would be unknown, and longer schedules cut off.
///              Schedules that cannot be replayed have no rows.
/// Deviates:    A kind outside the table has an all-zero one-hot and its numbers in their columns; TLP then shifts the
///              row. TLP pads with rows of zeros, as `fill_up` does. TLP has no primitives for packing and for
///              the order of axes, so these have no rows.
struct Primitives {
  DeviceKind device = DeviceKind::Cpu;  ///< table of kinds and tokens
  std::size_t max_rows = 25;            ///< L, at least 1
  std::size_t columns = 22;             ///< D, at least 12
  bool fill_up = false;                 ///< append rows of zeros up to `max_rows`

  [[nodiscard]] static Primitives cpu() { return {}; }
  [[nodiscard]] static Primitives gpu() { return {DeviceKind::Gpu, 40, 20, false}; }

  template <SearchSpace S>
    requires std::convertible_to<const config_t<S>&, const schedule::Schedule&>
  [[nodiscard]] FeatureBatch extract(const S&, const Task& task, std::span<const config_t<S>> configs) const {
    check_target(task.target);
    FeatureBatch batch(columns);
    for (const config_t<S>& config : configs) {
      try {
        describe(schedule::ansor::from_schedule(config), batch);
      } catch (const schedule::ScheduleError&) {
        batch.close_program();
      }
    }
    return batch;  // (R, D) in N programs
  }

  /// Appends one program. Throws `std::invalid_argument` for a batch of another width, or options that leave no room
  /// for a row.
  void describe(std::span<const schedule::ansor::Step> steps, FeatureBatch& batch) const;

  /// Throws `std::invalid_argument` for options that leave no room for a row.
  [[nodiscard]] FeatureSchema schema() const;

 private:
  static constexpr std::size_t kinds = 11;
  using Table = std::array<std::string_view, kinds>;

  void check_room() const;
  void check_target(const Target& target) const;
  [[noreturn]] void refuse(const std::string& why) const;
  [[nodiscard]] const Table& table() const;
  [[nodiscard]] std::optional<std::size_t> column_of(std::string_view tag) const;

  /// A row being filled.
  struct Row {
    std::span<float> values;
    DeviceKind device;
    std::size_t next = kinds;

    template <class S>
    void add(S step) {
      step.each([this](const auto&... fields) { (this->put(fields), ...); });
    }
    void add(const schedule::ansor::CacheRead& step);

    template <class T>
      requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
    void put(T number) {
      if (next < values.size()) values[next++] = static_cast<float>(number);
    }
    void put(const std::vector<std::int32_t>& numbers) {
      for (const std::int32_t number : numbers) put(number);
    }
    void put(const std::string& word) { put(token(word)); }

    /// 0 for a word without a token.
    [[nodiscard]] int token(std::string_view word) const;
    template <std::size_t N>
    static int place(const std::array<std::string_view, N>& words, std::string_view word) {
      const auto found = std::find(words.begin(), words.end(), word);
      return found == words.end() ? 0 : static_cast<int>(found - words.begin()) + 1;
    }
  };
};

}  // namespace tunewright::features

#if TUNEWRIGHT_DEFINES(program_features)

namespace tunewright::features {

TUNEWRIGHT_INLINE void Primitives::describe(std::span<const schedule::ansor::Step> steps, FeatureBatch& batch) const {
  check_room();
  if (batch.columns() != columns) {
    refuse(" for a batch of " + std::to_string(batch.columns()) + "; give a batch of as many columns");
  }
  const std::size_t rows = std::min(max_rows, steps.size());
  for (std::size_t r = 0; r < rows; ++r) {
    Row row{batch.append_row(), device};
    if (const auto kind = column_of(schedule::ansor::tag(steps[r]))) row.values[*kind] = 1.0F;
    std::visit([&row](const auto& step) { row.add(step); }, steps[r]);
  }
  for (std::size_t r = rows; fill_up && r < max_rows; ++r) batch.append_row();
  batch.close_program();
}

TUNEWRIGHT_INLINE void Primitives::check_room() const {
  if (max_rows < 1 || columns <= kinds) refuse("; give at least 1 row and " + std::to_string(kinds + 1) + " columns");
}

TUNEWRIGHT_INLINE void Primitives::check_target(const Target& target) const {
  if (target.kind == device) return;
  refuse(device == DeviceKind::Cpu ? " by the table of CPUs for a task on a GPU; give features::Primitives::gpu()"
                                   : " by the table of GPUs for a task on a CPU; give features::Primitives::cpu()");
}

TUNEWRIGHT_INLINE void Primitives::refuse(const std::string& why) const {
  throw std::invalid_argument("features::Primitives: " + std::to_string(max_rows) + " rows of " +
                              std::to_string(columns) + " columns" + why);
}

TUNEWRIGHT_INLINE FeatureSchema Primitives::schema() const {
  check_room();
  FeatureSchema schema{device == DeviceKind::Cpu ? "primitives_cpu" : "primitives_gpu", 1, {}};
  for (const std::string_view tag : table()) {
    schema.columns.push_back({"is_" + std::string(tag), "one-hot", "Whether the step is of this kind."});
  }
  for (std::size_t c = kinds; c < columns; ++c) {
    schema.columns.push_back({"number_" + std::to_string(c - kinds), "as is",
                              c == kinds ? "Stage of the step." : "Number of the step, by kind."});
  }
  return schema;
}

TUNEWRIGHT_INLINE const Primitives::Table& Primitives::table() const {
  static constexpr Table cpu_kinds{"CI", "RE", "AN", "RF", "CHW", "SP", "CR", "CA", "FU", "FSP", "PR"};
  static constexpr Table gpu_kinds{"AN", "CHR", "CHW", "CI", "CA", "FFSP", "SP", "FU", "RE", "PR", "FSP"};
  return device == DeviceKind::Cpu ? cpu_kinds : gpu_kinds;
}

TUNEWRIGHT_INLINE std::optional<std::size_t> Primitives::column_of(std::string_view tag) const {
  const auto found = std::find(table().begin(), table().end(), tag);
  if (found == table().end()) return std::nullopt;
  return static_cast<std::size_t>(found - table().begin());
}

TUNEWRIGHT_INLINE void Primitives::Row::add(const schedule::ansor::CacheRead& step) {
  put(step.stage);
  put(1);
  put(step.readers);
}

TUNEWRIGHT_INLINE int Primitives::Row::token(std::string_view word) const {
  static constexpr std::array<std::string_view, 4> cpu_unroll{"16", "0", "512", "64"};
  static constexpr std::array<std::string_view, 5> gpu_unroll{"0", "16", "64", "1024", "512"};
  static constexpr std::array<std::string_view, 3> scopes{"local", "shared", "global"};
  constexpr std::string_view unroll = "auto_unroll_max_step$";
  if (!word.starts_with(unroll)) return place(scopes, word);
  word.remove_prefix(unroll.size());
  return device == DeviceKind::Cpu ? place(cpu_unroll, word) : place(gpu_unroll, word);
}

}  // namespace tunewright::features

#endif
