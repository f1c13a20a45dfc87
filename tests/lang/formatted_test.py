#!/usr/bin/env python3
"""`tl fmt` changes how programs look and nothing else: the programs of tests/lang/scripts, laid out by it, print what they printed.

Formatting twice must give what formatting once gave. Programs that expect errors are left out, as places in them move.

usage: formatted_test.py TL SOURCE_DIR
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MOVES = re.compile(r"//\s*(expect-error|expect-warning|command: (repl|check|doc)|exit):?")


def formatted(tl, path):
    """A complaint about the file, which is laid out anew; nothing when all is well."""
    for turn in ("once", "twice"):
        before = path.read_bytes()
        done = subprocess.run([tl, "fmt", path], capture_output=True, text=True, timeout=60, errors="replace")
        if done.returncode != 0:
            return f"{path.name}: fmt failed: {done.stderr[:500]}"
    return "" if path.read_bytes() == before else f"{path.name}: formatted {turn} it is not what it was once"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip().splitlines()[-1])
    tl, source = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="tl-formatted-") as folder:
        root = pathlib.Path(folder)
        scripts = root / "tests" / "lang" / "scripts"
        shutil.copytree(source / "tests" / "lang" / "scripts", scripts)
        data = [place / "shared" for place in (source, *source.parents[:2]) if (place / "shared" / "data").exists()]
        if data:
            (root / "shared").symlink_to(data[0])
        complaints, changed = [], 0
        for path in sorted(scripts.rglob("*.tl")):
            text = path.read_bytes()
            if MOVES.search(text.decode("utf-8", errors="replace")):
                path.unlink()
            elif path.name != "lib_broken.tl":
                complaints += filter(None, [formatted(tl, path)])
                changed += path.read_bytes() != text
        print(f"{changed} programs were laid out anew", flush=True)
        print("\n".join(complaints))
        runner = pathlib.Path(__file__).with_name("scripts_test.py")
        done = subprocess.run([sys.executable, runner, tl, root], check=False)
        sys.exit(1 if complaints or not changed or done.returncode != 0 else 0)


main()
