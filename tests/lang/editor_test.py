#!/usr/bin/env python3
"""The editor's files are JSON, name each other rightly, and its grammar knows the language's reserved words, no others.

usage: editor_test.py SOURCE_DIR
"""
import json
import pathlib
import re
import sys


def patterns(node):
    """Every regular expression of a grammar."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("match", "begin", "end"):
                yield value
            else:
                yield from patterns(value)
    elif isinstance(node, list):
        for value in node:
            yield from patterns(value)


def main():
    source = pathlib.Path(sys.argv[1])
    folder = source / "editors" / "vscode"
    package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    for language in package["contributes"]["languages"]:
        assert language["extensions"] == [".tl"]
        json.loads((folder / language["configuration"]).read_text(encoding="utf-8"))
    (entry,) = package["contributes"]["grammars"]
    grammar = json.loads((folder / entry["path"]).read_text(encoding="utf-8"))
    assert grammar["scopeName"] == entry["scopeName"]

    for pattern in patterns(grammar):
        re.compile(pattern.replace("\\A", "^"))
    for include in re.findall(r'"include": ?"#(\w+)"', json.dumps(grammar)):
        assert include in grammar["repository"], f"the grammar has no part '{include}'"

    text = (source / "src" / "lang" / "lexer.cpp").read_text(encoding="utf-8")
    block = re.search(r"kReserved = \{(.*?)\};", text, re.S)[1]
    reserved = re.findall(r'"(\w+)"', block)
    lists = [p["match"] for p in grammar["repository"]["reserved"]["patterns"]]
    known = [word for each in lists for word in re.fullmatch(r"\\b\((.*)\)\\b", each)[1].split("|")]
    assert len(reserved) > 40, "kReserved was not found in lexer.cpp"
    assert sorted(known) == sorted(reserved), (
        f"not in the grammar: {sorted(set(reserved) - set(known))}; "
        f"only in the grammar: {sorted(set(known) - set(reserved))}; "
        f"twice: {sorted({w for w in known if known.count(w) > 1})}")
    print(f"the grammar has the {len(known)} reserved words, and {sum(1 for _ in patterns(grammar))} patterns that are read")


main()
