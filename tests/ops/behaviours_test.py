#!/usr/bin/env python3
"""Checks that every test that tests/ops/BEHAVIOURS.md names exists.

    behaviours_test.py ROOT
"""

import pathlib
import re
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    defined = set()
    for path in (root / "tests").rglob("*_test.cpp"):
        for suite, name in re.findall(r"^TEST(?:_[PF])?\((\w+),\s*(\w+)\)", path.read_text(encoding="utf-8"), re.M):
            defined.add(f"{suite}.{name}")
    page = (root / "tests/ops/BEHAVIOURS.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+\.\w+)`", "\n".join(line for line in page.splitlines() if line.startswith("|")))
    missing = sorted(set(named) - defined)
    if missing or not named:
        sys.exit(f"BEHAVIOURS.md names tests that do not exist: {missing}")
    print(f"{len(set(named))} tests named, all of them there")


if __name__ == "__main__":
    main()
