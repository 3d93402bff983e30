// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

/// Schedules as the transform steps of TVM's auto_scheduler (Ansor), in the form of its logs. Stages and iterators are
/// numbered in the state at the time of the step: a step that creates a stage shifts the numbers of later stages. Only
/// replaying gives the steps a meaning for a program.
namespace tunewright::schedule::ansor {

/// The annotation of a loop; the numbers are those of the log format.
enum class Annotation : std::uint8_t {
  None,
  Unroll,
  Vectorize,
  Parallel,
  VThread,
  BlockX,
  ThreadX,
  BlockY,
  ThreadY,
  BlockZ,
  ThreadZ,
  Tensorize
};

// Each step has a tag and calls `f` with its fields in the order of the record.

/// Splits a loop of `extent` (0: unknown) into 1 + lengths.size() loops.
struct Split {
  static constexpr std::string_view tag = "SP";
  std::int32_t stage = 0, iter = 0;
  std::int64_t extent = 0;
  std::vector<std::int32_t> lengths;  ///< outermost to innermost, without the remaining part
  bool inner_to_outer = true;         ///< false: the lengths are those of the outer parts
  template <class F>
  void each(F&& f) {
    f(stage, iter, extent, lengths, inner_to_outer);
  }
  bool operator==(const Split&) const = default;
};
/// Splits like an earlier split step, into 1 + `parts` loops.
struct FollowSplit {
  static constexpr std::string_view tag = "FSP";
  std::int32_t stage = 0, iter = 0, source_step = 0, parts = 0;
  template <class F>
  void each(F&& f) {
    f(stage, iter, source_step, parts);
  }
  bool operator==(const FollowSplit&) const = default;
};
/// Splits by the product of one level of several earlier splits.
struct FollowFusedSplit {
  static constexpr std::string_view tag = "FFSP";
  std::int32_t stage = 0, iter = 0;
  std::vector<std::int32_t> source_steps;
  std::int32_t level = 0;
  bool factor = true;  ///< true: the product is the extent of the inner loop; false: of the outer
  template <class F>
  void each(F&& f) {
    f(stage, iter, source_steps, level, factor);
  }
  bool operator==(const FollowFusedSplit&) const = default;
};
struct Reorder {
  static constexpr std::string_view tag = "RE";
  std::int32_t stage = 0;
  std::vector<std::int32_t> order;
  template <class F>
  void each(F&& f) {
    f(stage, order);
  }
  bool operator==(const Reorder&) const = default;
};
struct Fuse {
  static constexpr std::string_view tag = "FU";
  std::int32_t stage = 0;
  std::vector<std::int32_t> iters;
  template <class F>
  void each(F&& f) {
    f(stage, iters);
  }
  bool operator==(const Fuse&) const = default;
};
struct Annotate {
  static constexpr std::string_view tag = "AN";
  std::int32_t stage = 0, iter = 0;
  Annotation kind = Annotation::None;
  template <class F>
  void each(F&& f) {
    f(stage, iter, kind);
  }
  bool operator==(const Annotate&) const = default;
};
/// A hint to the compiler, e.g. "auto_unroll_max_step$64".
struct Pragma {
  static constexpr std::string_view tag = "PR";
  std::int32_t stage = 0, iter = 0;
  std::string text;
  template <class F>
  void each(F&& f) {
    f(stage, iter, text);
  }
  bool operator==(const Pragma&) const = default;
};
struct ComputeAt {
  static constexpr std::string_view tag = "CA";
  std::int32_t stage = 0, target_stage = 0, target_iter = 0;
  template <class F>
  void each(F&& f) {
    f(stage, target_stage, target_iter);
  }
  bool operator==(const ComputeAt&) const = default;
};
struct ComputeInline {
  static constexpr std::string_view tag = "CI";
  std::int32_t stage = 0;
  template <class F>
  void each(F&& f) {
    f(stage);
  }
  bool operator==(const ComputeInline&) const = default;
};
struct ComputeRoot {
  static constexpr std::string_view tag = "CR";
  std::int32_t stage = 0;
  template <class F>
  void each(F&& f) {
    f(stage);
  }
  bool operator==(const ComputeRoot&) const = default;
};
/// Lets `readers` read the stage through a copy, which is inserted after the stage.
struct CacheRead {
  static constexpr std::string_view tag = "CHR";
  std::int32_t stage = 0;
  std::string scope;
  std::vector<std::int32_t> readers;
  template <class F>
  void each(F&& f) {
    f(stage, scope, readers);
  }
  bool operator==(const CacheRead&) const = default;
};
/// Computes the stage in a cache, which takes the stage's number; the stage becomes a copy of the cache and is inserted
/// after it.
struct CacheWrite {
  static constexpr std::string_view tag = "CHW";
  std::int32_t stage = 0;
  std::string scope;
  template <class F>
  void each(F&& f) {
    f(stage, scope);
  }
  bool operator==(const CacheWrite&) const = default;
};
struct Rfactor {
  static constexpr std::string_view tag = "RF";
  std::int32_t stage = 0, iter = 0, factor_iter = 0;
  template <class F>
  void each(F&& f) {
    f(stage, iter, factor_iter);
  }
  bool operator==(const Rfactor&) const = default;
};
struct StorageAlign {
  static constexpr std::string_view tag = "SA";
  std::int32_t stage = 0, iter = 0, factor = 0, offset = 0;
  template <class F>
  void each(F&& f) {
    f(stage, iter, factor, offset);
  }
  bool operator==(const StorageAlign&) const = default;
};

using Step = std::variant<Split, FollowSplit, FollowFusedSplit, Reorder, Fuse, Annotate, Pragma, ComputeAt,
                          ComputeInline, ComputeRoot, CacheRead, CacheWrite, Rfactor, StorageAlign>;

[[nodiscard]] inline std::string_view tag(const Step& step) {
  return std::visit([](const auto& s) { return std::decay_t<decltype(s)>::tag; }, step);
}

}  // namespace tunewright::schedule::ansor
