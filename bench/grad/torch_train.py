#!/usr/bin/env python3
"""The model and the step of train_bench in PyTorch, eager: torch_train.py [--device cuda] [--threads N] ..."""

import argparse
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.norm2 = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width, bias=False)
        self.down = torch.nn.Linear(4 * width, width, bias=False)

    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        if hasattr(F, "scaled_dot_product_attention"):
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
            hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
            seen = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        return self.out(seen.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self, vocabulary, width, layers, heads, context):
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)
        self.places = torch.nn.Parameter(torch.randn(context, width) * 0.02)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                torch.nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        x = self.table(ids) + self.places[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--time", type=int, default=256)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    vocabulary = 8192
    model = Model(vocabulary, options.width, options.layers, 8, options.time).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    count = options.batch * options.time
    ids = (torch.arange(count) * 7919 % vocabulary).view(options.batch, options.time).to(options.device)
    targets = ((torch.arange(count) + 1) * 7919 % vocabulary).to(options.device)
    wait = torch.cuda.synchronize if options.device.startswith("cuda") else lambda: None
    times, first, last = [], None, None
    for i in range(options.steps + 3):
        wait()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(ids).view(count, vocabulary), targets)
        loss.backward()
        optimizer.step()
        wait()
        took = time.perf_counter() - start
        last = loss.item()
        first = last if first is None else first
        if i >= 3:
            times.append(took * 1e3)
    times.sort()
    parameters = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"PyTorch {torch.__version__} {options.device}: {parameters:.1f} M parameters, {count} tokens a step: "
          f"median {times[len(times) // 2]:.2f} ms, least {times[0]:.2f} ms, loss {first:.4f} -> {last:.4f}")


if __name__ == "__main__":
    main()
