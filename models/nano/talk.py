"""What a conversation has beside questions and answers: what the user says of himself, what nobody of this size can know."""

from story import made_up_name
from words import WORDS, capital, phrase

NAMES = WORDS["she names"] + WORDS["he names"] + WORDS["user names"]
KINDS = ["name", "name", "name", "colour", "animal", "food", "city", "pet", "age", "hobby", "number"]


def memory(rng):
    """Something the user says, the answer, and later a question about it with its answer."""
    kind = rng.choice(KINDS)
    if kind == "name":
        values = [made_up_name(rng) if rng.random() < 0.3 else rng.choice(NAMES)]
    elif kind == "city":
        values = [rng.choice(WORDS["cities"])]
    elif kind == "pet":
        values = [rng.choice(WORDS["pets"]), rng.choice(WORDS["pet names"])]
    elif kind in ("age", "number"):
        values = [rng.randint(7, 80)]
    else:
        liked = rng.choice(WORDS["liked " + kind[:-1] + "ies" if kind.endswith("y") else f"liked {kind}s"])
        values = [kind, "the " + liked if kind == "animal" else liked]
        return [phrase(rng, "tell liked", *values), phrase(rng, "hear liked", capital(values[1])),
                phrase(rng, "ask liked", kind), phrase(rng, "say liked", *values)]
    return [phrase(rng, f"{way} {kind}", *values) for way in ("tell", "hear", "ask", "say")]


def unknown(rng):
    """A question that is not for a model of this size, and the honest answer."""
    if rng.random() < 0.35:
        question = rng.choice(WORDS["unknown"])
    else:
        question = phrase(rng, "topic questions", rng.choice(WORDS["topics"]))
    return f"unknown {question.lower()}", question, rng.choice(WORDS["refusals"])


def echo(rng):
    words = " ".join(rng.sample(WORDS["words to say"], rng.choice([1, 1, 2, 3])))
    return f"echo {words}", phrase(rng, "ask to say", words), capital(words) + "."
