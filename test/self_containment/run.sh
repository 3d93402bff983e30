#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles every header that does more than include others alone, with warnings as errors, and counts:
# test/self_containment/run.sh [PRESET [JOBS]]. The preset is that for Clang 19 if none is named; "ci" takes the default
# compiler. Headers that compiled before and have not changed since are counted without compiling them again. Ends with
# status 1 if one fails, whose errors are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

preset=${1:-clang} jobs=${2:-$(nproc)}
cmake --preset "$preset" >/dev/null
log=build/$preset/headers_alone.log
check() { ninja -C "build/$preset" -k 0 -j "$jobs" header_self_containment; }
all=$(ninja -C "build/$preset" -t targets rule CUSTOM_COMMAND | grep -c '^test/.*\.alone$')
left=0
if ! check >"$log" 2>&1; then
  grep -v '^\[[0-9/]*\] Compiling' "$log" >&2 || true
  # What is compiled a second time has failed, or starts from a header that has.
  left=$( (check || true) | sed -n 's|^\[[0-9]*/\([0-9]*\)\] Compiling.*|\1|p' | tail -n 1)
fi
echo "$preset: $((all - left)) of $all headers compile alone"
[[ $left == 0 ]]
