"""The lists of words.txt: words, phrases and pairs by their names."""

import pathlib
import re


def read_words(path):
    lists, name, kind, text = {}, None, None, ""

    def finish():
        if name is None:
            return
        parts = text.split() if kind == ":" else [part.strip() for part in text.split("|") if part.strip()]
        lists[name] = dict(part.split(" = ") for part in parts) if kind == "=" else parts

    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            text += " " + line.strip()
        elif line and not line.startswith("#"):
            finish()
            found = re.match(r"([a-z ]+)([:|=])(.*)", line)
            name, kind, text = found[1], found[2], found[3]
    finish()
    return lists


WORDS = read_words(pathlib.Path(__file__).parent / "words.txt")


def phrase(rng, name, *values, **named):
    """One of a list's phrases, with its places filled."""
    return rng.choice(WORDS[name]).format(*values, **named)


def article(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith(("uni", "use")) else "a ") + noun


def capital(text):
    return text[0].upper() + text[1:] if text else text
