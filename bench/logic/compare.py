#!/usr/bin/env python3
"""Logic programs beside gringo and SWI-Prolog with tabling: the same tuples, and who is faster.

    compare.py LOGIC_BENCH [--nodes 1000] [--edges 10000] [--repeat 3]

Makes a random graph, runs the transitive closure, the same-generation and a negation program in all three and compares
what they found. Times are of whole processes: reading the graph, computing and writing the tuples to a file; the best
of the runs counts. Ends with 1 when tuples differ or the closure takes us longer than one of the others. Debian has
both: gringo, swi-prolog-nox.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

RULES = {
    "closure": ["result(X,Y) :- edge(X,Y).", "result(X,Z) :- result(X,Y), edge(Y,Z)."],
    "same_generation": ["result(X,Y) :- edge(Z,X), edge(Z,Y).", "result(X,Y) :- edge(Z,X), result(Z,W), edge(W,Y)."],
    "negation": ["path(X,Y) :- edge(X,Y).", "path(X,Z) :- path(X,Y), edge(Y,Z).",
                 "node(X) :- edge(X,_).", "node(Y) :- edge(_,Y).",
                 "result(X,Y) :- node(X), node(Y), not path(X,Y)."],
}


def random_graph(nodes, edges, seed):
    draw = random.Random(seed)
    made = set()
    while len(made) < edges:
        made.add((draw.randrange(nodes), draw.randrange(nodes)))
    return sorted(made)


def facts(edges):
    return "".join(f"edge({a},{b}).\n" for a, b in edges)


def gringo_program(rules, edges):
    return facts(edges) + "\n".join(rules) + "\n#show result/2.\n"


def prolog_program(rules, edges, out):
    text = [":- table result/2, path/2, node/1.", *rules, ":- initialization(main)."]
    # In Prolog `not` of a tabled goal is tnot.
    text = [re.sub(r"not (path\(X,Y\))", r"tnot(\1)", line) for line in text]
    text.append(f"main :- open('{out}', write, S), forall(result(X, Y), format(S, '~w,~w~n', [X, Y])), close(S), halt.")
    return facts(edges) + "\n".join(text) + "\n"


def timed(command, repeat, **options):
    best = None
    for _ in range(repeat):
        start = time.monotonic()
        done = subprocess.run(command, check=True, timeout=600, **options)
        best = min(time.monotonic() - start, best or 1e9)
    return best, done


def pairs(text, pattern):
    return {(int(a), int(b)) for a, b in re.findall(pattern, text)}


def run_ours(bench, name, folder, edges, repeat):
    (folder / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in edges))
    out = folder / "ours.csv"
    best, done = timed([bench, name, folder / "edges.csv", out], repeat, stdout=subprocess.PIPE, text=True)
    print("   ", done.stdout.strip())
    return best, pairs(out.read_text(), r"(\d+),(\d+)")


def run_gringo(name, folder, edges, repeat):
    program = folder / "program.lp"
    program.write_text(gringo_program(RULES[name], edges))
    out = folder / "gringo.txt"
    best, _ = timed(["sh", "-c", f"gringo --text {program} > {out}"], repeat)
    return best, pairs(out.read_text(), r"result\((\d+),(\d+)\)")


def run_prolog(name, folder, edges, repeat):
    out = folder / "prolog.csv"
    program = folder / "program.pl"
    program.write_text(prolog_program(RULES[name], edges, out))
    best, _ = timed(["swipl", "--table-space=8g", "--stack-limit=8g", program], repeat, stdin=subprocess.DEVNULL)
    return best, pairs(out.read_text(), r"(\d+),(\d+)")


def compare(name, nodes, edges, args):
    graph = random_graph(nodes, edges, 7)
    print(f"{name}: {nodes} nodes, {edges} edges")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ours, tuples = run_ours(args.bench, name, folder, graph, args.repeat)
        others = {"gringo": run_gringo(name, folder, graph, args.repeat),
                  "swipl": run_prolog(name, folder, graph, args.repeat)}
    right = True
    print(f"    ours    {ours:8.3f} s  {len(tuples)} tuples")
    for other, (took, found) in others.items():
        same = found == tuples
        right &= same
        print(f"    {other:7} {took:8.3f} s  {len(found)} tuples, "
              f"{'the same' if same else 'DIFFERENT'}, we take {ours / took:.3f} of its time")
    return right, all(ours <= took for took, _ in others.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--edges", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    for program in ("gringo", "swipl"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is not installed")
    same, faster = compare("closure", args.nodes, args.edges, args)
    same_sg, _ = compare("same_generation", 300, 600, args)
    same_not, _ = compare("negation", 300, 400, args)
    if not (same and same_sg and same_not):
        sys.exit("the tuples differ")
    if not faster:
        sys.exit("the closure took us longer")


if __name__ == "__main__":
    main()
