#!/usr/bin/env python3
"""Asks tallow-nano what was held out of its training, through `tl serve`, and counts.

    evaluate.py TL HELD_OUT.txt [--model FILE] [--limit 400] [--show 5]

TL is the program. Of every held-out chat the first question is asked, greedily. Where the reference is a sum, a difference
or a product the answer is right when it ends with the same number. Elsewhere it is right word for word, or near: the share
of its words that the reference has too, and the other way round (F1). An answer may be right in other words, so both are
less than a reader would give.
"""
import argparse
import concurrent.futures
import json
import re
import subprocess
import urllib.request
from collections import Counter

NUMBERS = re.compile(r"^(?:[^.]*?)(-?\d+) ([-+*/]) (\d+) (?:=|is) (-?\d+)\.$")


def chats(path):
    """(question, answer) of the first turn of each chat that has no system message."""
    with open(path, encoding="utf-8") as file:
        for document in file.read().split("\n<|end|>\n"):
            turn = re.match(r"<\|user\|>(.*?)<\|eot\|><\|assistant\|>(.*?)<\|eot\|>", document, re.S)
            if turn:
                yield turn.group(1), turn.group(2)


def words(text):
    return Counter(re.findall(r"[\w`'-]+", text.lower()))


def likeness(a, b):
    """F1 of the words of two texts."""
    a, b = words(a), words(b)
    same = sum((a & b).values())
    return 2 * same / max(sum(a.values()) + sum(b.values()), 1)


def ask(port, question):
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 250}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def report(name, cases, show):
    if not cases:
        return
    exact = sum(answer.strip() == expected.strip() for _, expected, answer in cases)
    near = sum(likeness(expected, answer) for _, expected, answer in cases) / len(cases)
    print(f"{name}: {len(cases)} asked, {exact} word for word, words in common {near:.2f}")
    for question, expected, answer in [c for c in cases if c[1] != c[2]][:show]:
        print(f"  asked     {question}\n  expected  {expected}\n  answered  {answer}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tl")
    parser.add_argument("held_out")
    parser.add_argument("--model", help="another than the one that comes with the program")
    parser.add_argument("--limit", type=int, default=400, help="questions")
    parser.add_argument("--show", type=int, default=5, help="wrong answers of each kind")
    options = parser.parse_args()

    command = [options.tl, "serve"] + ([options.model] if options.model else []) + ["--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            line = next((line for line in server.stdout if "listening on" in line), None)
            if line is None:
                raise SystemExit("the server did not start: " + " ".join(command))
            port = int(re.search(r":(\d+)", line.split("//")[1]).group(1))
            asked = [chat for chat in chats(options.held_out) if len(chat[1]) < 250][: options.limit]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda chat: ask(port, chat[0]), asked))
        finally:
            server.terminate()
    numbers, texts = [], []
    for (question, expected), answer in zip(asked, answers):
        (numbers if NUMBERS.match(expected) else texts).append((question, expected, answer))
    last = lambda text: (re.findall(r"-?\d+", text) or [""])[-1]
    right = sum(last(expected) == last(answer) for _, expected, answer in numbers)
    print(f"arithmetic: {right} of {len(numbers)} results right")
    report("arithmetic", [c for c in numbers if last(c[1]) != last(c[2])], options.show)
    report("questions", texts, options.show)


if __name__ == "__main__":
    main()
