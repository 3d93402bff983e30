// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component orc, which needs LLVM: code generation and measurement on CPUs.

#include "tunewright/codegen/export.hpp"
#include "tunewright/graph.hpp"
#include "tunewright/measurers/orc.hpp"
#include "tunewright/measurers/remote.hpp"
#include "tunewright/networks/choose_in_network.hpp"
#include "tunewright/networks/compile_kernels.hpp"
#include "tunewright/networks/compiled_network.hpp"
#include "tunewright/tunewright.hpp"
