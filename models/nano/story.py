"""Short stories from the frames in stories.txt: a hero, a friend, a thing, a place and a plot, told by a grammar."""

import pathlib
import re

from words import WORDS, article, capital

HUMAN = WORDS["women"] + WORDS["men"] + WORDS["people"]
NOT_QUITE = ("robot", "ghost", "snowman")  # people with names of pets


def made_up_name(rng):
    """A name that nobody has, so that names are copied and not known by heart."""
    return "".join(rng.choice(WORDS["syllables"]) for _ in range(rng.choice([2, 2, 3]))).capitalize()


class Character:
    """Who someone is, and what to call them: in full when they come in, shortly after that."""

    def __init__(self, rng, other=None):
        kinds = ["animals"] * 4 + ["people"] * 2 + [rng.choice(["women", "men"]), "odd"]
        self.noun = rng.choice(WORDS[rng.choice(kinds)])
        # He and she tell two people apart, so the friend is mostly the other.
        clashes = [] if other is None else WORDS["women"] if other.is_she else WORDS["men"]
        while other and (self.noun == other.noun or self.noun in clashes):
            self.noun = rng.choice(WORDS["animals"])
        if self.noun in WORDS["women"] + WORDS["men"]:
            self.is_she = self.noun in WORDS["women"]
        elif other and rng.random() < 0.95:
            self.is_she = not other.is_she
        else:
            self.is_she = rng.random() < 0.5
        names = WORDS["she names"] if self.is_she else WORDS["he names"]
        if self.noun not in HUMAN or self.noun in NOT_QUITE:
            names = names + WORDS["pet names"]
        self.name = made_up_name(rng) if rng.random() < 0.1 else rng.choice(names)
        while other and self.name == other.name:
            self.name = rng.choice(names)
        self.is_named = rng.random() < 0.7
        kinds = WORDS["kinds"] + WORDS["furs"] if self.noun in WORDS["animals"] else WORDS["kinds"]
        self.kind = rng.choice(kinds) if rng.random() < 0.6 else ""
        self.is_known = False
        self.called = self.name if self.is_named else "the " + self.noun

    def plain(self):
        return article(self.noun)

    def full(self):
        text = article(f"{self.kind} {self.noun}".strip())
        return f"{text} named {self.name}" if self.is_named else text

    def said(self):
        if self.is_known:
            return self.called
        self.is_known = True
        return self.full()

    def pronoun(self, word):
        words = {"he": "she", "him": "her", "his": "her", "himself": "herself"}
        return words[word] if self.is_she else word


class Frames:
    def __init__(self, path):
        self.plots = {}
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith("== "):
                name, _, clause = line[3:].partition(" : ")
                plot = self.plots[name.strip()] = {"clause": clause.strip(), "beats": [], "asked": []}
            elif line.startswith("? "):
                plot["asked"].append(tuple(line[2:].split(" => ")))
            elif line in ("--", "--?"):
                plot["beats"].append((line == "--?", []))
            elif line and not line.startswith("#"):
                plot["beats"][-1][1].append(line)
        self.names = [name for name in self.plots if name not in ("opening", "trait", "ending")]


class Story:
    """One story. `text` is it; `request(rng)` asks for it, and `questions` are about it."""

    def __init__(self, rng, frames, short=False):
        self.rng = rng
        self.plot_name = rng.choice(frames.names)
        plot = frames.plots[self.plot_name]
        self.hero = Character(rng)
        if self.plot_name == "robot" and rng.random() < 0.5:
            self.hero.noun, self.hero.called = "robot", self.hero.name if self.hero.is_named else "the robot"
        self.friend = Character(rng, self.hero)
        self.other = Character(rng, self.friend)
        while self.other.noun == self.hero.noun or self.other.name == self.hero.name:
            self.other = Character(rng, self.friend)
        thing, thing2 = rng.sample(WORDS["things"], 2)
        self.bare_thing = thing
        self.thing = f"{rng.choice(WORDS['thing words'])} {thing}" if rng.random() < 0.6 else thing
        self.preposition, self.place = rng.choice(WORDS["places"]).split(" ", 1)
        self.said_place = False
        spots = rng.sample(WORDS["spots"], 3)
        self.slots = {"thing": self.thing, "a_thing": article(self.thing), "thing2": thing2, "a_thing2": article(thing2),
                      "spot1": spots[0], "spot2": spots[1], "spot3": spots[2],
                      "home": f"{self.preposition} {self.place}", "to_place": f"to {self.known_place()}",
                      "over_place": f"over {self.known_place()}"}
        for slot, name in (("hobby", "hobbies"), ("food", "foods"), ("skill", "skills"), ("fear", "fears"),
                           ("goal", "goals"), ("grown", "grown"), ("build", "builds")):
            self.slots[slot] = rng.choice(WORDS[name])
        self.slots["trouble"], self.slots["trouble2"] = rng.sample(WORDS["troubles"], 2)
        self.slots["a_build"] = article(self.slots["build"])
        self.clause = plot["clause"]
        self.key = f"story {self.plot_name} {self.hero.noun} {self.friend.noun} {thing}"
        self.text = self.tell(frames, plot, short)
        self.questions = [(self.fill(q), self.fill(a)) for q, a in plot["asked"] + [
            ("Where did {hero} live?", "{Hero} lived {home}.")]]
        if self.hero.is_named:
            self.questions.append((f"What was the name of the {self.hero.noun}?",
                                   f"The {self.hero.noun} was called {self.hero.name}."))
            self.questions.append((f"Who is {self.hero.name}?",
                                   f"{self.hero.name} is the {self.hero.noun} in the story."))

    def known_place(self):
        return re.sub(r"^an? ", "the ", self.place)

    def tell(self, frames, plot, short):
        rng = self.rng
        parts = [rng.choice(frames.plots["opening"]["beats"][0][1])]
        if rng.random() < (0.2 if short else 0.7):
            parts.append(rng.choice(frames.plots["trait"]["beats"][0][1]))
        for optional, lines in plot["beats"]:
            if not optional or rng.random() < (0.1 if short else 0.6):
                parts.append(rng.choice(lines))
        if rng.random() < 0.6:
            parts.append(rng.choice(frames.plots["ending"]["beats"][0][1]))
        cut = rng.randrange(2, 5) if not short and rng.random() < 0.5 else len(parts)
        sentences = [self.fill(part) for part in parts]
        text = " ".join(sentences[:cut])
        return text + ("\n\n" + " ".join(sentences[cut:]) if cut < len(sentences) else "")

    def fill(self, text):
        text = re.sub(r"\[([^\]]*)\]", lambda found: self.rng.choice(found[1].split("|")), text)
        return re.sub(r"\{(\w+)\}", lambda found: self.slot(found[1]), text)

    def slot(self, key):
        if key in ("fhe", "fhim", "fhis", "fHe"):
            word = self.friend.pronoun(key[1:].lower())
            return capital(word) if key[1].isupper() else word
        if key == "fhe2":
            return self.other.pronoun("he")
        if key[0].isupper():
            return capital(self.slot(key[0].lower() + key[1:]))
        if key in ("he", "him", "his", "himself"):
            return self.hero.pronoun(key)
        if key in ("hero", "a_hero"):
            return self.hero.said()
        if key in ("friend", "a_friend"):
            return self.friend.said()
        if key == "a_friendthe":
            if self.friend.is_known:
                return self.friend.called
            self.friend.is_known = True
            name = f" {self.friend.name}," if self.friend.is_named else ","
            return f"{self.hero.pronoun('his')} friend{name} the {self.friend.noun}"
        if key == "friend_full":
            self.friend.is_known = True
            self.friend.is_named, self.friend.called = True, self.friend.name
            return f"{self.friend.name} the {self.friend.noun}"
        if key == "friend_name":
            return self.friend.name if self.friend.is_named else self.friend.noun
        if key == "a_friendplain":
            return self.friend.plain()
        if key in ("friend2", "a_friend2"):
            return self.other.said()
        if key == "in_place":
            place, self.said_place = (self.known_place() if self.said_place else self.place), True
            return f"{self.preposition} {place}"
        return self.slots[key]

    def subject(self, rng):
        """What the story is about, as someone would say it who asks for it."""
        hero, way = self.hero, rng.random()
        if way < 0.45 and self.clause:
            clause = re.sub(r"\{a_thing\}", article(self.bare_thing if rng.random() < 0.6 else self.thing), self.clause)
            return f"{hero.plain()} {self.fill(clause)}"
        if way < 0.65:
            return hero.plain()
        if way < 0.75:
            return f"{hero.plain()} and {self.friend.plain()}"
        if way < 0.85 and hero.is_named:
            return rng.choice([f"{hero.plain()} named {hero.name}", f"{hero.plain()} called {hero.name}", hero.name])
        if way < 0.92 and "{thing}" in self.clause + "{a_thing}" and self.bare_thing in self.text:
            return article(self.bare_thing)
        return WORDS["themes"][self.plot_name]

    def title(self):
        choices = [f"The {self.hero.noun.capitalize()} and the {self.friend.noun.capitalize()}"]
        if self.bare_thing in self.text:
            choices.append(f"The {self.hero.noun.capitalize()} and the {self.bare_thing.capitalize()}")
        if self.hero.is_named:
            choices.append(f"{self.hero.name} the {self.hero.noun.capitalize()}")
        return self.rng.choice(choices)


OPENERS = ["", "", "", "", "", "", "Gladly! ", "Of course. ", "Sure! ", "Here is a story. ", "With pleasure. "]


def ask_for(rng, story, short):
    if rng.random() < 0.12:
        text = rng.choice(WORDS["open requests"])
    else:
        text = rng.choice(WORDS["story requests"]).format(story.subject(rng))
    return text.replace(" story", " short story", 1) if short else text
