#!/usr/bin/env python3
"""The transformer that is written in the language gives the tokens of `tl generate`, for every type of weights.

usage: transformer_test.py TL SOURCE_DIR [--device cuda:0]
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

# After these the best token leads by 0.2 or more in every file, six times in a row: sums in another order choose the same.
PROMPTS = ["it love", "our land", "he hill"]
TOKENS = 6


def output_of(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, errors="replace")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tl")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    tl = os.path.abspath(options.tl)
    source = options.source.resolve()
    models = sorted((source / ".." / "shared" / "data" / "gguf").glob("tiny-llama-*.gguf"))
    if not models:
        print("skipped: there are no models under ../shared/data/gguf")
        return
    failed = 0
    for model in models:
        for prompt in PROMPTS:
            text = output_of([tl, "run", "-q", "--device", options.device, "examples/transformer.tl", model, prompt,
                              str(TOKENS)], source)
            ours = [int(t) for t in re.search(r"^answer: \[(.*)\]$", text, re.M)[1].split(", ")]
            answer = output_of([tl, "generate", model, "--device", options.device, "-p", prompt, "-n", str(TOKENS),
                                "--greedy", "--json", "--quiet"], source)
            theirs = json.loads(answer)["tokens"]
            if ours != theirs:
                failed += 1
                print(f"FAILED {model.name} '{prompt}': examples/transformer.tl gives {ours}, tl generate {theirs}")
    print(f"{len(models)} models with {len(PROMPTS)} prompts each on {options.device}, {failed} differ")
    sys.exit(1 if failed else 0)


main()
