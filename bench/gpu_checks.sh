#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that wants a GPU, in one go: build, tests labelled gpu, a small data set of measured programs, kernels tuned
# and compared with NVIDIA's libraries.
#
#   bash bench/gpu_checks.sh OUT [TRIALS]
#
# OUT gets report.json (device, driver, date, what each step gave) and, beside it, the logs and what the steps wrote.
# TRIALS bounds the search of each kernel (500). Without a GPU the build and the tests still run, and the report says that
# nothing was measured. Ends with success when every step did.
set -euo pipefail
if [ $# -lt 1 ]; then
  echo "usage: bash bench/gpu_checks.sh OUT [TRIALS]" >&2
  exit 2
fi
mkdir -p "$1"
out="$(cd "$1" && pwd)"
trials="${2:-500}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

device=none
driver=none
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
  device="$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)"
  driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
fi

steps=()
failed=0
# step NAME COMMAND...: runs it, its output in OUT/NAME.log, and notes how it went.
step() {
  local name="$1" begin status=0
  shift
  begin="$(date +%s)"
  echo "== $name"
  "$@" >"$out/$name.log" 2>&1 || status=$?
  [ "$status" -eq 0 ] || failed=1
  steps+=("    {\"name\": \"$name\", \"exit_status\": $status, \"seconds\": $(($(date +%s) - begin)), \"log\": \"$name.log\"}")
}

build() { cmake --preset release && cmake --build --preset release; }
kernels=build/release/bench/bench_gpu_kernels

step build build
step tests ctest --test-dir build/release --label-regex gpu --output-on-failure --output-junit "$out/tests.xml"
step dataset "$kernels" --random --trials=64 --journal="$out/dataset.jsonl" \
  --benchmark_out="$out/dataset.json" --benchmark_out_format=json
step kernels "$kernels" --trials="$trials" --journal="$out/kernels.jsonl" \
  --benchmark_out="$out/kernels.json" --benchmark_out_format=json

measured=false
[ "$device" = none ] || measured=true
{
  echo "{"
  echo "  \"device\": \"$device\","
  echo "  \"driver\": \"$driver\","
  echo "  \"date\": \"$(date --utc +%Y-%m-%dT%H:%M:%SZ)\","
  echo "  \"revision\": \"$(git rev-parse HEAD 2>/dev/null || echo unknown)\","
  echo "  \"measured\": $measured,"
  echo "  \"steps\": ["
  for i in "${!steps[@]}"; do
    if [ "$i" -gt 0 ]; then echo ","; fi
    printf '%s' "${steps[$i]}"
  done
  printf '\n  ]\n}\n'
} >"$out/report.json"
cat "$out/report.json"
exit "$failed"
