#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzzers one after the other, each for so many seconds: test/fuzz/run.sh 60, or test/fuzz/run.sh 600 gzip onnx.
#
# Each begins with the inputs in test/fuzz/corpus and those that earlier runs kept in build/fuzz/corpus. It prints one
# line a target; an input that breaks a target ends with an error, and lies in build/fuzz/findings/<target>. Move it to
# test/fuzz/corpus/<target>, with a name that tells what it is, together with what it leads to in the library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:?usage: test/fuzz/run.sh SECONDS [TARGET...]}
shift
cmake --preset fuzz >/dev/null
targets=("$@")
if [[ $# == 0 ]]; then
  for source in test/fuzz/targets/*.cpp; do targets+=("$(basename "$source" .cpp)"); done
fi

# Everything is built first, so that sources may be edited while fuzzers run.
built=()
for target in "${targets[@]}"; do
  if cmake --build --preset fuzz --target "fuzz_$target" >"build/fuzz/build_$target.log" 2>&1; then
    built+=("$target")
  elif grep -q "unknown target" "build/fuzz/build_$target.log"; then
    echo "$target is left out: there is no such target, or a library that it needs is missing"
  else
    cat "build/fuzz/build_$target.log" >&2
    exit 1
  fi
done

total=0
printf '%-20s %12s %8s %9s %7s %9s\n' target executions seconds features inputs findings
for target in "${built[@]}"; do
  kept=build/fuzz/corpus/$target findings=build/fuzz/findings/$target log=build/fuzz/$target.log
  mkdir -p "$kept" "$findings"
  seeds=("test/fuzz/corpus/$target")
  if [[ $target == onnx ]]; then seeds+=(test/data/onnx); fi
  "build/fuzz/test/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="$findings/" -print_final_stats=1 "$kept" "${seeds[@]}" >"$log" 2>&1 || true
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  features=$(sed -n 's/.* ft: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
  took=$(sed -n 's/^Done [0-9]* runs in \([0-9]*\) .*/\1/p' "$log")
  found=$(find "$findings" -type f | wc -l)
  total=$((total + found))
  if [[ -z $took ]]; then took="stopped"; total=$((total + (found == 0))); fi
  printf '%-20s %12s %8s %9s %7s %9s\n' "$target" "${runs:-0}" "$took" "${features:-0}" \
    "$(find "$kept" -type f | wc -l)" "$found"
done
if ((total > 0)); then
  echo "There are findings: see the logs build/fuzz/<target>.log, and the inputs in build/fuzz/findings." >&2
  exit 1
fi
