// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component mpi: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_mpi)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(mpi)
#include "tunewright/measurers/mpi.hpp"
#include "tunewright/measurers/mpi/world.hpp"
#endif
