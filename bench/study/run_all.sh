#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every study that was built and makes tables and figures of the results.
#
#   bench/study/run_all.sh DATA OUT [option of every study...]
#
# Options must be such as every study reads: --seeds, --first_seed; STUDIES=NAME gives others to one alone.
# DATA is the folder of the recorded data (docs/studies/README.md names the sources). OUT gets <study>.json and, by
# `report`, <study>.md, <study>.dat and <study>.gp, which gnuplot draws as <study>.svg; OUT/<study>/tasks.1-of-1.jsonl has
# the results of studies that are no searches task by task. Studies that compare recipes have a folder OUT/<study> of
# their own, with tables, figures and what they need to go on after a stop. Studies whose data are missing say so and are
# left out.
#
#   BUILD    the folder of the built studies, build/release/bench/study unless set
#   MINUTES  for all studies together, 170 unless set; what is left is shared evenly among those that are not finished
#   STUDIES  names of those to run, all unless set
#
# Stopped, or out of time: the same command goes on where it was, with the same options. A finished study leaves
# OUT/<study>.done behind.
set -eu
if [ $# -lt 2 ]; then
  echo "usage: $0 DATA OUT [option of the studies...]" >&2
  exit 2
fi
data=$1 out=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build/release/bench/study}
minutes=${MINUTES:-170}
mkdir -p "$out"

# Options that a study has on its page, before those of the command line, which so have the last word.
options_of() {
  case $1 in
    study_collection) echo '--benchmark_filter=^(chance|gbdt|labels|(mlp|pattern_aware)_quick_other_networks)' ;;
    study_label_curve) echo --records=400 ;;
    study_models) echo --records=30 --threads=1 ;;
    study_models_networks) echo --records=30 --tasks=20 --first_tasks=5 --seeds=2 ;;
    study_networks) echo --threads=2 --recipes=AnsorQuick,PrunerQuick,DraftAndTrees,MoaPrunerQuick ;;
    study_pruning) echo --records=100 ;;
    study_schedulers) echo --threads=2 --schedulers=Gradient,Bandit ;;
    study_schedules) echo --threads=2 --recipes=AnsorQuick,PrunerQuick,NoDraft,DraftAndTrees,NoDataflow,MoaPrunerQuick,TlpQuick ;;
    study_draft_and_trees) echo --threads=2 ;;
    study_transfer) echo --source=2048 ;;
  esac
}

unfinished=
for study in "$build"/study_*; do
  [ -x "$study" ] && [ -f "$study" ] || continue
  name=$(basename "$study")
  case " ${STUDIES:-$name} " in *" $name "*) ;; *) continue ;; esac
  if [ -f "$out/$name.done" ] && [ "$(cat "$out/$name.done")" = "$*" ]; then
    echo "$name: finished before" >&2
  else
    unfinished="$unfinished $name"
  fi
done

start=$(date +%s)
failed=
left=$(echo "$unfinished" | wc -w)
all=$left
for name in $unfinished; do
  used=$((($(date +%s) - start) / 60))
  share=$(((minutes - used) / left))
  [ "$share" -ge 1 ] || share=1
  echo "[$((all - left + 1)) of $all] $name: $used of $minutes minutes used, at most $share for this" >&2
  left=$((left - 1))
  json=$out/$name.json
  # What an earlier run wrote says nothing of this one.
  [ ! -s "$json" ] || mv "$json" "$json.before"
  # No run begins after --minutes. Searches that are under way stop, and say what they found, when they are interrupted.
  # shellcheck disable=SC2046
  # Of a study that ends properly after the signal, the status is its own. It stays in the foreground, so that Ctrl-C
  # reaches it, and only the study is signalled: a second signal would kill it.
  if timeout --foreground --preserve-status --signal=INT --kill-after=600 $((share * 60 + 30)) "$build/$name" "--data=$data" "--out=$out/$name" \
    "--benchmark_out=$json" --benchmark_out_format=json "--minutes=$share" $(options_of "$name") "$@"; then
    if [ ! -s "$json" ]; then
      echo "$name: left out" >&2
    elif grep -q '"error_occurred": true' "$json"; then
      echo "$name: stopped; the same command goes on" >&2
    else
      echo "$*" > "$out/$name.done"
    fi
  else
    failed="$failed $name"
  fi
  if [ -s "$json" ]; then
    rm -f "$json.before"
  elif [ -s "$json.before" ]; then
    mv "$json.before" "$json"
  fi
done

reports=
for json in "$out"/study_*.json; do
  [ -s "$json" ] && reports="$reports $json"
done
# shellcheck disable=SC2086
[ -z "$reports" ] || "$build/report" "--pools=$root/bench/study/pools.json" "$out" $reports || failed="$failed report"
if command -v gnuplot > /dev/null; then
  for script in "$out"/study_*.gp "$out"/study_*/*.gp; do
    [ -f "$script" ] || continue
    (cd "$(dirname "$script")" && gnuplot "$(basename "$script")") || echo "$script: no figure" >&2
  done
fi
echo "$((($(date +%s) - start) / 60)) minutes" >&2
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
