// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything for a search over a space of your own, with nothing but the standard library. policies.hpp has all
// policies that need no other library; the others are in the header of their component: data, gzip, graph, reference,
// eigen, orc, nvrtc. recipes.hpp has the recipes of papers.

#include "tunewright/adaptations/none.hpp"
#include "tunewright/adaptations/refit.hpp"
#include "tunewright/core/arm_targets.hpp"
#include "tunewright/core/gpu_targets.hpp"
#include "tunewright/core/host_target.hpp"
#include "tunewright/core/interrupt.hpp"
#include "tunewright/core/progress.hpp"
#include "tunewright/drafts/none.hpp"
#include "tunewright/explorers/annealing.hpp"
#include "tunewright/explorers/draft_set.hpp"
#include "tunewright/explorers/evolutionary.hpp"
#include "tunewright/explorers/uniform.hpp"
#include "tunewright/features/none.hpp"
#include "tunewright/filters/none.hpp"
#include "tunewright/filters/static_limits.hpp"
#include "tunewright/measurers/function.hpp"
#include "tunewright/measurers/replay.hpp"
#include "tunewright/models/random.hpp"
#include "tunewright/multi_task_tuner.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/samplers/epsilon_greedy.hpp"
#include "tunewright/samplers/random.hpp"
#include "tunewright/samplers/top_k.hpp"
#include "tunewright/tuner.hpp"
