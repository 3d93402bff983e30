// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component nvrtc: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_nvrtc)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(nvrtc)
#include "tunewright/codegen/cuda_compile.hpp"
#include "tunewright/measurers/nvrtc.hpp"
#include "tunewright/measurers/nvrtc/compiler.hpp"
#include "tunewright/measurers/nvrtc/device_child.hpp"
#include "tunewright/measurers/nvrtc/device_memory.hpp"
#include "tunewright/measurers/nvrtc/device_program.hpp"
#include "tunewright/measurers/nvrtc/device_task.hpp"
#include "tunewright/measurers/nvrtc/device_zygote.hpp"
#include "tunewright/measurers/nvrtc/driver.hpp"
#include "tunewright/measurers/nvrtc/primary_context.hpp"
#include "tunewright/measurers/nvrtc/workers.hpp"
#endif
