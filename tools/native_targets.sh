#!/bin/bash
# The GPU targets of this machine, one on a line: what TL_NVIDIA_TARGETS=native and TL_AMD_TARGETS=native stand for.
#
#   tools/native_targets.sh nvidia|amd
#
# NVIDIA's are what nvidia-smi says; AMD's what the kernel's driver says in KFD_TOPOLOGY. Nothing where there is none.
set -euo pipefail
topology=${KFD_TOPOLOGY:-/sys/class/kfd/kfd/topology/nodes}

case ${1:-} in
  nvidia)
    command -v nvidia-smi >/dev/null || exit 0
    capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) || exit 0
    sed -n 's/^ *\([0-9]\+\)\.\([0-9]\) *$/sm_\1\2/p' <<<"$capabilities" | sort -u
    ;;
  amd)
    # 90010 is gfx90a: two digits of the number are one of the name, in hexadecimal. CPUs are nodes with 0.
    for node in "$topology"/*/properties; do
      [ -r "$node" ] || continue
      version=$(sed -n 's/^gfx_target_version \([0-9]\+\)$/\1/p' "$node")
      [ "${version:-0}" -gt 0 ] || continue
      printf 'gfx%d%x%x\n' $((version / 10000)) $((version / 100 % 100)) $((version % 100))
    done | sort -u
    ;;
  *)
    echo "usage: native_targets.sh nvidia|amd" >&2
    exit 2
    ;;
esac
