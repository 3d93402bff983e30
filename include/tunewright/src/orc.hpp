// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component orc: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_orc)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(orc)
#include "tunewright/codegen/llvm.hpp"
#include "tunewright/codegen/llvm_jit.hpp"
#include "tunewright/measurers/cpu_compilers.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/remote.hpp"
#include "tunewright/networks/choose_in_network.hpp"
#include "tunewright/networks/compile_kernels.hpp"
#include "tunewright/networks/compiled_network.hpp"
#endif
