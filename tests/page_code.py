#!/usr/bin/env python3
"""Compiles and runs the code of docs/cpp.md and docs/c.md, so that the pages cannot say what is not so.

    page_code.py make SOURCE_DIR cpp|c OUT      writes one program with every block of the page in it
    page_code.py check SOURCE_DIR cpp|c PROGRAM runs the blocks and compares what they print with the page

A block marked ```cpp (or ```c) is statements, or a program with `int main()`; the ```text block after it is what it
prints, to the letter. Without one it is run all the same and may print what it likes. Words after the mark:

    outside      declarations, for the blocks after it; not run
    model        runs where there is a file model.gguf, a small model with random weights; what it prints is not compared
    file=PATH    the file PATH of the tree, to the letter; not compiled here
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PRELUDE = {
    "cpp": "#include <tl/tl.h>\n\n#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <iostream>\n"
           "#include <string>\n#include <string_view>\n#include <thread>\n#include <vector>\n\nusing namespace tl;\n\n",
    "c": "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <tl/c.h>\n\n",
}
WORDS = {"outside", "model"}
SMALL = ["--layers", "2", "--width", "64", "--vocabulary", "320", "--feed-forward", "64", "--heads", "2", "--kv-heads", "2",
         "--context", "1024"]


class Block:
    def __init__(self, page, line, words, lines):
        self.page, self.line, self.lines, self.output = page, line, lines, None
        self.file = next((w[5:] for w in words if w.startswith("file=")), "")
        self.words = {w for w in words if "=" not in w}
        if self.words - WORDS:
            sys.exit(f"{page}:{line}: what does '{' '.join(self.words - WORDS)}' mean?")

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def runs(self):
        return not self.file and "outside" not in self.words


def blocks_of(page, text, language):
    out, lines, at, fresh = [], text.splitlines(), 0, False
    while at < len(lines):
        fence = re.match(r"^```(\S*)\s*(.*)$", lines[at])
        at += 1
        if not fence:
            continue
        start = at
        while at < len(lines) and lines[at] != "```":
            at += 1
        if at == len(lines):
            sys.exit(f"{page}:{start}: this block has no end")
        body, at = lines[start:at], at + 1
        if fence[1] == language:
            out.append(Block(page, start, fence[2].split(), body))
        elif fence[1] == "text" and fresh:
            out[-1].output = body
        fresh = fence[1] == language
    return out


def written(blocks, language):
    """The program: `program N` runs the N-th block."""
    out, calls = [PRELUDE[language]], []
    for i, block in enumerate(blocks):
        if block.file:
            continue
        code = [line for line in block.lines if not line.startswith("#include")]
        line = block.line + len(block.lines) - len(code) + 1
        body = "\n".join(code)
        mark = f'#line {line} "{block.page}"\n'
        if "outside" in block.words:
            out.append(f"{mark}{body}\n")
            continue
        calls.append(f"    case {i}: block_{i}(); break;\n")
        if re.search(r"^int main\((void)?\)", body, re.M):
            out.append(mark + re.sub(r"^int main\((void)?\)", f"static int block_{i}(void)", body, flags=re.M) + "\n")
        else:
            out.append(f"static void block_{i}(void) {{\n{mark}{body}\n}}\n")
    out.append('#line 1 "page"\nint main(int argc, char** argv) {\n  switch (argc > 1 ? atoi(argv[1]) : -1) {\n'
               + "".join(calls) + "    default: return 2;\n  }\n  return 0;\n}\n")
    return "\n".join(out)


def complaint_about(block, number, program, root, folder):
    if block.file:
        kept = (root / block.file).read_text(encoding="utf-8").splitlines()
        return "" if kept == block.lines else f"{block.file} is not like this"
    if not block.runs:
        return ""
    done = subprocess.run([program, str(number)], cwd=folder, capture_output=True, text=True, timeout=120, input="")
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    wanted = [line.rstrip() for line in block.output or []]
    if block.output is not None and lines != wanted:
        return "it prints\n" + "\n".join(lines) + "\nand the page says\n" + "\n".join(wanted)
    return ""


def check(root, blocks, program):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, root / "tools/make_model.py", *SMALL, os.path.join(folder, "model.gguf")], check=True,
                       capture_output=True)
        for number, block in enumerate(blocks):
            complaint = complaint_about(block, number, os.path.abspath(program), root, folder)
            if complaint:
                failed += 1
                print(f"FAILED {block}: {complaint}")
    compared = sum(block.output is not None or bool(block.file) for block in blocks)
    print(f"{len(blocks)} blocks, {compared} compared, {failed} failed")
    return 1 if failed else 0


def self_test():
    text = "```cpp outside\nint f();\n```\n```text\nno output of it\n```\n```cpp\ng();\n```\n\n```text\nx\n```\n"
    blocks = blocks_of("p", text + "```cpp file=a.cpp\nz\n```\n", "cpp")
    assert [(b.output, b.runs) for b in blocks] == [(["no output of it"], False), (["x"], True), (None, False)]
    made = written(blocks, "cpp")
    assert "int f();" in made and "static void block_1(void) {\n#line 8 \"p\"\ng();\n}" in made and "z" not in made.split("g();")[1].split("int main")[0]


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("make", "check") or sys.argv[3] not in PRELUDE:
        print(__doc__)
        return 2
    self_test()
    root, language = pathlib.Path(sys.argv[2]), sys.argv[3]
    page = f"docs/{language}.md"
    blocks = blocks_of(page, (root / page).read_text(encoding="utf-8"), language)
    if not blocks:
        sys.exit(f"{page} has no code")
    if sys.argv[1] == "check":
        return check(root, blocks, sys.argv[4])
    pathlib.Path(sys.argv[4]).write_text(written(blocks, language), encoding="utf-8")
    return 0


sys.exit(main())
