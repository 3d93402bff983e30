#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What it takes to compile a program: user seconds of the compiler for one translation unit, by what it includes.
#
#   bash bench/compile_times.sh [COMPILER] [FLAGS...]     # default: c++ -O2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
compiler="${1:-c++}"
shift || true
flags=("${@:--O2}")
llvm="$(llvm-config-19 --includedir 2>/dev/null || echo /usr/lib/llvm-19/include)"
object="$(mktemp --suffix=.o)"
trap 'rm -f "$object"' EXIT

"$compiler" --version | head -n 1
echo "${flags[*]}"
measure() { # DESCRIPTION SOURCE
  TIMEFORMAT="%U s  $1 ($2)"
  time "$compiler" -std=c++20 "${flags[@]}" -Iinclude -isystem "$llvm" -c "$2" -o "$object"
}
measure "random search over a space of one's own" cmake/packaging/conan/test_package/consumer.cpp
measure "Ansor's recipe on the simulated machine" examples/07_write_your_own_sampler.cpp
measure "Ansor's recipe on this CPU, with LLVM" examples/01_first_tuner.cpp
