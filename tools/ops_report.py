#!/usr/bin/env python3
"""Makes docs/ops.md: which op takes which dtype on which device, with the worst error the tests have seen.

  tools/ops_report.py [--tl TL] [--check] [NAME=]FILE... > docs/ops.md
  tools/ops_report.py --self-test

FILE is what ops_tests wrote to TL_OPS_REPORT in one environment (build/<preset>/ops_report/<environment>.tsv): lines of
op, dtype, kind of device and worst error in units of epsilon, separated by tabs; -1 means refused on purpose. NAME is the
heading of its column; without it the file's name is. TL is the program: `tl ops --json` gives the families and the
dtypes that ops promise. --check fails when an op of it has a dtype that no environment has tested.
"""

import argparse
import collections
import json
import math
import os
import subprocess
import sys
import unittest

DTYPES = ["u8", "u32", "i16", "i32", "i64", "bool", "f8e4m3", "f16", "bf16", "f32", "f64"]
GROUPS = [("integers", DTYPES[:5]), ("bool", ["bool"]), ("f8e4m3, f16, bf16", DTYPES[6:9]), ("f32", ["f32"]),
          ("f64", ["f64"])]
TITLES = {"cpu": "CPU", "sim-cuda-32": "NVIDIA, simulated, 32 lanes", "sim-rocm-64": "AMD, simulated, 64 lanes",
          "cuda": "NVIDIA GPU", "amd-emulator": "AMD, emulated"}
REFUSED = -1.0
HEAD = """# Ops, dtypes and devices

Made by `tools/ops_report.py` from what the tests of the ops have measured; not edited by hand.

A cell is the worst error seen, in units of the dtype's epsilon (the distance between 1 and the next number), relative to
the reference in float64 or to the scale that the test of the op names. *exact*: every result was the correctly rounded
one, or equal for integers. *refused*: the op throws Unsupported for that dtype on purpose. An empty cell: not run there.
"""


def read_report(lines, where):
    """{(op, dtype, kind of device): worst error}; a file may have a row twice."""
    worst = {}
    for number, line in enumerate(lines, 1):
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "kernels" and len(fields) == 5:
            continue  # see read_kernels
        if len(fields) != 4 or fields[1] not in DTYPES:
            raise ValueError(f"{where}:{number}: not a line of a report: {line!r}")
        key = tuple(fields[:3])
        worst[key] = max(worst.get(key, REFUSED), float(fields[3]))
    return worst


def read_kernels(lines):
    """{module: (kernels that tests launched, kernels there are)}"""
    kernels = {}
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        if fields[0] == "kernels" and len(fields) == 5:
            kernels[fields[1]] = (int(fields[3]), int(fields[4]))
    return kernels


def kernel_table(runs):
    """How many kernels of each module the tests of ops launched on each kind of GPU."""
    runs = [(TITLES.get(name, name), kernels) for name, kernels in runs if kernels]
    if not runs:
        return ""
    lines = ["## Kernels reached by these tests", "", "Conversions of a dtype to itself are launched by tests of their own.", "",
             "| module | kernels | " + " | ".join(title for title, _ in runs) + " |", "|---|---:|" + "---:|" * len(runs)]
    for module in sorted({m for _, kernels in runs for m in kernels}):
        total = max(kernels[module][1] for _, kernels in runs if module in kernels)
        lines.append(f"| {module} | {total} | " +
                     " | ".join(str(kernels[module][0]) if module in kernels else "" for _, kernels in runs) + " |")
    total = [sum(kernels[m][1] for m in kernels) for _, kernels in runs]
    lines.append(f"| **all** | {max(total)} | " + " | ".join(str(sum(k[0] for k in kernels.values())) for _, kernels in runs) + " |")
    return "\n".join(lines) + "\n"


def columns_of(reports):
    """[(title, {(op, dtype): error})]: the CPU of every environment is one column, each environment's GPU another."""
    cpu, columns = {}, []
    for name, report in reports:
        gpu = {}
        for (op, dtype, kind), error in report.items():
            column = cpu if kind == "cpu" else gpu
            column[op, dtype] = max(column.get((op, dtype), REFUSED), error)
        if gpu:
            columns.append((TITLES.get(name, name), gpu))
    return ([("CPU", cpu)] if cpu else []) + columns


def number(error):
    if error == 0:
        return "exact"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{math.ceil(error * 10 ** digits) / 10 ** digits:.{digits}f}"  # up: it is a bound


def cell(errors):
    """The text for a group of dtypes: {dtype: error}."""
    measured = [error for error in errors.values() if error != REFUSED]
    refused = [dtype for dtype, error in errors.items() if error == REFUSED]
    if not measured:
        return "refused" if refused else ""
    return number(max(measured)) + (f" ({', '.join(refused)} refused)" if refused else "")


def rows_of(op, columns):
    """[(dtypes, [cell, ...])]: one row per group of dtypes; groups with the same cells are one row."""
    rows = []
    for title, group in GROUPS:
        errors = [{d: column[op, d] for d in group if (op, d) in column} for _, column in columns]
        seen = [d for d in group if any(d in e for e in errors)]
        if not seen:
            continue
        label = title if seen == group else ", ".join(seen)
        cells = [cell(e) for e in errors]
        if rows and rows[-1][1] == cells and not any("(" in text for text in cells):
            rows[-1] = (f"{rows[-1][0]}, {label}", cells)
        else:
            rows.append((label, cells))
    return rows


def document(columns, table):
    families = collections.OrderedDict()
    for row in table:
        families.setdefault(row["family"], []).append(row["name"])
    named = {name for names in families.values() for name in names}
    tested = sorted({op for _, column in columns for op, _ in column})
    others = [op for op in tested if op not in named]
    if others:
        families["other functions" if table else "ops"] = others
    lines = [HEAD]
    for family, names in families.items():
        lines += [f"## {family}", "", "| op | dtypes | " + " | ".join(title for title, _ in columns) + " |",
                  "|" + "---|" * (2 + len(columns))]
        for op in names:
            rows = rows_of(op, columns) or [("", [""] * len(columns))]
            for i, (dtypes, cells) in enumerate(rows):
                lines.append(f"| {'`' + op + '`' if i == 0 else ''} | {dtypes} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def untested(columns, table):
    return [f"{row['name']} {dtype}" for row in table for dtype in row["dtypes"]
            if not any((row["name"], dtype) in column for _, column in columns)]


class SelfTest(unittest.TestCase):
    def report(self, text):
        return read_report(text.splitlines(keepends=True), "f")

    def test_the_worst_of_two_rows_counts(self):
        self.assertEqual(self.report("exp\tf32\tcpu\t0.5\nexp\tf32\tcpu\t1.5\nexp\tu8\tcpu\t-1\n"),
                         {("exp", "f32", "cpu"): 1.5, ("exp", "u8", "cpu"): -1})

    def test_a_line_that_is_none_is_refused(self):
        for line in ("exp\tf32\tcpu", "exp\tf31\tcpu\t1", ""):
            with self.assertRaises(ValueError):
                self.report(line + "\n")

    def test_numbers_are_rounded_up_to_two_digits(self):
        self.assertEqual([number(x) for x in (0, 0.5, 0.501, 1.234, 12.3, 123.4)],
                         ["exact", "0.50", "0.51", "1.3", "13", "124"])

    def test_a_table_has_a_row_per_group_and_a_column_per_gpu(self):
        cpu = self.report("exp\tf16\tcpu\t0.5\nexp\tbf16\tcpu\t-1\nexp\tf32\tcpu\t1\n" + "copy\tf32\tcpu\t0\ncopy\tf64\tcpu\t0\n")
        gpu = self.report("exp\tf32\tcuda\t2\nexp\tf32\tcpu\t3\n")
        table = [{"name": "exp", "family": "unary", "dtypes": ["f32", "f64"]},
                 {"name": "log", "family": "unary", "dtypes": []}]
        columns = columns_of([("cpu", cpu), ("H200", gpu)])
        text = document(columns, table)
        self.assertIn("## unary\n\n| op | dtypes | CPU | H200 |\n|---|---|---|---|\n", text)
        self.assertIn("| `exp` | f16, bf16 | 0.50 (bf16 refused) |  |\n|  | f32 | 3.0 | 2.0 |\n| `log` |  |  |  |\n", text)
        self.assertIn("## other functions", text)
        self.assertIn("| `copy` | f32, f64 | exact |  |\n", text)
        self.assertEqual(untested(columns, table), ["exp f64"])


def main():
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tl", help="the program, asked for its ops")
    parser.add_argument("--check", action="store_true", help="fail when a dtype of an op is not tested")
    parser.add_argument("files", nargs="+", metavar="[NAME=]FILE")
    options = parser.parse_args()
    reports, kernels = [], []
    for argument in options.files:
        name, equals, path = argument.partition("=")
        if not equals:
            path = argument
            name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        reports.append((name, read_report(lines, path)))
        kernels.append((name, read_kernels(lines)))
    table = []
    if options.tl:
        table = json.loads(subprocess.run([options.tl, "ops", "--json"], check=True, capture_output=True, text=True).stdout)
    columns = columns_of(reports)
    print(document(columns, table) + "\n" + kernel_table(kernels), end="")
    missing = untested(columns, table)
    if options.check and missing:
        sys.exit("ops_report: not tested: " + ", ".join(missing))


if __name__ == "__main__":
    main()
