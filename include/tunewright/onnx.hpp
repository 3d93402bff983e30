// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component onnx, which needs the package of ONNX: networks from its files.

#include "tunewright/graph.hpp"
#include "tunewright/networks/import_onnx.hpp"
#include "tunewright/tunewright.hpp"
