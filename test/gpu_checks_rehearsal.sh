#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/gpu_checks.sh from end to end where there is no GPU: its programs, unchanged, over stand-ins for the driver and for
# NVIDIA's libraries.
#
#   bash test/gpu_checks_rehearsal.sh BINARIES FAKE_DRIVER FAKE_LIBRARIES
#
# BINARIES is the folder that the target gpu_checks fills. Times are made up and results are whatever is expected, so this says
# nothing of kernels; it says that every part runs, reports, resumes, and fails as it should.
set -euo pipefail
built="$(cd "$1" && pwd)"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/lib" "$folder/bin" "$folder/binaries"
binaries="$folder/binaries"
ln -s "$built"/* "$binaries"
rm -f "$binaries/revision"
echo one >"$binaries/revision"
ln -s "$(realpath "$2")" "$folder/lib/libcuda.so.1"
for library in libcublas libcublasLt; do
  for major in 12 13; do ln -s "$(realpath "$3")" "$folder/lib/$library.so.$major"; done
done
for major in 8 9; do ln -s "$(realpath "$3")" "$folder/lib/libcudnn.so.$major"; done
cat >"$folder/bin/nvidia-smi" <<'END'
#!/bin/sh
echo 'Paper GPU, "580", 580.1'
END
chmod +x "$folder/bin/nvidia-smi"
export LD_LIBRARY_PATH="$folder/lib" PATH="$folder/bin:$PATH"
export FAKE_CUDA_ORACLE=1 FAKE_CUDA_MEMORY=8000000000 NVIDIA_TF32_OVERRIDE=1

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
checks() { bash "$root/bench/gpu_checks.sh" "$folder/out" --binaries="$binaries" "$@" >"$folder/said" 2>&1; }
# says TEXT WHAT: the report holds TEXT.
says() { grep -q -- "$1" "$folder/out/report.json" || { cat "$folder/said" "$folder/out/report.json"; fail "$2"; }; }

# Time that is up is no failure.
checks products --cases=batch_matmul/ --trials=8 --seconds=1 || { cat "$folder/said"; fail "a part without time"; }
says '"outcome": "not finished"' "that time ran out"
says '"measured": false' "that nothing was measured"

# Time that is short for all kernels goes to the first; what was measured counts although the part is not finished.
echo hurried >"$binaries/revision"
checks products --trials=100000 --seconds=20 || { cat "$folder/said"; fail "a part with little time"; }
says '"outcome": "not finished"' "that time ran out for some kernels"
says '"measured": true' "that a part which is not finished has measured"
grep -q '"case":"matmul/1024x.*"measured":[1-9]' "$folder/out/hurried/products.results.jsonl" ||
  fail "little time went to no kernel"
echo one >"$binaries/revision"

# A kernel of each operator, few trials: what a comparison needs.
checks products --cases=matmul/1024x --trials=8 || { cat "$folder/said"; fail "products"; }
checks half --cases=matmul_fp16/1024x --trials=8 || { cat "$folder/said"; fail "half"; }
checks convolutions --cases=conv2d/7x7x512_512 --trials=8 || { cat "$folder/said"; fail "convolutions"; }
says '"device": "Paper GPU, \\"580\\""' "the device's name"
says '"driver": "580.1"' "the driver's version"
says '"measured": true' "that something was measured"
says '"geometric_mean"' "the mean of ratios"
says '"trials_per_s"' "trials a second"
says '"cuDNN, NHWC"' "what cuDNN cannot do"
if command -v python3 >/dev/null; then
  python3 -m json.tool "$folder/out/report.json" >/dev/null || fail "a report in JSON"
fi
grep -q '"library":"cuBLAS' "$folder/out/one/products.results.jsonl" || fail "a comparison with cuBLAS"
grep -q '"library":"cuBLAS' "$folder/out/one/half.results.jsonl" || fail "a comparison with cuBLAS in half precision"
grep -q '"library":"cuDNN, NCHW' "$folder/out/one/convolutions.results.jsonl" || fail "a comparison with cuDNN"
grep -q '"without":{"cuDNN, NHWC"' "$folder/out/one/convolutions.results.jsonl" || fail "what cuDNN cannot do"

# The same again measures nothing.
lines="$(wc -l <"$folder/out/one/products.jsonl")"
checks products --cases=matmul/1024x --trials=8 || fail "the same again"
[ "$(wc -l <"$folder/out/one/products.jsonl")" = "$lines" ] || fail "a part that was done was measured again"

# A comparison that is lacking is made up for, without new measurements.
sed -i 's/,"ratio":[^,}]*//' "$folder/out/one/products.results.jsonl"
checks products --cases=matmul/1024x --trials=8 || fail "a kernel without a ratio"
tail -n 1 "$folder/out/one/products.results.jsonl" | grep -q '"measured":8,.*"ratio":' || fail "a kernel without a ratio is done"
[ "$(wc -l <"$folder/out/one/products.jsonl")" = "$lines" ] || fail "a kernel without a ratio was measured again"

# A part that is stopped says so, and goes on from what it has measured.
bash "$root/bench/gpu_checks.sh" "$folder/out" --binaries="$binaries" products --cases=matmul/2048x --trials=100000 \
  >"$folder/said" 2>&1 &
for _ in $(seq 600); do
  [ "$(wc -l <"$folder/out/one/products.jsonl")" = "$lines" ] || break
  sleep 0.2
done
kill -TERM $!
wait $! && fail "a part that was stopped ended with success"
says '"outcome": "interrupted"' "that a part was stopped"
lines="$(wc -l <"$folder/out/one/products.jsonl")"
checks products --cases=matmul/2048x --trials=8 || { cat "$folder/said"; fail "a part goes on"; }
grep -q 'taken over from a journal' "$folder/out/products.log" || fail "a part that goes on starts anew"

checks lesson || { cat "$folder/said"; fail "the lesson"; }
grep -q 'Paper GPU: ' "$folder/out/lesson.log" || fail "the lesson's measurement"

# Named kernels are those of the part.
checks products half --cases=matmul_fp16/1024x --trials=8 || { cat "$folder/said"; fail "kernels of another part"; }
says '"name": "products", "outcome": "skipped", "exit_status": 77' "that a part has none of the named kernels"
says '"name": "half", "outcome": "passed"' "that a part has the named kernels"

# What other code measured is not taken over, and is kept.
echo two >"$binaries/revision"
checks half --cases=matmul_fp16/1024x --trials=8 || { cat "$folder/said"; fail "another revision"; }
says '"name": "half".*"revision": "two"' "the revision of a part"
says '"name": "convolutions".*"revision": "one"' "the revision of an earlier part"
grep -q '"measured":8' "$folder/out/two/half.results.jsonl" || fail "another revision measures nothing"
[ -f "$folder/out/one/half.results.jsonl" ] || fail "results of an earlier revision are lost"
echo one >"$binaries/revision"

# Without a device, or with a driver that loads nothing, parts are skipped.
FAKE_CUDA_DEVICES=0 checks tests products --cases=matmul/1024x || { cat "$folder/said"; fail "parts without a device"; }
[ "$(grep -c '"outcome": "skipped"' "$folder/out/report.json")" = 2 ] || fail "that parts were skipped"
FAKE_CUDA_DRIVER=11080 checks products --cases=matmul/1024x || fail "an old driver"
grep -q 'loads no code of nvrtc' "$folder/out/products.log" || fail "why an old driver will not do"

# A device that only some tests find is a fault.
mkdir "$folder/broken"
cat >"$folder/broken/test_measurers_nvrtc" <<'END'
#!/bin/sh
echo 'nvrtc.cpp(1): MESSAGE: skipped: no device: too busy'
echo '[doctest] test cases:  2 |  2 passed | 0 failed | 9 skipped'
END
chmod +x "$folder/broken/test_measurers_nvrtc"
binaries="$folder/broken"
checks tests && fail "tests of which some found no device passed"
says '"name": "tests", "outcome": "failed"' "that some tests found no device"

# A program that fails is told, with its output.
printf '#!/bin/sh\necho no reason; exit 3\n' >"$folder/broken/bench_gpu_kernels"
chmod +x "$folder/broken/bench_gpu_kernels"
checks products && fail "a program that fails passed"
says '"outcome": "failed", "exit_status": 3' "that a program failed"
grep -q 'no reason' "$folder/said" || fail "what a program that fails said"
echo "all parts run, report, resume and fail as they should"
