#!/bin/bash
# Runs our AMD machine code in an emulator, where there is no AMD GPU: first every kernel alone against numpy, then the
# runtime's and the kernels' own tests over a HIP library whose launches go to that emulator.
#
#   TINYGRAD         a checkout of tinygrad, whose instruction emulator does the work
#   AMD_EMULATE_DIR  the folder with emulate.py and hip_shim.cpp, which load code objects and drive it
#   AMD_TARGETS      default: gfx1100 (32 lanes) and gfx942 (64 lanes)
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
targets=${AMD_TARGETS:-gfx1100 gfx942}
out=build/amd-check

missing() {
  echo "error: $1" >&2
  echo "make amd-check needs two things that are not part of this repository:" >&2
  echo "  TINYGRAD=<folder>         a checkout of https://github.com/tinygrad/tinygrad" >&2
  echo "  AMD_EMULATE_DIR=<folder>  the folder with emulate.py and hip_shim.cpp" >&2
  echo "and clang, and a python3 that has numpy (Debian: clang python3-numpy libpython3.11)." >&2
  echo "Then: make amd-check TINYGRAD=... AMD_EMULATE_DIR=..." >&2
  exit 1
}
[ -n "${TINYGRAD:-}" ] || missing "TINYGRAD is not set"
[ -e "$TINYGRAD/test/mockgpu/amd/emu.py" ] || missing "TINYGRAD=$TINYGRAD has no test/mockgpu/amd/emu.py"
[ -n "${AMD_EMULATE_DIR:-}" ] || missing "AMD_EMULATE_DIR is not set"
for file in emulate.py hip_shim.cpp; do
  [ -e "$AMD_EMULATE_DIR/$file" ] || missing "AMD_EMULATE_DIR=$AMD_EMULATE_DIR has no $file"
done
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import numpy' 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || missing "no python3 with numpy"
command -v clang >/dev/null || missing "there is no clang on PATH"
export TINYGRAD AMD_EMULATE_DIR

tools/deps.sh build kernels test
cmake --preset release >build/configure-release.log 2>&1 || { cat build/configure-release.log; exit 1; }
cmake --build --preset release -j "$jobs" --target runtime_tests kernels_tests tensor_tests ops_tests \
  quant_tests sampler_tests decoder_tests grad_tests tl
mkdir -p $out
g++ -std=c++20 -O2 -shared -fPIC "$AMD_EMULATE_DIR/hip_shim.cpp" -o $out/libamdhip64.so -ldl

# What is embedded in the program, and the primitives of gpu.h as kernels of their own, which only tests have.
rm -rf $out/images $out/*.tsv
python3 tests/kernels/compile_all.py $out/images --modules probe --only amd >$out/probe.txt 2>&1 || { cat $out/probe.txt; exit 1; }
cp build/kernels/images/*.hsaco $out/images/

failed=()
check() {  # check NAME COMMAND...: the whole output goes to a file, its end to the terminal
  local name=$1 start=$SECONDS
  shift
  echo "=== $name"
  if "$@" >"$out/$name.txt" 2>&1; then
    grep -E 'PASSED|passed,|^rocm:0' "$out/$name.txt" || true
  else
    failed+=("$name")
    tail -n 40 "$out/$name.txt"
  fi
  echo "    $((SECONDS - start)) s"
}

for target in $targets; do
  [ -e "$out/images/fill.$target.hsaco" ] ||
    missing "there is no code for $target in build/kernels/images (clang-19 and lld-19 compile it)"
  check "kernels-$target" "$python" tests/kernels/amd/run_kernels.py $out/images "$target"
  # The CUDA driver is hidden, so that rocm:0 is the only GPU. The emulator runs no compiler.
  emulated=(env TL_HIP_DRIVER="$PWD/$out/libamdhip64.so" TL_HIPRTC="$PWD/$out/none.so" TL_NVRTC="$PWD/$out/none.so"
            TL_CUDA_DRIVER="$PWD/$out/none.so" TL_CACHE_DIR="$PWD/$out/cache" AMD_EMULATE_ARCH="$target"
            EMULATE_FROM="$(realpath "$AMD_EMULATE_DIR")" AMD_EMULATE_DIR="$PWD/tests/kernels/amd/emulator")
  check "devices-$target" "${emulated[@]}" build/release/bin/tl devices --modules
  # A run that found no device would pass on the CPU and prove nothing.
  grep -q "^rocm:0 .*$target" "$out/devices-$target.txt" ||
    { echo "the emulated $target was not found"; failed+=("devices-$target"); continue; }
  check "runtime-$target" "${emulated[@]}" build/release/bin/runtime_tests
  check "kernel-tests-$target" "${emulated[@]}" build/release/bin/kernels_tests
  check "tensor-$target" "${emulated[@]}" build/release/bin/tensor_tests
  # Every op and every kernel once, on small inputs; all tests of ops would take days here.
  check "ops-$target" "${emulated[@]}" TL_OPS_REPORT="$PWD/$out/ops-$target.tsv" \
    build/release/bin/ops_tests --gtest_filter='*Sweep*:*EveryFormatDecodes*'
  check "quant-$target" "${emulated[@]}" build/release/bin/quant_tests --gtest_filter='*Sweep*:*EveryFormatDecodes*'
  check "sampler-$target" "${emulated[@]}" build/release/bin/sampler_tests --gtest_filter='*Sweep*'
  check "decoder-$target" "${emulated[@]}" build/release/bin/decoder_tests --gtest_filter='*Sweep*'
  # Kernels of gradients and of optimisers; other gradients are made of ops.
  check "grad-$target" "${emulated[@]}" build/release/bin/grad_tests \
    --gtest_filter='*RowGradient*:*Slopes*:*Optimizers*'
  awk -F '\t' '$1 == "kernels" {used += $4; all += $5} END {print "    ops launched " used " of " all " kernels"}' \
    "$out/ops-$target.tsv"
done

if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]} (output in $out)"
  exit 1
fi
echo "all AMD checks passed for: $targets"
