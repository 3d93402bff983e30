#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measured trials a second with one measuring rank and with two, in turns, and their ratio.
#
#   bash bench/scale_out.sh build/release/bench/bench_scale_out [ROUNDS=3] [OPTIONS OF bench_scale_out...]
#
# Every run has one rank more, which tunes and compiles.
set -euo pipefail
program=${1:?path of bench_scale_out}
rounds=${2:-3}
shift $(($# < 2 ? $# : 2))
mpirun=(mpirun --oversubscribe --bind-to none)
[ "$(id -u)" -ne 0 ] || mpirun+=(--allow-run-as-root)
declare -A rates
for ((round = 0; round < rounds; ++round)); do
  for workers in 1 2; do
    line=$("${mpirun[@]}" -n $((workers + 1)) "$program" "$@" | grep trials_per_second)
    echo "$line"
    rates[$workers]+="$(sed 's/.*trials_per_second \([0-9.]*\).*/\1/' <<<"$line") "
  done
done
median() {
  tr ' ' '\n' <<<"$1" | grep . | sort -g | awk '{ rate[NR] = $1 } END { print (rate[int((NR + 1) / 2)] + rate[int((NR + 2) / 2)]) / 2 }'
}
one=$(median "${rates[1]}")
two=$(median "${rates[2]}")
awk -v one="$one" -v two="$two" 'BEGIN { printf "medians: %s and %s trials a second, ratio %.2f\n", one, two, two / one }'
