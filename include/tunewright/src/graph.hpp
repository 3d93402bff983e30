// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component graph: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES                                                                                            \
  (TUNEWRIGHT_UNIT_program | TUNEWRIGHT_UNIT_schedule | TUNEWRIGHT_UNIT_loops | TUNEWRIGHT_UNIT_spaces |               \
   TUNEWRIGHT_UNIT_program_features | TUNEWRIGHT_UNIT_drafts | TUNEWRIGHT_UNIT_simulated | TUNEWRIGHT_UNIT_reference | \
   TUNEWRIGHT_UNIT_codegen | TUNEWRIGHT_UNIT_sandbox | TUNEWRIGHT_UNIT_tuning_logs | TUNEWRIGHT_UNIT_whole_networks |  \
   TUNEWRIGHT_UNIT_plots | TUNEWRIGHT_UNIT_onnx_operators | TUNEWRIGHT_UNIT_remote)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(program)
#include "tunewright/program/analysis.hpp"
#include "tunewright/program/expr.hpp"
#include "tunewright/program/graph.hpp"
#include "tunewright/program/graph_json.hpp"
#include "tunewright/program/index_bounds.hpp"
#include "tunewright/program/index_expr.hpp"
#include "tunewright/program/merge_axes.hpp"
#include "tunewright/program/operators/attention.hpp"
#include "tunewright/program/operators/batch_matmul.hpp"
#include "tunewright/program/operators/checks.hpp"
#include "tunewright/program/operators/conv.hpp"
#include "tunewright/program/operators/dense.hpp"
#include "tunewright/program/operators/depthwise_conv2d.hpp"
#include "tunewright/program/operators/elementwise.hpp"
#include "tunewright/program/operators/layout.hpp"
#include "tunewright/program/operators/matmul.hpp"
#include "tunewright/program/operators/normalization.hpp"
#include "tunewright/program/operators/pad.hpp"
#include "tunewright/program/operators/pool.hpp"
#include "tunewright/program/operators/reduce.hpp"
#include "tunewright/program/operators/softmax.hpp"
#include "tunewright/program/operators/transposed_conv2d.hpp"
#include "tunewright/program/operators/window.hpp"
#include "tunewright/program/structure.hpp"
#include "tunewright/program/task.hpp"
#endif
#if TUNEWRIGHT_DEFINES(schedule)
#include "tunewright/schedule/ansor/from_schedule.hpp"
#include "tunewright/schedule/apply.hpp"
#include "tunewright/schedule/intrinsics.hpp"
#include "tunewright/schedule/json.hpp"
#include "tunewright/schedule/schedule.hpp"
#include "tunewright/schedule/state.hpp"
#endif
#if TUNEWRIGHT_DEFINES(loops)
#include "tunewright/loops/device.hpp"
#include "tunewright/loops/device/core_matrices.hpp"
#include "tunewright/loops/device/fragments.hpp"
#include "tunewright/loops/device/kernels.hpp"
#include "tunewright/loops/device/pass.hpp"
#include "tunewright/loops/eliminate_guards.hpp"
#include "tunewright/loops/eliminate_padding.hpp"
#include "tunewright/loops/explain.hpp"
#include "tunewright/loops/fragment_instructions.hpp"
#include "tunewright/loops/guard_share.hpp"
#include "tunewright/loops/interpret.hpp"
#include "tunewright/loops/limits.hpp"
#include "tunewright/loops/lower.hpp"
#include "tunewright/loops/lower/stages.hpp"
#include "tunewright/loops/nest.hpp"
#include "tunewright/loops/nest_summary.hpp"
#include "tunewright/loops/operations.hpp"
#include "tunewright/loops/partition.hpp"
#include "tunewright/loops/perfect_nest.hpp"
#include "tunewright/loops/prepare_for_codegen.hpp"
#include "tunewright/loops/print.hpp"
#include "tunewright/loops/schedule_summarizer.hpp"
#include "tunewright/loops/schedule_summarizers.hpp"
#include "tunewright/loops/simt.hpp"
#include "tunewright/loops/simt/memory.hpp"
#include "tunewright/loops/simt/steps.hpp"
#include "tunewright/loops/simt/threads.hpp"
#include "tunewright/loops/statement_program.hpp"
#include "tunewright/loops/summary/buffers.hpp"
#include "tunewright/loops/summary/loops.hpp"
#include "tunewright/loops/summary/schedule_plan.hpp"
#include "tunewright/loops/summary/schedule_signature.hpp"
#include "tunewright/loops/summary/tensors.hpp"
#include "tunewright/loops/summary/windows.hpp"
#include "tunewright/loops/summary/work.hpp"
#include "tunewright/loops/summary_limits.hpp"
#include "tunewright/loops/target_limits.hpp"
#include "tunewright/loops/tensor_operands.hpp"
#include "tunewright/loops/tensor_statements.hpp"
#include "tunewright/loops/tensor_work.hpp"
#include "tunewright/loops/thread_arrays.hpp"
#include "tunewright/loops/trim_boundaries.hpp"
#include "tunewright/loops/trim_reductions.hpp"
#include "tunewright/loops/written_statements.hpp"
#endif
#if TUNEWRIGHT_DEFINES(spaces)
#include "tunewright/spaces/decisions.hpp"
#include "tunewright/spaces/gpu_tiling_rules.hpp"
#include "tunewright/spaces/multi_level_tiling.hpp"
#include "tunewright/spaces/refit.hpp"
#include "tunewright/spaces/sketch_space.hpp"
#include "tunewright/spaces/tiling/add_rfactor.hpp"
#include "tunewright/spaces/tiling/gpu_transformations.hpp"
#include "tunewright/spaces/tiling/instruction_tile.hpp"
#include "tunewright/spaces/tiling/lane_reduction.hpp"
#include "tunewright/spaces/tiling/predicates.hpp"
#include "tunewright/spaces/tiling/product_axes.hpp"
#include "tunewright/spaces/tiling/row_rules.hpp"
#include "tunewright/spaces/tiling/share_terms.hpp"
#include "tunewright/spaces/tiling/stream_reduction.hpp"
#include "tunewright/spaces/tiling/tensor_core.hpp"
#include "tunewright/spaces/tiling/tensor_unit.hpp"
#include "tunewright/spaces/tiling/transformations.hpp"
#include "tunewright/spaces/tiling/transposed_cache_write.hpp"
#include "tunewright/spaces/tiling_rules.hpp"
#include "tunewright/spaces/utilisation.hpp"
#endif
#if TUNEWRIGHT_DEFINES(program_features)
#include "tunewright/features/curve.hpp"
#include "tunewright/features/dataflow/describer.hpp"
#include "tunewright/features/per_statement/accesses.hpp"
#include "tunewright/features/per_statement/affine.hpp"
#include "tunewright/features/per_statement/describer.hpp"
#include "tunewright/features/per_statement/operations.hpp"
#include "tunewright/features/primitives.hpp"
#endif
#if TUNEWRIGHT_DEFINES(drafts)
#include "tunewright/drafts/roofline.hpp"
#include "tunewright/drafts/symbol_analyzer.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_latency.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_symbols.hpp"
#include "tunewright/drafts/symbol_analyzer/cpu_tensor_cost.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_hierarchy.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_latency.hpp"
#include "tunewright/drafts/symbol_analyzer/gpu_symbols.hpp"
#include "tunewright/drafts/symbol_analyzer/growing_footprint.hpp"
#include "tunewright/drafts/symbol_analyzer/nest_reader.hpp"
#include "tunewright/drafts/symbol_analyzer/statement_footprint.hpp"
#include "tunewright/drafts/symbol_analyzer/warp_accesses.hpp"
#endif
#if TUNEWRIGHT_DEFINES(simulated)
#include "tunewright/measurers/simulated.hpp"
#include "tunewright/measurers/simulated/accesses.hpp"
#endif
#if TUNEWRIGHT_DEFINES(reference)
#include "tunewright/reference/body_program.hpp"
#include "tunewright/reference/compare.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/evaluate_at.hpp"
#include "tunewright/reference/random_inputs.hpp"
#endif
#if TUNEWRIGHT_DEFINES(codegen)
#include "tunewright/codegen/cuda.hpp"
#include "tunewright/codegen/cuda_export.hpp"
#include "tunewright/codegen/elf_object.hpp"
#include "tunewright/codegen/emission_plan.hpp"
#include "tunewright/codegen/export.hpp"
#include "tunewright/codegen/object_loader.hpp"
#include "tunewright/codegen/pinned_team.hpp"
#include "tunewright/codegen/static_library.hpp"
#include "tunewright/codegen/store_in_output.hpp"
#include "tunewright/codegen/streamed_stores.hpp"
#endif
#if TUNEWRIGHT_DEFINES(sandbox)
#include "tunewright/measurers/nvrtc/code_wire.hpp"
#include "tunewright/measurers/nvrtc/device_limits.hpp"
#include "tunewright/measurers/reference_data.hpp"
#include "tunewright/measurers/sandbox.hpp"
#include "tunewright/measurers/sandbox/check.hpp"
#include "tunewright/measurers/sandbox/child.hpp"
#include "tunewright/measurers/sandbox/confinement.hpp"
#include "tunewright/measurers/sandbox/shared_task.hpp"
#include "tunewright/measurers/sandbox/task_data.hpp"
#include "tunewright/measurers/sandbox/zygote.hpp"
#include "tunewright/measurers/simt_check.hpp"
#endif
#if TUNEWRIGHT_DEFINES(tuning_logs)
#include "tunewright/data/auto_scheduler_programs.hpp"
#include "tunewright/data/measured_tasks.hpp"
#include "tunewright/data/read_journals.hpp"
#include "tunewright/data/schedule_store.hpp"
#endif
#if TUNEWRIGHT_DEFINES(whole_networks)
#include "tunewright/networks/bert.hpp"
#include "tunewright/networks/default_schedules.hpp"
#include "tunewright/networks/densenet.hpp"
#include "tunewright/networks/execution_plan.hpp"
#include "tunewright/networks/export.hpp"
#include "tunewright/networks/gpt2.hpp"
#include "tunewright/networks/inception_v3.hpp"
#include "tunewright/networks/layers.hpp"
#include "tunewright/networks/memory_plan.hpp"
#include "tunewright/networks/mobilenet_v2.hpp"
#include "tunewright/networks/network.hpp"
#include "tunewright/networks/partition.hpp"
#include "tunewright/networks/resnet.hpp"
#include "tunewright/networks/squeezenet.hpp"
#include "tunewright/networks/transformer.hpp"
#include "tunewright/networks/values.hpp"
#include "tunewright/networks/vgg.hpp"
#include "tunewright/networks/vision_transformer.hpp"
#include "tunewright/networks/weights_file.hpp"
#endif
#if TUNEWRIGHT_DEFINES(plots)
#include "tunewright/study/journal_plots.hpp"
#include "tunewright/study/plots/described_candidates.hpp"
#include "tunewright/study/plots/figure.hpp"
#include "tunewright/study/plots/principal_components.hpp"
#endif
#if TUNEWRIGHT_DEFINES(onnx_operators)
#include "tunewright/networks/onnx/call.hpp"
#include "tunewright/networks/onnx/convert.hpp"
#include "tunewright/networks/onnx/fold_batch_norms.hpp"
#include "tunewright/networks/onnx/operators/elementwise.hpp"
#include "tunewright/networks/onnx/operators/images.hpp"
#include "tunewright/networks/onnx/operators/matrices.hpp"
#include "tunewright/networks/onnx/operators/movement.hpp"
#include "tunewright/networks/onnx/value.hpp"
#endif
#if TUNEWRIGHT_DEFINES(remote)
#include "tunewright/measurers/remote/connection.hpp"
#include "tunewright/measurers/remote/conversation.hpp"
#include "tunewright/measurers/remote/frames.hpp"
#include "tunewright/measurers/remote/messages.hpp"
#include "tunewright/measurers/remote/serve.hpp"
#endif
