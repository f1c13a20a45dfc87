#!/bin/bash
# Tests tools/deps.sh with an apt-get, dpkg-query and id of our own on PATH, so that nothing is really installed.
#   deps_test.sh SOURCE_FOLDER
set -uo pipefail
deps=$1/tools/deps.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# A world of its own: only what the script needs, so that `command -v g++` finds nothing of this machine.
setup() {
  rm -rf "$work/bin" "$work/lists" "$work/installed" "$work/log"
  mkdir -p "$work/bin" "$work/lists" "$work/installed"
  : > "$work/log"
  for tool in bash env cat; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
  cat > "$work/bin/id" <<< $'#!/bin/bash\necho "${FAKE_UID:-0}"'
  cat > "$work/bin/dpkg-query" <<< $'#!/bin/bash\n[ -e "$WORK/installed/${@: -1}" ] && echo installed'
  # Installs what it is asked for, except what is named in FAKE_REFUSE; refuses all until there are lists.
  cat > "$work/bin/apt-get" <<'FAKE'
#!/bin/bash
echo "apt-get $*" >> "$WORK/log"
case "$*" in
  *" update") [ "${FAKE_OFFLINE:-}" = 1 ] && exit 100; : > "$WORK/lists/debian_main_Packages"; exit 0 ;;
esac
[ -e "$WORK/lists/debian_main_Packages" ] && [ "${FAKE_OFFLINE:-}" != 1 ] || exit 100
packages=${*##*--no-install-recommends }
for p in $packages; do case " ${FAKE_REFUSE:-} " in *" $p "*) exit 100 ;; esac; done
for p in $packages; do : > "$WORK/installed/$p"; done
FAKE
  chmod +x "$work/bin/"{id,dpkg-query,apt-get}
}

run() { output=$(env -i PATH="$work/bin" WORK="$work" TL_APT_LISTS="$work/lists" "$@" 2>&1 < /dev/null); code=$?; }

expect() {  # expect "claim" command...
  local claim=$1
  shift
  if ! "$@"; then
    echo "FAILED: $claim"
    echo "--- exit $code, output:"; echo "$output"; echo "--- log:"; cat "$work/log"
    failures=$((failures + 1))
  fi
}
says() { [[ $output == *"$1"* ]]; }
log_has() { [[ $(cat "$work/log") == *"$1"* ]]; }
exits() { [ "$code" = "$1" ]; }

setup
for p in g++ cmake ninja-build pkg-config ccache libfmt-dev libcli11-dev nlohmann-json3-dev libzstd-dev zlib1g-dev libhwy-dev libdnnl-dev ocl-icd-opencl-dev libpcre2-dev libedit-dev; do
  : > "$work/installed/$p"
done
run "$deps" build
expect "all there: exit 0" exits 0
expect "all there: no output" [ -z "$output" ]
expect "all there: apt-get is not called" [ ! -s "$work/log" ]

rm "$work/installed/libzstd-dev"
run "$deps" build
expect "empty lists: exit 0" exits 0
expect "says what it installs first" says "libzstd-dev"
expect "empty lists: update comes before install" [ "$(head -1 "$work/log" | grep -c ' update$')" = 1 ]
expect "only what is missing is installed" log_has "--no-install-recommends libzstd-dev"
expect "it is installed" [ -e "$work/installed/libzstd-dev" ]

setup
: > "$work/lists/debian_main_Packages"
run "$deps" bench
expect "lists there: no update" [ "$(grep -c ' update$' "$work/log")" = 0 ]

setup
run FAKE_REFUSE=libamdhip64-5 "$deps" test hip
expect "an optional package that cannot be had does not stop" exits 0
expect "and is named with what is lost" says "note: libamdhip64-5 is not installed: the driver table"
expect "the others are installed all the same" [ -e "$work/installed/libgtest-dev" ]
expect "one update only" [ "$(grep -c ' update$' "$work/log")" = 1 ]

setup
run FAKE_OFFLINE=1 "$deps" kernels checks
expect "offline, optional only: exit 0" exits 0
expect "offline: clang-19 is named" says "note: clang-19 is not installed"

setup
run FAKE_OFFLINE=1 "$deps" test bench
expect "offline, required: exit 1" exits 1
expect "offline: the list" says "required and not installed: libgtest-dev python3 python3-numpy libbenchmark-dev"

setup
run FAKE_UID=1000 "$deps" test
expect "no root, no sudo: exit 1" exits 1
expect "no root, no sudo: says so" says "no sudo"
expect "no root, no sudo: apt-get is not called" [ ! -s "$work/log" ]

setup
rm "$work/bin/apt-get"
run "$deps" test
expect "no apt-get: exit 1 with the list" exits 1
expect "no apt-get: says so" says "not a Debian system"

setup
run TL_NO_INSTALL=1 "$deps" test
expect "TL_NO_INSTALL: exit 1" exits 1
expect "TL_NO_INSTALL: apt-get is not called" [ ! -s "$work/log" ]

setup
run "$deps" nonsense
expect "an unknown group is a usage error" exits 2

[ $failures = 0 ] && echo "all claims about tools/deps.sh hold"
exit $((failures > 0))
