#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tunes five kernels on this machine, with all set-up, on a fresh Debian or Ubuntu. Arguments go to the program:
# `bash examples/quickstart.sh --help`. Journal, plot and exported kernels are left in quickstart-output/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/packaging/debian_packages.sh

tunewright_install_packages
cmake --preset release
cmake --build --preset release --target quickstart
exec build/release/examples/quickstart --output quickstart-output "$@"
