// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component study, which needs Google Benchmark: comparisons of recipes.

#include "tunewright/data/journal.hpp"
#include "tunewright/study/study.hpp"
#include "tunewright/tunewright.hpp"
