// SPDX-License-Identifier: Apache-2.0
#pragma once

// What separate compilation compiles of component orc: include it in one source file, or in one for each unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_orc)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(orc)
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/remote.hpp"
#include "tunewright/networks/compile_kernels.hpp"
#include "tunewright/networks/compiled_network.hpp"
#endif
