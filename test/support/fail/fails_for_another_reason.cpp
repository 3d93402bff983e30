// SPDX-License-Identifier: Apache-2.0
// error: this text is in no diagnostic of a compiler
#ifdef TUNEWRIGHT_SHOULD_FAIL
static_assert(false, "another reason");
#endif
int main() { return 0; }
