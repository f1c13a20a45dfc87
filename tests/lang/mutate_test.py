#!/usr/bin/env python3
"""Runs programs that nobody would write: those of the suite with tokens dropped, doubled, swapped and replaced.

Whatever a program does, `tl` must end in time with exit code 0 or 1, tell what is wrong at a place, and give all memory
back. Meant for a build with sanitizers, where a report of theirs is a failure too.

usage: mutate_test.py TL SOURCE_DIR [--count 200] [--seed 1]
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

TOKEN = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|\d+\.\d+|\d+|\*\*|[-+*/<>=!]=|&&|\|\||::|\.\.|->|=>|\S|\s+')
NUMBERS = ["0", "1", "2", "7", "64", "-1", "0.0", "1.5", "1e308", "9223372036854775807"]
PIECES = ["(", ")", "[", "]", "{", "}", ",", ":", "=", "+", "@", "..", "let x =", "return", "break", "if true", "self",
          "fn(a) { a }", "[1, 2]", '"text"', "{:}", "none", "struct S { a: int }", "\u2297", "\\", "\x00"]
LONG = re.compile(r"\bsleep\b|\binput\b")  # waits are no fault


def mutate(random_, text, others):
    tokens = TOKEN.findall(text)
    words = [t for t in tokens if re.match(r"[A-Za-z_]", t)]
    for _ in range(random_.choice([1, 1, 2, 3, 6])):
        if len(tokens) < 3:
            break
        at = random_.randrange(len(tokens))
        kind = random_.randrange(9)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, tokens[at])
        elif kind == 2:
            other = random_.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3 and words:
            tokens[at] = random_.choice(words)
        elif kind == 4:
            tokens[at] = random_.choice(NUMBERS)
        elif kind == 5:
            tokens.insert(at, " " + random_.choice(PIECES) + " ")
        elif kind == 6:
            other = TOKEN.findall(random_.choice(others))
            start = random_.randrange(max(1, len(other)))
            tokens[at:at] = other[start:start + random_.randrange(1, 12)]
        elif kind == 7:
            numbers = [i for i, t in enumerate(tokens) if t.isdigit()]
            if numbers:
                tokens[random_.choice(numbers)] = random_.choice(NUMBERS)
        else:
            del tokens[at:at + random_.randrange(1, 8)]
    return "".join(tokens)


def run(tl, text, timeout):
    with tempfile.NamedTemporaryFile("w", suffix=".tl", encoding="utf-8", errors="replace") as file:
        file.write(text)
        file.flush()
        command = [tl, "run", "-q", "--device", "cpu", "--memory-check", "--no-files", "--step-limit", "20000", file.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, errors="replace", input="",
                                  cwd=tempfile.gettempdir(), env=dict(os.environ, NO_COLOR="1"))
        except subprocess.TimeoutExpired:
            return "took too long"
    if done.returncode not in (0, 1):
        return f"exit code {done.returncode}\n{done.stderr[-3000:]}"
    if "Sanitizer" in done.stderr or "leak detected" in done.stderr:
        return done.stderr[-3000:]
    if done.returncode == 1 and "error:" not in done.stderr:
        return f"failed without a word\n{done.stderr[-1000:]}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tl")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=60)
    options = parser.parse_args()
    options.tl = os.path.abspath(options.tl)
    paths = sorted((options.source / "tests" / "lang" / "scripts").rglob("*.tl"))
    texts = [t for t in (p.read_text(encoding="utf-8", errors="replace") for p in paths) if not LONG.search(t)]
    random_ = random.Random(options.seed)
    programs = [mutate(random_, random_.choice(texts), texts) for _ in range(options.count)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for at, (text, problem) in enumerate(zip(programs, pool.map(lambda t: run(options.tl, t, options.timeout), programs))):
            if problem:
                failed += 1
                print(f"---- program {at} of seed {options.seed}\n{text}\n---- {problem}")
    print(f"{len(programs) - failed} of {len(programs)} programs ended as they should")
    sys.exit(1 if failed or not programs else 0)


main()
