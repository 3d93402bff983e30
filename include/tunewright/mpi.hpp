// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component mpi, which needs MPI and LLVM: measuring on the ranks of an MPI program.

#include "tunewright/measurers/mpi.hpp"
#include "tunewright/orc.hpp"
#include "tunewright/tunewright.hpp"
