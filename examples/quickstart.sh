#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tunes five kernels on this machine, with all set-up, on a fresh Debian or Ubuntu. Arguments go to the program:
# `bash examples/quickstart.sh --help`. Journal, plot and exported kernels are left in quickstart-output/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/packaging/debian_packages.sh

tunewright_install_packages
cmake --preset release
if ! grep --quiet '^build examples/quickstart:' build/release/build.ninja; then
  echo "The quick start is left out, because the component named above is missing. Install what it needs, or name its folder in" \
    "CMAKE_PREFIX_PATH; orc needs LLVM 19: llvm-19-dev in Debian 12, Ubuntu 24.04 and later." >&2
  exit 1
fi
cmake --build --preset release --target quickstart
exec build/release/examples/quickstart --output quickstart-output "$@"
