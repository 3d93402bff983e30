// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"

namespace tunewright::features::per_statement {

[[nodiscard]] inline double element_bytes(const loops::Buffer& buffer) {
  return static_cast<double>(program::size_in_bytes(buffer.type));
}
[[nodiscard]] inline double element_bytes(const loops::BufferSummary& buffer) { return buffer.element_bytes; }

/// The start of a buffer's window.
[[nodiscard]] inline AffineForms::Values origin_of(const loops::LoopNest&, const loops::Buffer& buffer) {
  return {.of_nest = buffer.origin};
}
[[nodiscard]] inline AffineForms::Values origin_of(const loops::NestSummary& summary,
                                                   const loops::BufferSummary& buffer) {
  return {.of_summary = buffer.origin, .arena = &summary.indices};
}

/// Dimensions of a buffer in memory layout, without the copy that `physical_shape` makes.
template <class Buffer>
[[nodiscard]] std::size_t dimensions(const Buffer& buffer) {
  return buffer.packing.empty() ? buffer.shape.size() : buffer.packing.size();
}
template <class Buffer>
[[nodiscard]] std::int64_t extent(const Buffer& buffer, std::size_t d) {
  return buffer.packing.empty() ? buffer.shape[d] : buffer.packing[d].extent;
}

/// The accesses of the statements visited so far, under each of the open loops.
class TouchHistory {
 public:
  void enter(std::size_t depth);
  void add(std::size_t depth, loops::BufferId buffer, double elements, double element_bytes);
  [[nodiscard]] double bytes(std::size_t depth) const { return levels_[depth].bytes; }

  struct Summary {
    std::size_t records = 0;
    double least_elements = std::numeric_limits<double>::infinity();
  };
  [[nodiscard]] Summary summary(std::size_t depth, loops::BufferId buffer) const;

 private:
  struct Record {
    loops::BufferId buffer = 0;
    double elements = 0;
  };
  struct Level {
    std::vector<Record> records;
    double bytes = 0;
  };
  std::vector<Level> levels_;  // [open loops], outermost first
};

enum class AccessType : std::uint8_t { Read, Write, ReadWrite };
enum class Reuse : std::uint8_t { Loop, Serial, None };

/// The numbers of one buffer in a row, before logarithms.
struct BufferNumbers {
  loops::BufferId buffer = 0;
  AccessType type = AccessType::Read;
  double bytes = 0;
  double unique_bytes = 0;
  double lines = 1;
  double unique_lines = 1;
  double stride = 0;
  Reuse reuse = Reuse::None;
  double reuse_iterations = 0;
  double reuse_bytes = 0;
  double reuse_count = 0;
};

/// The memory accesses of one statement of a nest, or of its summary, by buffer. Memory is reused between statements.
///
/// Region of a buffer at depth l: the smallest box that contains all its accesses while loops l and inside run, clipped
/// to the shape of the buffer. Boxes, strides and runs are those of the memory layout, including packing. Cost:
/// O(accesses * dimensions * loops).
class StatementAccesses {
 public:
  void reset(std::size_t loops);

  /// Adds a load of buffer `id` at tensor coordinates `coordinates`, over axes. If the buffer was written before, it
  /// counts as read and written at the written position. Returns the indices into the buffer, valid until the next
  /// call. Throws `std::invalid_argument` if coordinates and dimensions differ in number.
  template <class Program>
  std::span<const AffineForms::Id> add_load(const Program& nest, loops::BufferId id, AffineForms& forms,
                                            std::span<const program::IndexExpr> coordinates) {
    return add(nest, id, forms, coordinates.size(), AccessType::Read, [&](AffineForms::Id index, std::size_t d) {
      forms.add(index, coordinates[d], 1, AffineForms::Over::Axes);
    });
  }
  /// Adds the store to buffer `id` at the first `rank` of the coordinates, over loops.
  template <class Program>
  std::span<const AffineForms::Id> add_store(const Program& nest, loops::BufferId id, AffineForms& forms,
                                             const AffineForms::Values& coordinates, std::size_t rank,
                                             AccessType type) {
    return add(nest, id, forms, rank, type,
               [&](AffineForms::Id index, std::size_t d) { forms.add(index, coordinates, d, 1); });
  }

  /// Finds the regions of all buffers at all depths and adds them to `history`.
  template <class Program>
  void find_regions(const Program& nest, const AffineForms& forms, TouchHistory& history) {
    touched_.assign(uses_.size() * loops_, 1.0);
    runs_.assign(uses_.size(), 1.0);
    bytes_.assign(loops_, 0.0);
    for (std::size_t use = 0; use < uses_.size(); ++use) {
      const auto& buffer = nest.buffers[uses_[use].buffer];
      bool whole = true;  // all inner dimensions are
      for (std::size_t d = dimensions(buffer); d-- > 0;) {
        box_.assign(loops_, {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()});
        for (const Access& access : accesses_) {
          if (access.use != use) continue;
          forms.for_each_range(indices_[access.first + d], [&](std::size_t l, program::Range range) {
            box_[l] = {std::min(box_[l].min, range.min), std::max(box_[l].max, range.max)};
          });
        }
        const std::int64_t shape = extent(buffer, d);
        for (std::size_t l = 0; l < loops_; ++l) {
          touched_[use * loops_ + l] *= static_cast<double>(std::min(box_[l].extent(), shape));
        }
        const std::int64_t reached = loops_ == 0 ? 1 : std::min(box_[0].extent(), shape);
        if (whole) runs_[use] *= static_cast<double>(reached);
        whole = whole && reached == shape;
      }
      for (std::size_t l = 0; l < loops_; ++l) {
        history.add(l, uses_[use].buffer, touched_[use * loops_ + l], element_bytes(buffer));
        bytes_[l] += touched_[use * loops_ + l] * element_bytes(buffer);
      }
    }
  }

  /// Bytes that this statement accesses while loop l and those inside run, by depth l. After `find_regions`.
  [[nodiscard]] std::span<const double> touched_bytes() const noexcept { return bytes_; }

  /// Computes the numbers of every buffer, in the order of first access. `extents` are those of the loops, `iterations`
  /// their product. After `find_regions`.
  template <class Program>
  [[nodiscard]] std::span<BufferNumbers> describe(const Program& nest, const AffineForms& forms,
                                                  const TouchHistory& history, std::span<const std::int64_t> extents,
                                                  double iterations, double line_bytes) {
    double one_iteration_bytes = 0;
    for (const BufferNumbers& use : uses_) one_iteration_bytes += element_bytes(nest.buffers[use.buffer]);
    for (std::size_t use = 0; use < uses_.size(); ++use) {
      BufferNumbers& numbers = uses_[use];
      const auto& buffer = nest.buffers[numbers.buffer];
      const double element = element_bytes(buffer);
      numbers.bytes = iterations * element;
      numbers.unique_bytes = (loops_ == 0 ? 1.0 : touched_[use * loops_]) * element;
      if (loops_ > 0) {
        double resting = 1;  // iterations of the loops inside the first that moves the access
        double stride = 0;
        for (std::size_t l = loops_; l-- > 0 && (stride = stride_of(buffer, forms, use, l)) == 0;) {
          resting *= static_cast<double>(extents[l]);
        }
        numbers.lines = std::max(1.0, iterations / resting * std::min(1.0, stride * element / line_bytes));
        numbers.unique_lines = std::max(1.0, numbers.unique_bytes / std::min(runs_[use] * element, line_bytes));
        numbers.stride = stride_of(buffer, forms, use, loops_ - 1);
      }
      find_reuse(use, nest, forms, history, extents, one_iteration_bytes);
    }
    return uses_;
  }

 private:
  struct Access {
    std::size_t use = 0;
    std::size_t first = 0;  // offset of its indices
  };

  template <class Program, class AddCoordinate>
  std::span<const AffineForms::Id> add(const Program& nest, loops::BufferId id, AffineForms& forms, std::size_t rank,
                                       AccessType type, const AddCoordinate& add_coordinate) {
    const auto& buffer = nest.buffers[id];
    if (rank != buffer.shape.size()) {
      throw std::invalid_argument("buffer '" + std::string(buffer.name) + "' has " +
                                  std::to_string(buffer.shape.size()) + " dimensions and is accessed with " +
                                  std::to_string(rank) + " indices; give one index a dimension");
    }
    const AffineForms::Values origin = origin_of(nest, buffer);
    const std::size_t first = indices_.size();
    for (std::size_t d = 0; d < rank; ++d) {
      const AffineForms::Id index = forms.zero();
      add_coordinate(index, d);
      if (d < origin.size()) forms.add(index, origin, d, -1);
      indices_.push_back(index);
    }
    if (!buffer.packing.empty()) pack(buffer, forms, first);
    std::size_t use = 0;
    while (use < uses_.size() && uses_[use].buffer != id) ++use;
    if (use == uses_.size()) {
      uses_.push_back({});
      uses_.back().buffer = id;
      uses_.back().type = type;
    } else if (uses_[use].type != AccessType::Read) {
      uses_[use].type = AccessType::ReadWrite;
      return std::span(indices_).subspan(first);
    }
    accesses_.push_back({use, first});
    return std::span(indices_).subspan(first);
  }

  /// Replaces the indices from `first` on by indices into the packed buffer, as `loops::physical_indices` does.
  template <class Buffer>
  void pack(const Buffer& buffer, AffineForms& forms, std::size_t first) {
    const std::size_t tensor_dimensions = indices_.size() - first;
    for (const loops::PackedDimension& piece : buffer.packing) {
      const AffineForms::Id index = forms.quotient(indices_[first + piece.dimension], piece.divisor);
      const bool outermost = std::all_of(buffer.packing.begin(), buffer.packing.end(), [&](const auto& other) {
        return other.dimension != piece.dimension || other.divisor <= piece.divisor;
      });
      indices_.push_back(outermost ? index : forms.remainder(index, piece.extent));
    }
    const auto start = indices_.begin() + static_cast<std::ptrdiff_t>(first);
    indices_.erase(start, start + static_cast<std::ptrdiff_t>(tensor_dimensions));
  }

  /// Elements between the accesses of consecutive iterations of loop `l`, the minimum over the accesses that it moves;
  /// zero if it moves none. For an access moved in several dimensions, as by a fused loop, the largest distance counts.
  template <class Buffer>
  [[nodiscard]] double stride_of(const Buffer& buffer, const AffineForms& forms, std::size_t use, std::size_t l) const {
    double least = 0;
    for (const Access& access : accesses_) {
      if (access.use != use) continue;
      double moved = 0;
      double pitch = 1;
      for (std::size_t d = dimensions(buffer); d-- > 0;) {
        moved = std::max(moved, std::abs(forms.step(indices_[access.first + d], l)) * pitch);
        pitch *= static_cast<double>(extent(buffer, d));
      }
      if (moved != 0 && (least == 0 || moved < least)) least = moved;
    }
    return least;
  }

  template <class Buffer>
  [[nodiscard]] bool moved_by(const Buffer& buffer, const AffineForms& forms, std::size_t use, std::size_t l) const {
    for (const Access& access : accesses_) {
      if (access.use != use) continue;
      for (std::size_t d = 0; d < dimensions(buffer); ++d) {
        if (forms.uses(indices_[access.first + d], l)) return true;
      }
    }
    return false;
  }

  /// The innermost loop with reuse of elements: because it does not move the access, or because several statements
  /// inside it use the buffer.
  template <class Program>
  void find_reuse(std::size_t use, const Program& nest, const AffineForms& forms, const TouchHistory& history,
                  std::span<const std::int64_t> extents, double one_iteration_bytes) {
    BufferNumbers& numbers = uses_[use];
    double inner_iterations = 1;
    for (std::size_t l = loops_; l-- > 0;) {
      const auto loop_extent = static_cast<double>(extents[l]);
      if (!moved_by(nest.buffers[numbers.buffer], forms, use, l)) {
        numbers.reuse = Reuse::Loop;
        numbers.reuse_count = loop_extent;
        numbers.reuse_iterations = inner_iterations;
        numbers.reuse_bytes = l + 1 == loops_ ? one_iteration_bytes : history.bytes(l + 1);
        return;
      }
      if (const TouchHistory::Summary touched = history.summary(l, numbers.buffer); touched.records > 1) {
        numbers.reuse = Reuse::Serial;
        numbers.reuse_count = static_cast<double>(touched.records - 1);
        numbers.reuse_iterations = touched.least_elements / loop_extent;
        numbers.reuse_bytes = history.bytes(l) / loop_extent;
        return;
      }
      inner_iterations *= loop_extent;
    }
  }

  std::size_t loops_ = 0;
  std::vector<BufferNumbers> uses_;
  std::vector<Access> accesses_;
  std::vector<AffineForms::Id> indices_;  // of all accesses, outermost dimension first
  std::vector<double> touched_;           // (uses, loops) elements
  std::vector<double> runs_;              // [uses] contiguous elements in the region of the whole nest
  std::vector<double> bytes_;             // [loops]
  std::vector<program::Range> box_;       // [loops] of one dimension
};

}  // namespace tunewright::features::per_statement

#if TUNEWRIGHT_DEFINES(program_features)

namespace tunewright::features::per_statement {

TUNEWRIGHT_INLINE void TouchHistory::enter(std::size_t depth) {
  if (levels_.size() <= depth) levels_.resize(depth + 1);
  levels_[depth].records.clear();
  levels_[depth].bytes = 0;
}

TUNEWRIGHT_INLINE void TouchHistory::add(std::size_t depth, loops::BufferId buffer, double elements,
                                         double element_bytes) {
  levels_[depth].records.push_back({buffer, elements});
  levels_[depth].bytes += elements * element_bytes;
}

TUNEWRIGHT_INLINE TouchHistory::Summary TouchHistory::summary(std::size_t depth, loops::BufferId buffer) const {
  Summary found;
  for (const Record& record : levels_[depth].records) {
    if (record.buffer != buffer) continue;
    ++found.records;
    found.least_elements = std::min(found.least_elements, record.elements);
  }
  return found;
}

TUNEWRIGHT_INLINE void StatementAccesses::reset(std::size_t loops) {
  loops_ = loops;
  uses_.clear();
  accesses_.clear();
  indices_.clear();
  touched_.clear();
  runs_.clear();
}

}  // namespace tunewright::features::per_statement

#endif
