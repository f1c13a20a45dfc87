#!/bin/bash
# Runs the tests and benchmarks of this bundle on the GPU of this machine. Results go to $OUT, or ./out.
#
#   run.sh [tests|sanitize|bench|ops-bench|train-bench|quant-bench|load]...    default: all
#
# Every step's output is a file of its own; summary.txt has one line per step. Exits 1 when a step failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-./out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export TL_CACHE_DIR=$out/cache TL_TEST_ROOT=$here
: > "$out/summary.txt"
failed=0

step() {  # step NAME COMMAND...
  local name=$1 start=$SECONDS code=0
  shift
  "$@" >"$out/$name.txt" 2>&1 || code=$?
  local line
  line=$(printf '%-28s exit %3d  %4d s' "$name" $code $((SECONDS - start)))
  echo "$line" | tee -a "$out/summary.txt"
  if [ $code -ne 0 ]; then
    failed=1
    tail -n 40 "$out/$name.txt"
  fi
  return 0
}

sanitizer() { command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | tail -1; }

# The vendor's math libraries, where they came with a Python package and are not on the loader's path.
library_of() {  # library_of NAME: its file among the installed Python packages, or nothing
  python3 - "$1" <<'EOF' 2>/dev/null || true
import pathlib, site, sys
folders = [pathlib.Path(f) for f in sys.path if f.endswith("-packages")] + [pathlib.Path(f) for f in site.getsitepackages()]
for folder in folders:
    for file in sorted(folder.glob("nvidia/**/" + sys.argv[1])):
        print(file)
        sys.exit()
EOF
}
export TL_CUBLASLT=${TL_CUBLASLT:-$(library_of 'libcublasLt.so.1[0-9]')}
export TL_CUDNN=${TL_CUDNN:-$(library_of 'libcudnn.so.9')}
[ -n "$TL_CUBLASLT" ] || unset TL_CUBLASLT
[ -n "$TL_CUDNN" ] || unset TL_CUDNN
for file in "${TL_CUBLASLT:-}" "${TL_CUDNN:-}"; do  # what they load in turn lies beside them
  [ -z "$file" ] || export LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$(dirname "$file")"
done

# Without a GPU the tests would pass on the CPU alone and prove nothing here.
step devices "$here/bin/tl" devices --modules
if ! grep -Eq '^(cuda|rocm):0 ' "$out/devices.txt"; then
  echo "error: no GPU is visible on this machine" | tee -a "$out/summary.txt"
  cat "$out/devices.txt"
  exit 1
fi
nvidia-smi >"$out/nvidia-smi.txt" 2>&1 || true

[ $# -gt 0 ] || set -- tests sanitize bench ops-bench train-bench quant-bench load
for part in "$@"; do
  case $part in
    tests)
      step base "$here/bin/base_tests"
      step runtime "$here/bin/runtime_tests"
      step kernels "$here/bin/kernels_tests"
      step tensor "$here/bin/tensor_tests"
      step ops env TL_OPS_REPORT="$out/ops-cuda.tsv" "$here/bin/ops_tests"
      step ops-own-kernels env TL_NO_VENDOR_LIBS=1 TL_OPS_REPORT="$out/ops-own-kernels.tsv" "$here/bin/ops_tests"
      step quant "$here/bin/quant_tests"
      step model "$here/bin/model_tests"
      step weights "$here/bin/weights_tests"
      step decoder "$here/bin/decoder_tests"
      step engine "$here/bin/engine_tests"
      step sampler "$here/bin/sampler_tests"
      step grad "$here/bin/grad_tests"
      step grad-own-kernels env TL_NO_VENDOR_LIBS=1 "$here/bin/grad_tests"
      step lang-values "$here/bin/lang_value_tests"
      step lang-library "$here/bin/lang_library_tests"
      step scripts python3 "$here/tests/lang/scripts_test.py" "$here/bin/tl" "$here" --device cuda:0 --jobs 8
      step kernels-compiled env TL_FORCE_RTC=1 "$here/bin/kernels_tests"
      if [ -e "$here/hip-over-cuda/libamdhip64.so" ]; then
        # The CUDA driver is hidden so that the ROCm devices are the ones under test.
        over=(env TL_HIP_DRIVER="$here/hip-over-cuda/libamdhip64.so" TL_HIPRTC="$here/hip-over-cuda/libamdhip64.so"
              TL_CUDA_DRIVER="$here/none.so")
        step rocm-devices "${over[@]}" "$here/bin/tl" devices
        step rocm-runtime "${over[@]}" "$here/bin/runtime_tests"
        step rocm-kernels "${over[@]}" "$here/bin/kernels_tests"
        step rocm-ops "${over[@]}" "$here/bin/ops_tests"
        step rocm-quant "${over[@]}" "$here/bin/quant_tests"
        step rocm-weights "${over[@]}" "$here/bin/weights_tests"
        step rocm-decoder "${over[@]}" "$here/bin/decoder_tests"
        step rocm-engine "${over[@]}" "$here/bin/engine_tests"
        step rocm-grad "${over[@]}" "$here/bin/grad_tests"
        step rocm-sampler "${over[@]}" "$here/bin/sampler_tests"
        step rocm-scripts "${over[@]}" python3 "$here/tests/lang/scripts_test.py" "$here/bin/tl" "$here" \
          --device rocm:0 --jobs 8
      fi
      step demo "$here/bin/tl" demo memory
      ;;
    sanitize)
      tool=$(sanitizer)
      if [ -z "$tool" ]; then
        echo "error: compute-sanitizer is not on this machine" | tee -a "$out/summary.txt"
        failed=1
        continue
      fi
      for check in memcheck racecheck; do
        for program in runtime kernels ops quant sampler grad; do
          # Errors that a test provokes on purpose come back as return values and are not reported.
          step $check-$program "$tool" --tool $check --error-exitcode 9 --report-api-errors no \
            --target-processes all "$here/bin/${program}_tests"
        done
      done
      ;;
    bench)
      for bench in "$here"/bin/*_bench; do
        name=$(basename "$bench")
        case $name in ops_bench | quant_gpu_bench | train_bench | fused_bench) continue ;; esac
        step "$name" "$bench" --benchmark_out="$out/$name.json" --benchmark_out_format=json
      done
      ;;
    ops-bench)  # beside PyTorch on the same card
      step ops_bench bash -c "'$here/bin/ops_bench' --device cuda:0 >'$out/ops.json'"
      step torch_ops bash -c "python3 '$here/torch_ops.py' --device cuda:0 >'$out/torch.json'"
      step ops_compare python3 "$here/compare.py" "$out/ops.json" "$out/torch.json"
      cat "$out/ops_compare.txt"
      ;;
    train-bench)  # beside PyTorch on the same card
      for model in "" "--batch 32" "--width 768 --layers 12 --time 512"; do
        # shellcheck disable=SC2086  # several options
        step "train_bench${model// /}" "$here/bin/train_bench" --device cuda:0 $model
        # shellcheck disable=SC2086
        step "torch_train${model// /}" python3 "$here/torch_train.py" --device cuda:0 $model
      done
      step fused_bench "$here/bin/fused_bench" --device cuda:0
      step torch_fused python3 "$here/torch_fused.py" --device cuda:0
      cat "$out"/t*_*train*.txt "$out"/*fused*.txt
      ;;
    quant-bench)
      step quant_gpu_bench "$here/bin/quant_gpu_bench" --paths
      ;;
    load)  # a model of 2.2 GB from the page cache, and every byte of it back
      model=$(mktemp -d)/model.gguf
      step make_model python3 "$here/make_model.py" "$model"
      step load "$here/bin/tl" load "$model" --device cuda:0 --times 5
      step load-check "$here/bin/tl" load "$model" --device cuda:0 --check --json
      step load-leaks env TL_TEST_MODEL="$model" "$here/bin/weights_tests" --gtest_filter='*Leaks*'
      rm -rf "$(dirname "$model")"
      ;;
    *)
      echo "usage: run.sh [tests|sanitize|bench|ops-bench|train-bench|quant-bench|load]..." >&2
      exit 2
      ;;
  esac
done
exit $failed
