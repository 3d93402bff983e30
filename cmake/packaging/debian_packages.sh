# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What Debian 12 and 13 and Ubuntu 24.04 call the things we build with; sourced by test/run.sh and examples/quickstart.sh.
# Ubuntu 24.04 has the packages of LLVM 19 among its updates (noble-updates).

tunewright_required_packages=(
  g++ cmake ninja-build
  llvm-19-dev libboost-graph-dev nlohmann-json3-dev libisal-dev libeigen3-dev libxtensor-dev
  doctest-dev
)
# Libraries to compare with, networks from ONNX files, measuring over MPI, the plot of the quick start, the benchmark runner, faster rebuilds, the check of the layout.
tunewright_optional_packages=(
  libopenblas-dev libdnnl-dev libxgboost-dev
  libonnx-dev libprotobuf-dev libopenmpi-dev openmpi-bin
  gnuplot-nox libbenchmark-dev ccache clang-format-19
)
# What tests of code for 64-bit ARM run it with: 68 MB to fetch, 320 MB installed. Without them these tests say so.
tunewright_emulator_packages=(qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross)

tunewright_is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Installs what is missing of what is required and optional, and of the packages given, as root or through sudo. Does
# nothing, and needs no network, when all is there. When it cannot install, it says what to install and lets the build
# find out whether that matters.
tunewright_install_packages() {
  local package missing=() known=() sudo=()
  if ! command -v apt-get >/dev/null; then
    echo "This is not Debian or Ubuntu: install the counterparts of ${tunewright_required_packages[*]}" >&2
    return 0
  fi
  for package in "${tunewright_required_packages[@]}" "${tunewright_optional_packages[@]}" "$@"; do
    tunewright_is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  echo "Installing ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "Neither root nor sudo: ask an administrator for 'apt-get install ${missing[*]}'" >&2
      return 0
    fi
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update --quiet=2 || echo "apt-get update failed; going on with the package lists that are there" >&2
  for package in "${missing[@]}"; do
    if apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then
      known+=("$package")
    else
      echo "This distribution has no package '$package'" >&2
    fi
  done
  [ ${#known[@]} -eq 0 ] && return 0
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends \
    "${known[@]}" >/dev/null || echo "apt-get install failed; going on with what is there" >&2
}
