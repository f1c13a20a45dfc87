#!/bin/bash
# Lays out the C++ and kernel sources with clang-format-19. With --check it changes nothing and fails where a file differs.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find src include tests bench examples -type f \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) | sort)
if [ "${1:-}" = --check ]; then
  clang-format-19 --dry-run -Werror "${files[@]}"
  echo "${#files[@]} files are laid out as clang-format decides"
else
  clang-format-19 -i "${files[@]}"
fi
