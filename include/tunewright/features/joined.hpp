// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "tunewright/features/concept.hpp"

namespace tunewright::features {

/// A featurizer with a describer.
template <class F>
concept DescribesNests = requires(const F& featurizer) { featurizer.describer(); };

/// A describer of programs of this type.
template <class D, class Program>
concept Describes = requires(D& describer, const Program& program, const Task& task, FeatureBatch& batch) {
  describer.describe(program, task, batch);
};

/// Joins several descriptions of one configuration, each in its own block of columns, in the order of `F`.
///
///   a part with one row         its block is repeated on every row of the program
///   one part with many rows     the program has its rows
///   two or more of them         the rows of one part after the other, each with zeros in the blocks of the
///                               others; column 0 is the number of the part among them: 0, 1, ...
///
///   features::Joined<PerStatement, Hardware>    rows of PerStatement, each followed by the device
///   features::Joined<PerStatement, Dataflow>    rows 0 ..., rows 1 ...
///
/// Models:      FeaturizerFor<S> if every F is; OneRowFeaturizer if every F is one.
/// Shapes:      D = sum of the parts' columns, plus one if two or more parts have many rows.
/// Determinism: that of the parts.
/// Cost:        that of the parts; two or more `NestFeaturizerFor` share one reading of a configuration.
/// Errors:      those of the parts; `std::invalid_argument` if a part does not describe each configuration, or gives
///              other than one row although it declares one.
///
/// A configuration that one of the parts cannot describe gives a program without rows.
template <class... F>
struct Joined {
  static_assert(sizeof...(F) > 0, "features::Joined joins at least one featurizer");
  static constexpr std::size_t many_row_parts = ((OneRowFeaturizer<F> ? 0 : 1) + ...);
  static constexpr bool one_row = many_row_parts == 0;
  static constexpr std::size_t row_kinds = many_row_parts > 1 ? many_row_parts : 1;
  static constexpr bool ends_with_estimate = EndsWithEstimate<std::tuple_element_t<sizeof...(F) - 1, std::tuple<F...>>>;

  std::tuple<F...> parts{};

  template <SearchSpace S>
    requires(FeaturizerFor<F, S> && ...)  //
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    if constexpr (((NestFeaturizerFor<F, S> ? 1 : 0) + ...) > 1) {
      return join(lowered_once(space, task, configs));
    } else {
      return join(std::apply(
          [&](const F&... part) {
            return std::array<FeatureBatch, sizeof...(F)>{part.extract(space, task, configs)...};
          },
          parts));
    }
  }

  /// Describes nests one by one, and their summaries if every part does; see `NestFeaturizerFor`.
  [[nodiscard]] auto describer() const
    requires(DescribesNests<F> && ...)
  {
    return std::apply(
        [](const F&... part) {
          return Describer<decltype(part.describer())...>{{part.describer()...},
                                                          {FeatureBatch(width_of(part.schema()))...}};
        },
        parts);
  }

  /// Joins the batches of the parts for the same N configurations, for records without a space. Throws
  /// `std::invalid_argument` if they differ in number, or if a part with one row has more.
  [[nodiscard]] static FeatureBatch join(const std::array<FeatureBatch, sizeof...(F)>& batches) {
    constexpr std::array is_one_row{OneRowFeaturizer<F>...};
    constexpr std::size_t lead = many_row_parts > 1 ? 1 : 0;
    const std::size_t programs = batches[0].programs();
    std::size_t width = lead;
    for (const FeatureBatch& batch : batches) {
      if (batch.programs() != programs) {
        throw std::invalid_argument("features::Joined: one part describes " + std::to_string(programs) +
                                    " configurations, another " + std::to_string(batch.programs()) +
                                    "; every part must give one program a configuration");
      }
      width += batch.columns();
    }
    FeatureBatch joined(width);
    for (std::size_t p = 0; p < programs; ++p) {
      const bool described = std::none_of(batches.begin(), batches.end(),
                                          [&](const FeatureBatch& batch) { return batch.program(p).empty(); });
      float number = 0;
      for (std::size_t part = 0; described && part < batches.size(); ++part) {
        if (is_one_row[part] && !one_row) continue;
        for (std::uint32_t r = batches[part].offsets()[p]; r < batches[part].offsets()[p + 1]; ++r) {
          const std::span<float> row = joined.append_row();
          if (lead == 1) row[0] = number;
          std::size_t column = lead;
          for (std::size_t other = 0; other < batches.size(); column += batches[other++].columns()) {
            if (is_one_row[other])
              copy(only_row(batches[other], p), row.subspan(column));
            else if (other == part)
              copy(batches[part].row(r), row.subspan(column));
          }
        }
        if (one_row) break;
        ++number;
      }
      joined.close_program();
    }
    return joined;  // (R, D) in N programs
  }

  /// The name has the parts and their versions; columns are named `part.column`.
  [[nodiscard]] FeatureSchema schema() const {
    FeatureSchema all{"joined(", 1, {}};
    if (many_row_parts > 1) {
      all.columns.push_back({"part", "number", "Which part a row belongs to; the blocks of the others are zero."});
    }
    bool first = true;
    const auto add = [&](const FeatureSchema& schema) {
      all.name += (first ? "" : ", ") + schema.name + " " + std::to_string(schema.version);
      first = false;
      for (const FeatureColumn& column : schema.columns)
        all.columns.push_back({schema.name + "." + column.name, column.unit, column.meaning});
    };
    std::apply([&](const F&... part) { (add(part.schema()), ...); }, parts);
    all.name += ")";
    return all;
  }

 private:
  /// Describes programs by all parts.
  template <class... D>
  struct Describer {
    std::tuple<D...> of_parts;
    std::array<FeatureBatch, sizeof...(F)> rows;

    void prepare(const Task& task) {
      std::apply([&](D&... part) { (prepare_for(part, task), ...); }, of_parts);
    }

    /// Throws the errors of a part; `batch` is then unchanged.
    template <class Program>
      requires(Describes<D, Program> && ...)
    void describe(const Program& program, const Task& task, FeatureBatch& batch) {
      for (FeatureBatch& own : rows) own.clear();
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (std::get<I>(of_parts).describe(program, task, rows[I]), ...);
      }(std::index_sequence_for<F...>{});
      batch.append(join(rows));
    }
  };

  /// Whether a part describes such programs, instead of configurations.
  template <class Part, class S, class Program>
  static constexpr bool reads = !NestFeaturizerFor<Part, S> || requires(const Part& part) {
    { part.describer() } -> Describes<Program>;
  };

  /// The describer of a part and its output; empty for a part that describes configurations.
  template <class S, class Part>
  static auto describer_of(const Part& part) {
    if constexpr (NestFeaturizerFor<Part, S>)
      return part.describer();
    else
      return std::monostate{};
  }

  template <class S>
  [[nodiscard]] std::array<FeatureBatch, sizeof...(F)> lowered_once(const S& space, const Task& task,
                                                                    std::span<const config_t<S>> configs) const {
    std::array<FeatureBatch, sizeof...(F)> batches;
    auto describers = std::apply([](const F&... part) { return std::tuple(describer_of<S>(part)...); }, parts);
    const auto for_each_part = [&](const auto& f) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (f(std::get<I>(parts), std::get<I>(describers), batches[I]), ...);
      }(std::index_sequence_for<F...>{});
    };
    for_each_part([&](const auto& part, auto&, FeatureBatch& batch) {
      if constexpr (NestFeaturizerFor<std::remove_cvref_t<decltype(part)>, S>)
        batch = FeatureBatch(width_of(part.schema()));
      else
        batch = part.extract(space, task, configs);
    });
    for_each_part([&](const auto&, auto& describer, FeatureBatch&) { prepare_for(describer, task); });
    const auto close_all = [&] {
      for_each_part([&](const auto&, auto& describer, FeatureBatch& batch) {
        if constexpr (!std::same_as<std::remove_cvref_t<decltype(describer)>, std::monostate>) batch.close_program();
      });
    };
    const auto describe = [&](const auto& program)
      requires(reads<F, S, std::remove_cvref_t<decltype(program)>> && ...)
    {
      for_each_part([&](const auto&, auto& describer, FeatureBatch& batch) {
        if constexpr (!std::same_as<std::remove_cvref_t<decltype(describer)>, std::monostate>)
          describe_or_leave_out(describer, program, task, batch);
      });
    };
    read_configurations(space, task, configs, describe, close_all);
    return batches;
  }

  static void copy(std::span<const float> from, std::span<float> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }
  static std::span<const float> only_row(const FeatureBatch& batch, std::size_t p) {
    const std::span<const float> rows = batch.program(p);
    if (rows.size() != batch.columns()) {
      throw std::invalid_argument("features::Joined: a part that declares one_row gave " +
                                  std::to_string(rows.size() / batch.columns()) +
                                  " rows; give one, or take the declaration out");
    }
    return rows;
  }
};

}  // namespace tunewright::features
