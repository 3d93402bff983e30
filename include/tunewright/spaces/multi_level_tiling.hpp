// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tunewright/core/task.hpp"
#include "tunewright/detail/config.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/spaces/sketch_space.hpp"

namespace tunewright::spaces {

/// The rules for the kind of device of the task's target. Throws `std::invalid_argument` for a GPU without limits.
struct TilingRules {
  [[nodiscard]] std::vector<schedule::Schedule> sketches(const Task& task) const;
};

/// Multi-level tiling with fusion, write and read caches, factored reductions, compute locations, and parallel,
/// vectorized and unrolled loops on CPUs; blocks, threads, shared memory and cross-thread reductions on GPUs.
///
/// Deviates from Ansor on CPUs: axes that all operators visit as one are merged first; the loops of the innermost tile
/// are always unrolled and vectorized, and drawn such that the tile fits the register file and keeps the multiply-add
/// units busy, half of the draws with the whole reduction inside; factors need not divide (the last register tile has
/// the remaining rows; at most an eighth of other tiles is idle); a stage with an elementwise reader is always fused
/// with it; operands may be copied to a separate tile; constants are packed in loop order; another axis than the last
/// one is computed in vectors where that fills the lanes or saves transposing a larger operand; rows that are reduced
/// and then used (softmax, layer norm) are computed in one loop over rows; reductions of large data over an axis that
/// is not the last may read it in streams, and those with few results, products of few rows among them, may be divided
/// among threads by their terms. On GPUs: see the rules in `tiling::gpu` and `decisions/block_tile.hpp`.
using MultiLevelTiling = SketchSpace<TilingRules>;

}  // namespace tunewright::spaces

#if TUNEWRIGHT_DEFINES(spaces)

#include <stdexcept>

#include "tunewright/spaces/gpu_tiling_rules.hpp"
#include "tunewright/spaces/rule_sketches.hpp"
#include "tunewright/spaces/tiling/add_rfactor.hpp"
#include "tunewright/spaces/tiling/lane_reduction.hpp"
#include "tunewright/spaces/tiling/row_rules.hpp"
#include "tunewright/spaces/tiling/share_terms.hpp"
#include "tunewright/spaces/tiling/stream_reduction.hpp"
#include "tunewright/spaces/tiling/tensor_core.hpp"
#include "tunewright/spaces/tiling/tensor_unit.hpp"
#include "tunewright/spaces/tiling/transposed_cache_write.hpp"
#include "tunewright/spaces/tiling_rules.hpp"

namespace tunewright::spaces {

/// Ansor's sketches for CPUs, plus merged axes, inlining of costly elementwise stages and of padding, copies of
/// operands that stay in cache, constants packed ahead of time, tensor instructions if the target has them, rows that
/// one thread reduces and uses, sums with another axis than the last one in vectors, reductions that read in long
/// streams, and those whose terms the threads share.
using CpuTilingRules =
    RuleSketches<tiling::MergeAxes, tiling::SkipSource, tiling::SkipScheduled, tiling::AlwaysInline, tiling::MayInline,
                 tiling::MayInlinePadding, tiling::GoByRows, tiling::ComputeInRow, tiling::TensorizeProducts,
                 tiling::AddRfactor, tiling::ShareTerms, tiling::ReduceInLanes, tiling::AddTransposedCacheWrite,
                 tiling::AddCacheWrite, tiling::MultiLevelTilingWithFusion, tiling::MultiLevelTiling,
                 tiling::ReduceInStreams, tiling::ScheduleSimply>;

/// Ansor's sketches for GPUs, plus reductions in chunks, rows that one block reduces and uses, and tensor instructions
/// if the target has them.
using GpuTilingRules =
    RuleSketches<tiling::SkipSource, tiling::SkipScheduled, tiling::gpu::InlineElementwise, tiling::gpu::AddRfactor,
                 tiling::gpu::ShareReduction, tiling::gpu::TensorizeProducts, tiling::gpu::MultiLevelTiling,
                 tiling::gpu::ReduceInThread, tiling::gpu::BindTheRest>;

TUNEWRIGHT_INLINE std::vector<schedule::Schedule> TilingRules::sketches(const Task& task) const {
  if (task.target.kind == DeviceKind::Cpu) return CpuTilingRules{}.sketches(task);
  const Target& t = task.target;
  if (t.max_threads_per_block == 0 || t.warp_size == 0 || t.max_vthread_extent == 0 || t.multiprocessors == 0 ||
      t.shared_memory_per_block_bytes == 0) {
    throw std::invalid_argument(
        "GPU target '" + t.name +
        "' lacks threads per block, warp size, virtual threads, multiprocessors or shared memory; start "
        "from gpu_target(\"V100\"), say");
  }
  return GpuTilingRules{}.sketches(task);
}

}  // namespace tunewright::spaces

#endif
