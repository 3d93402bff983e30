#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bash cmake/packaging/deb/create.sh [--no-test] [FOLDER]
#
# Makes libtunewright-dev_<version>_all.deb in FOLDER (build/deb) and tests it: installs it in an empty root, builds and
# runs a consumer of every component whose library this system has, removes it, and looks for what it left. Needs no
# network and no rights.
set -euo pipefail
test=yes
if [ "${1:-}" = --no-test ]; then
  test=no
  shift
fi
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
mkdir -p "${1:-$source/build/deb}"
folder=$(cd "${1:-$source/build/deb}" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTUNEWRIGHT_BUILD_TESTS=OFF \
  -DTUNEWRIGHT_BUILD_EXAMPLES=OFF -DTUNEWRIGHT_BUILD_BENCH=OFF -DTUNEWRIGHT_BUILD_TOOLS=OFF -DTUNEWRIGHT_INSTALL=ON \
  >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
(cd "$build" && cpack -G DEB >cpack.log) || { cat "$build/cpack.log" >&2; exit 1; }
package=$(ls "$build"/*.deb)
rm -f "$folder"/libtunewright-dev_*_all.deb
mv "$package" "$folder"
package=$folder/${package##*/}
echo "$package, $(stat --format=%s "$package") bytes"
[ "$test" = no ] && exit 0

root=$build/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
touch "$root/var/lib/dpkg/status"
in_root=(dpkg --root="$root" --force-not-root --force-depends --log=/dev/null)
"${in_root[@]}" --install "$package" >/dev/null 2>"$build/install.log" || { cat "$build/install.log" >&2; exit 1; }
echo "installed: $(find "$root/usr" -type f | wc -l) files"

# The components that configuring found, as its table says.
components=$(sed -n 's/^--   \([a-z]*\): yes.*/\1/p' "$build/configure.log" | paste -sd '|')
compiler=$(command -v "${CXX:-c++}")
cmake -DSOURCE="$source/test/package/find_package" -DBINARY="$build/consumer" -DGENERATOR=Ninja -DCOMPILER="$compiler" \
  -DPREFIX="$root/usr" -DROOT="$source" -DCOMPONENTS="$components" -P "$source/test/package/build.cmake" \
  >"$build/consumer.log" 2>&1 || { tail -n 40 "$build/consumer.log" >&2; exit 1; }
echo "a consumer of $components builds and runs"

"${in_root[@]}" --purge libtunewright-dev >/dev/null
left=$(find "$root" -path "$root/var" -prune -o -type f -print)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
echo "removed: nothing left"
