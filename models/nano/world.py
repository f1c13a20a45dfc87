"""Small things about the world: opposites, colours, sounds, days, capitals, letters. (key, question, answer)."""

OPPOSITES = """big small|hot cold|up down|day night|black white|old young|fast slow|open closed|happy sad|high low|left right|
long short|light dark|soft hard|wet dry|full empty|good bad|rich poor|early late|loud quiet|strong weak|clean dirty|
thick thin|near far|easy difficult|true false|start end|first last|in out|new old|heavy light|cheap expensive|inside outside|
brave afraid|push pull|give take|win lose|love hate|laugh cry|above below|before after|always never|awake asleep|
kind cruel|wide narrow|deep shallow|sweet sour|summer winter|north south|east west|friend enemy|question answer|
remember forget|buy sell|come go|arrive leave|find lose|sit stand|smooth rough""".replace("\n", "").split("|")
COLOURS = {"the sky": "blue", "grass": "green", "snow": "white", "a lemon": "yellow", "blood": "red", "coal": "black", "a banana": "yellow",
           "a tomato": "red", "an orange": "orange", "milk": "white", "chocolate": "brown", "the sea": "blue", "a carrot": "orange",
           "a raven": "black", "a strawberry": "red", "a frog": "green", "a flamingo": "pink", "an elephant": "grey", "the sun": "yellow",
           "a cucumber": "green", "a polar bear": "white", "a plum": "purple", "a fox": "red and brown", "a mouse": "grey",
           "a cherry": "red", "salt": "white", "pepper": "black", "gold": "yellow", "the night": "black", "a leaf": "green",
           "a zebra": "black and white", "a panda": "black and white", "a pumpkin": "orange", "honey": "golden", "a swan": "white",
           "wood": "brown", "an emerald": "green", "a ruby": "red", "a cloud": "white", "a fire truck": "red"}
SOUNDS = {"dog": "woof", "cat": "meow", "cow": "moo", "sheep": "baa", "duck": "quack", "pig": "oink", "horse": "neigh", "lion": "roar",
          "frog": "croak", "bee": "buzz", "owl": "hoot", "mouse": "squeak", "rooster": "cock-a-doodle-doo", "hen": "cluck",
          "donkey": "hee-haw", "snake": "hiss", "crow": "caw", "goat": "bleat", "wolf": "howl", "bird": "tweet", "goose": "honk",
          "turkey": "gobble", "dove": "coo", "cricket": "chirp", "bear": "growl"}
CAPITALS = {"France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "England": "London", "Portugal": "Lisbon",
            "Austria": "Vienna", "Switzerland": "Bern", "Poland": "Warsaw", "Greece": "Athens", "Sweden": "Stockholm", "Norway": "Oslo",
            "Denmark": "Copenhagen", "Finland": "Helsinki", "Ireland": "Dublin", "Hungary": "Budapest", "Japan": "Tokyo",
            "China": "Beijing", "India": "New Delhi", "Egypt": "Cairo", "Canada": "Ottawa", "the United States": "Washington",
            "Mexico": "Mexico City", "Brazil": "Brasilia", "Argentina": "Buenos Aires", "Chile": "Santiago", "Peru": "Lima",
            "Australia": "Canberra", "Kenya": "Nairobi", "Turkey": "Ankara", "Russia": "Moscow", "Ukraine": "Kyiv",
            "the Netherlands": "Amsterdam", "Belgium": "Brussels", "Iceland": "Reykjavik", "Cuba": "Havana", "Thailand": "Bangkok",
            "South Korea": "Seoul", "Vietnam": "Hanoi", "Romania": "Bucharest", "Bulgaria": "Sofia", "Croatia": "Zagreb",
            "the Czech Republic": "Prague", "New Zealand": "Wellington", "Morocco": "Rabat", "Colombia": "Bogota"}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
BABIES = {"cat": "kitten", "dog": "puppy", "cow": "calf", "sheep": "lamb", "horse": "foal", "pig": "piglet", "duck": "duckling",
          "bear": "cub", "lion": "cub", "hen": "chick", "goat": "kid", "frog": "tadpole", "swan": "cygnet", "deer": "fawn", "goose": "gosling"}
LEGS = {"dog": 4, "cat": 4, "bird": 2, "spider": 8, "ant": 6, "bee": 6, "horse": 4, "hen": 2, "cow": 4, "snake": 0, "fish": 0, "duck": 2,
        "beetle": 6, "elephant": 4, "fly": 6, "octopus": 8, "mouse": 4, "owl": 2, "butterfly": 6, "penguin": 2}
PLURALS = {"mouse": "mice", "child": "children", "foot": "feet", "tooth": "teeth", "goose": "geese", "man": "men", "woman": "women",
           "sheep": "sheep", "fish": "fish", "cat": "cats", "box": "boxes", "leaf": "leaves", "wolf": "wolves", "knife": "knives",
           "city": "cities", "baby": "babies", "tomato": "tomatoes", "bus": "buses", "dog": "dogs", "key": "keys", "fox": "foxes",
           "matrix": "matrices", "index": "indices", "tensor": "tensors", "person": "people", "berry": "berries", "story": "stories"}
PASTS = {"go": "went", "see": "saw", "eat": "ate", "run": "ran", "come": "came", "give": "gave", "take": "took", "write": "wrote",
         "sing": "sang", "swim": "swam", "find": "found", "lose": "lost", "think": "thought", "buy": "bought", "make": "made",
         "say": "said", "know": "knew", "fly": "flew", "begin": "began", "walk": "walked", "play": "played", "learn": "learned",
         "read": "read", "tell": "told", "bring": "brought", "speak": "spoke", "break": "broke", "build": "built"}
GROUPS = {"animal": "fox dog cat horse lion bear mouse owl frog duck rabbit wolf", "fruit": "apple pear banana cherry plum lemon orange grape",
          "colour": "red blue green yellow orange purple white black", "vegetable": "carrot onion cabbage bean pea potato",
          "tool": "hammer saw spade drill rake", "instrument": "violin drum flute piano guitar trumpet harp",
          "tree": "oak birch pine maple elm", "number": "three seven ten twelve nine"}
WORDS = """cat dog fox sun moon star tree book bell key hat boat fish bird milk bread apple house mouse river table chair tensor shape
rule green blue red tallow candle lamp cloud stone ring king queen frog duck bear lion tiger owl cup ball drum rain snow wind fire
water leaf rose garden north south light night day name code loop list map token model train learn data""".split()
FACTS = [("How many days does a week have?", "A week has 7 days."), ("How many months does a year have?", "A year has 12 months."),
         ("How many hours does a day have?", "A day has 24 hours."), ("How many minutes does an hour have?", "An hour has 60 minutes."),
         ("How many seconds does a minute have?", "A minute has 60 seconds."), ("How many days does a year have?", "A year has 365 days, and a leap year has 366."),
         ("How many seasons are there?", "There are four seasons: spring, summer, autumn and winter."),
         ("What are the seasons?", "Spring, summer, autumn and winter."), ("What are the days of the week?", ", ".join(DAYS[:-1]) + " and Sunday."),
         ("List the months.", ", ".join(MONTHS[:-1]) + " and December."), ("How many legs does a table have?", "Most tables have four legs."),
         ("What is the first month of the year?", "January is the first month."), ("What is the last month of the year?", "December is the last month."),
         ("How many sides does a triangle have?", "A triangle has 3 sides."), ("How many sides does a square have?", "A square has 4 equal sides."),
         ("What is frozen water called?", "Frozen water is called ice."), ("Where does milk come from?", "Milk comes from cows."),
         ("What do bees make?", "Bees make honey."), ("Where do fish live?", "Fish live in water."), ("What shines at night?", "The moon and the stars shine at night."),
         ("Where does the sun rise?", "The sun rises in the east."), ("Where does the sun set?", "The sun sets in the west."),
         ("What do you use to open a door?", "You use a key."), ("Is the sun hot?", "Yes, the sun is very hot."), ("Is ice cold?", "Yes, ice is cold."),
         ("How many fingers does a hand have?", "A hand has five fingers."), ("How many letters does the alphabet have?", "The English alphabet has 26 letters."),
         ("What are the first three letters of the alphabet?", "A, B and C."), ("Which planet do we live on?", "We live on the Earth."),
         ("What do you get when you mix blue and yellow?", "Blue and yellow make green."), ("What do red and yellow make?", "Red and yellow make orange."),
         ("What do red and blue make?", "Red and blue make purple."), ("What do you wear on your feet?", "You wear shoes on your feet."),
         ("What do you need an umbrella for?", "An umbrella keeps you dry in the rain."),
         ("How many wheels does a bicycle have?", "A bicycle has two wheels."), ("How many wheels does a car have?", "A car has four wheels."),
         ("What is a baker?", "A baker bakes bread."), ("What does a farmer do?", "A farmer grows food and keeps animals."),
         ("What does a doctor do?", "A doctor helps sick people.")]


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def opposites(rng):
    a, b = rng.choice(OPPOSITES).split()
    if rng.random() < 0.4 and a not in ("new", "old", "heavy", "light", "lose", "find", "win"):
        a, b = (b, a) if b not in ("old", "light", "lose") else (a, b)
    return "", rng.choice([f"What is the opposite of {a}?", f"opposite of {a}", f"What is the contrary of {a}?", f"Tell me the opposite of {a}.",
                           f"The opposite of {a} is?"]), rng.choice([f"The opposite of {a} is {b}.", f"{b.capitalize()} is the opposite of {a}."])


def colours(rng):
    thing, colour = rng.choice(list(COLOURS.items()))
    return "", rng.choice([f"What colour is {thing}?", f"What color is {thing}?", f"Which colour does {thing} have?",
                           f"Tell me the colour of {thing}."]), f"{thing[0].upper() + thing[1:]} is {colour}."


def sounds(rng):
    animal, sound = rng.choice(list(SOUNDS.items()))
    return "", rng.choice([f"What does {article(animal)} say?", f"What sound does {article(animal)} make?", f"Which sound does the {animal} make?",
                           f"How does {article(animal)} sound?"]), rng.choice([f"The {animal} says {sound}.", f"{article(animal).capitalize()} says \"{sound}\"."])


def capitals(rng):
    country, city = rng.choice(list(CAPITALS.items()))
    if rng.random() < 0.2:
        return "", rng.choice([f"Which country has the capital {city}?", f"{city} is the capital of which country?"]), \
            f"{city} is the capital of {country}."
    return "", rng.choice([f"What is the capital of {country}?", f"capital of {country}", f"Which city is the capital of {country}?",
                           f"Tell me the capital of {country}.", f"What's the capital of {country}?"]), \
        rng.choice([f"The capital of {country} is {city}.", f"{city} is the capital of {country}."])


def days(rng):
    names, word = rng.choice([(DAYS, "day"), (MONTHS, "month")])
    at = rng.randrange(len(names))
    after, before = names[(at + 1) % len(names)], names[at - 1]
    way = rng.randrange(5)
    if way < 2:
        return "", rng.choice([f"What {word} comes after {names[at]}?", f"Which {word} is after {names[at]}?"]), f"{after} comes after {names[at]}."
    if way == 2:
        return "", f"Which {word} comes before {names[at]}?", f"{before} comes before {names[at]}."
    if word == "day":
        return "", f"If today is {names[at]}, what day is tomorrow?", f"If today is {names[at]}, tomorrow is {after}."
    return "", f"How many days does {names[at]} have?", f"{names[at]} has {MONTH_DAYS[at]} days" + (", or 29 in a leap year." if at == 1 else ".")


def animals(rng):
    if rng.random() < 0.5:
        animal, baby = rng.choice(list(BABIES.items()))
        return "", rng.choice([f"What is a baby {animal} called?", f"What do you call a young {animal}?"]), f"A baby {animal} is called {article(baby)}."
    animal, legs = rng.choice(list(LEGS.items()))
    arms = "arms" if animal == "octopus" else "legs"
    return "", f"How many {arms} does {article(animal)} have?", f"{article(animal).capitalize()} has {legs or 'no'} {arms}."


def grammar(rng):
    if rng.random() < 0.5:
        word, plural = rng.choice(list(PLURALS.items()))
        return "", rng.choice([f"What is the plural of {word}?", f"plural of {word}"]), f"The plural of {word} is {plural}."
    word, past = rng.choice(list(PASTS.items()))
    return "", rng.choice([f"What is the past of {word}?", f"What is the past tense of \"{word}\"?"]), f"The past of {word} is {past}."


def groups(rng):
    kind = rng.choice(list(GROUPS))
    members = GROUPS[kind].split()
    way = rng.randrange(3)
    if way == 0:
        chosen = rng.sample(members, 3)
        return f"name {chosen}", f"Name three {kind}s.", f"{chosen[0].capitalize()}, {chosen[1]} and {chosen[2]}."
    member = rng.choice(members)
    say = article(member) if kind not in ("colour", "number") else member
    if way == 1:
        return f"is {member}", f"Is {say} {article(kind)}?", f"Yes, {say} is {article(kind)}."
    other = rng.choice([each for each in GROUPS if each != kind and not {each, kind} == {"fruit", "colour"}])
    return f"is {member} {other}", f"Is {say} {article(other)}?", f"No, {say} is {article(kind)}."


def letters(rng):
    word = rng.choice(WORDS)
    way = rng.randrange(5)
    if way == 0:
        return f"spell {word}", rng.choice([f"Spell {word}.", f"How do you spell {word}?"]), "-".join(word)
    if way == 1:
        return f"length {word}", f"How many letters does {word} have?", f"{word.capitalize()} has {len(word)} letters: {'-'.join(word)}."
    if way == 2:
        return f"first {word}", f"What is the first letter of {word}?", f"The first letter of {word} is {word[0]}."
    if way == 3:
        return f"last {word}", f"What is the last letter of {word}?", f"The last letter of {word} is {word[-1]}."
    return f"reverse {word}", rng.choice([f"What is {word} backwards?", f"Spell {word} backwards.", f"Reverse {word}."]), "-".join(reversed(word))


def facts(rng):
    question, answer = rng.choice(FACTS)
    return "", question, answer


KINDS = [(opposites, 3), (colours, 2), (sounds, 1.5), (capitals, 3), (days, 3), (animals, 1.5), (grammar, 2), (groups, 1.5), (letters, 3), (facts, 2)]


def world_question(rng):
    make = rng.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0]
    return make(rng)
