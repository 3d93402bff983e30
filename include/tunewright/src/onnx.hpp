// SPDX-License-Identifier: Apache-2.0
#pragma once

// What separate compilation compiles of component onnx: include it in one source file, or in one for each unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_onnx)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(onnx)
#include "tunewright/networks/onnx/read_model.hpp"
#endif
