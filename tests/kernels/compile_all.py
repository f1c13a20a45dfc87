#!/usr/bin/env python3
"""Compiles kernel files for every target and fails on warnings, spills and scratch memory.

The first rung of the ladder for a kernel: it compiles everywhere it is meant to run, and nowhere
does the compiler push registers out to memory. Prints a line per target with time, image size and
the largest register count, and a summary.

    compile_all.py OUT [--root REPO] [--modules fill cast probe] [--only amd nvidia host]

Images are left in OUT as <module>.<target>.hsaco, .cubin and .so; run_kernels.py reads the first.
Compilers come from CLANG (clang++-19), NVCC (nvcc) and CXX (g++); one that is missing is skipped
and said so, unless it was asked for with --only.
"""
import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import time

AMD = "gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1151 gfx1200 gfx1201".split()
NVIDIA = "sm_80 sm_90 sm_100 sm_120".split()
HOST = ("32", "64")

KERNEL = re.compile(r"^GPU_KERNEL void ([a-z0-9_]+)\(", re.M)


def msgpack(data, at=0):
    """The subset of msgpack that code object metadata uses: (value, next position)."""
    tag = data[at]
    at += 1

    def number(size, signed):
        return int.from_bytes(data[at:at + size], "big", signed=signed), at + size

    def text(size, at):
        return data[at:at + size].decode(), at + size

    def items(count, at):
        out = []
        for _ in range(count):
            value, at = msgpack(data, at)
            out.append(value)
        return out, at

    def pairs(count, at):
        flat, at = items(2 * count, at)
        return dict(zip(flat[::2], flat[1::2])), at

    if tag < 0x80:
        return tag, at
    if tag < 0x90:
        return pairs(tag & 15, at)
    if tag < 0xa0:
        return items(tag & 15, at)
    if tag < 0xc0:
        return text(tag & 31, at)
    if tag in (0xc2, 0xc3):
        return tag == 0xc3, at
    if 0xcc <= tag <= 0xcf:
        return number(1 << (tag - 0xcc), False)
    if 0xd0 <= tag <= 0xd3:
        return number(1 << (tag - 0xd0), True)
    if 0xd9 <= tag <= 0xdf:
        size = {0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}[tag]
        count = int.from_bytes(data[at:at + size], "big")
        return (text if tag < 0xdc else items if tag < 0xde else pairs)(count, at + size)
    if tag >= 0xe0:
        return tag - 256, at
    raise ValueError(f"msgpack tag {tag:#x}")


def amd_kernels(path):
    """The kernels of an AMD code object: metadata dictionaries by name."""
    data = open(path, "rb").read()
    table, entry, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    for k in range(count):
        kind, _, start, _, _, size = struct.unpack_from("<IIQQQQ", data, table + k * entry)
        end = start + size
        while kind == 4 and start < end:  # notes: name, description, type
            name, description, number = struct.unpack_from("<III", data, start)
            body = start + 12 + (name + 3 & ~3)
            if number == 32:
                return {x[".name"]: x for x in msgpack(data, body)[0]["amdhsa.kernels"]}
            start = body + (description + 3 & ~3)
    raise ValueError(f"{path}: no metadata")


def run(command):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr, time.perf_counter() - start


def noise(text):
    return [line for line in text.splitlines() if "warning" in line or "error" in line]


class Checker:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.includes = [f"-I{root}/src/kernels", f"-I{root}/include"]
        self.passed = self.failed = 0

    def source(self, module):
        folders = (f"{self.root}/src/kernels", f"{self.root}/tests/kernels")
        found = [f"{f}/{module}.cu" for f in folders if os.path.exists(f"{f}/{module}.cu")]
        if not found:
            raise SystemExit(f"no {module}.cu in {' or '.join(folders)}")
        return found[0]

    def report(self, module, target, problems, seconds, path, detail):
        size = os.path.getsize(path) if os.path.exists(path) else 0
        print(f"{'FAIL' if problems else 'ok  '} {module:10} {target:9} {seconds:5.1f} s "
              f"{size:8} bytes  {detail}", flush=True)
        for p in problems[:8]:
            print(f"       {p}")
        self.passed += not problems
        self.failed += bool(problems)

    def missing(self, names, found):
        return [f"kernel {n} is not in the image" for n in names if n not in found]

    def amd(self, module, names, gfx):
        path = f"{self.out}/{module}.{gfx}.hsaco"
        code, text, seconds = run(
            [os.environ.get("CLANG", "clang++-19"), "-x", "hip", "--offload-device-only",
             "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-std=c++20", "-O3", "-Wall",
             "-Wextra", "-munsafe-fp-atomics", f"--offload-arch={gfx}", *self.includes,
             self.source(module), "-o", path])
        problems = noise(text) or ([text] if code else [])
        detail = ""
        if not code:
            kernels = amd_kernels(path)
            problems += self.missing(names, kernels)
            for name, k in kernels.items():
                for field in (".private_segment_fixed_size", ".vgpr_spill_count",
                              ".sgpr_spill_count"):
                    if k[field]:
                        problems.append(f"{name}: {field[1:]} {k[field]}")
            vgprs = max(k[".vgpr_count"] for k in kernels.values())
            sgprs = max(k[".sgpr_count"] for k in kernels.values())
            detail = f"{len(kernels)} kernels, vgpr <= {vgprs}, sgpr <= {sgprs}"
        self.report(module, gfx, problems, seconds, path, detail)

    def nvidia(self, module, names, sm):
        path = f"{self.out}/{module}.{sm}.cubin"
        code, text, seconds = run(
            [os.environ.get("NVCC", "nvcc"), "-std=c++20", "-O3", "-cubin", f"-arch={sm}",
             "-Xptxas", "-v", *self.includes, self.source(module), "-o", path])
        problems = noise(text) or ([text] if code else [])
        used = {}
        name = None
        for line in text.splitlines():
            if m := re.search(r"Compiling entry function '(\w+)'", line):
                name = m[1]
            if m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+)", line):
                if any(int(x) for x in m.groups()):
                    problems.append(f"{name}: {line.strip()}")
            if m := re.search(r"Used (\d+) registers", line):
                used[name] = int(m[1])
        if not code:
            problems += self.missing(names, used)
        detail = f"{len(used)} kernels, registers <= {max(used.values(), default=0)}"
        self.report(module, sm, problems, seconds, path, detail)

    def host(self, module, names, warp):
        path, text_path = f"{self.out}/{module}.sim{warp}.so", f"{self.out}/{module}.sim{warp}.cpp"
        with open(text_path, "w") as f:
            f.write(open(self.source(module)).read())
            for n in names:
                f.write(f'extern "C" {{ extern const gpu_host::Entry gpu_host_entry_{n}; '
                        f"const gpu_host::Entry gpu_host_entry_{n} = "
                        f"gpu_host::EntryOf<&{n}>::value; }}\n")
        code, text, seconds = run(
            [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-fPIC", "-shared", "-Wall",
             "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", f"-DGPU_HOST_WARP={warp}", "-x",
             "c++", *self.includes, text_path, "-o", path])
        problems = noise(text) or ([text] if code else [])
        self.report(module, f"sim{warp}", problems, seconds, path, f"{len(names)} kernels")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--modules", nargs="+", default=["fill", "cast", "probe"])
    parser.add_argument("--only", nargs="+", choices=("amd", "nvidia", "host"))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)

    checker = Checker(options.root, options.out)
    plan = {"amd": (os.environ.get("CLANG", "clang++-19"), checker.amd, AMD),
            "nvidia": (os.environ.get("NVCC", "nvcc"), checker.nvidia, NVIDIA),
            "host": (os.environ.get("CXX", "g++"), checker.host, HOST)}
    for kind in options.only or plan:
        compiler, check, targets = plan[kind]
        if not shutil.which(compiler) and not options.only:
            print(f"skip {kind}: {compiler} was not found")
            continue
        for module in options.modules:
            names = KERNEL.findall(open(checker.source(module)).read())
            for target in targets:
                check(module, names, target)
    print(f"{checker.passed} passed, {checker.failed} failed")
    return 1 if checker.failed or not checker.passed else 0


if __name__ == "__main__":
    sys.exit(main())
