#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bash test/package/first_hour.sh PREFIX [FOLDER]: does what docs/first_hour.md says, with the package installed in
# PREFIX (/usr for the Debian package) and no file but those that the page shows, in an empty folder.
set -euo pipefail
prefix=${1:?name the prefix where the package is installed}
folder=${2:-$(mktemp -d)}
page=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/docs/first_hour.md
mkdir -p "$folder"
[ -z "$(ls -A "$folder")" ] || { echo "'$folder' is not empty; name another folder" >&2; exit 1; }

# A block that follows "<!-- file: NAME -->" or "<!-- snippet: PATH/NAME .. -->" is the file NAME.
awk -v folder="$folder" '
  /^<!-- (file|snippet): / { name = $3; sub(/.*\//, "", name); next }
  /^```/ { writing = name != "" && !writing; if (!writing) name = ""; next }
  writing { print > (folder "/" name) }
' "$page"
for file in CMakeLists.txt tune.cpp ablation.cpp plot.cpp use.c hour.sh; do
  [ -s "$folder/$file" ] || { echo "$page shows no $file" >&2; exit 1; }
done

cd "$folder"
export CMAKE_PREFIX_PATH="$prefix${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
bash -e hour.sh
for result in matmul.jsonl results-spread/spread.md plots/matmul_128x128x128.best_so_far.svg \
  plots/matmul_128x128x128.time_split.svg kernels/matmul.o; do
  [ -s "$result" ] || { echo "$folder/$result is missing" >&2; exit 1; }
done
echo "All of the page works, in $folder"
