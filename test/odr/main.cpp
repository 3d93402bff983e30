// SPDX-License-Identifier: Apache-2.0
// Two object files hold every header: a function that is not inline does not link.

extern "C" int every_header();
extern "C" int every_header_again();

int main() { return every_header() + every_header_again() == 2 ? 0 : 1; }
