// SPDX-License-Identifier: Apache-2.0
// Every header in one translation unit, which is linked twice: test/CMakeLists.txt.
#include "all_headers.hpp"

extern "C" int every_header();

int every_header() { return 1; }
