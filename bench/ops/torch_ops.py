#!/usr/bin/env python3
"""The list of ops_bench.cpp with PyTorch, measured the same way: time by events over many calls in a row, the median of
five rounds, and the host's time per call.

  bench/ops/torch_ops.py [--device cuda:0] [--threads N] [--filter TEXT] [--seconds 0.3] [--list] > torch.json
"""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

ROUNDS = 5
HOST_CALLS = 100
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
LAYERS = [(3, 64, 7, 2, 3, 224), (64, 64, 1, 1, 0, 56), (64, 64, 3, 1, 1, 56), (64, 256, 1, 1, 0, 56),
          (128, 128, 3, 2, 1, 56), (128, 128, 3, 1, 1, 28), (256, 256, 3, 1, 1, 14), (1024, 512, 1, 1, 0, 14),
          (512, 512, 3, 1, 1, 7)]
MEGA = 1 << 20


def size_name(count):
    return f"{count >> 20}M" if count >= MEGA else f"{count >> 10}K"


def values(device, *shape, dtype="f32"):
    return (torch.rand(*shape, device=device) * 2 - 1).to(DTYPES[dtype])


def indices(device, end, *shape):
    return torch.randint(0, end, shape, device=device)


def elementwise(cases, count):
    def one(name, f):
        def make(device):
            x = values(device, count)
            return lambda: f(x)
        cases.append((f"{name}/f32/{size_name(count)}", make))

    def make_add(device):
        a, b = values(device, count), values(device, count)
        return lambda: a + b
    cases.append((f"add/f32/{size_name(count)}", make_add))
    one("exp", torch.exp)
    one("gelu", lambda x: F.gelu(x, approximate="tanh"))
    one("copy", torch.clone)
    one("sum", torch.sum)


def layouts(cases, n):
    def add(name, make):
        cases.append((f"{name}/f32/{n}x{n}", make))

    def transposed(device):
        x = values(device, n, n).t()
        return lambda: x.clone(memory_format=torch.contiguous_format)

    def plus(left, right):
        def make(device):
            x, y = left(device), right(device)
            return lambda: x + y
        return make

    def square(device):
        return values(device, n, n)
    add("copy_transposed", transposed)
    add("add_broadcast_row", plus(square, lambda device: values(device, n)))
    add("add_broadcast_column", plus(square, lambda device: values(device, n, 1)))
    add("add_transposed", plus(square, lambda device: square(device).t()))
    add("add_strided", plus(lambda device: square(device)[:, ::2], lambda device: square(device)[:, ::2]))


def rows(cases, height, width):
    def add(name, f, *makers):
        def make(device):
            operands = [values(device, height, width)] + [maker(device) for maker in makers]
            return lambda: f(*operands)
        cases.append((f"{name}/f32/{height}x{width}", make))

    def row(device):
        return values(device, width)

    def ids(device):
        return indices(device, width, height, width)
    add("softmax", lambda x: torch.softmax(x, -1))
    add("layer_norm", lambda x, w, b: F.layer_norm(x, (width,), w, b, 1e-5), row, row)
    add("sort", lambda x: torch.sort(x, -1))
    add("cumsum", lambda x: torch.cumsum(x, -1))
    add("index_select", lambda x, i: torch.index_select(x, 0, i), lambda device: indices(device, height, height))
    add("gather", lambda x, i: torch.gather(x, 1, i), ids)
    add("scatter_add", lambda x, i, s: torch.scatter_add(x, 1, i, s), ids,
        lambda device: values(device, height, width))


def matmul(cases, dtype, n):
    def make(device):
        a, b = values(device, n, n, dtype=dtype), values(device, n, n, dtype=dtype)
        return lambda: a @ b
    cases.append((f"matmul/{dtype}/{n}", make))


def conv(cases, dtype, batch, layer):
    channels, out, kernel, stride, padding, size = layer

    def make(device):
        x = values(device, batch, channels, size, size, dtype=dtype)
        weight = values(device, out, channels, kernel, kernel, dtype=dtype)
        return lambda: F.conv2d(x, weight, stride=stride, padding=padding)
    cases.append((f"conv2d/{dtype}/{batch}x{channels}x{size}/{out}k{kernel}s{stride}", make))


def case_list(gpu):
    cases = []
    for count in [1024, MEGA, 16 * MEGA] + ([256 * MEGA] if gpu else []):
        elementwise(cases, count)
    layouts(cases, 4096 if gpu else 2048)
    rows(cases, *((4096, 4096) if gpu else (1024, 1024)))
    for dtype in ("f32", "f16", "bf16") if gpu else ("f32", "bf16"):
        for n in (1024, 4096, 8192) if gpu else (512, 2048):
            matmul(cases, dtype, n)
    for layer in LAYERS:
        conv(cases, "f16" if gpu else "f32", 32 if gpu else 1, layer)
    return cases


def run_round(call, gpu, calls):
    if not gpu:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(calls):
        call()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / calls


def measure(call, gpu, seconds):
    def wait():
        if gpu:
            torch.cuda.synchronize()
    for _ in range(3):
        call()
    wait()
    once = max(1e-7, run_round(call, gpu, 3))
    calls = int(min(max(seconds / ROUNDS / once, 3), 10000))
    times = [run_round(call, gpu, calls) for _ in range(ROUNDS)]
    host = []
    for _ in range(ROUNDS):
        wait()
        few = min(calls, HOST_CALLS)
        start = time.perf_counter()
        for _ in range(few):
            call()
        host.append((time.perf_counter() - start) / few)
    wait()
    return statistics.median(times), statistics.median(host)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, help="threads on the CPU; the same as ops_bench uses")
    parser.add_argument("--filter", default="")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    gpu = device.type == "cuda"  # ROCm builds call it so too
    if options.threads:
        torch.set_num_threads(options.threads)
    if gpu:
        torch.cuda.set_device(device)
    out = {"library": f"PyTorch {torch.__version__}", "device": torch.cuda.get_device_name(device) if gpu else "CPU",
           "kind": "cpu" if not gpu else "rocm" if torch.version.hip else "cuda",
           "threads": torch.get_num_threads(), "cases": []}
    with torch.inference_mode():
        for name, make in case_list(gpu):
            if options.filter not in name:
                continue
            if options.list:
                print(name)
                continue
            row = {"name": name}
            try:
                call, host = measure(make(device), gpu, options.seconds)
                row |= {"microseconds": call * 1e6, "host_microseconds": host * 1e6}
                print(f"{name:40} {call * 1e6:10.1f} us, host {host * 1e6:8.1f} us", file=sys.stderr)
            except RuntimeError as error:  # out of memory among them
                row["problem"] = str(error).splitlines()[0]
                print(f"{name:40} {row['problem']}", file=sys.stderr)
            out["cases"].append(row)
            if gpu:
                torch.cuda.empty_cache()
    if not options.list:
        print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
