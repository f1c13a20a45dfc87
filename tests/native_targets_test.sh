#!/bin/bash
# tools/native_targets.sh on machines that are made up: several GPUs, none, and programs that fail.
#
#   native_targets_test.sh SOURCE_FOLDER
set -euo pipefail
script=$1/tools/native_targets.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
expect() {  # expect WHAT EXPECTED FOUND
  if [ "$2" != "$3" ]; then
    printf '%s: expected "%s", found "%s"\n' "$1" "$2" "$3"
    failed=1
  fi
}

mkdir -p "$work/bin" "$work/nodes/0" "$work/nodes/1" "$work/nodes/2" "$work/nodes/3" "$work/none"
printf 'cpu_cores_count 8\ngfx_target_version 0\n' >"$work/nodes/0/properties"
printf 'simd_count 304\ngfx_target_version 90402\n' >"$work/nodes/1/properties"
printf 'gfx_target_version 90010\nlds_size_in_kb 64\n' >"$work/nodes/2/properties"
printf 'gfx_target_version 110001\n' >"$work/nodes/3/properties"
expect "AMD" "gfx1101 gfx90a gfx942" "$(KFD_TOPOLOGY=$work/nodes "$script" amd | xargs)"
expect "no AMD" "" "$(KFD_TOPOLOGY=$work/none "$script" amd | xargs)"

printf '#!/bin/sh\nprintf "9.0\\n8.6\\n9.0\\n"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
expect "NVIDIA" "sm_86 sm_90" "$(PATH=$work/bin:$PATH "$script" nvidia | xargs)"
printf '#!/bin/sh\necho "NVIDIA-SMI has failed"\nexit 9\n' >"$work/bin/nvidia-smi"
expect "a driver that does not answer" "" "$(PATH=$work/bin:$PATH "$script" nvidia | xargs)"
if "$script" intel 2>/dev/null; then
  echo "another vendor was taken"
  failed=1
fi
exit $failed
