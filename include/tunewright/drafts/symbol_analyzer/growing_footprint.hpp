// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"

namespace tunewright::drafts {

/// Memory that a statement touches while some loops vary.
struct Footprint {
  double bytes = 0;
  double cache_bytes = 0;  ///< cache capacity that it occupies: more if rows conflict in some sets
};

/// Computes the memory that a statement touches, in whole cache lines, while its loops start to vary one after another,
/// from the innermost outwards. The lowest bits of an address select the set of a cache; in the memory of a process,
/// only bits within a page are known. Rows that are a multiple of 2^b bytes apart therefore conflict: they begin in the
/// same sets, and each occupies 2^b bytes of capacity, at most a page.
class GrowingFootprint {
 public:
  /// Lets the innermost of the `loops` loops around the statement vary, if there is one.
  void start(StatementFootprint& footprint, std::size_t loops, double line);
  /// Lets the next loop vary, unless `depth()` is 0.
  void grow();

  /// Depth of the outermost loop that varies.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  /// The sum over all accesses.
  [[nodiscard]] const Footprint& all() const noexcept { return all_; }

 private:
  struct Buffer {
    LoopSet moved_by = 0;
    double element_bytes = 0;
    bool packed = false;
    std::size_t first = 0, last = 0;  ///< range of its dimensions in sides_
    Footprint touched;
  };
  /// A dimension of a buffer.
  struct Side {
    const IndexRange* range = nullptr;
    double extent = 1;
    double conflict_bytes = 0;  ///< minimum capacity that each of its slices occupies because of their distance
  };

  void add(const Footprint& own);
  /// Adds an access and the dimensions that the statement moves along, from the innermost outwards; the innermost is
  /// always included.
  void add_access(const StatementFootprint::Access& a);
  [[nodiscard]] Footprint touched(const Buffer& a) const;
  [[nodiscard]] double in_lines(double bytes) const {
    return static_cast<double>(static_cast<std::int64_t>((bytes + line_ - 1) / line_)) * line_;
  }

  StatementFootprint* footprint_ = nullptr;
  double line_ = 1;
  std::size_t depth_ = 0;
  Footprint all_;
  std::vector<Buffer> buffers_;
  std::vector<Side> sides_;  // for all accesses
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE void GrowingFootprint::start(StatementFootprint& footprint, std::size_t loops, double line) {
  footprint_ = &footprint;
  line_ = line;
  depth_ = loops;
  footprint.vary(depth_ > 0 ? LoopSet{1} << --depth_ : 0);
  sides_.clear();
  buffers_.clear();
  all_ = {};
  for (const StatementFootprint::Access& a : footprint.accesses()) {
    add_access(a);
    buffers_.back().touched = touched(buffers_.back());
    add(buffers_.back().touched);
  }
}

TUNEWRIGHT_INLINE void GrowingFootprint::grow() {
  footprint_->vary_also(--depth_);
  all_ = {};
  for (Buffer& a : buffers_) {
    if ((a.moved_by >> depth_ & 1U) != 0) a.touched = touched(a);
    add(a.touched);
  }
}

TUNEWRIGHT_INLINE void GrowingFootprint::add(const Footprint& own) {
  all_.bytes += own.bytes;
  all_.cache_bytes += own.cache_bytes;
}

TUNEWRIGHT_INLINE void GrowingFootprint::add_access(const StatementFootprint::Access& a) {
  constexpr std::int64_t page = 4096;
  const loops::BufferSummary& b = StatementFootprint::buffer(a);
  const std::size_t first = sides_.size(), rank = b.shape.size();
  auto pitch = static_cast<std::int64_t>(b.element_bytes);
  for (std::size_t d = rank; d-- > 0;) {
    if (d + 1 == rank || footprint_->moves(a, d))
      sides_.push_back({&footprint_->index(a, d), static_cast<double>(b.shape[d]),
                        static_cast<double>(std::min(pitch & -pitch, page))});
    pitch *= b.shape[d];
  }
  buffers_.push_back({a.moved_by, b.element_bytes, b.is_packed(), first, sides_.size(), {}});
}

TUNEWRIGHT_INLINE Footprint GrowingFootprint::touched(const Buffer& a) const {
  double bytes = a.element_bytes;
  if (a.first == a.last) return {bytes, bytes};
  const Side* side = &sides_[a.first];
  const Side* const last = side + (a.last - a.first);
  const auto count = [](const Side& of) { return std::min(of.range->count, of.extent); };
  if (a.packed) {
    for (; side != last; ++side) bytes *= count(*side);
    bytes = in_lines(bytes);
    return {bytes, bytes};
  }
  bytes = in_lines(bytes * count(*side));
  double occupied = bytes;
  for (++side; side != last; ++side) {
    const double slices = count(*side);
    bytes *= slices;
    if (slices > 1) occupied = slices * std::max(occupied, side->conflict_bytes);
  }
  return {bytes, occupied};
}

}  // namespace tunewright::drafts

#endif
