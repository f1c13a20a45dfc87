"""Facts from text files, and the many ways in which people ask for them.

A fact is a block of lines; an empty line ends it. What the words at the beginning of lines mean:

    what: A | B          "What is A?", "Explain B." and the like are asked
    how: A | B           "How do I A?" and the like
    ask: TEXT            a question as it is
    say: TEXT            an answer; one of them is taken
    more: TEXT           a sentence that may come after the answer
    follow: Q => A       a question that refers back, and its answer

Lines that begin with two spaces go on with the text of the line before.
"""

import pathlib
import re

from words import WORDS, capital

OPENERS = ["Sure. ", "Of course. ", "Good question. ", "Gladly. "]


class Fact:
    def __init__(self, name):
        self.name = name
        self.what, self.how, self.ask, self.say, self.more, self.follow = [], [], [], [], [], []

    def question(self, rng):
        """A question, and whether it names one thing that an answer may call "it"."""
        ways = [way for way, texts in (("what", self.what), ("how", self.how), ("ask", self.ask)) if texts]
        way = rng.choice(ways + (["ask"] if self.ask else []))
        if way == "ask":
            text = rng.choice(self.ask)
            return text, any(topic.lower() in text.lower() for topic in self.what)
        if way == "how":
            phrases = [text for text in WORDS["how"] if "command" not in text or "```" not in self.say[0]]
            return rng.choice(phrases).format(rng.choice(self.how)), False
        topic = rng.choice(self.what)
        text = rng.choice(WORDS["what many" if is_plural(topic) else "what"]).format(topic)
        if text.startswith(topic) and topic[0].islower() and " " in topic:
            text = capital(text)
        return text, not is_plural(topic)

    def answer(self, rng, question="", names_it=True, opener=0.04):
        unfit = () if names_it else ("It ", "They ")
        if re.match(r"What (does|do|is|are|happens)\b", question):
            unfit += ("Use ", "Type ", "Press ", "Set ", "Write ")
        said = [text for text in self.say if not text.startswith(unfit)] or self.say
        text = rng.choice(said)
        if rng.random() < opener and not text.startswith(("Yes", "No", "Here", "Like", "There")):
            text = rng.choice(OPENERS) + text
        if self.more and "```" not in text and rng.random() < 0.35:
            text += " " + rng.choice(self.more)
        return text


def is_plural(topic):
    head = re.split(" in | of ", topic)[0]
    return re.fullmatch(r"(?!an? |the |tl )[a-z][a-z -]*[^s]s", head) is not None and topic != "safetensors"


def read_facts(path):
    facts, fact, last = [], None, None
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        goes_on = number + 1 < len(lines) and lines[number + 1].startswith("  ")
        if line.startswith("#"):
            continue
        if line.startswith("  ") or (not line and last is not None and goes_on):
            is_code = "```" in last[-1] or line.startswith("  ```")
            last[-1] += ("\n" if is_code else " ") + line[2:]
        elif not line:
            fact = last = None
        else:
            if fact is None:
                fact = Fact(f"{pathlib.Path(path).name}:{number + 1}")
                facts.append(fact)
            word, _, text = line.partition(": ")
            last = getattr(fact, word)
            last.extend(text.split(" | ") if word in ("what", "how") else [text])
    for fact in facts:
        fact.follow = [tuple(text.split(" => ", 1)) for text in fact.follow]
        if not fact.say or not (fact.what or fact.how or fact.ask):
            raise ValueError(f"{fact.name}: a fact needs a question and an answer")
        fact.name = (fact.what + fact.how + fact.ask)[0]  # what is held out goes by it
    return facts


def mistyped(rng, text):
    """One letter of a longer word left out, doubled or swapped with the next, as fingers do."""
    places = [found for found in re.finditer(r"(?<![`/<\w])[A-Za-z]{6,}(?![`\w])", text)]
    if not places or "`" in text or '"' in text:
        return text
    found = rng.choice(places)
    at = rng.randrange(found.start() + 1, found.end() - 1)
    way = rng.randrange(3)
    if way == 0:
        return text[:at] + text[at + 1:]
    if way == 1:
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1] + text[at] + text[at + 2:]


def as_people_type(rng, text, phrases=True):
    """A question in capital and small letters, with and without a mark at its end, sometimes polite or mistyped."""
    way = rng.random()
    if "TensorLogic" in text and rng.random() < 0.15:
        text = text.replace("TensorLogic", rng.choice(["Tensor Logic", "tensor logic", "Tensorlogic"]))
    if way < 0.45:
        return text
    if way < 0.62:
        return text.lower().rstrip("?.!") if rng.random() < 0.6 else text.lower()
    if way < 0.70:
        return text.rstrip("?.!")
    if way < 0.78:
        return mistyped(rng, text if rng.random() < 0.5 else text.lower())
    if way < 0.88 and phrases:
        prefix = rng.choice(WORDS["prefixes"])
        if prefix.endswith(",") and re.match(r"(What|How|Which|Can|Does|Do|Is|Are|Where|Why|Who|Tell|Show)\b", text):
            text = text[0].lower() + text[1:]
        return f"{prefix} {text}"
    if way < 0.94 and phrases and text[-1] in "?.!":
        return f"{text} {rng.choice(WORDS['suffixes'])}"
    return text
