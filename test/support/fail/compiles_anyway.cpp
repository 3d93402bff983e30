// SPDX-License-Identifier: Apache-2.0
// error: never printed
int main() { return 0; }
