"""Small things about the world: opposites, colours, sounds, days, capitals, letters. (key, question, answer)."""

from words import WORDS, article, capital, phrase

MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
SEVERAL = ("new", "old", "heavy", "light", "lose", "find", "win")  # words with more than one opposite


def item(rng, name):
    return rng.choice(list(WORDS[name].items()))


def opposites(rng):
    a, b = rng.choice(WORDS["opposites"]).split()
    if rng.random() < 0.4 and a not in SEVERAL and b not in SEVERAL:
        a, b = b, a
    return "", phrase(rng, "ask opposite", a), phrase(rng, "say opposite", a, b, b.capitalize())


def colours(rng):
    thing, colour = item(rng, "colours")
    return "", phrase(rng, "ask colour", thing), f"{capital(thing)} is {colour}."


def sounds(rng):
    animal, sound = item(rng, "sounds")
    return "", phrase(rng, "ask sound", article(animal)), phrase(rng, "say sound", animal, sound)


def capitals(rng):
    country, city = item(rng, "capitals")
    if rng.random() < 0.2:
        return "", phrase(rng, "ask country", city), f"{city} is the capital of {country}."
    return "", phrase(rng, "ask capital", country), phrase(rng, "say capital", country, city)


def days(rng):
    word = rng.choice(["day", "month"])
    names = WORDS[word + "s"]
    at, way = rng.randrange(len(names)), rng.randrange(5)
    name, after, before = names[at], names[(at + 1) % len(names)], names[at - 1]
    if way < 2:
        return "", phrase(rng, "ask next", word, name), f"{after} comes after {name}."
    if way == 2:
        return "", f"Which {word} comes before {name}?", f"{before} comes before {name}."
    if word == "day":
        return "", f"If today is {name}, what day is tomorrow?", f"If today is {name}, tomorrow is {after}."
    leap = ", or 29 in a leap year" if at == 1 else ""
    return "", f"How many days does {name} have?", f"{name} has {MONTH_DAYS[at]} days{leap}."


def animals(rng):
    if rng.random() < 0.5:
        animal, baby = item(rng, "babies")
        return "", phrase(rng, "ask baby", animal), f"A baby {animal} is called {article(baby)}."
    animal, legs = item(rng, "legs")
    limbs = "arms" if animal == "octopus" else "legs"
    return "", f"How many {limbs} does {article(animal)} have?", f"{capital(article(animal))} has {legs} {limbs}."


def grammar(rng):
    kind = rng.choice(["plural", "past"])
    word, other = item(rng, kind + "s")
    return "", phrase(rng, "ask " + kind, word), f"The {kind} of {word} is {other}."


def groups(rng):
    kind, members = item(rng, "groups")
    members, way = members.split(), rng.randrange(3)
    if way == 0:
        chosen = rng.sample(members, 3)
        return f"name {chosen}", f"Name three {kind}s.", f"{chosen[0].capitalize()}, {chosen[1]} and {chosen[2]}."
    member = rng.choice(members)
    said = member if kind in ("colour", "number") else article(member)
    if way == 1:
        return f"is {member}", f"Is {said} {article(kind)}?", f"Yes, {said} is {article(kind)}."
    other = rng.choice([each for each in WORDS["groups"] if each != kind and {each, kind} != {"fruit", "colour"}])
    return f"is {member} {other}", f"Is {said} {article(other)}?", f"No, {said} is {article(kind)}."


def letters(rng):
    word = rng.choice(WORDS["spelled words"])
    way = rng.randrange(5)
    if way == 0:
        return f"spell {word}", phrase(rng, "ask spelling", word), "-".join(word)
    if way == 1:
        answer = f"{word.capitalize()} has {len(word)} letters: {'-'.join(word)}."
        return f"length {word}", f"How many letters does {word} have?", answer
    if way == 2:
        return f"first {word}", f"What is the first letter of {word}?", f"The first letter of {word} is {word[0]}."
    if way == 3:
        return f"last {word}", f"What is the last letter of {word}?", f"The last letter of {word} is {word[-1]}."
    return f"reverse {word}", phrase(rng, "ask backwards", word), "-".join(reversed(word))


KINDS = [(opposites, 3), (colours, 2), (sounds, 1.5), (capitals, 3), (days, 3), (animals, 1.5), (grammar, 2), (groups, 1.5),
         (letters, 3)]


def world_question(rng):
    return rng.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0](rng)
