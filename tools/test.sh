#!/bin/bash
# Everything `make test` checks, the quick checks first. Stops at the first failure; prints how long each step took.
#
#   tools/test.sh [JOBS]
#
# TL_STRICT_CHECKS=1 (set in CI): warnings are errors, and a check whose tool is missing fails instead of being left out.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
strict=${TL_STRICT_CHECKS:-0}
werror=$([ "$strict" = 1 ] && echo ON || echo OFF)

steps=()
print_times() {
  [ ${#steps[@]} -eq 0 ] || printf '%s\n' "" "step                         seconds" "${steps[@]}"
}
trap print_times EXIT

step() {
  local title=$1 start=$SECONDS
  shift
  echo
  echo "=== $title"
  local code=0
  "$@" || code=$?
  steps+=("$(printf '%-28s %7d%s' "$title" $((SECONDS - start)) "$([ $code = 0 ] || echo '  FAILED')")")
  return $code
}

left_out=()
needs() {  # needs TOOL CHECK: may the check run?
  command -v "$1" >/dev/null && return 0
  without "$1" "$2"
  return 1
}
without() {  # without TOOL CHECK: the check is left out, which CI does not allow
  if [ "$strict" = 1 ]; then
    echo "error: $1 is missing, so $2 cannot be checked" >&2
    exit 1
  fi
  left_out+=("$2 ($1 is missing)")
}

build() {  # build PRESET [cmake options]
  local preset=$1
  shift
  cmake --preset "$preset" -DTL_WERROR="$werror" "$@" >"build/configure-$preset.log" 2>&1 ||
    { cat "build/configure-$preset.log"; return 1; }
  cmake --build --preset "$preset" -j "$jobs"
}
sanitized() {  # sanitized PRESET: built by clang, whose sanitizers see more and compile sooner; by GCC where clang has none
  local other=()
  if ! clang++-19 -x c++ -fsanitize=address,undefined -o build/trial - <<<'int main() {}' 2>/dev/null; then
    echo "clang++-19 with its sanitizers (libclang-rt-19-dev) is missing; the compiler of the release build stands in"
    other=(-DCMAKE_CXX_COMPILER=c++)
  fi
  build "$1" "${other[@]}"
}
headers() { cmake --build --preset release --target all_verify_interface_header_sets -j "$jobs"; }

# `make demo` builds kernels for the GPUs of this machine only; here they are built for all.
all_targets=()
if grep -qs '_TARGETS:STRING=native$' build/release/CMakeCache.txt; then
  all_targets=(-UTL_NVIDIA_TARGETS -UTL_AMD_TARGETS)
fi

mkdir -p build
if needs clang-format-19 "the layout of the sources"; then
  step "layout" tools/format.sh --check
fi
step "include direction" python3 tests/include_direction_test.py .
step "release: build" build release -DTL_BUILD_BENCH=ON -DTL_GROUP_SOURCES=OUTER "${all_targets[@]}"
step "release: headers alone" headers
step "release: tests" ctest --preset release -j "$jobs"
step "asan: build" sanitized asan
[ -e build/asan/bin/fuzz_gguf ] || without libFuzzer "how the readers of files take any bytes"
step "asan: tests" ctest --preset asan -j "$jobs"
step "tsan: build" sanitized tsan
step "tsan: tests" ctest --preset tsan -j "$jobs"
if needs clang-tidy-19 "clang-tidy's findings"; then
  step "clang-tidy" python3 tools/tidy.py build/asan --jobs "$jobs"
fi

for each in "${left_out[@]}"; do echo "LEFT OUT: $each"; done
echo
echo "all checks passed"
