#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares random programs with the reference, some 27,600 for each seed: random shapes of every operator, random and
# mutated schedules, every instruction set of the machine.
#
#   test/random_programs.sh FIRST LAST [TEST_KERNELS]
#
# Seeds go from FIRST to LAST (2 is that of the preset long-tests, whose program is the default). Prints a line a seed
# and the sum; ends with status 1 at the first seed with a wrong program, which is printed. A seed takes some minutes;
# 37 of them are a million programs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
first=${1:?the first seed} last=${2:?the last seed} program=${3:-build/long-tests/test/test_kernels}
[ -x "$program" ] || { echo "'$program' is no program; cmake --build --preset long-tests --target test_kernels makes it" >&2; exit 1; }

sum=0
for ((seed = first; seed <= last; ++seed)); do
  if ! report=$(TUNEWRIGHT_PROGRAMS_SEED=$seed "$program" --test-case="twenty thousand random schedules*" 2>&1); then
    printf '%s\n' "$report"
    echo "seed $seed: wrong programs, or fewer than 20,000" >&2
    exit 1
  fi
  tally=$(grep -o 'random programs compared.*' <<<"$report")
  sum=$((sum + $(sed 's/[^:]*: \([0-9]*\).*/\1/' <<<"$tally")))
  echo "seed $seed: $tally; $sum in all"
done
