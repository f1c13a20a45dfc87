#!/usr/bin/env python3
"""Runs the `openai` package of npm against `tl serve`. Usage: serve_openai_test.py PATH_TO_TL FOLDER

The package is installed into the folder once. Where there is no node, or no package to be had, it says so and exits with
77, which ctest counts as skipped.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from serving import Server, make_model

SKIPPED = 77
VERSION = "6"


def install(folder):
    """Why the package is not there, or nothing."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            return f"there is no {program}"
    if os.path.isdir(os.path.join(folder, "node_modules", "openai")):
        return None
    os.makedirs(folder, exist_ok=True)
    try:
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, f"openai@{VERSION}"], cwd=folder,
                                capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "npm did not get the package within two minutes"
    return None if result.returncode == 0 else "npm did not get the package: " + result.stderr.strip()[-300:]


def main():
    tl, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    reason = install(folder)
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openai_client.mjs")
    with tempfile.TemporaryDirectory() as models:
        with Server(tl, make_model(os.path.join(models, "tiny.gguf")), "--api-key", "secret") as server:
            result = subprocess.run(["node", script, f"http://127.0.0.1:{server.port}/v1"], cwd=folder, timeout=120)
            return result.returncode


if __name__ == "__main__":
    sys.exit(main())
