#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the manual as a site in build/site, which needs no network and no server to be read: open build/site/index.html.
# Search needs one: `python3 -m http.server --directory build/site`. MkDocs and Doxygen are packages of Debian and Ubuntu.
#
#   bash docs/build_site.sh               guide and reference
#   bash docs/build_site.sh --guide       the guide alone, seconds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need() {
  command -v "$1" >/dev/null || { echo "The site is built with $1, which is missing: apt-get install $1" >&2; exit 1; }
}
need mkdocs
[ "${1:-}" = --guide ] || need doxygen

cmake -DROOT=. -P test/links.cmake
mkdir -p build
mkdocs build --quiet --strict --clean
if [ "${1:-}" != --guide ]; then
  mkdir -p build/doxygen
  doxygen docs/site/Doxyfile
  # What Doxygen makes of templates is told, and no reason to stop: only our own pages have to be without fault.
  echo "Doxygen had $(wc -l < build/doxygen/warnings.txt) lines to say, see build/doxygen/warnings.txt"
fi
if grep --recursive --include='*.html' --files-with-matches -E '<(script|link|img)[^>]+(src|href)="(https?:)?//' build/site |
  grep --invert-match '^build/site/api/' | head -5 | grep .; then
  echo "These pages load something from the network." >&2
  exit 1
fi
echo "build/site/index.html"
