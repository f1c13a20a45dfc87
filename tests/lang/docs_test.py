#!/usr/bin/env python3
"""Runs the programs that the documentation shows and compares what they print with what it says.

A block marked ```tl is a program; the ```text block after it is its output, to the letter. A block without `main` is
statements, with declarations among them: the statements become main, in their order. Words after the mark:

    ```tl check          looked at by `tl check`, not run; needs no output
    ```tl fails          ends with an error; the ```text block has its message, or the first lines of it
    ```tl model          needs the file that the text calls model.gguf; skipped, which is said, where it is not there
    ```tl file=NAME      also kept as NAME, for blocks after it that import or read it

usage: docs_test.py TL SOURCE_DIR [--device cuda:0] [--only TEXT] [--verbose]
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAGES = ["README.md", "docs/language.md", "docs/learning.md", "docs/logic.md"]
MODEL = "../shared/data/gguf/tiny-llama-q4_k_m.gguf"
DECLARATION = re.compile(r"^(fn|struct|impl|const|import|tensor|main|test|bench)\b")
WORDS = {"check", "fails", "model"}


class Block:
    def __init__(self, page, line, words, text):
        self.page, self.line, self.text, self.output = page, line, text, None
        self.words = {w for w in words if "=" not in w}
        self.file = next((w[5:] for w in words if w.startswith("file=")), "")
        unknown = self.words - WORDS
        if unknown:
            raise SystemExit(f"{page}:{line}: what does '{' '.join(unknown)}' mean?")

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks_of(page, text):
    """The blocks marked tl with what stands in the text block after each."""
    out, lines, at = [], text.splitlines(), 0
    while at < len(lines):
        fence = re.match(r"^```(\S*)\s*(.*)$", lines[at])
        at += 1
        if not fence:
            continue
        start, body = at, []
        while at < len(lines) and lines[at] != "```":
            body.append(lines[at])
            at += 1
        if at == len(lines):
            raise SystemExit(f"{page}:{start}: this block has no end")
        at += 1
        if fence[1] == "tl":
            out.append(Block(page, start, fence[2].split(), "\n".join(body) + "\n"))
        elif fence[1] == "text" and out and out[-1].output is None:
            out[-1].output = body
    return out


def program(text):
    """Statements outside of main become main. A declaration ends where its brackets are closed."""
    if re.search(r"^main\b", text, re.M):
        return text
    declarations, statements, inside, depth = [], [], False, 0
    for line in text.splitlines():
        if depth == 0:
            inside = bool(DECLARATION.match(line))
        (declarations if inside else statements).append(line)
        bare = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
        depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
    return "\n".join(declarations + ["main {"] + ["    " + s if s else s for s in statements] + ["}"]) + "\n"


def run(block, folder, options):
    """A complaint; nothing when all is as the page says."""
    name = block.file or "program.tl"
    (folder / name).write_text(program(block.text) if name.endswith(".tl") and not block.file else block.text)
    is_check = "check" in block.words
    if block.output is None and not is_check:
        return "no text block with its output follows, and it is not marked check"
    command = [options.tl, "check", name] if is_check else [options.tl, "run", "-q", "--device", options.device, name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, errors="replace", input="",
                          env=dict(os.environ, NO_COLOR="1", TL_SEED="1"))
    fails = "fails" in block.words
    if done.returncode != (1 if fails else 0):
        return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    if is_check:
        return ""
    lines = [line.rstrip() for line in (done.stdout + done.stderr if fails else done.stdout).splitlines()]
    wanted = [line.rstrip() for line in block.output]
    if fails:
        lines = lines[:len(wanted)]
    if lines != wanted:
        return "it prints\n" + "\n".join(lines) + "\nand the page says\n" + "\n".join(wanted)
    return ""


def unknown_builtins(text, options):
    """Names in the page's table of builtin functions that `tl doc` does not list."""
    table = text.split("## Builtin functions")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    names = set(re.findall(r"`(\w+)`", "\n".join(rows)))
    listing = subprocess.run([options.tl, "doc"], capture_output=True, text=True, timeout=60, check=True).stdout
    known = set(re.findall(r"^  (\w+)\(", listing, re.M))
    if not names or not known:
        raise SystemExit("no builtin functions in docs/language.md, or none in `tl doc`")
    return sorted(names - known)


def self_test():
    text = 'const N = 2\nprint(N)\nfn f(a: string = "}") -> int {\n    // }\n    len(a)\n}\nprint(f())\n'
    wanted = ('const N = 2\nfn f(a: string = "}") -> int {\n    // }\n    len(a)\n}\nmain {\n    print(N)\n    print(f())\n}\n')
    assert program(text) == wanted, program(text)
    found = blocks_of("page", "```tl check\na\n```\n```tl\nb\n```\nwords\n```text\nc\n```\n")
    assert [(b.words, b.text, b.output) for b in found] == [({"check"}, "a\n", None), (set(), "b\n", ["c"])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tl")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="blocks that have this in them")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.tl = os.path.abspath(options.tl)
    self_test()
    model = options.source / MODEL
    failed = skipped = 0
    blocks = [b for page in PAGES for b in blocks_of(page, (options.source / page).read_text(encoding="utf-8"))]
    if not blocks:
        raise SystemExit("no programs in " + " and ".join(PAGES))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if model.exists():
            shutil.copy(model, folder / "model.gguf")
        for block in blocks:
            if options.only not in block.text and not block.file:
                continue
            if "model" in block.words and not model.exists():
                skipped += 1
                print(f"skipped {block}: there is no {MODEL}")
                continue
            complaint = run(block, folder, options)
            if complaint:
                failed += 1
                print(f"FAILED {block}: {complaint}")
            elif options.verbose:
                print(f"{block} is right")
    unknown = unknown_builtins((options.source / "docs/language.md").read_text(encoding="utf-8"), options)
    if unknown:
        failed += 1
        print("FAILED docs/language.md: there is no builtin " + ", ".join(unknown))
    print(f"{len(blocks)} programs of the documentation, {skipped} skipped, {failed} failed")
    sys.exit(1 if failed else 0)


main()
