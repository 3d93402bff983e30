// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component onnx: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_onnx)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(onnx)
#include "tunewright/networks/onnx/read_model.hpp"
#endif
