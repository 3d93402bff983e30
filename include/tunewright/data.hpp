// SPDX-License-Identifier: Apache-2.0
#pragma once

// The component data, which needs nlohmann_json: journals, records as JSON, models of XGBoost.

#include "tunewright/data/journal.hpp"
#include "tunewright/data/record_json.hpp"
#include "tunewright/data/xgboost_model.hpp"
#include "tunewright/tunewright.hpp"
