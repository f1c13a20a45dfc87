#!/usr/bin/env python3
"""Runs every program under tests/lang/scripts (and examples/) and compares what it prints with its own comments.

    // expect: TEXT          the next line of standard output; exactly
    // expect-error: 3:14 TEXT   the program fails; standard error has an error at that place with TEXT in it
    // expect-warning: 3:14 TEXT
    // args: a b             arguments of the program; $DATA is where shared/data is
    // input: TEXT           a line of standard input
    // flags: --test         flags of `tl run`
    // command: check        another command than run; repl and doc are not given the file
    // exit: 2               the exit code; else it is 1 when an error is expected and 0 when none is
    // needs: NAME           a path under shared/data that must be there; else the program is skipped, which is said
    // cpu-only: REASON      not on GPUs
    // gpu-only: REASON      not on the CPU

Every program must give back all memory, whether it fails or not. env("TL_TEST_DATA") is the folder of the data, env("TL_TEST_TMP") an
empty one that the program may write to; in what it prints they are written as $DATA and $TMP.
usage: scripts_test.py TL SOURCE_DIR [--device cuda:0] [--jobs 2] [--only TEXT]
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

DIRECTIVE = re.compile(r"//\s*(expect|expect-error|expect-warning|args|input|flags|command|exit|needs|cpu-only|gpu-only):[ \t]?(.*)$")
PLACE = re.compile(r"^(\d+):(\d+)\s+(.*)$")
NO_FILE = ("repl", "doc")
MESSAGE = re.compile(r"^(error|warning): (.*(?:\n(?! +-->).*)*)\n +-->\s(.*):(\d+):(\d+)$", re.M)


class Script:
    def __init__(self, path):
        self.path = path
        self.output, self.errors, self.warnings, self.input = [], [], [], []
        self.args, self.flags, self.command, self.needs, self.cpu_only = [], [], "run", [], ""
        self.gpu_only, self.exit_code = "", None
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            found = DIRECTIVE.search(line)
            if not found:
                continue
            kind, text = found.groups()
            if kind == "expect":
                self.output.append(text.rstrip())
            elif kind in ("expect-error", "expect-warning"):
                place = PLACE.match(text)
                if not place:
                    raise SystemExit(f"{path}: '{line.strip()}' has no LINE:COLUMN")
                wanted = (int(place[1]), int(place[2]), place[3].strip())
                (self.errors if kind == "expect-error" else self.warnings).append(wanted)
            elif kind == "args":
                self.args += shlex.split(text)
            elif kind == "input":
                self.input.append(text)
            elif kind == "flags":
                self.flags += shlex.split(text)
            elif kind == "command":
                self.command = text.strip()
            elif kind == "exit":
                self.exit_code = int(text)
            elif kind == "needs":
                self.needs.append(text.strip())
            elif kind == "cpu-only":
                self.cpu_only = text.strip() or "?"
            elif kind == "gpu-only":
                self.gpu_only = text.strip() or "?"
        if not (self.output or self.errors or self.warnings or self.exit_code):
            raise SystemExit(f"{path}: expects nothing, so it cannot fail")


def check(script, options):
    """A list of complaints; a string, the reason, when it was skipped."""
    with tempfile.TemporaryDirectory(prefix="tl-script-") as folder:
        return check_in(script, options, folder)


def data_folder(source):
    """In the source tree, beside it, or one folder further up."""
    places = [place / "shared" / "data" for place in (source, *source.parents[:2])]
    return next((place for place in places if place.exists()), places[1])


def check_in(script, options, folder):
    data = data_folder(options.source)
    for need in script.needs:
        if not (data / need).exists():
            return f"{need} is not there"
    if script.cpu_only and options.device != "cpu":
        return f"not on GPUs: {script.cpu_only}"
    if script.gpu_only and options.device == "cpu":
        return f"not on the CPU: {script.gpu_only}"
    command = [options.tl, script.command]
    name = os.path.relpath(script.path, options.source)
    if script.command in ("run", "test"):
        command += ["--device", options.device, "--memory-check"]
        if "--step-limit" not in script.flags:
            command += ["--step-limit", "50000000"]
    if script.command == "run":
        command += ["-q"]
    arguments = [argument.replace("$DATA", str(data.resolve())) for argument in script.args]
    command += script.flags + ([] if script.command in NO_FILE else [name]) + arguments
    environment = dict(os.environ, TL_TEST_DATA=str(data.resolve()), TL_TEST_TMP=folder, NO_COLOR="1")
    try:
        done = subprocess.run(command, cwd=options.source, input="\n".join(script.input) + "\n" if script.input else "",
                              capture_output=True, text=True, timeout=options.timeout, env=environment, errors="replace")
    except subprocess.TimeoutExpired:
        return [f"took more than {options.timeout} s"]
    complaints = []
    shown = done.stdout.replace(str(data.resolve()), "$DATA").replace(folder, "$TMP")
    lines = [line.rstrip() for line in shown.splitlines()]
    if lines != script.output:
        for at in range(max(len(lines), len(script.output))):
            have = lines[at] if at < len(lines) else None
            want = script.output[at] if at < len(script.output) else None
            if have != want:
                complaints.append(f"line {at + 1} of the output is {have!r}, expected {want!r}")
                break
    messages = [(kind, int(line), int(column), text) for kind, text, _, line, column in MESSAGE.findall(done.stderr)]
    for kind, wanted in (("error", script.errors), ("warning", script.warnings)):
        seen = [m[1:] for m in messages if m[0] == kind]
        for line, column, text in wanted:
            if not any(s[0] == line and s[1] == column and text in s[2] for s in seen):
                complaints.append(f"no {kind} at {line}:{column} with {text!r}; there were {seen}")
        if len(seen) != len(wanted):
            complaints.append(f"{len(seen)} {kind}s, expected {len(wanted)}")
    code = (1 if script.errors else 0) if script.exit_code is None else script.exit_code
    if done.returncode != code:
        complaints.append(f"exit code {done.returncode}, expected {code}")
    if script.command == "run" and code != 2 and "No memory leaks detected" not in done.stderr:
        complaints.append("memory was not given back, or was not looked at")
    if complaints:
        complaints.append("stderr: " + done.stderr[:1500])
    return complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tl")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=int, default=120)
    options = parser.parse_args()
    options.tl = os.path.abspath(options.tl)
    options.source = options.source.resolve()
    folders = [options.source / "tests" / "lang" / "scripts", options.source / "examples"]
    paths = sorted(p for folder in folders for p in folder.rglob("*.tl") if options.only in str(p))
    paths = [p for p in paths if not p.name.startswith("lib_")]  # what others import
    scripts = [Script(p) for p in paths]
    failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for script, result in zip(scripts, pool.map(lambda s: check(s, options), scripts)):
            name = os.path.relpath(script.path, options.source)
            if isinstance(result, str):
                skipped += 1
                print(f"skipped {name}: {result}")
            elif result:
                failed += 1
                print(f"FAILED {name}")
                for complaint in result:
                    print(f"    {complaint}")
    print(f"{len(scripts) - failed - skipped} of {len(scripts)} programs as expected on {options.device}, "
          f"{skipped} skipped, {failed} failed")
    sys.exit(1 if failed or not scripts else 0)


main()
