// SPDX-License-Identifier: Apache-2.0
#pragma once

// What separate compilation compiles of component core: include it in one source file, or in one for each unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES                                                                           \
  (TUNEWRIGHT_UNIT_core | TUNEWRIGHT_UNIT_models | TUNEWRIGHT_UNIT_measurers | TUNEWRIGHT_UNIT_data | \
   TUNEWRIGHT_UNIT_features)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(core)
#include "tunewright/adaptations/alignment/columns.hpp"
#include "tunewright/adaptations/fine_tune.hpp"
#include "tunewright/adaptations/labelled_programs.hpp"
#include "tunewright/adaptations/momentum.hpp"
#include "tunewright/adaptations/warm_start.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/budget.hpp"
#include "tunewright/core/feature_batch.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/helper_threads.hpp"
#include "tunewright/core/history.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/core/target.hpp"
#include "tunewright/core/thread_team.hpp"
#include "tunewright/core/training_set.hpp"
#include "tunewright/explorers/concept.hpp"
#include "tunewright/json/literal.hpp"
#include "tunewright/json/scanner.hpp"
#include "tunewright/json/writer.hpp"
#include "tunewright/measurers/batch_outcomes.hpp"
#include "tunewright/nn/parameters.hpp"
#include "tunewright/nn/training.hpp"
#include "tunewright/program/scalar_type.hpp"
#include "tunewright/reference/array.hpp"
#include "tunewright/samplers/biased_diversity.hpp"
#include "tunewright/samplers/cluster_centres.hpp"
#include "tunewright/samplers/concept.hpp"
#include "tunewright/samplers/diverse_top_k.hpp"
#include "tunewright/samplers/k_means.hpp"
#include "tunewright/samplers/points.hpp"
#include "tunewright/samplers/pool.hpp"
#include "tunewright/samplers/quotas.hpp"
#include "tunewright/samplers/uncertainty.hpp"
#include "tunewright/schedulers/bandit.hpp"
#include "tunewright/schedulers/concept.hpp"
#include "tunewright/schedulers/fixed.hpp"
#include "tunewright/schedulers/gradient.hpp"
#include "tunewright/schedulers/learning_curve.hpp"
#include "tunewright/session/described_rows.hpp"
#include "tunewright/session/network_tasks.hpp"
#include "tunewright/session/told_batch.hpp"
#include "tunewright/spaces/recorded_table.hpp"
#include "tunewright/stats/ranking.hpp"
#include "tunewright/stats/robust.hpp"
#endif
#if TUNEWRIGHT_DEFINES(models)
#include "tunewright/models/cholesky.hpp"
#include "tunewright/models/concept.hpp"
#include "tunewright/models/gaussian_process.hpp"
#include "tunewright/models/gbdt.hpp"
#include "tunewright/models/gbdt/binned_rows.hpp"
#include "tunewright/models/gbdt/binning.hpp"
#include "tunewright/models/gbdt/boosting.hpp"
#include "tunewright/models/gbdt/ensemble.hpp"
#include "tunewright/models/gbdt/ensemble_builder.hpp"
#include "tunewright/models/gbdt/objective.hpp"
#include "tunewright/models/gbdt/split.hpp"
#include "tunewright/models/gbdt/tree_grower.hpp"
#include "tunewright/models/labels.hpp"
#include "tunewright/models/linear.hpp"
#include "tunewright/models/program_vectors.hpp"
#include "tunewright/models/random.hpp"
#endif
#if TUNEWRIGHT_DEFINES(measurers)
#include "tunewright/measurers/nvrtc/device_facts.hpp"
#include "tunewright/measurers/protocol.hpp"
#include "tunewright/measurers/sandbox/crash_report.hpp"
#include "tunewright/measurers/sandbox/guarded_memory.hpp"
#include "tunewright/measurers/sandbox/partial_call.hpp"
#include "tunewright/measurers/sandbox/stopwatch.hpp"
#include "tunewright/measurers/sandbox/wire.hpp"
#endif
#if TUNEWRIGHT_DEFINES(data)
#include "tunewright/data/auto_scheduler_log/record.hpp"
#include "tunewright/data/auto_scheduler_log/text.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/import_report.hpp"
#include "tunewright/data/journal_report.hpp"
#include "tunewright/data/kernel_tuner.hpp"
#include "tunewright/data/ktt.hpp"
#include "tunewright/data/npz.hpp"
#include "tunewright/data/pruning.hpp"
#include "tunewright/data/safetensors.hpp"
#include "tunewright/data/safetensors/header.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/data/t4.hpp"
#include "tunewright/data/table.hpp"
#include "tunewright/data/table_builder.hpp"
#include "tunewright/data/tvm_result.hpp"
#include "tunewright/data/xgboost/ensemble.hpp"
#endif
#if TUNEWRIGHT_DEFINES(features)
#include "tunewright/features/concept.hpp"
#include "tunewright/features/dataflow/schema.hpp"
#include "tunewright/features/factor_products.hpp"
#include "tunewright/features/hardware.hpp"
#include "tunewright/features/hardware/device.hpp"
#include "tunewright/features/knobs.hpp"
#include "tunewright/features/per_statement/schema.hpp"
#include "tunewright/features/tags.hpp"
#endif
