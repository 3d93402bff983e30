// SPDX-License-Identifier: Apache-2.0
#include "all_headers.hpp"

int included_again();

int included_again() { return 1; }
