// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"

namespace tunewright::drafts {

/// Memory that a statement touches while some loops vary.
struct Footprint {
  double bytes = 0;
  double cache_bytes = 0;         ///< cache capacity that it occupies: more if rows conflict in some sets
  double stored_cache_bytes = 0;  ///< the part of the store
  double scattered_bytes = 0;     ///< of accesses that visit more pieces in turn than are fetched ahead from memory
  double evicted_bytes = 0;       ///< of accesses whose pages in turn do not fit L1
};

/// Computes the memory that a statement touches, in whole cache lines, while its loops start to vary one after another,
/// from the innermost outwards. The lowest bits of an address select the set of a cache; in the memory of a process,
/// only bits within a page are known. Rows that are a multiple of 2^b bytes apart therefore conflict: they begin in the
/// same sets, and each occupies 2^b bytes of capacity, at most a page.
///
/// A statement may visit pieces of rows in turn before it goes on in the first row, as a product does that adds up 64
/// rows of a matrix for each tile of its columns. From memory, only few streams are fetched ahead, and only where one
/// line follows another for several pages. From L2 into L1 any pieces are, within a page; of pieces that are a page or
/// more apart, what is fetched ahead is evicted before it is used if they do not fit L1.
///
/// Where pieces of rows are followed by gaps, prefetchers also fetch part of the gaps, in vain unless other loops fill
/// them before the cache is full.
class GrowingFootprint {
 public:
  static constexpr double page = 4096;
  static constexpr double followed_pieces = 16;
  static constexpr double followed_bytes = 4 * page;  ///< of a piece that is long enough to be fetched ahead
  static constexpr double lines_in_vain = 0.25;       ///< fetched for each gap, on average

  /// Lets the innermost `at_once` of the `loops` loops around the statement vary, as far as there are so many.
  void start(StatementFootprint& footprint, std::size_t loops, double line, double l1_bytes, std::size_t at_once = 1);
  /// Lets the next loop vary, unless `depth()` is 0.
  void grow();

  /// Depth of the outermost loop that varies.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  /// The sum over all accesses.
  [[nodiscard]] const Footprint& all() const noexcept { return all_; }

 private:
  /// Pieces of a buffer.
  struct Pieces {
    double count = 1;
    double bytes = 0;        ///< of each
    double cache_bytes = 0;  ///< cache capacity that all occupy
  };
  /// Pieces that are visited in turn, before a loop continues the first one.
  class Turn {
   public:
    /// Adds what is touched after another loop varies.
    void add(const Pieces& now) {
      continued_ = continued_ || (pieces_.count > 1 && now.bytes > pieces_.bytes);
      if (!continued_) pieces_ = now;
    }
    [[nodiscard]] const Pieces& pieces() const noexcept { return pieces_; }

   private:
    Pieces pieces_;
    bool continued_ = false;
  };
  struct Buffer {
    LoopSet moved_by = 0;
    double element_bytes = 0;
    bool packed = false;
    std::size_t first = 0, last = 0;  ///< range of its dimensions in sides_
    Footprint touched;
    Turn pieces;  ///< with gaps between them
    Turn pages;   ///< the pieces, where those less than a page apart are one
  };
  /// A dimension of a buffer.
  struct Side {
    const IndexRange* range = nullptr;
    double extent = 1;
    double pitch = 0;           ///< bytes between its slices
    double conflict_bytes = 0;  ///< minimum capacity that each of its slices occupies because of their distance
  };

  void add(const Buffer& a);
  /// Adds an access and its dimensions of several slices, from the innermost outwards; the innermost is always
  /// included. Of a dimension that the statement does not move along it touches one slice; the others are gaps.
  void add_access(const StatementFootprint::Access& a);
  /// Recomputes what an access touches, after another loop varies.
  void update(Buffer& a) const;
  [[nodiscard]] static double count(const Side& side) { return std::min(side.range->count, side.extent); }
  [[nodiscard]] double in_lines(double bytes) const {
    return static_cast<double>(static_cast<std::int64_t>((bytes + line_ - 1) / line_)) * line_;
  }

  StatementFootprint* footprint_ = nullptr;
  double line_ = 1;
  double l1_bytes_ = 0;
  std::size_t depth_ = 0;
  Footprint all_;
  std::vector<Buffer> buffers_;
  std::vector<Side> sides_;  // for all accesses
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE void GrowingFootprint::start(StatementFootprint& footprint, std::size_t loops, double line,
                                               double l1_bytes, std::size_t at_once) {
  footprint_ = &footprint;
  line_ = line;
  l1_bytes_ = l1_bytes;
  depth_ = loops - std::min(loops, at_once);
  footprint.vary(NestReader::outermost(loops) & ~NestReader::outermost(depth_));
  sides_.clear();
  buffers_.clear();
  all_ = {};
  for (const StatementFootprint::Access& a : footprint.accesses()) {
    add_access(a);
    Buffer& added = buffers_.back();
    update(added);
    add(added);
  }
}

TUNEWRIGHT_INLINE void GrowingFootprint::grow() {
  footprint_->vary_also(--depth_);
  all_ = {};
  for (Buffer& a : buffers_) {
    if ((a.moved_by >> depth_ & 1U) != 0) update(a);
    add(a);
  }
}

TUNEWRIGHT_INLINE void GrowingFootprint::add(const Buffer& a) {
  all_.bytes += a.touched.bytes;
  all_.cache_bytes += a.touched.cache_bytes;
  if (&a == buffers_.data()) all_.stored_cache_bytes = a.touched.cache_bytes;
  const Pieces& pieces = a.pieces.pieces();
  if (pieces.count > followed_pieces && pieces.bytes < followed_bytes) all_.scattered_bytes += a.touched.bytes;
  const Pieces& pages = a.pages.pieces();
  if (pages.count > 1 && pages.bytes < page && pages.cache_bytes > l1_bytes_) all_.evicted_bytes += a.touched.bytes;
}

TUNEWRIGHT_INLINE void GrowingFootprint::update(Buffer& a) const {
  const std::span<const Side> sides = std::span(sides_).subspan(a.first, a.last - a.first);
  double bytes = a.element_bytes;
  if (a.packed || sides.empty()) {
    for (const Side& side : sides) bytes *= count(side);
    if (!sides.empty()) bytes = in_lines(bytes);
    a.touched = {.bytes = bytes, .cache_bytes = bytes};
    return;
  }
  const double innermost = count(sides[0]);
  Pieces pieces{.bytes = bytes * innermost};
  Pieces pages = pieces;
  bytes = in_lines(pieces.bytes);
  double occupied = bytes;
  bool whole = innermost == sides[0].extent;  // whether the dimensions so far are touched entirely, so slices adjoin
  bool gaps_counted = false;                  // what follows each piece is counted once, however many dimensions it has
  for (const Side& side : sides.subspan(1)) {
    const double slices = count(side);
    if (!whole && !gaps_counted && slices > 1) {
      bytes = std::max(bytes, std::min(bytes + lines_in_vain * line_, side.pitch));
      gaps_counted = true;
    }
    bytes *= slices;
    if (slices > 1) occupied = slices * std::max(occupied, side.conflict_bytes);
    (whole ? pieces.bytes : pieces.count) *= slices;
    (whole || side.pitch < page ? pages.bytes : pages.count) *= slices;
    whole = whole && slices == side.extent;
  }
  a.touched = {.bytes = bytes, .cache_bytes = occupied};
  pieces.cache_bytes = pages.cache_bytes = occupied;
  a.pieces.add(pieces);
  a.pages.add(pages);
}

TUNEWRIGHT_INLINE void GrowingFootprint::add_access(const StatementFootprint::Access& a) {
  const loops::BufferSummary& b = StatementFootprint::buffer(a);
  const std::size_t first = sides_.size(), rank = b.shape.size();
  auto pitch = static_cast<std::int64_t>(b.element_bytes);
  for (std::size_t d = rank; d-- > 0;) {
    if (d + 1 == rank || b.shape[d] > 1)
      sides_.push_back({&footprint_->index(a, d), static_cast<double>(b.shape[d]), static_cast<double>(pitch),
                        std::min(static_cast<double>(pitch & -pitch), page)});
    pitch *= b.shape[d];
  }
  Buffer& added = buffers_.emplace_back();
  added.moved_by = a.moved_by;
  added.element_bytes = b.element_bytes;
  added.packed = b.is_packed();
  added.first = first;
  added.last = sides_.size();
}

}  // namespace tunewright::drafts

#endif
