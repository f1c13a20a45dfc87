#!/usr/bin/env python3
"""Puts the results of ops_bench and torch_ops.py side by side as a Markdown table.

  bench/ops/compare.py tallow.json torch.json [--bandwidth GB_PER_S]

The ratio is our time over theirs: below 1 we are faster. "Of copy" is the share of the bandwidth of the largest plain copy in
our own results (or of --bandwidth) that a case reaches with the bytes it must move at least. Exits with 1 when no case is in both.
"""

import argparse
import json
import math
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    return result, {row["name"]: row for row in result["cases"]}


def digits(value):
    return "" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def copy_bandwidth(rows):
    """Bytes per microsecond of the largest copy that was measured."""
    copies = [row for name, row in rows.items() if name.startswith("copy/") and "microseconds" in row]
    best = max(copies, key=lambda row: row["bytes"], default=None)
    return best["bytes"] / best["microseconds"] if best else None


def table(ours, theirs, bandwidth):
    lines = ["| case | ours, us | theirs, us | ratio | of copy | TFLOP/s | host ours, us | host theirs, us |",
             "|---|---:|---:|---:|---:|---:|---:|---:|"]
    ratios = []
    for name in list(ours) + [name for name in theirs if name not in ours]:
        mine, other = ours.get(name, {}), theirs.get(name, {})
        time, their_time = mine.get("microseconds"), other.get("microseconds")
        ratio = share = speed = ""
        if time and their_time:
            ratios.append(time / their_time)
            ratio = f"{ratios[-1]:.2f}"
        if time and mine.get("flops"):
            speed = digits(mine["flops"] / time / 1e6)
        elif time and mine.get("bytes") and bandwidth:
            share = f"{mine['bytes'] / time / bandwidth:.0%}"
        lines.append(f"| {name} | {digits(time)} | {digits(their_time)} | {ratio} | {share} | {speed} | "
                     f"{digits(mine.get('host_microseconds'))} | {digits(other.get('host_microseconds'))} |")
    return lines, ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours")
    parser.add_argument("theirs")
    parser.add_argument("--bandwidth", type=float, help="of a copy, read and written, in GB/s")
    options = parser.parse_args()
    our_run, ours = load(options.ours)
    their_run, theirs = load(options.theirs)
    bandwidth = options.bandwidth * 1e3 if options.bandwidth else copy_bandwidth(ours)
    lines, ratios = table(ours, theirs, bandwidth)
    for run in (our_run, their_run):
        threads = f", {run['threads']} threads" if run["kind"] == "cpu" else ""
        print(f"- {run['library']} on {run['device']} ({run['kind']}{threads})")
    print("\n" + "\n".join(lines) + "\n")
    if not ratios:
        sys.exit("compare: no case was measured by both")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slower = sum(ratio > 1 for ratio in ratios)
    print(f"{len(ratios)} cases in both; geometric mean of the ratios {mean:.2f}; ours is slower in {slower}.")


if __name__ == "__main__":
    main()
