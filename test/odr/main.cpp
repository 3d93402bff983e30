// SPDX-License-Identifier: Apache-2.0
// Two translation units include every header: a function that is not inline, or two definitions that differ, does not
// link.
#include "all_headers.hpp"

int included_again();

int main() { return included_again() == 1 ? 0 : 1; }
