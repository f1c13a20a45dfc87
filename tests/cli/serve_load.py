#!/usr/bin/env python3
"""Many clients at once, each with one streaming request after another; then looks whether all of it was given back.

    serve_load.py PATH_TO_TL [--model M.gguf] [--clients 64] [--seconds 60] [--tokens 64]

Prints requests, tokens, errors, the slowest and the fastest client, and live bytes before and after. The exit code is 1
for an error, for a client without progress or far behind the others, and for memory that did not come back. One client
in eight hangs up in the middle of every third answer. Without a model one with random weights is made.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time

from serving import Server, make_model

PATH = "/v1/chat/completions"
STARTS = ["Tell me about tensors.", "A short story, please.", "What is Tallow?", "How are you today? " * 8]


class Client(threading.Thread):
    def __init__(self, server, number, end, tokens):
        super().__init__()
        self.server, self.number, self.end, self.most = server, number, end, tokens
        self.dice = random.Random(number)
        self.requests = self.texts = self.tokens = self.hung_up = 0
        self.errors = []
        self.first = []  # seconds to the first text

    def run(self):
        while time.monotonic() < self.end and not self.errors:
            try:
                self.one()
            except Exception as error:  # noqa: whatever it is, it is counted
                self.errors.append(f"client {self.number}: {type(error).__name__} {error}")

    def one(self):
        hangs_up = self.number % 8 == 0 and self.requests % 3 == 2
        question = f"{self.dice.choice(STARTS)} ({self.dice.randrange(1000)})"
        body = {"messages": [{"role": "user", "content": question}], "max_tokens": self.most, "ignore_eos": True,
                "temperature": 1, "stream_options": {"include_usage": True}}
        began, last = time.monotonic(), None
        events = self.server.stream(PATH, body)
        seen = 0
        for event in events:
            last = event
            if isinstance(event, str):
                continue
            if "error" in event:
                raise RuntimeError(event["error"])
            if event.get("usage"):
                self.tokens += event["usage"]["completion_tokens"]
            if event["choices"] and event["choices"][0]["delta"].get("content"):
                if not seen:
                    self.first.append(time.monotonic() - began)
                seen += 1
                self.texts += 1
                if hangs_up and seen > 3:
                    break
        events.close()
        self.requests += 1
        if hangs_up:
            self.hung_up += 1
        elif last != "[DONE]":
            raise RuntimeError(f"the stream ended with {last}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tl")
    parser.add_argument("--model")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or make_model(os.path.join(folder, "load.gguf"))
        with Server(os.path.abspath(options.tl), model, "--parallel", str(options.clients)) as server:
            # The longest conversation there will be: tables that stay are as large then as they get.
            server.post(PATH, {"messages": [{"role": "user", "content": "warm " * 60}], "max_tokens": options.tokens,
                               "ignore_eos": True})
            before = server.live_bytes()
            end = time.monotonic() + options.seconds
            began = time.monotonic()
            clients = [Client(server, i, end, options.tokens) for i in range(options.clients)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            seconds = time.monotonic() - began
            server.wait_until(lambda: server.metrics()["tl_requests_running"] == 0)
            after = server.live_bytes()
            numbers = server.metrics()
            memory = json.loads(server.get("/memory"))
    errors = [error for client in clients for error in client.errors]
    progress = sorted(client.texts for client in clients)
    first = sorted(x for client in clients for x in client.first)
    generated = int(numbers["tl_generated_tokens_total"])
    print(f"{options.clients} clients for {seconds:.1f} s: {sum(c.requests for c in clients)} requests, "
          f"{sum(c.hung_up for c in clients)} of them hung up, {len(errors)} errors")
    print(f"tokens: {generated} generated, {generated / seconds:.0f} per second; "
          f"{int(numbers['tl_prompt_tokens_reused_total'])} of {int(numbers['tl_prompt_tokens_total'])} of prompts reused")
    print(f"progress: slowest client {progress[0]} pieces of text, median {progress[len(progress) // 2]}, fastest {progress[-1]}")
    if first:
        print(f"first text after: median {first[len(first) // 2]:.3f} s, slowest {first[-1]:.3f} s")
    print(f"live bytes: {before} before, {after} after (and {memory['prefix_cache']['bytes']} kept for conversations to come)")
    for error in errors[:10]:
        print(error)
    # Whoever hangs up asks more often, and a request that is under way at the end is finished: so fair is not equal.
    is_fair = progress[0] > 0 and progress[-1] <= 4 * progress[0] + 4 * options.tokens
    if not is_fair:
        print("the progress is not fair")
    if before != after:
        print("memory did not come back")
    return 1 if errors or not is_fair or before != after else 0


if __name__ == "__main__":
    sys.exit(main())
