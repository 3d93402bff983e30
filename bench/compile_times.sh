#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What it takes to compile a program that uses the library, a line a measurement:
#
#   <user seconds> s  <form>  <source>  <what it is>
#
# header-only    as everybody gets it
# compiled       with TUNEWRIGHT_SEPARATE_COMPILATION: what is no template is in libraries that are built once
# compiled+pch   the same, with the headers that tunewright_precompile_headers precompiles once
#
#   bash bench/compile_times.sh [COMPILER] [FLAGS...]     # default: c++ -O2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
compiler="${1:-c++}"
shift || true
flags=("${@:--O2}")
llvm="$(llvm-config-19 --includedir 2>/dev/null || echo /usr/lib/llvm-19/include)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$compiler" --version | head -n 1
echo "${flags[*]}"

compile() { # SOURCE FLAGS...
  "$compiler" -std=c++20 "${flags[@]}" -Iinclude -isystem "$llvm" -c "$1" -o "$folder/object.o" "${@:2}"
}
seconds() { # COMMAND...
  local TIMEFORMAT=%U
  { time "$@" 1>&3 2>&4; } 3>&1 4>&2 2>&1
}

# A variant as who ablates writes it: lesson 1 with another sampler.
sed -e 's|^#include "tunewright/spaces/multi_level_tiling.hpp"|#include "tunewright/samplers/top_k.hpp"\n&|' \
  -e 's|^int main() {|struct Variant : recipes::DraftAndTrees<spaces::MultiLevelTiling, measurers::OrcJit> {\n  using sampler = samplers::TopK;\n};\n&|' \
  -e 's|using Recipe = .*|using Recipe = Variant;|' examples/01_first_tuner.cpp >"$folder/01_with_another_sampler.cpp"
grep -q 'using Recipe = Variant;' "$folder/01_with_another_sampler.cpp"
grep -q 'struct Variant' "$folder/01_with_another_sampler.cpp"

precompiled="$folder/precompiled.hpp"
echo '#include "tunewright/src/precompiled.hpp"' >"$precompiled"
compile_header() {
  "$compiler" -std=c++20 "${flags[@]}" -Iinclude -DTUNEWRIGHT_SEPARATE_COMPILATION -x c++-header "$precompiled" -o "$precompiled.gch"
}
compile_header

while read -r source what; do
  for form in header-only compiled compiled+pch; do
    case "$form" in
      header-only) extra=() ;;
      compiled) extra=(-DTUNEWRIGHT_SEPARATE_COMPILATION) ;;
      compiled+pch) extra=(-DTUNEWRIGHT_SEPARATE_COMPILATION -include "$precompiled") ;;
    esac
    taken="$(seconds compile "$source" "${extra[@]}")"  # on its own, or a failure would not end the script
    printf '%6.2f s  %-12s  %s  %s\n' "$taken" "$form" "${source#"$folder/"}" "$what"
  done
done <<LIST
cmake/packaging/conan/test_package/consumer.cpp random search over a space of one's own
examples/07_write_your_own_sampler.cpp Ansor's recipe on the simulated machine
examples/01_first_tuner.cpp DraftAndTrees on this CPU, with LLVM
$folder/01_with_another_sampler.cpp the same with one slot changed
LIST
