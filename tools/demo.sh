#!/bin/bash
# `make demo`: builds the program and talks with the model that comes with it. A newcomer waits for this, so kernels are
# compiled for the GPUs of this machine only, and clang, which compiles AMD's, is installed only where there is one.
#
#   tools/demo.sh [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}

groups=(build serve)
[ -z "$(tools/native_targets.sh amd)" ] || groups+=(kernels)
tools/deps.sh "${groups[@]}"
if [ ! -f build/release/build.ninja ]; then
  cmake --preset release -DTL_BUILD_TESTS=OFF -DTL_GROUP_SOURCES=OUTER -DTL_NVIDIA_TARGETS=native -DTL_AMD_TARGETS=native
fi
cmake --build --preset release --target tl -j "$jobs"
exec build/release/bin/tl demo chat
