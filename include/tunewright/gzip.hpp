// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component gzip, which needs ISA-L: importers of tuning logs and other measured data, and what they are read into.

#include "tunewright/data/auto_scheduler_log.hpp"
#include "tunewright/data/autotvm_log.hpp"
#include "tunewright/data/autotvm_table.hpp"
#include "tunewright/data/dataset.hpp"
#include "tunewright/data/gzip.hpp"
#include "tunewright/data/kernel_tuner.hpp"
#include "tunewright/data/ktt.hpp"
#include "tunewright/data/pruning.hpp"
#include "tunewright/data/read_table.hpp"
#include "tunewright/data/splits.hpp"
#include "tunewright/data/t4.hpp"
#include "tunewright/tunewright.hpp"
