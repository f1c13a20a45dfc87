#!/usr/bin/env python3
"""Fails when a builtin of the language is called in no program under tests/lang/scripts.

What the builtins are is asked of the program: `tl doc` lists them all. A call is NAME(...), x.NAME(...) or TYPE::NAME(...)
in the code of a program: not in a comment, not in a string.

usage: builtin_coverage.py TL SOURCE_DIR
"""
import pathlib
import re
import subprocess
import sys

# What is no code: strings first, as a comment's marks may stand in one.
NO_CODE = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.S)
LISTED = re.compile(r"^  ((?:\w+::)?\w+)\(", re.M)
CALLED = re.compile(r"(?:\b(\w+)(?:<[^>()]*>)?::)?\b(\w+)\s*\(")
DECLARED = re.compile(r"\bfn\s+(\w+)")


def calls(code):
    """The builtins that a program may call; functions of its own hide those of the same name."""
    own = set(DECLARED.findall(code))
    for qualifier, name in CALLED.findall(code):
        if qualifier:
            yield f"{qualifier}::{name}"
        elif name not in own:
            yield name


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip().splitlines()[-1])
    done = subprocess.run([sys.argv[1], "doc"], capture_output=True, text=True, check=True, timeout=60)
    builtins = set(LISTED.findall(done.stdout))
    scripts = sorted((pathlib.Path(sys.argv[2]) / "tests" / "lang" / "scripts").rglob("*.tl"))
    called = set()
    for path in scripts:
        called.update(calls(NO_CODE.sub(" ", path.read_text(encoding="utf-8", errors="replace"))))
    missing = sorted(builtins - called)
    print(f"{len(builtins) - len(missing)} of {len(builtins)} builtins are called in {len(scripts)} programs")
    for name in missing:
        print(f"not called: {name}")
    sys.exit(1 if missing or not builtins else 0)


main()
