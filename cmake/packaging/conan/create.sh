#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bash cmake/packaging/conan/create.sh [option of 'conan create'...]
#
# Makes the Conan package and tests every component of it, header-only and compiled once, with the libraries of this
# system and without a network. Needs Conan 2 and the packages of cmake/packaging/debian_packages.sh. Works in a Conan home of its own, build/conan, unless
# CONAN_HOME names another.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
export CONAN_HOME="${CONAN_HOME:-$root/build/conan}"
if ! command -v conan >/dev/null; then
  echo "There is no program 'conan'; 'pip install conan' installs it" >&2
  exit 1
fi

libraries=(nlohmann_json isa-l eigen boost xtensor llvm-core onnx benchmark)
mkdir -p "$CONAN_HOME/profiles"
profile="$CONAN_HOME/profiles/tunewright"
conan profile detect --force --name=tunewright >/dev/null 2>&1
{
  # What is detected is the standard that the compiler takes when it is not told, which is older than C++20.
  sed 's/^compiler\.cppstd=.*/compiler.cppstd=20/' "$profile"
  # The packages that this needs have Ninja, and may come without Make.
  echo "[conf]"
  echo "tools.cmake.cmaketoolchain:generator=Ninja"
  echo "[platform_tool_requires]"
  echo "cmake/$(cmake --version | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')"
  echo "[replace_requires]"
  for library in "${libraries[@]}"; do
    echo "$library/*: $library/system"
  done
} >"$profile.new"
mv "$profile.new" "$profile"

for library in "${libraries[@]}"; do
  conan export "$here/system" --name="$library" --version=system >/dev/null
done
options=(--profile:all="$profile" --build=missing --no-remote --options="tunewright/*:with_orc=True" --options="tunewright/*:with_onnx=True" --options="tunewright/*:with_study=True" "$@")
conan create "$root" "${options[@]}"

package=tunewright/$(sed -n 's/^ *VERSION \([0-9.]*\)$/\1/p' "$root/CMakeLists.txt")
conan test "$here/test_package" "$package" "${options[@]}" \
  --conf="tools.cmake.cmaketoolchain:extra_variables={'CONSUMER_COMPILED': 'ON'}"
