#!/usr/bin/env python3
"""What fused_bench times, in PyTorch, eager: torch_fused.py [--device cuda] [--threads N] [--repeat 20] ..."""

import argparse
import time

import torch
import torch.nn.functional as F


class Bench:
    def __init__(self, options):
        self.o = options
        self.on_gpu = options.device.startswith("cuda")

    def numbers(self, *shape):
        return torch.rand(*shape, device=self.o.device) * 2 - 1

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def time(self, f):
        times = []
        for i in range(self.o.repeat + 3):
            self.wait()
            start = time.perf_counter()
            f()
            self.wait()
            if i >= 3:
                times.append((time.perf_counter() - start) * 1e3)
        times.sort()
        return times[len(times) // 2]

    def report(self, what, forward, both):
        before = 0
        if self.on_gpu:
            self.wait()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        every = self.time(both)
        peak = f", peak {(torch.cuda.max_memory_allocated() - before) / 2**20:8.1f} MiB" if self.on_gpu else ""
        with torch.no_grad():
            alone = self.time(forward)
        print(f"{what:40} forward {alone:9.3f} ms, with gradients {every:9.3f} ms{peak}", flush=True)

    def attention(self, heads, length, causal):
        shape = (self.o.batch, heads, length, self.o.size)
        q, k, v = (self.numbers(*shape).requires_grad_() for _ in range(3))
        g = self.numbers(*shape)

        def forward():
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

        self.report(f"attention {'causal ' if causal else ''}{shape}", forward,
                    lambda: torch.autograd.grad(forward(), (q, k, v), g))

    def cross_entropy(self):
        rows, classes = self.o.rows, self.o.classes
        x = self.numbers(rows, classes).requires_grad_()
        targets = (torch.arange(rows) * 7919 % classes).to(self.o.device)
        self.report(f"cross entropy ({rows}, {classes})", lambda: F.cross_entropy(x, targets),
                    lambda: torch.autograd.grad(F.cross_entropy(x, targets), x))

    def rope(self):
        length = self.o.time[-1]
        shape = (self.o.batch, self.o.heads[-1], length, self.o.size)
        x, g = self.numbers(*shape).requires_grad_(), self.numbers(*shape)
        c, s = self.numbers(length, self.o.size // 2), self.numbers(length, self.o.size // 2)

        def forward():
            a, b = x.chunk(2, -1)
            return torch.cat((a * c - b * s, a * s + b * c), -1)

        self.report(f"rope {shape}", forward, lambda: torch.autograd.grad(forward(), x, g))

    def run(self):
        for causal in (False, True):
            for length in self.o.time:
                for heads in self.o.heads:
                    self.attention(heads, length, causal)
        self.cross_entropy()
        self.rope()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--heads", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--time", type=int, nargs="+", default=[256, 512, 2048])
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--classes", type=int, default=8192)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__} {options.device}")
    Bench(options).run()


if __name__ == "__main__":
    main()
