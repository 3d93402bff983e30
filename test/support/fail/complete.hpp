// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

// incomplete.hpp with the include that it lacks.
inline std::vector<int> nothing() { return {}; }
