#!/usr/bin/env python3
"""Writes the models that data/logits.json lists: make_models.py CASES.json MAKE_MODEL.py FOLDER."""

import json
import os
import subprocess
import sys


def main():
    cases, make_model, folder = sys.argv[1:]
    with open(cases, encoding="utf-8") as file:
        listed = json.load(file)
    os.makedirs(folder, exist_ok=True)
    for case in listed["cases"]:
        path = os.path.join(folder, case["name"] + ".gguf")
        subprocess.run([sys.executable, make_model, *listed["shape"], *case["arguments"], path], check=True,
                       stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
