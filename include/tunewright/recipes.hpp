// SPDX-License-Identifier: Apache-2.0
#pragma once

// All recipes: the components graph and eigen, and their spaces.

#include "tunewright/eigen.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/policies.hpp"
#include "tunewright/recipes/alt.hpp"
#include "tunewright/recipes/ansor.hpp"
#include "tunewright/recipes/auto_tvm.hpp"
#include "tunewright/recipes/balto.hpp"
#include "tunewright/recipes/chameleon.hpp"
#include "tunewright/recipes/draft_and_trees.hpp"
#include "tunewright/recipes/expected_improvement.hpp"
#include "tunewright/recipes/het_feat_transfer.hpp"
#include "tunewright/recipes/meta_schedule.hpp"
#include "tunewright/recipes/moa_pruner.hpp"
#include "tunewright/recipes/one_shot.hpp"
#include "tunewright/recipes/pruner.hpp"
#include "tunewright/recipes/random.hpp"
#include "tunewright/recipes/tenset.hpp"
#include "tunewright/recipes/tlp.hpp"
#include "tunewright/recipes/transfer_tuning.hpp"
#include "tunewright/recipes/with_history.hpp"
