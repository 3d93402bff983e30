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

# What the kernels are compared with, and what else they could be.
found() { grep --quiet "^$1:[A-Z]*=/" build/release/CMakeCache.txt; }
peers=() missing=()
peer() { if found "$2"; then peers+=("$1"); else missing+=("$1 ($3)"); fi; }
further="python3 -m venv peers && peers/bin/pip install"
peer OpenBLAS TUNEWRIGHT_OPENBLAS_LIBRARY "apt-get install libopenblas-dev, or $further scipy-openblas32"
peer oneDNN TUNEWRIGHT_DNNL_LIBRARY "apt-get install libdnnl-dev, or $further onednn-devel-cpu-gomp"
peer BLIS TUNEWRIGHT_BLIS_LIBRARY "apt-get install libblis-dev"
peer libxsmm TUNEWRIGHT_XSMM_LIBRARY "apt-get install libxsmm-dev"
peer MKL TUNEWRIGHT_MKL_LIBRARY "$further mkl-devel"
echo "Libraries to compare with: Eigen${peers[*]:+ ${peers[*]}}"
for each in "${missing[@]}"; do echo "  one could add $each"; done
if [ ${#missing[@]} -gt 0 ]; then
  echo "  What pip installs is found with TUNEWRIGHT_PEERS_DIR=\$PWD/peers before this command, in a fresh build folder."
fi

cmake --build --preset release --target quickstart
exec build/release/examples/quickstart --output quickstart-output "$@"
