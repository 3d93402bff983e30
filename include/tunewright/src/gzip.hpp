// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component gzip: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_gzip)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(gzip)
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/gzip.hpp"
#include "tunewright/data/read_table.hpp"
#endif
