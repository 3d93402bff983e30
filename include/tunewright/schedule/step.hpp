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

/// The primitives of scheduling, as data. A list of steps is the genome of the search: it is stored, mutated,
/// transferred and turned into features. Steps that carry a decision also carry its domain, so that a mutator
/// needs no analysis.
///
/// A stage is named by the tensor it computes. Iterators are numbered within their stage: axes first, then
/// whatever splits and fuses create, in order; numbers never change meaning when a decision (a tile size,
/// say) changes.
namespace tunewright::schedule {

using program::TensorId;

using IterId = std::uint32_t;

/// Replaces `iter` by 1 + factors.size() nested iterators; the outermost part takes what the factors leave
/// (rounded up, so factors need not divide).
struct Split {
  TensorId stage = 0;
  IterId iter = 0;
  std::vector<std::int64_t> factors;  ///< extents of the inner parts, outermost first
  std::int64_t extent = 0;            ///< domain: the extent the factors divide up
  std::int64_t max_innermost = -1;    ///< domain: cap of the last factor, 0: none; -1: no choice at all
  LoopKind inner = LoopKind::Serial;  ///< domain: what the innermost part becomes; bounds register tiles
  bool operator==(const Split&) const = default;
};

/// A split that reuses the leading factors of an earlier `Split` step and gives the product of the others to
/// its innermost part, so that one change of the source moves both.
struct FollowSplit {
  TensorId stage = 0;
  IterId iter = 0;
  std::uint32_t source = 0;  ///< index of the followed step
  std::uint32_t parts = 1;   ///< inner parts to make, at most as many as the source has factors
  bool operator==(const FollowSplit&) const = default;
};

/// A split in two whose factor is that of several earlier splits together, as when all threads of a block share the
/// work of copying a tile: the product over `sources` of factor number `level`.
struct FollowFusedSplit {
  TensorId stage = 0;
  IterId iter = 0;
  std::vector<std::uint32_t> sources;  ///< indices of the followed steps
  std::uint32_t level = 0;             ///< which of their factors, 0 for the outermost inner part
  bool operator==(const FollowFusedSplit&) const = default;
};

/// Makes the first `count` of `iters` (adjacent, outermost first) one iterator.
struct Fuse {
  TensorId stage = 0;
  std::vector<IterId> iters;
  std::uint32_t count = 0;
  bool open = false;  ///< domain: whether `count` may be any of 1 .. iters.size()
  bool operator==(const Fuse&) const = default;
};

/// Puts the named iterators, which keep the places they occupy as a set, into this order.
struct Reorder {
  TensorId stage = 0;
  std::vector<IterId> order;
  bool operator==(const Reorder&) const = default;
};

/// Marks how a loop runs: parallel, vectorized, unrolled, or bound to a GPU block, thread or virtual thread.
struct Annotate {
  TensorId stage = 0;
  IterId iter = 0;
  LoopKind kind = LoopKind::Serial;
  bool operator==(const Annotate&) const = default;
};

/// Lets serial loops of the stage be unrolled as long as at most so many statement instances result.
struct UnrollLimit {
  TensorId stage = 0;
  std::vector<std::int64_t> choices;  ///< domain
  std::uint32_t selected = 0;
  bool operator==(const UnrollLimit&) const = default;
};

/// Where a stage is computed: on its own, inside a loop of a consumer, or not at all (its expression is used
/// in place).
struct Location {
  enum class Kind : std::uint8_t { Root, Inline, At };
  Kind kind = Kind::Root;
  TensorId stage = 0;  ///< of At
  IterId iter = 0;     ///< of At
  bool operator==(const Location&) const = default;
};
struct ComputeLocation {
  TensorId stage = 0;
  std::vector<Location> choices;  ///< domain
  std::uint32_t selected = 0;
  bool operator==(const ComputeLocation&) const = default;
};

/// Lets the stage write a new tensor in `scope` first and become a copy of it. The new tensor gets the next
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

/// Turns the reduction iterator `iter` into a spatial axis of a new stage that reduces over the others; the
/// stage itself then reduces over that axis. The new tensor gets the next free number; its new axis comes
/// last among the spatial ones.
struct Rfactor {
  TensorId stage = 0;
  IterId iter = 0;
  bool operator==(const Rfactor&) const = default;
};

/// Stores `tensor` in the order in which the loops of `consumer` visit it: ahead of time for a constant, by
/// the copying stage for a cache.
struct Pack {
  TensorId tensor = 0;
  TensorId consumer = 0;
  bool operator==(const Pack&) const = default;
};

/// Stores the elements of a temporary with its dimensions in another order, or its rows further apart, so that
/// threads that read down a column of shared memory find different banks.
struct TransformLayout {
  TensorId stage = 0;
  std::vector<std::vector<std::uint32_t>> orders;  ///< domain: all dimensions, outermost first
  std::vector<std::int64_t> paddings;              ///< domain: idle elements behind each row
  std::uint32_t order = 0;                         ///< selected, of `orders`
  std::uint32_t padding = 0;                       ///< selected, of `paddings`
  bool operator==(const TransformLayout&) const = default;
};

/// Replaces the loops from `iter` inwards by a tensor instruction of `intrinsics.hpp`, whose extents they must have in
/// its order: those of m above 1, n, k.
struct Tensorize {
  TensorId stage = 0;
  IterId iter = 0;
  std::string intrinsic;
  bool operator==(const Tensorize&) const = default;
};

/// How far copies to shared memory run ahead of their use: `depth` tiles are there at a time, the one in use and
/// those on their way. 1: none are.
struct Pipelining {
  std::uint32_t depth = 1;
  bool asynchronous = false;  ///< the device moves them by itself, past the registers of the threads
  bool operator==(const Pipelining&) const = default;
};

/// Most tiles of one copy that are kept at a time.
inline constexpr std::uint32_t max_pipeline_depth = 8;

/// Lets the copies to shared memory that are computed in loop `iter` be fetched while earlier iterations of it
/// still work on what was fetched before.
struct Pipeline {
  TensorId stage = 0;
  IterId iter = 0;
  std::vector<Pipelining> choices;  ///< domain
  std::uint32_t selected = 0;
  bool operator==(const Pipeline&) const = default;
};

/// Rounds the axes of a sum of products up to multiples, so that tensor instructions divide it: its operands, copies
/// that are not scheduled yet, become as much larger, with zeros beyond what they had. Whoever reads the sums reads
/// what is not beyond.
struct Pad {
  TensorId stage = 0;
  std::vector<std::int64_t> multiples;  ///< one an axis
  bool operator==(const Pad&) const = default;
};

/// New primitives are added at the end: hashes of candidates count the kinds by their place here.
using Step = std::variant<Split, FollowSplit, Fuse, Reorder, Annotate, UnrollLimit, ComputeLocation, CacheWrite,
                          CacheRead, Rfactor, Pack, Tensorize, FollowFusedSplit, TransformLayout, Pipeline, Pad>;

/// What was wrong with a step.
enum class ScheduleFault : std::uint8_t {
  UnknownStage,
  UnknownIterator,
  BadFactor,  ///< below 1, beyond 2^31, or of a step that is no split
  BadOrder,
  NotAdjacent,
  MixedKinds,        ///< spatial and reduction iterators in one fuse
  AlreadyScheduled,  ///< a primitive that makes stages came after others on that stage
  NotInlineable,
  BadLocation,
  NotReduction,
  BadAnnotation,
  BadChoice,  ///< the decision is not in its domain
  NotPackable,
  Unsupported,
  Malformed,  ///< not a list of steps at all
};

inline constexpr std::array<std::string_view, 15> schedule_fault_names{
    "unknown_stage",  "unknown_iterator",  "bad_factor",     "bad_order",    "not_adjacent",
    "mixed_kinds",    "already_scheduled", "not_inlineable", "bad_location", "not_reduction",
    "bad_annotation", "bad_choice",        "not_packable",   "unsupported",  "malformed"};

[[nodiscard]] constexpr std::string_view name(ScheduleFault fault) noexcept {
  return schedule_fault_names[static_cast<std::size_t>(fault)];
}

/// An illegal step, or a list of steps that does not fit together.
class ScheduleError : public std::invalid_argument {
 public:
  ScheduleError(ScheduleFault fault, const std::string& detail)
      : std::invalid_argument(std::string(name(fault)) + ": " + detail), fault_(fault) {}
  [[nodiscard]] ScheduleFault fault() const noexcept { return fault_; }

 private:
  ScheduleFault fault_;
};

/// Calls `f(tag, fields...)` with the JSON tag of the step and its fields in order: the one description of a
/// step's content, which hashing and the JSON form share.
/// Fields of a mutable step may be assigned to.
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
        else
          return f("pipeline", s.stage, s.iter, s.choices, s.selected);
      },
      step);
}

}  // namespace tunewright::schedule
