#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All tests, with all set-up, on a fresh Debian or Ubuntu; benchmarks are not compiled (preset release). Arguments go to ctest: `bash test/run.sh -R test_core`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/packaging/debian_packages.sh

tunewright_install_packages "${tunewright_emulator_packages[@]}"
cmake --preset ci
cmake --build --preset ci
ctest --preset ci "$@"
