#!/usr/bin/env python3
"""Writes the texts that tallow-nano is trained on: train.txt and held-out.txt.

    corpus.py OUT_FOLDER [--megabytes 100] [--seed 1] [--millions 6]

The texts are put together by a grammar from what is in this folder, with Python's standard library alone; the same seed
gives the same bytes. Documents are UTF-8 text, and a line that is exactly <|end|> stands between them. A document is a
story or a chat, where each message is its role, its text and the end of the turn, with nothing between:

    <|user|>Hello<|eot|><|assistant|>Hi! What would you like to know?<|eot|>

What is held out is never trained on: every twentieth sum, every fiftieth question about a fact in the words it is asked,
every fiftieth combination of plot, hero, friend and thing.
"""

import argparse
import hashlib
import pathlib
import random

from arithmetic import Numbers
from questions import as_people_type, read_facts
from story import OPENERS, Frames, Story, ask_for
from talk import echo, memory, unknown
from words import WORDS, phrase
from world import world_question

HERE = pathlib.Path(__file__).parent
HELD_OUT_SHARE = 0.01
MOST_COPIES = 4     # of a short document, in all
MOST_CHAT = 1500    # bytes of a conversation
END = "<|end|>"


def is_held_out(key, every):
    """The same everywhere and always, whatever was drawn before."""
    return bool(key) and int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % every == 0


class Maker:
    """Draws documents. A turn is (question, answer); `held_out` tells whether one of the document's was held out."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.frames = Frames(HERE / "stories.txt")
        self.facts = [fact for name in ("tallow", "language", "tensors")
                      for fact in read_facts(HERE / f"facts_{name}.txt")]
        self.small_talk = read_facts(HERE / "smalltalk.txt")
        self.world_facts = read_facts(HERE / "facts_world.txt")
        self.not_said = read_facts(HERE / "not_told.txt")
        self.numbers = Numbers()
        self.held_out = False

    def note(self, keys, every):
        self.held_out = self.held_out or any(is_held_out(key, every) for key in keys.split(" & "))

    # ---- turns

    def fact(self, follow=0.0):
        fact = self.rng.choice(self.facts)
        question, names_it = fact.question(self.rng)
        self.note(f"{fact.name} {question.lower().strip('?.! ')}", 50)
        turns = [(as_people_type(self.rng, question), fact.answer(self.rng, question, names_it))]
        if fact.follow and self.rng.random() < follow:
            turns += [(as_people_type(self.rng, q, False), a)
                      for q, a in self.rng.sample(fact.follow, self.rng.randint(1, min(2, len(fact.follow))))]
        return turns

    def chatter(self, follow=0.3):
        fact = self.rng.choice(self.small_talk)
        turns = [(as_people_type(self.rng, self.rng.choice(fact.ask), False), fact.answer(self.rng, opener=0))]
        if fact.follow and self.rng.random() < follow:
            question, answer = self.rng.choice(fact.follow)
            turns.append((as_people_type(self.rng, question, False), answer))
        return turns

    def number(self):
        key, question, answer = self.numbers.question(self.rng)
        self.note(key, 20)
        return [(as_people_type(self.rng, question) if question[0].isalpha() else question, answer)]

    def world(self):
        if self.rng.random() < 0.1:
            fact = self.rng.choice(self.world_facts)
            return [(as_people_type(self.rng, fact.ask[0]), fact.say[0])]
        key, question, answer = world_question(self.rng)
        self.note(key, 20)
        return [(as_people_type(self.rng, question), answer)]

    def unknown(self):
        key, question, answer = unknown(self.rng)
        self.note(key, 50)
        return [(as_people_type(self.rng, question), answer)]

    def echo(self):
        key, question, answer = echo(self.rng)
        self.note(key, 50)
        return [(question, answer)]

    def story(self, questions=0.35, short=0.3):
        short = self.rng.random() < short
        story = Story(self.rng, self.frames, short)
        self.note(story.key, 50)
        turns = [(as_people_type(self.rng, ask_for(self.rng, story, short), False), self.rng.choice(OPENERS) + story.text)]
        if self.rng.random() < questions:
            asked = self.rng.sample(story.questions, self.rng.randint(1, min(3, len(story.questions))))
            turns += [(as_people_type(self.rng, q, False), a) for q, a in asked]
        return turns

    # ---- documents

    def chat(self, turns):
        text = ""
        if self.rng.random() < 0.05:
            text = f"<|system|>{self.rng.choice(WORDS['systems'])}<|eot|>"
        return text + "".join(f"<|user|>{q.strip()}<|eot|><|assistant|>{a.strip()}<|eot|>" for q, a in turns)

    def several(self, make, most):
        return self.chat([turn for _ in range(self.rng.randint(1, most)) for turn in make()])

    def plain_story(self):
        story = Story(self.rng, self.frames, self.rng.random() < 0.15)
        self.note(story.key, 50)
        return f"{story.title()}\n\n{story.text}" if self.rng.random() < 0.25 else story.text

    def plain_facts(self):
        """A few sentences that stand by themselves, as in a page about Tallow."""
        begun = ("It ", "They ", "Yes", "No", "Use ", "Type ", "Here ", "Like ", "In one", "Press ", "Add ", "Set ", "This ")
        chosen = []
        for fact in self.rng.sample(self.facts, 12):
            said = [text for text in fact.say if not text.startswith(begun) and "```" not in text and "I " not in text]
            if said and len(chosen) < 4:
                chosen.append(self.rng.choice(said))
        return " ".join(chosen)

    def remembered(self):
        """The user says something of himself, speaks of other things, and asks for it."""
        said, reply, question, answer = memory(self.rng)
        turns = [(said, reply)]
        for _ in range(self.rng.randint(0, 3)):
            turns += self.any_turns(short=True)
        turns.append((as_people_type(self.rng, question, False), answer))
        if self.rng.random() < 0.3:
            turns += self.any_turns(short=True)
        return turns

    def not_told(self):
        fact = self.rng.choice(self.not_said)
        turns = self.any_turns(short=True) if self.rng.random() < 0.5 else []
        return turns + [(as_people_type(self.rng, self.rng.choice(fact.ask), False), self.rng.choice(fact.say))]

    def asked_before(self):
        """What was asked last, in its own words."""
        turns = self.any_turns(short=True)
        question = phrase(self.rng, "ask again")
        return turns + [(question, f"You asked: \"{turns[-1][0]}\"")]

    def any_turns(self, short=False):
        makers = [(lambda: self.fact(0.4), 5), (self.number, 3), (self.world, 2), (self.chatter, 3), (self.unknown, 1),
                  (self.echo, 0.3)]
        if not short:
            makers += [(self.story, 2.5), (self.remembered, 1.5), (self.not_told, 0.2), (self.asked_before, 0.3)]
        return self.rng.choices([make for make, _ in makers], [weight for _, weight in makers])[0]()

    def conversation(self):
        turns, size = [], 0
        for _ in range(self.rng.randint(2, 5)):
            more = self.any_turns()
            size += sum(len(q) + len(a) for q, a in more)
            if turns and size > MOST_CHAT:
                break
            turns += more
        return self.chat(turns)


def kinds_of(maker):
    """What is written, and its share of the bytes."""
    return [
        ("stories", maker.plain_story, 0.15),
        ("told stories", lambda: maker.chat(maker.story()), 0.22),
        ("facts", lambda: maker.chat(maker.fact(0.35)), 0.20),
        ("plain facts", maker.plain_facts, 0.02),
        ("numbers", lambda: maker.several(maker.number, 4), 0.15),
        ("world", lambda: maker.several(maker.world, 3), 0.03),
        ("small talk", lambda: maker.several(maker.chatter, 2), 0.03),
        ("unknown", lambda: maker.several(maker.unknown, 2), 0.02),
        ("echo", lambda: maker.several(maker.echo, 2), 0.005),
        ("memory", lambda: maker.chat(maker.remembered()), 0.04),
        ("not told", lambda: maker.chat(maker.not_told()), 0.003),
        ("asked before", lambda: maker.chat(maker.asked_before()), 0.006),
        ("conversations", maker.conversation, 0.126),
    ]


def make_corpus(megabytes, seed):
    """Two lists of documents, to train on and held out, and how many bytes of each kind there are."""
    maker, total = Maker(seed), megabytes * 1e6
    train, held_out, sizes = [], [], {}
    for name, make, share in kinds_of(maker):
        copies, size, held_size = {}, 0, 0
        while size < total * share:
            maker.held_out = False
            text = make()
            if copies.get(text, 0) >= MOST_COPIES and maker.rng.random() < 0.9:
                continue
            copies[text] = copies.get(text, 0) + 1
            if not maker.held_out:
                train.append(text)
                size += len(text.encode())
            elif held_size < HELD_OUT_SHARE * total * share:
                held_out.append(text)
                held_size += len(text.encode())
        sizes[name] = (size, held_size)
    maker.rng.shuffle(train)
    maker.rng.shuffle(held_out)
    return train, held_out, sizes


def write(path, documents, millions):
    """The model says how many parameters it has; only who trains it knows."""
    text = f"\n{END}\n".join(documents) + "\n"
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text.replace("7 million", f"{millions} million"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--millions", type=int, default=6, help="parameters that the model says it has")
    options = parser.parse_args()
    if options.megabytes <= 0:
        parser.error("--megabytes must be more than 0")
    options.folder.mkdir(parents=True, exist_ok=True)
    train, held_out, sizes = make_corpus(options.megabytes, options.seed)
    write(options.folder / "train.txt", train, options.millions)
    write(options.folder / "held-out.txt", held_out, options.millions)
    for name, (size, held) in sizes.items():
        print(f"{name:14}{size:12,} bytes, held out {held:9,}")
    print(f"{len(train):,} documents in {options.folder}/train.txt, {len(held_out):,} in {options.folder}/held-out.txt")


if __name__ == "__main__":
    main()
