// SPDX-License-Identifier: Apache-2.0
// Stands behind a header that compiles alone; check.cmake tells why.
#if defined(__GNUC__) && !defined(__clang__)
static_assert(false, "the header compiles alone");
#endif
