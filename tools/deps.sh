#!/bin/bash
# Sees to it that the Debian packages a command needs are there. Says nothing when they are.
#
#   tools/deps.sh GROUP...    groups: build serve kernels test bench checks hip browser
#
# Packages of build, test and bench are required: when one cannot be had, the list is printed and the exit code is 1.
# Those of serve, kernels, checks, hip and browser make more possible; without them the work goes on and says what is left out.
set -euo pipefail

lists=${TL_APT_LISTS:-/var/lib/apt/lists}  # where apt keeps its package lists; the test of this script moves it

# ocl-icd-opencl-dev: oneDNN's CMake file looks for OpenCL, and its package only recommends it.
packages_of() {
  case $1 in
    build)   echo g++ cmake ninja-build pkg-config ccache libfmt-dev libcli11-dev nlohmann-json3-dev libzstd-dev \
                  zlib1g-dev libhwy-dev libdnnl-dev ocl-icd-opencl-dev libpcre2-dev libedit-dev ;;
    serve)   echo libcpp-httplib-dev ;;
    test)    echo libgtest-dev python3 python3-numpy ;;
    bench)   echo libbenchmark-dev ;;
    kernels) echo clang-19 lld-19 llvm-19 ;;
    checks)  echo clang-format-19 clang-tidy-19 libclang-rt-19-dev ;;
    hip)     echo libamdhip64-5 ;;
    browser) echo chromium chromium-driver python3-selenium ;;
    *)       echo "deps.sh: no group '$1'; there are build serve kernels test bench checks hip browser" >&2; exit 2 ;;
  esac
}

# What it means that an optional package is not there.
loss_of() {
  case $1 in
    clang-19 | lld-19)  echo "AMD kernels are not built in; they are compiled at run time where ROCm is installed" ;;
    llvm-19)            echo "the AMD kernels' registers and scratch memory are not checked" ;;
    clang-format-19)    echo "the layout of the sources is not checked" ;;
    clang-tidy-19)      echo "clang-tidy does not look at the sources" ;;
    libclang-rt-19-dev) echo "the readers of files are not fuzzed" ;;
    libcpp-httplib-dev) echo "the program is built without 'tl serve'" ;;
    chromium | chromium-driver | python3-selenium) echo "the page of 'tl serve' is not tested in a browser" ;;
    libamdhip64-5)      echo "the driver table is not checked against a real HIP library" ;;
  esac
}

is_installed() {
  # A tool built from source or put on PATH by hand is as good as the package.
  case $1 in
    g++ | cmake | ccache | python3 | chromium | clang-19 | clang-format-19 | clang-tidy-19)
      command -v "$1" >/dev/null && return 0 ;;
    ninja-build) command -v ninja >/dev/null && return 0 ;;
    pkg-config)  command -v pkg-config >/dev/null && return 0 ;;
    lld-19)      command -v ld.lld-19 >/dev/null && return 0 ;;
    llvm-19)     command -v llvm-readelf-19 >/dev/null && return 0 ;;
  esac
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

find_missing() {
  missing_required=()
  missing_optional=()
  for group in "$@"; do
    # Not in the loop's list: there the exit code of a bad group name would be lost.
    packages=$(packages_of "$group")
    for package in $packages; do
      is_installed "$package" && continue
      case $group in
        build | test | bench) missing_required+=("$package") ;;
        *) missing_optional+=("$package") ;;
      esac
    done
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"  # nobody is there to type a password
  fi
}

updated=no
apt_update() {
  [ $updated = no ] || return 1
  updated=yes
  as_root apt-get -q -o Acquire::Retries=1 -o Acquire::http::Timeout=20 update
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
    install --no-install-recommends "$@"
}

install_missing() {
  local all=("${missing_required[@]}" "${missing_optional[@]}")
  if ! command -v apt-get >/dev/null; then
    echo "There is no apt-get here: this is not a Debian system."
    return 0
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "Packages can only be installed by root, and there is no sudo."
    return 0
  fi
  if ! compgen -G "$lists/*_Packages*" >/dev/null; then
    apt_update || true
  fi
  apt_install "${all[@]}" && return 0
  # The lists may be older than the archive: fetch them once and try again.
  if apt_update && apt_install "${all[@]}"; then return 0; fi
  # One package that cannot be had must not keep the others out.
  for package in "${all[@]}"; do
    apt_install "$package" || true
  done
}

[ $# -gt 0 ] || { echo "usage: tools/deps.sh GROUP..." >&2; exit 2; }
find_missing "$@"
[ ${#missing_required[@]} -gt 0 ] || [ ${#missing_optional[@]} -gt 0 ] || exit 0

echo "Debian packages that are needed and not here: ${missing_required[*]} ${missing_optional[*]}"
if [ "${TL_NO_INSTALL:-}" = 1 ]; then
  echo "TL_NO_INSTALL=1: nothing is installed."
else
  echo "Installing them with apt-get."
  install_missing
  find_missing "$@"
fi

for package in "${missing_optional[@]}"; do
  echo "note: $package is not installed: $(loss_of "$package")"
done
if [ ${#missing_required[@]} -gt 0 ]; then
  echo "error: these packages are required and not installed: ${missing_required[*]}" >&2
  echo "       install them and run this again, e.g.: apt-get install ${missing_required[*]}" >&2
  exit 1
fi
