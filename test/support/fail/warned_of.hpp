// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compiles, with a warning.
inline int nothing(int unused) { return 0; }
