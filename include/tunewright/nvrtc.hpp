// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component nvrtc, which needs the CUDA toolkit: code for NVIDIA GPUs, and measuring it.

#include "tunewright/codegen/cuda_export.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/measurers/nvrtc.hpp"
#include "tunewright/tunewright.hpp"
