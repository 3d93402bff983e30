#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every study that was built and makes tables and figures of the results.
#
#   bench/study/run_all.sh DATA OUT [option of the studies...]
#
# DATA is the folder of the recorded data (docs/studies/README.md names the sources). OUT gets <study>.json and, by
# `report`, <study>.md, <study>.dat and <study>.gp, which gnuplot draws as <study>.svg; OUT/<study>/tasks.jsonl has the
# results of studies that are no searches task by task. Studies that compare recipes have a folder OUT/<study> of their
# own, with tables, figures and what they need to go on after a stop. BUILD is the folder of the built studies,
# build/release/bench/study unless set. Studies whose data are missing say so and are left out.
set -eu
if [ $# -lt 2 ]; then
  echo "usage: $0 DATA OUT [option of the studies...]" >&2
  exit 2
fi
data=$1 out=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build/release/bench/study}
mkdir -p "$out"
for study in "$build"/study_*; do
  [ -x "$study" ] && [ -f "$study" ] || continue
  name=$(basename "$study")
  echo "$name" >&2
  rm -f "$out/$name.json" "$out/$name/tasks.jsonl"
  "$study" "--data=$data" "--out=$out/$name" "--benchmark_out=$out/$name.json" --benchmark_out_format=json "$@"
done
"$build/report" "--pools=$root/bench/study/pools.json" "$out" "$out"/study_*.json
if command -v gnuplot > /dev/null; then
  for script in "$out"/study_*.gp "$out"/study_*/*.gp; do
    [ -f "$script" ] && (cd "$(dirname "$script")" && gnuplot "$(basename "$script")")
  done
fi
