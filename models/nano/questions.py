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

WHAT = """What is {}?|What is {}?|What's {}?|Explain {}.|Can you explain {}?|Tell me about {}.|What does "{}" mean?|Define {}.|
Please explain {} to me.|I do not understand {}. Can you explain?|What exactly is {}?|Could you tell me what {} is?|
Do you know what {} is?|{}?|What do you know about {}?|I have heard of {}. What is it?|Explain {} in simple words.|
what is {}|explain {}|Describe {}.|In one sentence, what is {}?|Can you tell me about {}?|what's {}""".replace("\n", "").split("|")
WHAT_MANY = """What are {}?|What are {}?|Explain {}.|Can you explain {}?|Tell me about {}.|Define {}.|Please explain {} to me.|
I do not understand {}. Can you explain?|What exactly are {}?|Could you tell me what {} are?|Do you know what {} are?|{}?|
What do you know about {}?|Explain {} in simple words.|what are {}|explain {}|Can you tell me about {}?""".replace("\n", "").split("|")
HOW = """How do I {}?|How do I {}?|How can I {}?|how to {}|How do I {}|I want to {}. How?|Show me how to {}.|
What is the best way to {}?|Can you show me how to {}?|Please tell me how to {}.|I would like to {}.|how can i {}|Help me {}.|
Is it possible to {}?|What must I do to {}?|Do you know how to {}?|I need to {}.|Which command do I need to {}?|
Explain how to {}.""".replace("\n", "").split("|")
PREFIXES = ["Please: ", "Hi! ", "Hey, ", "Hello, ", "Quick question: ", "I have a question. ", "One more question: ",
            "Sorry, ", "Okay, ", "So, ", "Now tell me: ", "I wonder: "]
SUFFIXES = [" Please.", " Thanks!", " Thank you.", " I am curious.", " I am new here.", " Keep it short."]
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
            return rng.choice([h for h in HOW if not ("command" in h and "```" in self.say[0])]).format(rng.choice(self.how)), False
        topic = rng.choice(self.what)
        text = rng.choice(WHAT_MANY if is_plural(topic) else WHAT).format(topic)
        if text.startswith(topic) and topic[0].islower() and " " in topic:
            text = text[0].upper() + text[1:]
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
                fact = Fact(f"{pathlib.Path(path).stem} {number + 1}")
                facts.append(fact)
            word, _, text = line.partition(": ")
            last = getattr(fact, word)
            last.extend(text.split(" | ") if word in ("what", "how") else [text])
    for fact in facts:
        fact.follow = [tuple(text.split(" => ", 1)) for text in fact.follow]
        if not fact.say or not (fact.what or fact.how or fact.ask):
            raise ValueError(f"{fact.name}: a fact needs a question and an answer")
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
        low = text[0].lower() + text[1:] if re.match(r"(What|How|Which|Can|Does|Do|Is|Are|Where|Why|Who|Tell|Show)\b", text) else text
        prefix = rng.choice(PREFIXES)
        return prefix + (low if prefix.endswith(", ") else text)
    if way < 0.94 and phrases and text[-1] in "?.!":
        return text + rng.choice(SUFFIXES)
    return text
