// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component eigen, which needs Eigen: neural cost models and other policies that use linear algebra. Their recipes
// also need graph: tunewright/recipes.hpp.

#include "tunewright/adaptations/coral.hpp"
#include "tunewright/explorers/adaptive_exploration.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"
#include "tunewright/recipes/chameleon.hpp"
#include "tunewright/tunewright.hpp"
