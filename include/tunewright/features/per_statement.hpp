// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "tunewright/features/concept.hpp"
#include "tunewright/features/per_statement/describer.hpp"
#include "tunewright/loops/nest.hpp"

namespace tunewright::features {

/// Appends the rows of one lowered program to `batch`; see `PerStatement`. For many programs keep a
/// `per_statement::Describer`, which saves allocations.
inline void describe(const loops::LoopNest& nest, const Task& task, FeatureBatch& batch) {
  per_statement::Describer().describe(nest, task, batch);
}

/// Describes each stored buffer of a program by a row of 164 numbers: operations, loop annotations, thread bindings, up
/// to five accessed buffers (volume, cache lines, reuse), arithmetic intensity at ten points, allocation, surrounding
/// loops. Models sum their predictions over the rows. `per_statement::schema()` names every column.
///
/// Paper: Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning", OSDI 2020,
/// appendix B, in the order-free variant of MetaSchedule (Shao et al., NeurIPS 2022): rows in the order of
/// first visit, buffers by cache lines, bytes and name.
///
/// Numbers are stored as log2(x + 1), flags as 0 or 1. With P = product of the extents of the loops around a statement,
///
///   operations     P * count in the body and its read indices
///   bytes          P * element bytes
///   unique_bytes   bytes of the box that the whole nest accesses
///   lines          P / (iterations of inner loops that do not move the access) * min(1, stride bytes / line bytes), at
///                  least 1
///   reuse          innermost loop that does not move the access, else innermost loop in which several statements
///                  use the buffer
///   curve          operations per accessed byte, linear between the loops
///
/// Models:      FeaturizerFor<S> for every space whose program is a loops::LoopNest.
/// Shapes:      one program per configuration, with a row per stored buffer, 164 columns.
/// Units:       see the schema. The line size comes from the target.
/// Determinism: a pure function of program and target. All values are finite.
/// Cost:        about (accesses * dimensions * loops) additions per statement; microseconds per program. Configurations
///              with summaries are not lowered.
///
/// Deviates from MetaSchedule: a value used twice in a body counts once, because generated code computes it once.
/// Regions are clipped to the shape of the buffer, and `unique_lines` uses the elements that are contiguous in the
/// region itself, not the first fully covered dimension. A statement outside all loops accesses the bytes of its
/// elements. Fused and divided loop indices move by their average step, not by a constant, and a loop that moves an
/// access in several dimensions has the largest stride of them. Of a hoisted guard only the unguarded side is
/// described, because both have the same statements. The workload embedding is left to other featurizers.
struct PerStatement {
  /// Describes nests or their summaries one by one; see `Joined`.
  [[nodiscard]] static per_statement::Describer describer() { return {}; }

  /// A configuration that cannot be lowered or described gives a program without rows.
  template <SearchSpace S>
    requires std::convertible_to<const program_t<S>&, const loops::LoopNest&>
  [[nodiscard]] FeatureBatch extract(const S& space, const Task& task, std::span<const config_t<S>> configs) const {
    FeatureBatch batch(per_statement::columns);
    per_statement::Describer describer;
    describe_configurations(describer, space, task, configs, batch);
    return batch;  // (R, 164) in N programs
  }

  [[nodiscard]] const FeatureSchema& schema() const { return per_statement::schema(); }
};

}  // namespace tunewright::features
