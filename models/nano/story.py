"""Short stories from the frames in stories.txt: a hero, a friend, a thing, a place and a plot, told by a grammar."""

import pathlib
import re

ANIMALS = """fox rabbit mouse bear hedgehog squirrel cat dog duck frog owl turtle deer badger otter beaver crow sparrow penguin
elephant lion tiger monkey goat sheep pig horse donkey cow hen goose bee ant snail spider dragon giraffe zebra camel koala
panda wolf parrot swan mole bat lizard kitten puppy pony lamb raven hamster beetle butterfly toad stork rooster kangaroo
raccoon seal moose ladybird dinosaur unicorn hare worm caterpillar firefly dragonfly moth whale dolphin octopus crocodile hippo
rhino peacock flamingo eagle falcon leopard cheetah gorilla sloth llama alpaca ferret weasel chameleon phoenix""".split()
WOMEN = "girl queen princess witch grandmother".split()
MEN = "boy king prince wizard grandfather knight".split()
ODD = """cloud star tree train bus teapot pencil snowflake pumpkin candle computer tensor cactus mushroom potato shadow raindrop
scarecrow toaster puppet monster troll goblin alien""".split()
PEOPLE = """baker farmer sailor painter gardener teacher child shepherd clockmaker tailor musician miller giant astronaut pirate
doctor cook fisher robot snowman dancer juggler ghost elf dwarf postman inventor librarian carpenter potter pilot
detective scientist nurse firefighter cowboy mermaid fairy""".split()
SHE_NAMES = """Mia Lily Anna Ada Nora Ella Ruby Clara Ida Luna Rosa Emma Zoe Tilda Greta Hanna Ivy Maya Olive Daisy Fern Pia
Lotta Wilma Selma Nina Vera Dora Molly Hazel Poppy Stella Sofia Alma Frida Juno Bella Cora""".split()
HE_NAMES = """Tom Ben Max Leo Oscar Finn Emil Hugo Otto Paul Sam Theo Anton Felix Jonas Karl Milo Noah Oliver Rufus Bruno Casper
Henry Jasper Kasper Ludo Moritz Nils Pelle Quentin Robin Simon Tim Ulli Victor Willi Yorick Arlo""".split()
PET_NAMES = """Pip Bo Fluff Dot Patch Tiny Button Pepper Nutmeg Biscuit Pebble Twig Acorn Clover Muffin Pickle Snug Bramble
Whisker Bean Sunny Misty Rusty Ziggy Momo Kiki Toto Lulu Fips Nibble Puck Waddle Olo Zuzu Tock Bingo Domino Maple""".split()
SYLLABLES = "ka lo mi ra ti zo ve nu sha bel dor fin gra hel jo kir lan mar nol pel ru sel tan ul vin wal yo za be cor del".split()
THINGS = """key kite hat ball lantern map drum whistle scarf book boat bell umbrella coin ring button feather shell spoon basket
blanket mirror compass flute clock lamp box puppet teapot mitten bucket candle cup pencil violin doll crown necklace letter
balloon watch magnet marble brush ladder rope trumpet stone cap glove shoe coat telescope wheel bottle jar cushion flag
guitar pebble ribbon spyglass acorn notebook hammer pot cart sled wagon harp sandwich cake sword shield wand diamond pearl
ticket camera painting helmet backpack pen bowl plate pillow mug bracelet whisk anchor saddle broom fan jewel token tooth""".split()
THING_WORDS = """red blue golden silver old tiny wooden shiny green striped yellow little round purple white magic broken new
beautiful strange""".split()
PLACES = [("the forest", "in"), ("a village by the sea", "in"), ("a small town", "in"), ("an old farm", "on"),
          ("a green valley", "in"), ("a high hill", "on"), ("a little island", "on"), ("the meadow", "in"),
          ("the mountains", "in"), ("a big garden", "in"), ("an old castle", "in"), ("the big city", "in"),
          ("the harbour", "near"), ("the desert", "in"), ("the jungle", "in"), ("a wide river", "near"),
          ("a blue lake", "by"), ("the snowy north", "in"), ("a tall lighthouse", "in"), ("the old mill", "near"),
          ("a deep wood", "in"), ("a sleepy village", "in"), ("the edge of the desert", "at"), ("a narrow street", "in"),
          ("a land of hills", "in"), ("the great oak", "under"), ("a cave by the sea", "in"), ("a quiet pond", "by")]
SPOTS = """under a bush|behind a rock|in the tall grass|beside the pond|under the old bench|at the edge of the path|
in a hollow tree|behind the barn|under the bed|on top of the cupboard|behind the stove|in an empty barrel|under a pile of leaves|
at the bottom of the well|on the roof|between two stones|in the hay|behind the curtain|under the bridge|in a bird's nest|
next to the fence|inside an old boot|under the table|near the mill""".replace("\n", "").split("|")
HOBBIES = """sing|dance|read books|collect stones|look at the clouds|count the stars|tell stories|swim in the lake|
pick flowers|paint pictures|climb trees|listen to the rain|play hide and seek|draw maps|fly kites|bake cakes|
watch the birds|walk in the woods|play chess|write letters|build towers|play the flute""".replace("\n", "").split("|")
FOODS = """apples|berries|cookies|honey|bread and cheese|pancakes|nuts|plums|carrots|cherries|gingerbread|pears|
apple pie|strawberries|warm rolls|mushrooms|raisins|blueberries|corn cakes""".replace("\n", "").split("|")
SKILLS = """swim|whistle|paint|sing|read|bake bread|ride a bicycle|fly a kite|dance|play the drum|play the violin|juggle|
write|count to a hundred|skate|climb|cook|sail a boat|tie knots|tell jokes|play chess|stand on one leg|knit|ski|
draw a perfect circle|do magic tricks|play the piano|speak loudly|make pancakes|jump over the fence""".replace("\n", "").split("|")
FEARS = """the dark|deep water|thunder|high places|the big dog|loud noises|spiders|the forest at night|the old house|
strangers|the sea|mirrors|the cellar|ghosts|being alone|shadows|the wind""".replace("\n", "").split("|")
BUILDS = """raft|tree house|bridge|boat|tower|snow fort|windmill|cart|hut|sandcastle|flying machine|swing|bird house|ladder|
little theatre|rocket|fence|clock|wagon|kite""".replace("\n", "").split("|")
GOALS = """the sea|the highest mountain|the northern lights|the big city|the end of the rainbow|the great waterfall|
the old lighthouse|the king's castle|snow|the desert|a volcano|the place where the sun sets|the oldest tree in the world|
the singing cave|the island of birds|a whale""".replace("\n", "").split("|")
GROWN = """a sunflower|an apple tree|a giant pumpkin|a rose bush|a bean plant|a cherry tree|a tall oak|a lemon tree|
a field of poppies|a pear tree|a strange blue flower""".replace("\n", "").split("|")
TROUBLES = """stuck in the mud|very hungry|lost in the fog|caught in a net|cold and wet|too tired to walk|
stuck in a hole|unable to get down from a tree|caught in thorns|locked out of the house|unable to walk on a sore foot|
afraid to cross the bridge""".replace("\n", "").split("|")
KINDS = """small young old little clever shy brave kind cheerful lazy curious friendly quiet tiny tired happy lonely wise
gentle merry sleepy""".split()
FURS = "grey brown white black spotted".split()
THEMES = {"lost": "something that was lost", "learn": "never giving up", "help": "kindness", "friend": "friendship",
          "share": "sharing", "fear": "courage", "race": "a race", "build": "building something", "noise": "a strange noise",
          "truth": "honesty", "journey": "a journey", "seed": "patience", "birthday": "a birthday", "storm": "a storm",
          "robot": "being useful", "trade": "a market", "moon": "the moon"}


def article(noun):
    return ("an " if noun[0] in "aeiou" and not noun.startswith(("uni", "use")) else "a ") + noun


def capital(text):
    return text[0].upper() + text[1:] if text else text


def made_up_name(rng):
    """A name that nobody has, so that names are copied and not known by heart."""
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.choice([2, 2, 3]))).capitalize()


class Character:
    """Who someone is, and what to call them: in full when they come in, shortly after that."""

    def __init__(self, rng, other=None):
        self.noun = rng.choice(rng.choice([ANIMALS, ANIMALS, ANIMALS, ANIMALS, PEOPLE, PEOPLE, WOMEN + MEN, ODD]))
        # He and she tell two people apart, so the friend is mostly the other.
        clashes = {} if other is None else WOMEN if other.is_she else MEN
        while other and (self.noun == other.noun or self.noun in clashes):
            self.noun = rng.choice(ANIMALS)
        if self.noun in WOMEN or self.noun in MEN:
            self.is_she = self.noun in WOMEN
        elif other and rng.random() < 0.95:
            self.is_she = not other.is_she
        else:
            self.is_she = rng.random() < 0.5
        human = self.noun in WOMEN + MEN + PEOPLE and self.noun not in ("robot", "ghost", "snowman")
        names = (SHE_NAMES if self.is_she else HE_NAMES) if human else PET_NAMES + (SHE_NAMES if self.is_she else HE_NAMES)
        self.name = made_up_name(rng) if rng.random() < 0.1 else rng.choice(names)
        while other and self.name == other.name:
            self.name = rng.choice(names)
        self.is_named = rng.random() < 0.7
        kinds = KINDS + FURS if self.noun in ANIMALS else KINDS
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
        thing, thing2 = rng.sample(THINGS, 2)
        self.bare_thing = thing
        self.thing = f"{rng.choice(THING_WORDS)} {thing}" if rng.random() < 0.6 else thing
        self.place, self.preposition = rng.choice(PLACES)
        self.said_place = False
        spots = rng.sample(SPOTS, 3)
        self.slots = {"thing": self.thing, "a_thing": article(self.thing), "thing2": thing2, "a_thing2": article(thing2),
                      "hobby": rng.choice(HOBBIES), "food": rng.choice(FOODS), "skill": rng.choice(SKILLS),
                      "fear": rng.choice(FEARS), "goal": rng.choice(GOALS), "grown": rng.choice(GROWN),
                      "build": rng.choice(BUILDS), "spot1": spots[0], "spot2": spots[1], "spot3": spots[2],
                      "home": f"{self.preposition} {self.place}", "to_place": f"to {self.known_place()}",
                      "over_place": f"over {self.known_place()}"}
        self.slots["trouble"], self.slots["trouble2"] = rng.sample(TROUBLES, 2)
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
        return THEMES[self.plot_name]

    def title(self):
        choices = [f"The {self.hero.noun.capitalize()} and the {self.friend.noun.capitalize()}"]
        if self.bare_thing in self.text:
            choices.append(f"The {self.hero.noun.capitalize()} and the {self.bare_thing.capitalize()}")
        if self.hero.is_named:
            choices.append(f"{self.hero.name} the {self.hero.noun.capitalize()}")
        return self.rng.choice(choices)


REQUESTS = """Tell me a story about {}.|Tell me a story about {}|Can you tell me a story about {}?|Write a story about {}.|
A story about {}, please.|I want a story about {}.|Please tell me a story about {}.|Story about {}|Make up a story about {}.|
Could you write a story about {}?|Do you know a story about {}?|Tell a tale about {}.|I would like to hear a story about {}.|
Once more, a story about {}.|Give me a story about {}.|Write me a little story about {}.|write a story about {}|
tell me about {} in a story|Let me hear a story about {}.|Invent a story about {}.""".replace("\n", "").split("|")
OPEN_REQUESTS = """Tell me a story.|Tell me a story|Can you tell me a story?|A story, please.|I want to hear a story.|
Please tell me a story.|Write a story.|Tell me a bedtime story.|story please|Read me a story.|Make up a story.|
Do you have a story for me?|Tell me any story.|Tell me something nice.|another story""".replace("\n", "").split("|")
OPENERS = ["", "", "", "", "", "", "Gladly! ", "Of course. ", "Sure! ", "Here is a story. ", "With pleasure. "]


def ask_for(rng, story, short):
    if rng.random() < 0.12:
        text = rng.choice(OPEN_REQUESTS)
    else:
        text = rng.choice(REQUESTS).format(story.subject(rng))
    return text.replace(" story", " short story", 1) if short else text
