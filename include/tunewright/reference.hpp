// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component reference, which needs xtensor: arrays of the evaluator as arrays of xtensor.

#include "tunewright/graph.hpp"
#include "tunewright/reference/evaluate.hpp"
#include "tunewright/reference/random_inputs.hpp"
#include "tunewright/reference/xtensor.hpp"
#include "tunewright/tunewright.hpp"
