// SPDX-License-Identifier: Apache-2.0
#pragma once

// The separately compiled functions of component data: include this in one source file, or in one per unit with
// `TUNEWRIGHT_COMPILES` defined as that unit.

#if !defined(TUNEWRIGHT_COMPILES)
#define TUNEWRIGHT_COMPILES (TUNEWRIGHT_UNIT_journal)
#endif

#include "tunewright/detail/config.hpp"

#if TUNEWRIGHT_DEFINES(journal)
#include "tunewright/data/journal.hpp"
#include "tunewright/data/journal_index.hpp"
#include "tunewright/data/merge_journals.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/task_json.hpp"
#include "tunewright/data/whole_journal.hpp"
#include "tunewright/data/xgboost_model.hpp"
#endif
