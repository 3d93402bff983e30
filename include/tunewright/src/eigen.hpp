// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component eigen: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_networks)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(networks)
#include "tunewright/adaptations/alignment/covariance.hpp"
#include "tunewright/models/bilstm_attention.hpp"
#include "tunewright/models/mlp.hpp"
#include "tunewright/models/network_persistence.hpp"
#include "tunewright/models/pattern_aware.hpp"
#include "tunewright/models/primitive_attention.hpp"
#include "tunewright/nn/attention.hpp"
#include "tunewright/nn/lstm.hpp"
#include "tunewright/nn/read_out.hpp"
#endif
