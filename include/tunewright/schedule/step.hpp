// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "tunewright/program/expr.hpp"
#include "tunewright/schedule/kinds.hpp"

/// The scheduling primitives as data. A list of steps is the genome of the search: it is stored, mutated, transferred
/// and featurized. A step with a decision also carries the decision's domain, so that a mutator needs no analysis.
///
/// A stage is identified by the tensor that it computes. Iterators are numbered within their stage: first the axes,
/// then the results of splits and fuses in order. The numbers do not depend on decisions such as tile sizes.
namespace tunewright::schedule {

using program::TensorId;

using IterId = std::uint32_t;

/// Replaces `iter` by 1 + factors.size() nested iterators; the extent of the outermost is the quotient, rounded up, so
/// factors need not divide.
struct Split {
  TensorId stage = 0;
  IterId iter = 0;
  std::vector<std::int64_t> factors;  ///< extents of the inner parts, outermost first
  std::int64_t extent = 0;            ///< domain: the extent that the factors divide
  std::int64_t max_innermost = -1;    ///< domain: maximum of the last factor, 0: none; -1: the factors are fixed
  LoopKind inner = LoopKind::Serial;  ///< domain: kind of the innermost part; limits register tiles
  bool operator==(const Split&) const = default;
};

/// A split with the leading factors of an earlier `Split` step; the innermost part gets the product of the others. A
/// change of the source changes both splits.
struct FollowSplit {
  TensorId stage = 0;
  IterId iter = 0;
  std::uint32_t source = 0;  ///< index of the followed step
  std::uint32_t parts = 1;   ///< inner parts, at most the number of factors of the source
  bool operator==(const FollowSplit&) const = default;
};

/// A split in two by the product over `sources` of their factor number `level`: e.g. for all threads of a block that
/// together copy a tile.
struct FollowFusedSplit {
  TensorId stage = 0;
  IterId iter = 0;
  std::vector<std::uint32_t> sources;  ///< indices of the followed steps
  std::uint32_t level = 0;             ///< index of the factor, 0 for the outermost inner part
  bool operator==(const FollowFusedSplit&) const = default;
};

/// Fuses the first `count` of `iters` (adjacent, outermost first) into one iterator.
struct Fuse {
  TensorId stage = 0;
  std::vector<IterId> iters;
  std::uint32_t count = 0;
  bool open = false;  ///< domain: whether `count` may be any of 1 .. iters.size()
  bool operator==(const Fuse&) const = default;
};

/// Arranges the given iterators in this order, within the positions that they occupy.
struct Reorder {
  TensorId stage = 0;
  std::vector<IterId> order;
  bool operator==(const Reorder&) const = default;
};

/// Annotates a loop: parallel, vectorized, unrolled, or bound to a GPU block, thread or virtual thread.
struct Annotate {
  TensorId stage = 0;
  IterId iter = 0;
  LoopKind kind = LoopKind::Serial;
  bool operator==(const Annotate&) const = default;
};

/// Allows serial loops of the stage to be unrolled up to this number of statement instances.
struct UnrollLimit {
  TensorId stage = 0;
  std::vector<std::int64_t> choices;  ///< domain
  std::uint32_t selected = 0;
  bool operator==(const UnrollLimit&) const = default;
};

/// Where a stage is computed (compute_at): at the root, inside a loop of a consumer, or inlined into its consumers.
struct Location {
  enum class Kind : std::uint8_t { Root, Inline, At };
  Kind kind = Kind::Root;
  TensorId stage = 0;  ///< for At
  IterId iter = 0;     ///< for At
  bool operator==(const Location&) const = default;
};
struct ComputeLocation {
  TensorId stage = 0;
  std::vector<Location> choices;  ///< domain
  std::uint32_t selected = 0;
  bool operator==(const ComputeLocation&) const = default;
};

/// Computes the stage into a new tensor in `scope` first; the stage becomes a copy of it. The new tensor gets the next
/// free number.
struct CacheWrite {
  TensorId stage = 0;
  Scope scope = Scope::Local;
  bool operator==(const CacheWrite&) const = default;
};

/// Lets `consumer` read `tensor` through a copy in `scope`. The copy gets the next free number.
struct CacheRead {
  TensorId tensor = 0;
  TensorId consumer = 0;
  Scope scope = Scope::Local;
  bool operator==(const CacheRead&) const = default;
};

/// Makes the reduction iterator `iter` a spatial axis of a new stage that reduces over the other iterators; the stage
/// itself then reduces over that axis. The new tensor gets the next free number; its new axis is the last spatial one.
struct Rfactor {
  TensorId stage = 0;
  IterId iter = 0;
  bool operator==(const Rfactor&) const = default;
};

/// Stores `tensor` in the order in which the loops of `consumer` read it: a constant is reordered ahead of time, a
/// cache by the stage that fills it.
struct Pack {
  TensorId tensor = 0;
  TensorId consumer = 0;
  bool operator==(const Pack&) const = default;
};

/// Stores a temporary with permuted dimensions or padded rows, e.g. so that threads that read down a column of shared
/// memory access different banks.
struct TransformLayout {
  TensorId stage = 0;
  std::vector<std::vector<std::uint32_t>> orders;  ///< domain: permutations of the dimensions, outermost first
  std::vector<std::int64_t> paddings;              ///< domain: unused elements after each row
  std::uint32_t order = 0;                         ///< selected index into `orders`
  std::uint32_t padding = 0;                       ///< selected index into `paddings`
  bool operator==(const TransformLayout&) const = default;
};

/// Replaces the loops from `iter` inwards by a tensor instruction of `intrinsics.hpp`. Their extents must be those of
/// the instruction, in this order: m if it is above 1, n, k.
struct Tensorize {
  TensorId stage = 0;
  IterId iter = 0;
  std::string intrinsic;
  bool operator==(const Tensorize&) const = default;
};

/// How far copies to shared memory are prefetched: `depth` tiles are stored at a time, the one in use and those in
/// flight. 1: no prefetching.
struct Pipelining {
  std::uint32_t depth = 1;
  bool asynchronous = false;  ///< the device copies by itself, bypassing the threads' registers
  bool operator==(const Pipelining&) const = default;
};

/// Maximum number of tiles of one copy in memory.
inline constexpr std::uint32_t max_pipeline_depth = 8;

/// Software pipelining: the copies to shared memory that are computed in loop `iter` are prefetched during earlier
/// iterations.
struct Pipeline {
  TensorId stage = 0;
  IterId iter = 0;
  std::vector<Pipelining> choices;  ///< domain
  std::uint32_t selected = 0;
  bool operator==(const Pipeline&) const = default;
};

/// Pads the axes of a sum of products to multiples, so that tensor instructions divide it. Its operands, copies that
/// are not scheduled yet, grow accordingly and are filled with zeros. Consumers of the sums read only the original
/// elements.
struct Pad {
  TensorId stage = 0;
  std::vector<std::int64_t> multiples;  ///< one per axis
  bool operator==(const Pad&) const = default;
};

/// Gives the spatial axes of a temporary another order: axis i of the new tensor is axis `axes[i]` of the old one. Its
/// readers read the same elements as before.
struct PermuteAxes {
  TensorId stage = 0;
  std::vector<IterId> axes;  ///< each spatial axis once
  bool operator==(const PermuteAxes&) const = default;
};

/// Replaces the program by `program::merge_axes` of it, before any other step: its tensors have fewer axes then, in the
/// same memory.
struct MergeAxes {
  bool operator==(const MergeAxes&) const = default;
};

/// Add new primitives at the end: hashes of candidates use the position in this list.
using Step =
    std::variant<Split, FollowSplit, Fuse, Reorder, Annotate, UnrollLimit, ComputeLocation, CacheWrite, CacheRead,
                 Rfactor, Pack, Tensorize, FollowFusedSplit, TransformLayout, Pipeline, Pad, PermuteAxes, MergeAxes>;

/// The kind of error of a step.
enum class ScheduleFault : std::uint8_t {
  UnknownStage,
  UnknownIterator,
  BadFactor,  ///< below 1, above 2^31, or for a step that is not a split
  BadOrder,
  NotAdjacent,
  MixedKinds,        ///< a fuse of spatial and reduction iterators
  AlreadyScheduled,  ///< a primitive that creates stages after other primitives on the stage
  NotInlineable,
  BadLocation,
  NotReduction,
  BadAnnotation,
  BadChoice,  ///< the decision is not in its domain
  NotPackable,
  Unsupported,
  Malformed,  ///< not a list of steps
};

inline constexpr std::array<std::string_view, 15> schedule_fault_names{
    "unknown_stage",  "unknown_iterator",  "bad_factor",     "bad_order",    "not_adjacent",
    "mixed_kinds",    "already_scheduled", "not_inlineable", "bad_location", "not_reduction",
    "bad_annotation", "bad_choice",        "not_packable",   "unsupported",  "malformed"};

[[nodiscard]] constexpr std::string_view name(ScheduleFault fault) noexcept {
  return schedule_fault_names[static_cast<std::size_t>(fault)];
}

/// An illegal step, or steps that contradict each other.
class ScheduleError : public std::invalid_argument {
 public:
  ScheduleError(ScheduleFault fault, const std::string& detail)
      : std::invalid_argument(std::string(name(fault)) + ": " + detail), fault_(fault) {}
  [[nodiscard]] ScheduleFault fault() const noexcept { return fault_; }

 private:
  ScheduleFault fault_;
};

/// Calls `f(tag, fields...)` with the JSON tag of the step and its fields in order. Hashing and JSON use this single
/// description. `f` may modify the fields of a mutable step.
template <class AnyStep, class F>
  requires std::is_same_v<std::remove_const_t<AnyStep>, Step>
auto describe(AnyStep& step, const F& f) {
  return std::visit(
      [&f](auto& s) {
        using S = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<S, Split>)
          return f("split", s.stage, s.iter, s.factors, s.extent, s.max_innermost, s.inner);
        else if constexpr (std::is_same_v<S, FollowSplit>)
          return f("follow_split", s.stage, s.iter, s.source, s.parts);
        else if constexpr (std::is_same_v<S, Fuse>)
          return f("fuse", s.stage, s.iters, s.count, s.open);
        else if constexpr (std::is_same_v<S, Reorder>)
          return f("reorder", s.stage, s.order);
        else if constexpr (std::is_same_v<S, Annotate>)
          return f("annotate", s.stage, s.iter, s.kind);
        else if constexpr (std::is_same_v<S, UnrollLimit>)
          return f("unroll_limit", s.stage, s.choices, s.selected);
        else if constexpr (std::is_same_v<S, ComputeLocation>)
          return f("compute_location", s.stage, s.choices, s.selected);
        else if constexpr (std::is_same_v<S, CacheWrite>)
          return f("cache_write", s.stage, s.scope);
        else if constexpr (std::is_same_v<S, CacheRead>)
          return f("cache_read", s.tensor, s.consumer, s.scope);
        else if constexpr (std::is_same_v<S, Rfactor>)
          return f("rfactor", s.stage, s.iter);
        else if constexpr (std::is_same_v<S, Pack>)
          return f("pack", s.tensor, s.consumer);
        else if constexpr (std::is_same_v<S, Tensorize>)
          return f("tensorize", s.stage, s.iter, s.intrinsic);
        else if constexpr (std::is_same_v<S, FollowFusedSplit>)
          return f("follow_fused_split", s.stage, s.iter, s.sources, s.level);
        else if constexpr (std::is_same_v<S, Pad>)
          return f("pad", s.stage, s.multiples);
        else if constexpr (std::is_same_v<S, TransformLayout>)
          return f("arrange", s.stage, s.orders, s.paddings, s.order, s.padding);
        else if constexpr (std::is_same_v<S, PermuteAxes>)
          return f("permute_axes", s.stage, s.axes);
        else if constexpr (std::is_same_v<S, MergeAxes>)
          return f("merge_axes");
        else
          return f("pipeline", s.stage, s.iter, s.choices, s.selected);
      },
      step);
}

}  // namespace tunewright::schedule
