// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tunewright/detail/config.hpp"
#include "tunewright/drafts/symbol_analyzer/reach.hpp"

namespace tunewright::drafts {

/// Bytes of buffers that loops reach.
struct Footprint {
  double bytes = 0;
  double claimed = 0;  ///< bytes of a cache that they keep from others: more where rows conflict in some of its sets
};

/// Tells what a statement touches, in whole cache lines, while its loops start to vary one after another, from the
/// innermost outwards. The lowest bits of an address choose the set of a cache; in the memory of a process these are
/// the bits within a page. Rows that lie a multiple of 2^b bytes apart therefore conflict: they begin in the same sets,
/// and each keeps others out of 2^b bytes, a page at most.
class GrowingFootprint {
 public:
  /// Lets the innermost of the `loops` around the statement run, if there is one.
  void start(StatementReach& reach, std::size_t loops, double line);
  /// Lets the next loop run, where `depth()` is not 0.
  void grow();

  /// Depth of the outermost loop that varies.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  /// The sum over all accesses.
  [[nodiscard]] const Footprint& all() const noexcept { return all_; }

 private:
  struct Access {
    LoopSet moved_by = 0;
    double element_bytes = 0;
    bool packed = false;
    std::size_t first = 0, last = 0;  ///< of its sides
    Footprint touched;
  };
  /// A dimension of a buffer.
  struct Side {
    const IndexReach* reach = nullptr;
    double extent = 1;
    double claimed = 0;  ///< by each of its slices at least, for how far apart they lie
  };

  void add(const Footprint& own);
  /// With the sides that the statement moves along, from the innermost outwards, which is always among them.
  void add_access(const StatementReach::Access& a);
  [[nodiscard]] Footprint touched(const Access& a) const;
  [[nodiscard]] double in_lines(double bytes) const {
    return static_cast<double>(static_cast<std::int64_t>((bytes + line_ - 1) / line_)) * line_;
  }

  StatementReach* reach_ = nullptr;
  double line_ = 1;
  std::size_t depth_ = 0;
  Footprint all_;
  std::vector<Access> accesses_;
  std::vector<Side> sides_;  // of all accesses
};

}  // namespace tunewright::drafts

#if TUNEWRIGHT_DEFINES(drafts)

namespace tunewright::drafts {

TUNEWRIGHT_INLINE void GrowingFootprint::start(StatementReach& reach, std::size_t loops, double line) {
  reach_ = &reach;
  line_ = line;
  depth_ = loops;
  reach.run(depth_ > 0 ? LoopSet{1} << --depth_ : 0);
  sides_.clear();
  accesses_.clear();
  all_ = {};
  for (const StatementReach::Access& a : reach.accesses()) {
    add_access(a);
    accesses_.back().touched = touched(accesses_.back());
    add(accesses_.back().touched);
  }
}

TUNEWRIGHT_INLINE void GrowingFootprint::grow() {
  reach_->run_also(--depth_);
  all_ = {};
  for (Access& a : accesses_) {
    if ((a.moved_by >> depth_ & 1U) != 0) a.touched = touched(a);
    add(a.touched);
  }
}

TUNEWRIGHT_INLINE void GrowingFootprint::add(const Footprint& own) {
  all_.bytes += own.bytes;
  all_.claimed += own.claimed;
}

TUNEWRIGHT_INLINE void GrowingFootprint::add_access(const StatementReach::Access& a) {
  constexpr std::int64_t page = 4096;
  const loops::BufferSummary& b = StatementReach::buffer(a);
  const std::size_t first = sides_.size(), rank = b.shape.size();
  auto pitch = static_cast<std::int64_t>(b.element_bytes);
  for (std::size_t d = rank; d-- > 0;) {
    if (d + 1 == rank || reach_->moves(a, d))
      sides_.push_back(
          {&reach_->index(a, d), static_cast<double>(b.shape[d]), static_cast<double>(std::min(pitch & -pitch, page))});
    pitch *= b.shape[d];
  }
  accesses_.push_back({a.moved_by, b.element_bytes, b.is_packed(), first, sides_.size(), {}});
}

TUNEWRIGHT_INLINE Footprint GrowingFootprint::touched(const Access& a) const {
  double bytes = a.element_bytes;
  if (a.first == a.last) return {bytes, bytes};
  const Side* side = &sides_[a.first];
  const Side* const last = side + (a.last - a.first);
  const auto count = [](const Side& of) { return std::min(of.reach->count, of.extent); };
  if (a.packed) {
    for (; side != last; ++side) bytes *= count(*side);
    bytes = in_lines(bytes);
    return {bytes, bytes};
  }
  bytes = in_lines(bytes * count(*side));
  double claimed = bytes;
  for (++side; side != last; ++side) {
    const double slices = count(*side);
    bytes *= slices;
    if (slices > 1) claimed = slices * std::max(claimed, side->claimed);
  }
  return {bytes, claimed};
}

}  // namespace tunewright::drafts

#endif
