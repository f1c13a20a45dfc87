#!/bin/bash
# Packs what a GPU machine needs to run our tests and benchmarks on the real device into build/gpu-bundle: the programs,
# stripped, the shared libraries they need, the files that tests read, and run.sh. Nothing has to be installed there but the
# driver.
#
#   gpu_bundle.sh [JOBS [TARGETS]]
#
# TARGETS are the GPUs that it is for (default: sm_90), as TL_NVIDIA_TARGETS and TL_AMD_TARGETS name them. Programs are
# built with kernels for these alone: with all of them each is 30 MB larger.
#
# With AMD_EMULATE_DIR naming the folder of hip_over_cuda.cpp, a libamdhip64.so over libcuda is compiled from there and
# packed too, so that the ROCm half of the runtime is tested on an NVIDIA GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
nvidia='' amd=''
for target in ${2:-sm_90}; do
  case $target in
    gfx*) amd+="$target;" ;;
    *) nvidia+="$target;" ;;
  esac
done
built=build/bundle
bundle=build/gpu-bundle
limit_mib=60

# Grouped and strict as in tools/test.sh, whose objects are then in the compiler cache.
cmake --preset release -B $built -DTL_BUILD_BENCH=ON -DTL_GROUP_SOURCES=OUTER -DTL_WERROR=ON \
  -DTL_NVIDIA_TARGETS="$nvidia" -DTL_AMD_TARGETS="$amd" \
  >build/configure-bundle.log 2>&1 || { cat build/configure-bundle.log; exit 1; }
cmake --build $built -j "$jobs"

rm -rf $bundle
mkdir -p $bundle/bin $bundle/lib
for program in tl base_tests runtime_tests kernels_tests tensor_tests ops_tests quant_tests model_tests weights_tests \
    decoder_tests engine_tests sampler_tests grad_tests train_tests capi_tests lang_value_tests lang_library_tests; do
  cp $built/bin/$program $bundle/bin/
done
cp $built/bin/*_bench $bundle/bin/
strip $bundle/bin/*

# Libraries beside the C and C++ ones travel along. Those two must be the machine's own: an older libstdc++ in front of
# its driver libraries keeps them from loading, and our programs run with a newer one.
for program in $bundle/bin/*; do ldd "$program"; done |
  awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -Ev '/(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' |
  while read -r library; do cp -L "$library" $bundle/lib/; done

if [ -n "${AMD_EMULATE_DIR:-}" ]; then
  mkdir -p $bundle/hip-over-cuda
  g++ -std=c++20 -O2 -shared -fPIC "$AMD_EMULATE_DIR/hip_over_cuda.cpp" -o $bundle/hip-over-cuda/libamdhip64.so -ldl
else
  echo "note: AMD_EMULATE_DIR is not set: the ROCm host path is not packed (see make help)"
fi

# What tests read, where they look for it below TL_TEST_ROOT. The models of others, with what is known of their results, are
# packed where they are at hand; tests that need them are skipped otherwise. Vocabularies are nothing for a GPU.
mkdir -p $bundle/tests/model
cp -r tests/model/data $bundle/tests/model/
mkdir -p $bundle/tests/lang
cp -r tests/lang/scripts tests/lang/scripts_test.py $bundle/tests/lang/
cp -r examples $bundle/
mkdir -p $bundle/bench/lang
cp bench/lang/*.tl $bundle/bench/lang/
cp -r $built/tests/reference_models $bundle/
for folder in shared ../shared ../../shared; do
  [ -d $folder/data/gguf ] || continue
  mkdir -p $bundle/shared/data/gguf
  cp $folder/data/gguf/*.gguf $folder/data/gguf/*.exact.* $folder/data/gguf/tokenize-*.json $bundle/shared/data/gguf/
  break
done
[ -d $bundle/shared ] || echo "note: there is no shared/data/gguf: tests with models made by others are skipped"

cp bench/ops/*.py bench/grad/*.py tools/make_model.py $bundle/
cp tools/gpu_run.sh $bundle/run.sh
# Every program holds the same kernels: a window as large as all of them keeps them once.
rm -f $bundle.tgz $bundle.tar.xz
tar -C build -cf - gpu-bundle | xz -T1 --x86 --lzma2=preset=1,dict=192MiB >$bundle.tar.xz
size_mib=$(du -sm $bundle.tar.xz | cut -f1)
echo "$bundle.tar.xz: $size_mib MiB; unpack it on a machine with a GPU and run gpu-bundle/run.sh"
if [ "$size_mib" -ge $limit_mib ]; then
  echo "error: the bundle must stay under $limit_mib MiB" >&2
  exit 1
fi
