#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that wants a GPU, part by part.
#
#   bash bench/gpu_checks.sh OUT [PART...] [--binaries=DIR] [--trials=N] [--seconds=N] [--cases=PREFIX,..]
#
# Parts, in this order unless some are named:
#
#   build          the three programs below (cmake --preset release, target gpu_checks); left out with --binaries
#   tests          what tests labelled gpu check: results, illegal addresses, traps, hangs, stray writes
#   lesson         examples/08_a_gpu_kernel.cpp
#   products       float32 products against cuBLAS and cuBLASLt
#   half           float16 products by tensor units against cuBLAS and cuBLASLt
#   convolutions   the convolutions of ResNet-50 against cuDNN
#   dataset        64 random programs of each kernel, measured
#
# OUT gets report.json (device, driver, date, how each part went and with which revision, ratios, trials a second) and,
# beside it, logs, and journals and results in a folder of the revision: what other code measured is not taken over. A part
# may take --seconds (480) and is stopped a minute later; what it has measured is kept, and the same command goes on from
# there: parts that passed with as many trials are quick. A comparison begins no kernel with less than 15 seconds left.
# --trials bounds the search of each kernel (500), --cases takes of each part only kernels whose names begin so
# (bench_gpu_kernels --list); a part that has none of them is skipped. The report tells of all parts that have run so far,
# and is there after Ctrl-C as well.
#
# A machine with nothing but a driver, NVRTC and, for the ratios, cuBLAS and cuDNN: build elsewhere, on a system no newer,
# with the same major version of CUDA; then bring this script and the folder that is made:
#
#   cmake --preset release && cmake --build --preset release --target gpu_checks
#   scp -r bench/gpu_checks.sh build/release/gpu_checks there:
#   bash gpu_checks.sh out --binaries=gpu_checks          # there; once for each part if a call must be short
#
# NVIDIA's libraries are looked for beside the toolkit, with the driver and among Python's packages (nvidia-cublas, ...).
# Without a GPU parts are skipped, and the report says that nothing was measured; tests of which some found the GPU and some did
# not have failed. Ends with success when no part failed.
set -euo pipefail

usage() {
  sed -n 's/^#   bash/usage: bash/p' "${BASH_SOURCE[0]}" | head -n 1 >&2
  exit 2
}

out="" binaries="" trials=500 seconds=480 cases=""
wanted=()
all_parts=(build tests lesson products half convolutions dataset)
for word in "$@"; do
  case "$word" in
    --binaries=*) binaries="${word#*=}" ;;
    --trials=*) trials="${word#*=}" ;;
    --seconds=*) seconds="${word#*=}" ;;
    --cases=*) cases="${word#*=}" ;;
    -*) usage ;;
    *)
      if [ -z "$out" ]; then
        out="$word"
      elif [[ " ${all_parts[*]} " == *" $word "* ]]; then
        wanted+=("$word")
      else
        echo "'$word' is no part; there are: ${all_parts[*]}" >&2
        exit 2
      fi
      ;;
  esac
done
[ -n "$out" ] || usage
for number in "$trials" "$seconds"; do
  [[ "$number" =~ ^[1-9][0-9]*$ ]] || { echo "'$number' is no number of trials or seconds; give 1 or more" >&2; exit 2; }
done
mkdir -p "$out/parts"
out="$(cd "$out" && pwd)"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [ -n "$binaries" ]; then
  binaries="$(cd "$binaries" && pwd)"
  [ ${#wanted[@]} -gt 0 ] || wanted=("${all_parts[@]:1}")
else
  binaries="$root/build/release/gpu_checks"
  [ ${#wanted[@]} -gt 0 ] || wanted=("${all_parts[@]}")
fi

# Folders that may hold libraries of NVIDIA, behind those that are searched anyway.
library_folders() {
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda-*/lib64 /usr/local/nvidia/lib64 /usr/local/nvidia/lib \
    /usr/lib/wsl/lib; do
    if [ -d "$folder" ]; then echo "$folder"; fi
  done
  if command -v python3 >/dev/null; then
    timeout 20 python3 -c '
import importlib.util, pathlib
found = importlib.util.find_spec("nvidia")
for place in (found.submodule_search_locations if found else []):
    for folder in sorted(pathlib.Path(place).glob("*/lib")):
        print(folder)' 2>/dev/null || true
  fi
}
LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(library_folders | paste -s -d : -)"
export LD_LIBRARY_PATH
export PATH="$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin"
# They would let libraries compute float32 products by tensor units.
unset NVIDIA_TF32_OVERRIDE CUBLAS_EMULATE_SINGLE_PRECISION CUBLAS_EMULATION_STRATEGY

device=none
driver=none
if command -v nvidia-smi >/dev/null; then
  if described="$(timeout 60 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>"$out/nvidia-smi.log")"; then
    described="$(head -n 1 <<<"$described")"
    device="${described%, *}"
    driver="${described##*, }"
    timeout 60 nvidia-smi -q >"$out/nvidia-smi.log" 2>&1 || true
  fi
fi

quoted() { printf '"%s"' "$(sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' <<<"$1" | tr '\n\t' '  ' | sed 's/ *$//')"; }

# The commit that the programs were built from: where they are, the repository may be of another commit, or absent.
revision() {
  local known=""
  if [ -f "$binaries/revision" ]; then known="$(head -n 1 "$binaries/revision")"; fi
  echo "${known:-$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)}"
}

# The report, from what each part has left in OUT/parts.
report() {
  local part first=1 measured=false
  if grep -qs '"outcome": "passed"' "$out/parts/tests.json" ||
    grep -Eqs '"(measured":[1-9]|seconds":)' "$out"/*/*.results.jsonl; then
    measured=true
  fi
  {
    echo "{"
    echo "  \"device\": $(quoted "$device"),"
    echo "  \"driver\": $(quoted "$driver"),"
    echo "  \"date\": \"$(date --utc +%Y-%m-%dT%H:%M:%SZ)\","
    echo "  \"revision\": $(quoted "$(revision)"),"
    echo "  \"measured\": $measured,"
    echo "  \"parts\": ["
    for part in "${all_parts[@]}"; do
      [ -f "$out/parts/$part.json" ] || continue
      if [ "$first" = 0 ]; then echo ","; fi
      first=0
      printf '%s' "$(cat "$out/parts/$part.json")"
    done
    printf '\n  ]\n}\n'
  } >"$out/report.json.part"
  mv "$out/report.json.part" "$out/report.json"
}

failed=0
current=""
running=0
# note PART OUTCOME STATUS SECONDS
note() {
  {
    printf '    {"name": "%s", "outcome": "%s", "exit_status": %s, "seconds": %s, "log": "%s.log", "date": "%s", "revision": %s' \
      "$1" "$2" "$3" "$4" "$1" "$(date --utc +%Y-%m-%dT%H:%M:%SZ)" "$(quoted "$(revision)")"
    if [ -f "$out/$1.summary.json" ]; then printf ',\n     "summary": %s' "$(cat "$out/$1.summary.json")"; fi
    printf '}'
  } >"$out/parts/$1.json"
  report
}

interrupted() {
  trap - HUP INT TERM
  if [ "$running" != 0 ]; then
    kill -TERM "$running" 2>/dev/null || true
    wait "$running" 2>/dev/null || true
  fi
  if [ -n "$current" ]; then note "$current" interrupted 130 $(($(date +%s) - begin)); fi
  echo "stopped; the same command goes on from here" >&2
  exit 130
}
trap interrupted HUP INT TERM

# Tests without a device pass and say so; prints how many of a log did, and how many ran.
tests_without_device() { grep -c "skipped: no device" "$1" || true; }
tests_that_ran() { sed -n 's/^\[doctest\] test cases: *\([0-9]*\).*/\1/p' "$1"; }

# run PART COMMAND...: its output goes to OUT/PART.log and to the terminal, how it went to the report.
begin=0
run() {
  local name="$1" status=0 outcome without ran
  shift
  current="$name"
  begin="$(date +%s)"
  echo "== $name"
  rm -f "$out/$name.summary.json"
  : >"$out/$name.log"
  # In the background, so that a signal ends the wait; the programs say by themselves how far they are.
  timeout --kill-after=30 $((seconds + 60)) "$@" >"$out/$name.log" 2>&1 &
  running=$!
  tail -n +1 -f --pid="$running" "$out/$name.log" &
  wait "$running" || status=$?
  running=0
  wait
  case "$status" in
    0) outcome=passed ;;
    75) outcome="not finished" ;;
    77) outcome=skipped ;;
    124 | 137) outcome="out of time" ;;
    *) outcome=failed ;;
  esac
  without="$(tests_without_device "$out/$name.log")"
  if [ "$outcome" = passed ] && [ "$without" != 0 ]; then
    ran="$(tests_that_ran "$out/$name.log")"
    outcome=skipped
    if [ "$without" != "$ran" ]; then
      outcome=failed
      echo "$without of ${ran:-an unknown number of} tests found no device, the others did" | tee -a "$out/$name.log"
    fi
  fi
  if [ "$outcome" = failed ] || [ "$outcome" = "out of time" ]; then failed=1; fi
  note "$name" "$outcome" "$status" $(($(date +%s) - begin))
  echo "== $name: $outcome"
  current=""
}

# Without doctest the tests are left out.
build() {
  cd "$root" && { cmake --preset release || cmake --preset release -DTUNEWRIGHT_BUILD_TESTS=OFF; } &&
    cmake --build --preset release --target gpu_checks
}
# program PART NAME ARGUMENT...: runs one of the three.
program() {
  local name="$1" file="$binaries/$2"
  shift 2
  if [ -x "$file" ]; then
    run "$name" "$file" "$@"
  else
    run "$name" bash -c "echo \"skipped: there is no $file; run the part build, or see --binaries\"; exit 77"
  fi
}
# common PREFIXES PREFIXES: the prefixes of names that begin with one of the first and with one of the second.
common() {
  local first second one other both=""
  IFS=, read -ra first <<<"$1"
  IFS=, read -ra second <<<"$2"
  for one in "${first[@]}"; do
    for other in "${second[@]}"; do
      if [[ "$other" == "$one"* ]]; then
        both+=",$other"
      elif [[ "$one" == "$other"* ]]; then
        both+=",$one"
      fi
    done
  done
  echo "${both#,}"
}
# compare PART PREFIXES OPTION...; no prefixes: all kernels.
compare() {
  local name="$1" those="${2:-$cases}" folder
  folder="$out/$(revision)"
  if [ -n "$2" ] && [ -n "$cases" ]; then
    those="$(common "$2" "$cases")"
    if [ -z "$those" ]; then
      run "$name" bash -c 'echo "skipped: no kernel of this part begins with $1"; exit 77' bash "$cases"
      return
    fi
  fi
  shift 2
  mkdir -p "$folder"
  program "$name" bench_gpu_kernels --cases="$those" --seconds="$seconds" --journal="$folder/$name.jsonl" \
    --results="$folder/$name.results.jsonl" --summary="$out/$name.summary.json" "$@"
}

for part in "${wanted[@]}"; do
  case "$part" in
    build) run build bash -c "$(declare -f build); root='$root' build" ;;
    tests) program tests test_measurers_nvrtc --test-suite=gpu --duration ;;
    lesson) program lesson 08_a_gpu_kernel ;;
    products) compare products matmul/,batch_matmul/ --trials="$trials" ;;
    half) compare half matmul_fp16/ --trials="$trials" ;;
    convolutions) compare convolutions conv2d/ --trials="$trials" ;;
    dataset) compare dataset "" --recipe=random --trials=64 ;;
  esac
done
report
cat "$out/report.json"
exit "$failed"
