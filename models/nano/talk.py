"""What a conversation has beside questions and answers: what the user says of himself, what nobody of this size can know."""

from story import HE_NAMES, PET_NAMES, SHE_NAMES, made_up_name

NAMES = SHE_NAMES + HE_NAMES + """Alan Grace Kurt Marie Isaac Emmy Sophie Carl Peter Julia Laura David Sarah John Mary Alex Chris
Jamie Kim Lee Maria Jose Chen Wei Yuki Hana Omar Fatima Ali Priya Raj Ivan Olga Nadia Lars Sven Ingrid Pablo Lucia Marco""".split()
CITIES = """Berlin Paris London Rome Madrid Vienna Oslo Tokyo Boston Chicago Lisbon Prague Dublin Zurich Hamburg Munich Milan
Athens Cairo Sydney Toronto Seoul Mumbai Lima Porto Leipzig Bergen Turin""".split()
COLOURS = "red blue green yellow orange purple black white pink grey brown silver".split()
ANIMALS = "fox cat dog horse owl bear rabbit wolf penguin lion turtle hedgehog elephant dolphin eagle".split()
FOODS = "pizza pasta soup bread cheese chocolate apples rice cake salad pancakes noodles".split()
HOBBIES = "reading|swimming|chess|painting|running|music|cooking|football|gardening|hiking|dancing|coding".split("|")


def a_name(rng):
    return made_up_name(rng) if rng.random() < 0.3 else rng.choice(NAMES)


def memory(rng):
    """Something the user says, the answer, and later questions about it with their answers."""
    kind = rng.choice(["name", "name", "name", "colour", "animal", "food", "city", "pet", "age", "hobby", "number"])
    if kind == "name":
        name = a_name(rng)
        said = rng.choice(["My name is {}.", "I am {}.", "I'm {}.", "Hi, my name is {}.", "Hello, I am {}.", "my name is {}", "You can call me {}.",
                           "Hi! I'm {}.", "Call me {}.", "{} is my name.", "Hello! My name is {}."]).format(name)
        reply = rng.choice(["Hello {}! Nice to meet you.", "Nice to meet you, {}!", "Hi {}! How can I help you?", "Hello {}! I am tallow-nano.",
                            "Welcome, {}! What would you like to know?", "Hello {}!"]).format(name)
        return said, reply, [(["What is my name?", "What's my name?", "Do you remember my name?", "Who am I?", "what is my name", "Do you know my name?",
                               "Tell me my name.", "How am I called?"], ["Your name is {}.".format(name), "You are {}.".format(name), "Your name is {}!".format(name)])]
    if kind in ("colour", "animal", "food", "hobby"):
        value = rng.choice({"colour": COLOURS, "animal": ANIMALS, "food": FOODS, "hobby": HOBBIES}[kind])
        shown = ("the " + value) if kind == "animal" else value
        said = rng.choice(["My favourite {} is {}.", "my favorite {} is {}", "The {} I like best is {}."]).format(kind, shown)
        reply = rng.choice(["{} is a good choice!", "I like that too. {} is nice.", "{}, good to know!"]).format(shown[0].upper() + shown[1:])
        return said, reply, [([f"What is my favourite {kind}?", f"Do you remember my favourite {kind}?", f"what is my favorite {kind}",
                               f"Which {kind} do I like best?"], [f"Your favourite {kind} is {shown}."])]
    if kind == "city":
        city = rng.choice(CITIES)
        return rng.choice([f"I live in {city}.", f"My home is in {city}.", f"i live in {city}"]), rng.choice([f"{city} sounds nice!", f"How is it in {city}?"]), \
            [(["Where do I live?", "Which city do I live in?", "Do you remember where I live?"], [f"You live in {city}."])]
    if kind == "pet":
        animal, name = rng.choice(["cat", "dog", "hamster", "rabbit", "parrot"]), rng.choice(PET_NAMES)
        return rng.choice([f"I have a {animal} named {name}.", f"My {animal} is called {name}."]), \
            rng.choice([f"{name} is a nice name for a {animal}.", f"Say hello to {name} for me!"]), \
            [([f"What is the name of my {animal}?", f"What is my {animal} called?", f"Do you remember my {animal}'s name?"], [f"Your {animal} is called {name}."])]
    value = rng.randint(7, 80)
    if kind == "age":
        return rng.choice([f"I am {value} years old.", f"I'm {value}."]), rng.choice([f"{value} is a good age.", f"{value} years! Nice."]), \
            [(["How old am I?", "Do you remember my age?", "What is my age?"], [f"You are {value} years old."])]
    return rng.choice([f"Remember the number {value}.", f"Please remember the number {value}."]), rng.choice([f"I will remember {value}.", f"All right: {value}."]), \
        [(["Which number did I tell you?", "What was the number?", "Do you remember the number?", "Tell me the number."], [f"The number was {value}.", f"It was {value}."])]


NOT_TOLD = [("What is my name?", ["You have not told me your name.", "I do not know your name. What is it?"]),
            ("Do you know my name?", ["No, you have not told me your name yet."]),
            ("How old am I?", ["You have not told me how old you are."]),
            ("Where do I live?", ["You have not told me where you live."]),
            ("What is my favourite colour?", ["You have not told me your favourite colour."])]

TOPICS = """photosynthesis|quantum physics|the French Revolution|the stock market|the Roman Empire|climate change|DNA|gravity|the big bang|
black holes|evolution|democracy|bitcoin|the blockchain|Shakespeare|Mozart|Beethoven|Picasso|Napoleon|Einstein|Newton|Cleopatra|Plato|football|
the Olympic Games|the Second World War|the moon landing|Hollywood|jazz|opera|baseball|economics|inflation|philosophy|psychology|chemistry|
biology|geography|medicine|vitamins|diabetes|vaccines|volcanoes|earthquakes|hurricanes|the ozone layer|nuclear energy|solar panels|electric cars|
the internet|Wi-Fi|Bluetooth|JavaScript|Rust|Java|Docker|Kubernetes|Linux|Windows|Android|Excel|PowerPoint|HTML|SQL|Git|Bash|regular expressions|
yoga|meditation|sushi|lasagne|wine|coffee|tea|karate|golf|tennis|poker|the Bible|Buddhism|Islam|mythology|Zeus|Odin|dinosaurs|penguins|sharks|
the Eiffel Tower|the Great Wall|the Amazon|the Sahara|Mount Everest|Antarctica|the Titanic|the pyramids|Stonehenge|Mars|Jupiter|Saturn|comets|
Harry Potter|Star Wars|the Lord of the Rings|Batman|Sherlock Holmes|Don Quixote|Faust|Hamlet|the Beatles|Elvis|Madonna|insurance|taxes|
mortgages|contracts|copyright|visas|passports|recipes for curry|gardening|bicycles|engines|airplanes|submarines|telescopes|microscopes|
the periodic table|atoms|electrons|entropy|relativity|calculus|topology|prime numbers|cryptography|statistics|logarithms|trigonometry""".replace(
    "\n", "").split("|")
QUESTIONS = """What is {}?|Explain {}.|Tell me about {}.|What do you know about {}?|Can you explain {}?|Who invented {}?|How does {} work?|
Why is {} important?|Write an essay about {}.|When was {} discovered?|what is {}|explain {} to me|Give me details about {}.|
How do I learn about {}?|Summarize {}.|What is the history of {}?|Write a poem about {}.|I want to know more about {}.""".replace("\n", "").split("|")
UNKNOWN = """What time is it?|What day is it today?|What is the date?|How is the weather?|What is the weather like today?|Will it rain tomorrow?|
What is in the news?|Who is the president?|Who won the game yesterday?|What is the population of Norway?|How tall is the tallest building?|
Who won the World Cup?|What is the price of gold?|How do I cook rice?|Give me a recipe.|How do I fix my car?|Book a flight for me.|
Order a pizza.|Call my mother.|Play some music.|Set an alarm.|Send an email.|Open the window.|Translate this into French.|What is my password?|
What will happen tomorrow?|Which stock should I buy?|Am I ill?|Which medicine should I take?|What is the square root of 777?|
What is 1234 * 5678?|What is 123456 + 987654?|What is the 100th prime number?|How many stars are there?|How far is the moon?|How deep is the ocean?|
Who wrote Faust?|Who painted the Mona Lisa?|When did the war end?|What is the speed of light?|Who was the first person on the moon?|
What is the longest river?|What is the highest mountain?|How many people live on Earth?|Who is the richest person?|What is the best movie?|
Recommend a book.|What should I cook tonight?|Where can I buy shoes?|What is your phone number?|Do you know my boss?|Solve this equation.|
Write a letter to the bank.|Write my homework.|Debug my program.|Draw a picture of a cat.|Show me a video.|Sing a song.|What is the latest phone?|
How do I get rich?|How do I lose weight?|What does my dream mean?|Is there life on Mars?|Who will win the election?|
What happened in 1848?|What is the exchange rate of the euro?|How long does it take to fly to Rome?""".replace("\n", "").split("|")
REFUSALS = ["I am a very small model and do not know that.", "I do not know that. I am a very small model.", "I am sorry, I do not know that.",
            "That is more than a small model like me can know.", "I do not know. I only know a little about Tallow, TensorLogic and tensors.",
            "I am too small to know that. Ask me about Tallow or tensors, or for a story.", "I am a very small model and cannot help with that."]


def unknown(rng):
    """A question that is not for a model of this size, and the honest answer."""
    if rng.random() < 0.35:
        question = rng.choice(UNKNOWN)
    else:
        question = rng.choice(QUESTIONS).format(rng.choice(TOPICS))
    return f"unknown {question.lower()}", question, rng.choice(REFUSALS)


WORDS_TO_SAY = """banana hello tallow moon rabbit tensor apple yes no goodbye sunshine candle pepper window orange ladder silver button garden
kite river music paper winter summer thunder pillow rocket planet cookie""".split()


def echo(rng):
    count = rng.choice([1, 1, 2, 3])
    words = " ".join(rng.sample(WORDS_TO_SAY, count))
    question = rng.choice(["Say {}.", "Repeat after me: {}", "Please say {}.", "Repeat: {}", "Say \"{}\".", "Write {}."]).format(words)
    return f"echo {words}", question, words[0].upper() + words[1:] + "."


SYSTEMS = ["You are a helpful assistant.", "You are tallow-nano.", "Answer briefly.", "Be friendly.", "You are a friendly assistant.",
           "You are a helpful assistant. Answer in short sentences.", "Be kind and honest.", "You are tallow-nano, a small model trained by Tallow.",
           "You are a chat bot.", "Be brief."]
