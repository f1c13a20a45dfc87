#!/usr/bin/env python3
"""Runs clang-tidy-19 over the sources of src/ and fails on any finding.

    tidy.py BUILD_FOLDER [--jobs N] [--budget SECONDS] [--analyse]

Where the build compiles sources in groups (TL_GROUP_SOURCES), a group is looked at as one: most of the time goes into
what the headers of others say, and they are read once. What was clean is not looked at again until a source of it, a
header of ours that it includes, its compile command or .clang-tidy changes; BUILD_FOLDER/tidy remembers. When the budget is
spent, what was not reached is named; the next run begins with it.

The static analyser follows every path through a function, which more than doubles the time for all of src/. It looks at
the rooms that share memory, and with --analyse at all.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Compile commands of GCC name warnings that clang does not have. Loops that are compiled for several instruction sets are
# looked at once (src/ops/cpu/targets.h). The analyser looks into what the source of a group includes, and follows a tenth
# of the paths it would by default: in functions made of many templates the rest is most of the time (reduce.cpp: 280 s,
# so 31 s).
EXTRA = ["-Wno-unknown-warning-option", "-DHWY_COMPILE_ONLY_STATIC",
         "-Xclang", "-analyzer-opt-analyze-headers",
         "-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000"]


def our_headers(build):
    """For each object file of the build, the files of this tree it was made from, as ninja recorded them."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if line and not line[0].isspace():
            current = found.setdefault(line.split(":", 1)[0], [])
        elif line.strip():
            path = pathlib.Path(build, line.strip()).resolve()
            if path.is_relative_to(ROOT):
                current.append(path)
    return found


def output_of(entry):
    words = entry["command"].split()
    return words[words.index("-o") + 1]


def checks_for(entry, build, analyse):
    """What to leave out: of a group, that it includes sources; above the rooms that share memory, the analyser."""
    checks = ["-bugprone-suspicious-include"]
    shared = [top / "src" / room for top in (ROOT, build) for room in ("base", "runtime", "kernels", "tensor")]
    if not analyse and not any(is_within(entry["file"], folder) for folder in shared):
        checks.append("-clang-analyzer-*")
    return ",".join(checks)


def is_within(file, folder):
    return pathlib.Path(file).is_relative_to(folder)


def key_of(entry, checks, headers):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    digest.update(" ".join([entry["command"], checks, *EXTRA]).encode())
    for path in sorted({pathlib.Path(entry["file"]), *headers}):
        digest.update(str(path).encode())
        digest.update(path.read_bytes() if path.exists() else b"gone")
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--budget", type=float, default=2400)
    parser.add_argument("--analyse", action="store_true")
    options = parser.parse_args()

    entries = json.loads(pathlib.Path(options.build, "compile_commands.json").read_text())
    build = pathlib.Path(options.build).resolve()
    entries = [e for e in entries if e["file"].endswith(".cpp") and is_within(e["file"], ROOT / "src") or
               "/Unity/unity_" in e["file"] and is_within(e["file"], build / "src")]
    if not entries:
        sys.exit(f"tidy: {options.build} compiles no source of src/; is it built?")
    dependencies = our_headers(options.build)
    clean = pathlib.Path(options.build, "tidy")
    clean.mkdir(exist_ok=True)
    todo = []
    for entry in entries:
        checks = checks_for(entry, build, options.analyse)
        key = key_of(entry, checks, dependencies.get(output_of(entry), []))
        if not (clean / key).exists():
            todo.append((entry["file"], key, checks))
    print(f"{len(entries) - len(todo)} of {len(entries)} sources and groups are unchanged since they were found clean")

    deadline = time.monotonic() + options.budget
    failed, not_reached = [], []

    def check(item):
        file, key, checks = item
        name = os.path.relpath(file, ROOT)
        if time.monotonic() > deadline:
            not_reached.append(name)
            return
        result = subprocess.run(["clang-tidy-19", "--quiet", "-p", options.build, "--warnings-as-errors=*",
                                 f"--checks={checks}",
                                 *(f"--extra-arg={each}" for each in EXTRA), file], capture_output=True, text=True)
        if result.returncode == 0:
            (clean / key).touch()
        else:
            failed.append(name)
            print(f"--- {name}\n{result.stdout}{result.stderr}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(check, todo))
    for name in not_reached:
        print(f"not reached within {options.budget:.0f} s: {name}")
    print(f"{len(todo) - len(failed) - len(not_reached)} looked at and clean, {len(failed)} with findings, "
          f"{len(not_reached)} not reached")
    # CI leaves no check out: there a file that was not reached counts as one that failed.
    strict = os.environ.get("TL_STRICT_CHECKS") == "1"
    sys.exit(1 if failed or (strict and not_reached) else 0)


if __name__ == "__main__":
    main()
