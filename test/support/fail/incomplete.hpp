// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lacks an include.
inline std::vector<int> nothing() { return {}; }
