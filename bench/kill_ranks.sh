#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills a process of a search over MPI every few seconds, for some minutes: in turns the process that a kernel runs in, a
# measuring rank, and now and then the rank that tunes. Whenever the search has ended it is started again, from its
# journal. Says at the end whether anything was lost or measured twice; status 1 if so.
#
#   bash bench/kill_ranks.sh build/release/bench/bench_scale_out [SECONDS=300] [EVERY=10] [FOLDER]
set -euo pipefail
program=$(realpath "${1:?path of bench_scale_out}")
duration=${2:-300}
every=${3:-10}
folder=${4:-$(mktemp -d)}
mkdir -p "$folder"
journal=$folder/journal.jsonl
witness=$folder/witness
mpirun=(mpirun --oversubscribe --bind-to none --enable-recovery)
[ "$(id -u)" -ne 0 ] || mpirun+=(--allow-run-as-root)

start() {
  starts=$((starts + 1))
  "${mpirun[@]}" -n 3 "$program" --trials=1000000 --size=256 --journal="$journal" --witness="$witness" \
    >>"$folder/log" 2>&1 &
  job=$!
}
# Ranks are children of mpirun, in their order; below each: what forks, and below that what kernels run in.
rank() { pgrep --parent "$job" | sed -n "$1p" || true; }
stop() {
  local all=("$(rank 1)" "$(rank 2)" "$(rank 3)")
  kill -KILL "$job" 2>/dev/null || true
  wait "$job" 2>/dev/null || true
  for process in "${all[@]}"; do [ -z "$process" ] || kill -KILL "$process" 2>/dev/null || true; done
}

starts=0
kills=(0 0 0) # of kernels' processes, measuring ranks, tuning ranks
start
end=$(($(date +%s) + duration))
for ((turn = 0; $(date +%s) < end; ++turn)); do
  sleep "$every"
  if ! kill -0 "$job" 2>/dev/null || [ -z "$(rank 1)" ]; then
    stop
    start
    continue
  fi
  target=$(rank 2)
  case $((turn % 4)) in
    0 | 2) # of the last rank
      forker=$(pgrep --parent "$(pgrep --parent "$job" | tail -n 1)" | head -n 1 || true)
      target=$(pgrep --parent "${forker:-0}" | head -n 1 || true)
      kind=0
      ;;
    1) kind=1 ;;
    3)
      kind=1
      if ((turn % 8 == 7)); then
        target=$(rank 1)
        kind=2
      fi
      ;;
  esac
  if [ -n "$target" ] && kill -KILL "$target" 2>/dev/null; then kills[kind]=$((kills[kind] + 1)); fi
done
stop
echo "$starts starts; killed ${kills[0]} processes of kernels, ${kills[1]} measuring ranks, ${kills[2]} tuning ranks"
grep -c "was lost\|no rank is left" "$folder/log" | sed 's/$/ lines of lost ranks/' || true
"$program" --verify --journal="$journal" --witness="$witness"
