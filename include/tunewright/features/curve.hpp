// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "tunewright/core/feature_batch.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/features/concept.hpp"
#include "tunewright/features/per_statement/accesses.hpp"
#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/features/per_statement/operations.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::features {
namespace curve {

/// One access of the innermost statement as seen from each surrounding loop, in log2, ascending, starting at zero.
struct Curves {
  std::vector<double> count;     ///< elements touched: product of the loops that move it, from there inwards
  std::vector<double> reuse;     ///< uses of an element: product of the loops that do not, from there inwards
  std::vector<double> top_down;  ///< iterations: product of all loops from the outermost to there
};

/// Computes the curves of the statement with the most surrounding loops, the last one among equals: first of the stored
/// buffer, then of the read buffers in order. Has only working memory; not thread-safe.
class Reader {
 public:
  /// Throws `std::invalid_argument` for a malformed nest.
  [[nodiscard]] const std::vector<Curves>& read(const loops::LoopNest& nest);

 private:
  void walk(const loops::Body& body);

  void enter(const loops::Loop& loop);

  void read(const loops::Statement& statement);

  /// Only the first access to a buffer counts.
  void add(loops::BufferId buffer, std::span<const per_statement::AffineForms::Id> indices);

  const loops::LoopNest* nest_ = nullptr;
  std::vector<std::int64_t> extents_;    // of the open loops, outermost first
  std::vector<std::uint32_t> depth_of_;  // by loop variable
  std::size_t deepest_ = 0;
  std::vector<loops::BufferId> seen_;
  std::vector<Curves> curves_;
  per_statement::AffineForms forms_;
  per_statement::StatementAccesses accesses_;
  per_statement::OperationTable operations_;
};

/// For each i = 0, 1, ... below out.size() / 2: the last point with x <= i, as (its y, i - x). x starts with 0.
void sample(std::span<const double> x, std::span<const double> y, std::span<float> out);

}  // namespace curve

/// Describes how the innermost statement accesses memory, independent of the number of loops: for each buffer, curves
/// that relate the elements accessed, the uses of an element and the iterations, from the innermost loop outwards,
/// sampled at powers of two.
///
///   buffer b:   reuse(count), count(reuse), top_down(count), count(top_down)
///   each at     x = 2^0, 2^1, ... 2^(samples - 1):   log2 y of the last point up to x, and log2 (x / that point)
///
/// Paper:       Chen et al., "Learning to Optimize Tensor Programs" (AutoTVM), NeurIPS 2018 (context relation
///              features); Ryu et al., One-Shot Tuner, CC 2022, which takes 30 samples.
/// Models:      FeaturizerFor<S> for spaces that lower to loop nests, OneRowFeaturizer.
/// Shapes:      one row per configuration, buffers * 8 * samples columns.
/// Units:       log2 of counts.
/// Determinism: a pure function of the program.
/// Cost:        O(accesses * dimensions * loops), microseconds per program; lowering costs more.
/// Errors:      `std::invalid_argument` for `samples` or `buffers` of 0; programs that cannot be described have no
///              rows.
/// Deviates:    AutoTVM has one block per buffer, by name; here their number is fixed: the stored buffer first, then
///              the others in the order of reading, unused ones zero. A loop moves an access if it occurs in its index,
///              in any form.
struct Curve {
  static constexpr bool one_row = true;

  unsigned samples = 20;  ///< points of a curve, at least 1
  unsigned buffers = 3;   ///< blocks; further buffers are left out; at least 1

  /// A configuration that cannot be lowered or has no statement gives no row.
  template <SearchSpace S>
    requires std::convertible_to<const program_t<S>&, const loops::LoopNest&>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    check();
    FeatureBatch batch(width());
    curve::Reader reader;
    for (const config_t<S>& config : configs) {
      try {
        describe(space.lower(task, config), reader, batch);
      } catch (const std::bad_alloc&) {
        throw;  // not a property of the configuration
      } catch (const std::exception&) {
        batch.close_program();
      }
    }
    return batch;  // (N, D)
  }

  /// Appends one lowered program to a batch of `width()` columns. Throws `std::invalid_argument` for a batch of others,
  /// and for options out of range.
  void describe(const loops::LoopNest& nest, curve::Reader& reader, FeatureBatch& batch) const;

  [[nodiscard]] std::size_t width() const noexcept { return std::size_t{8} * samples * buffers; }

  [[nodiscard]] FeatureSchema schema() const;

 private:
  void check() const;
};

}  // namespace tunewright::features

#if TUNEWRIGHT_DEFINES(program_features)

#include "tunewright/core/require.hpp"

namespace tunewright::features::curve {

TUNEWRIGHT_INLINE const std::vector<Curves>& Reader::read(const loops::LoopNest& nest) {
  nest_ = &nest;
  extents_.clear();
  depth_of_.assign(nest.variables.size(), per_statement::AffineForms::none);
  deepest_ = 0;
  curves_.clear();
  walk(nest.body);
  return curves_;
}

TUNEWRIGHT_INLINE void Reader::walk(const loops::Body& body) {
  for (const loops::Node& node : body) {
    if (const auto* loop = std::get_if<loops::Loop>(&node.content)) {
      enter(*loop);
    } else if (const auto* statement = std::get_if<loops::Statement>(&node.content)) {
      if (extents_.size() >= deepest_) read(*statement);
    } else if (const auto* branch = std::get_if<loops::Branch>(&node.content)) {
      // Both sides have the same statements; one side only checks more.
      walk(branch->then.empty() ? branch->otherwise : branch->then);
    }
  }
}

TUNEWRIGHT_INLINE void Reader::enter(const loops::Loop& loop) {
  const std::int64_t extent = loops::checked_extent(*nest_, loop);
  if (extent == 1) return walk(loop.body);
  depth_of_[loop.var] = static_cast<std::uint32_t>(extents_.size());
  extents_.push_back(extent);
  walk(loop.body);
  extents_.pop_back();
  depth_of_[loop.var] = per_statement::AffineForms::none;
}

TUNEWRIGHT_INLINE void Reader::read(const loops::Statement& statement) {
  const program::Operator& op = *statement.op;
  if (statement.kind == loops::Statement::Kind::Initialise || !op.body || op.body->op == program::Op::Constant) return;
  const std::size_t rank = nest_->buffers.at(statement.target).shape.size();
  if (statement.axis_values.size() < std::max(op.axes.size(), rank)) {
    throw std::invalid_argument("a statement of operator '" + op.name + "' binds " +
                                std::to_string(statement.axis_values.size()) + " axes; bind all " +
                                std::to_string(op.axes.size()));
  }
  deepest_ = extents_.size();
  curves_.clear();
  seen_.clear();
  const per_statement::AffineForms::Values axis_values{.of_nest = statement.axis_values};
  forms_.reset(extents_, depth_of_, axis_values);
  accesses_.reset(extents_.size());
  using Type = per_statement::AccessType;
  add(statement.target, accesses_.add_store(*nest_, statement.target, forms_, axis_values, rank, Type::Read));
  for (const program::ExprNode* load : operations_.of(statement.op).loads) {
    const loops::BufferId buffer =
        load->tensor < nest_->buffer_of.size() ? nest_->buffer_of[load->tensor] : loops::LoopNest::no_buffer;
    if (buffer >= nest_->buffers.size())
      throw std::invalid_argument(loops::no_buffer_text("loop nest", nest_->name, load->tensor));
    add(buffer, accesses_.add_load(*nest_, buffer, forms_, load->indices));
  }
}

TUNEWRIGHT_INLINE void Reader::add(loops::BufferId buffer, std::span<const per_statement::AffineForms::Id> indices) {
  if (std::find(seen_.begin(), seen_.end(), buffer) != seen_.end()) return;
  seen_.push_back(buffer);
  Curves curves{{0}, {0}, {0}};
  double count = 0, reuse = 0, top_down = 0;
  for (std::size_t l = extents_.size(); l-- > 0;) {
    const bool moved = std::any_of(indices.begin(), indices.end(), [&](auto index) { return forms_.uses(index, l); });
    (moved ? count : reuse) += std::log2(static_cast<double>(extents_[l]));
    curves.count.push_back(count);
    curves.reuse.push_back(reuse);
  }
  for (const std::int64_t extent : extents_)
    curves.top_down.push_back(top_down += std::log2(static_cast<double>(extent)));
  curves_.push_back(std::move(curves));
}

TUNEWRIGHT_INLINE void sample(std::span<const double> x, std::span<const double> y, std::span<float> out) {
  std::size_t point = 0;
  for (std::size_t i = 0; 2 * i + 1 < out.size(); ++i) {
    const auto at = static_cast<double>(i);
    while (point + 1 < x.size() && x[point + 1] <= at + 1e-6) ++point;
    out[2 * i] = static_cast<float>(y[point]);
    out[2 * i + 1] = static_cast<float>(at - x[point]);
  }
}

}  // namespace tunewright::features::curve

namespace tunewright::features {

TUNEWRIGHT_INLINE void Curve::describe(const loops::LoopNest& nest, curve::Reader& reader, FeatureBatch& batch) const {
  check();
  if (batch.columns() != width()) {
    throw std::invalid_argument("features::Curve: a batch of " + std::to_string(batch.columns()) +
                                " columns for rows of " + std::to_string(width()) +
                                "; give one of 8 * samples * buffers columns");
  }
  const std::vector<curve::Curves>& curves = reader.read(nest);
  std::vector<float> row(curves.empty() ? 0 : width(), 0.0F);
  const std::size_t length = 2 * std::size_t{samples};
  for (std::size_t b = 0; b < std::min<std::size_t>(buffers, curves.size()); ++b) {
    const auto& [count, reuse, top_down] = curves[b];
    const std::span<float> block = std::span(row).subspan(4 * b * length, 4 * length);
    curve::sample(count, reuse, block.subspan(0, length));
    curve::sample(reuse, count, block.subspan(length, length));
    curve::sample(count, top_down, block.subspan(2 * length, length));
    curve::sample(top_down, count, block.subspan(3 * length, length));
  }
  batch.append_program(row);
}

TUNEWRIGHT_INLINE FeatureSchema Curve::schema() const {
  check();
  FeatureSchema schema{"curve", 1, {}};
  for (unsigned b = 0; b < buffers; ++b) {
    for (const char* relation : {"reuse_of_count", "count_of_reuse", "top_down_of_count", "count_of_top_down"}) {
      for (unsigned i = 0; i < samples; ++i) {
        const std::string at = "buffer" + std::to_string(b) + "_" + relation + "_" + std::to_string(i);
        schema.columns.push_back({at, "log2", "Value of the last point up to 2^" + std::to_string(i) + "."});
        schema.columns.push_back({at + "_beyond", "log2", "How far that point lies below."});
      }
    }
  }
  return schema;
}

TUNEWRIGHT_INLINE void Curve::check() const {
  require(samples > 0, "features::Curve", "samples", samples, "at least 1");
  require(buffers > 0, "features::Curve", "buffers", buffers, "at least 1");
}

}  // namespace tunewright::features

#endif
