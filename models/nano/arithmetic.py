"""Sums, differences, small products, comparisons, counting and the like: (key, question, answer)."""

SUM = """What is {a} + {b}?|What is {a} + {b}?|{a} + {b}|{a}+{b}|{a} + {b} = ?|{a}+{b}=?|How much is {a} plus {b}?|Add {a} and {b}.|
Calculate {a} + {b}.|What do you get when you add {a} and {b}?|what is {a}+{b}|whats {a} + {b}|What is {a} plus {b}?|
What is the sum of {a} and {b}?|compute {a} + {b}|Can you add {a} and {b}?|{a} plus {b}|{a} plus {b}?""".replace("\n", "").split("|")
DIFFERENCE = """What is {a} - {b}?|What is {a} - {b}?|{a} - {b}|{a}-{b}|{a} - {b} = ?|How much is {a} minus {b}?|
Subtract {b} from {a}.|Calculate {a} - {b}.|what is {a}-{b}|What is {a} minus {b}?|What is the difference of {a} and {b}?|
{a} minus {b}|{a} take away {b}|compute {a} - {b}""".replace("\n", "").split("|")
PRODUCT = """What is {a} * {b}?|What is {a} times {b}?|{a} * {b}|{a}*{b}|{a} x {b}|How much is {a} times {b}?|Multiply {a} by {b}.|
Calculate {a} * {b}.|what is {a} times {b}|What is the product of {a} and {b}?|{a} times {b}|what is {a}*{b}?""".replace("\n", "").split("|")
QUOTIENT = """What is {a} / {b}?|What is {a} divided by {b}?|{a} / {b}|Divide {a} by {b}.|How much is {a} divided by {b}?|
{a} divided by {b}|{a}/{b}""".replace("\n", "").split("|")
WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty""".split()
ITEMS = """apples pears books coins stones cookies balls shells kites eggs cards flowers candles pencils nuts stamps marbles buttons
cups fish""".split()
PEOPLE = "Tom Mia Ben Anna Leo Nora Sam Ella Max Ruby Finn Clara Otto Ida Paul Zoe Hugo Lily Emil Rosa".split()


class Deck:
    """All pairs of numbers up to 99 in a random order, so that none is left out; and again from the beginning."""

    def __init__(self, ordered):
        self.pairs = [(a, b) for a in range(100) for b in range(100) if not ordered or a >= b]
        self.at = len(self.pairs)

    def draw(self, rng):
        if rng.random() < 0.3:  # small numbers are asked for more often
            a, b = rng.randint(0, 12), rng.randint(0, 12)
            return max(a, b), min(a, b)
        if self.at == len(self.pairs):
            rng.shuffle(self.pairs)
            self.at = 0
        self.at += 1
        return self.pairs[self.at - 1]


def restated(rng, text, result):
    return f"{text} = {result}." if rng.random() < 0.8 else f"{text} is {result}."


def key_of(sign, a, b):
    return f"{a}{sign}{b}" if max(a, b) > 12 else ""


def sums(rng, decks):
    a, b = decks["+"].draw(rng)
    if rng.random() < 0.5 and max(a, b) <= 12:
        a, b = b, a
    question = rng.choice(SUM).format(a=a, b=b)
    return key_of("+", a, b), question, restated(rng, f"{a} + {b}", a + b)


def sums_in_steps(rng):
    a, b = rng.randint(10, 99), rng.randint(10, 99)
    question = rng.choice([f"How do you add {a} and {b}?", f"Add {a} and {b} step by step.", f"Explain {a} + {b}.",
                           f"What is {a} + {b}? Show the steps.", f"Show me how to add {a} and {b}."])
    tens, ones = a // 10 * 10 + b // 10 * 10, a % 10 + b % 10
    return key_of("+", a, b), question, (f"The tens: {a // 10 * 10} + {b // 10 * 10} = {tens}. The ones: {a % 10} + {b % 10} = {ones}. "
                                         f"Together: {tens} + {ones} = {a + b}.")


def differences(rng, decks):
    a, b = decks["-"].draw(rng)
    if rng.random() < 0.08:
        a, b = b, a
    question = rng.choice(DIFFERENCE).format(a=a, b=b)
    return key_of("-", a, b), question, restated(rng, f"{a} - {b}", a - b)


def products(rng):
    a, b = rng.randint(0, 12), rng.randint(0, 12)
    question = rng.choice(PRODUCT).format(a=a, b=b)
    return f"{a}*{b}" if min(a, b) > 10 else "", question, restated(rng, f"{a} * {b}", a * b)


def quotients(rng):
    b, c = rng.randint(1, 12), rng.randint(0, 12)
    question = rng.choice(QUOTIENT).format(a=b * c, b=b)
    return "", question, restated(rng, f"{b * c} / {b}", c)


def word_sums(rng):
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    question = rng.choice([f"What is {WORDS[a]} plus {WORDS[b]}?", f"{WORDS[a]} plus {WORDS[b]}", f"How much is {WORDS[a]} and {WORDS[b]}?"])
    return "", question, rng.choice([f"{WORDS[a].capitalize()} plus {WORDS[b]} is {WORDS[a + b]}.", f"{a} + {b} = {a + b}."])


def comparisons(rng):
    a, b = rng.randint(0, 99), rng.randint(0, 99)
    if a == b:
        return "", f"Which is larger, {a} or {b}?", "They are equal."
    way = rng.randrange(4)
    if way == 0:
        return f"{a}<{b}", rng.choice(["Which is larger, {} or {}?", "Which number is bigger, {} or {}?", "What is more, {} or {}?"]).format(
            a, b), f"{max(a, b)} is larger than {min(a, b)}."
    if way == 1:
        return f"{a}<{b}", rng.choice(["Which is smaller, {} or {}?", "Which number is less, {} or {}?"]).format(
            a, b), f"{min(a, b)} is smaller than {max(a, b)}."
    if way == 2:
        return f"{a}<{b}", f"Is {a} larger than {b}?", f"Yes, {a} is larger than {b}." if a > b else f"No, {a} is smaller than {b}."
    return f"{a}<{b}", f"Is {a} less than {b}?", f"Yes, {a} is less than {b}." if a < b else f"No, {a} is more than {b}."


def counting(rng):
    start, count = rng.choice([1, 1, 1, 0, rng.randint(2, 80)]), rng.randint(3, 12)
    numbers = list(range(start, start + count))
    way = rng.random()
    if way < 0.6:
        text = f"Count to {numbers[-1]}." if start == 1 and rng.random() < 0.7 else f"Count from {start} to {numbers[-1]}."
    elif way < 0.8:
        numbers.reverse()
        text = rng.choice([f"Count down from {numbers[0]} to {start}.", f"Count backwards from {numbers[0]} to {start}."])
    else:
        numbers = list(range(2, 2 * count + 1, 2))
        text = f"Count by twos to {numbers[-1]}."
    return f"count {text}", text, ", ".join(map(str, numbers)) + "."


def neighbours(rng):
    n = rng.randint(1, 99)
    if rng.random() < 0.5:
        return f"after {n}", rng.choice([f"What comes after {n}?", f"Which number comes after {n}?", f"what is the next number after {n}"]), \
            rng.choice([f"{n + 1} comes after {n}.", f"After {n} comes {n + 1}."])
    return f"before {n}", rng.choice([f"What comes before {n}?", f"Which number is before {n}?"]), f"{n - 1} comes before {n}."


def parity(rng):
    n = rng.randint(0, 99)
    word = "odd" if n % 2 else "even"
    question, answer = rng.choice([(f"Is {n} even or odd?", f"{n} is {word}."), (f"Is {n} even?", f"{'No' if n % 2 else 'Yes'}, {n} is {word}."),
                                   (f"Is {n} odd?", f"{'Yes' if n % 2 else 'No'}, {n} is {word}.")])
    return f"parity {n}", question, answer


def doubles(rng):
    n = rng.randint(1, 50)
    if rng.random() < 0.5:
        return f"double {n}", rng.choice([f"What is twice {n}?", f"Double {n}.", f"What is the double of {n}?"]), f"Twice {n} is {2 * n}."
    return f"half {n}", rng.choice([f"What is half of {2 * n}?", f"Halve {2 * n}."]), f"Half of {2 * n} is {n}."


def lists(rng):
    numbers = rng.sample(range(100), rng.randint(3, 5))
    shown = ", ".join(map(str, numbers))
    way = rng.randrange(3)
    if way == 0:
        return f"sort {shown}", rng.choice([f"Sort {shown}.", f"Put these numbers in order: {shown}.", f"sort these numbers: {shown}"]), \
            ", ".join(map(str, sorted(numbers))) + "."
    if way == 1:
        return f"max {shown}", rng.choice([f"What is the largest of {shown}?", f"Which number is the largest: {shown}?"]), \
            f"The largest is {max(numbers)}."
    return f"min {shown}", rng.choice([f"What is the smallest of {shown}?", f"Which number is the smallest: {shown}?"]), \
        f"The smallest is {min(numbers)}."


def problems(rng):
    who, other = rng.sample(PEOPLE, 2)
    item, a, b = rng.choice(ITEMS), rng.randint(2, 30), rng.randint(1, 20)
    way = rng.randrange(4)
    if way == 0:
        return f"problem {a}+{b}", f"{who} has {a} {item} and gets {b} more. How many {item} does {who} have?", \
            f"{a} + {b} = {a + b}. {who} has {a + b} {item}."
    if way == 1:
        a, b = max(a, b), min(a, b)
        return f"problem {a}-{b}", f"{who} has {a} {item} and gives {b} to {other}. How many {item} are left?", \
            f"{a} - {b} = {a - b}. {who} has {a - b} {item} left."
    if way == 2:
        return f"problem {a}+{b}", f"{who} has {a} {item} and {other} has {b}. How many do they have together?", \
            f"{a} + {b} = {a + b}. Together they have {a + b} {item}."
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    return "", f"There are {a} boxes with {b} {item} each. How many {item} are there?", f"{a} * {b} = {a * b}. There are {a * b} {item}."


def shapes(rng):
    """Tensors in numbers: elements of a shape, shapes of products."""
    a, b, c = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 9)
    way = rng.randrange(4)
    if way == 0:
        return f"elements {a} {b}", rng.choice([f"How many elements does a tensor of shape ({a}, {b}) have?",
                                               f"How many elements are in a ({a}, {b}) matrix?"]), f"It has {a} * {b} = {a * b} elements."
    if way == 1:
        return f"matmul {a} {b} {c}", rng.choice([f"What is the shape of a ({a}, {b}) matrix times a ({b}, {c}) matrix?",
                                                 f"Which shape has the product of ({a}, {b}) and ({b}, {c})?"]), \
            f"The product has the shape ({a}, {c})."
    if way == 2:
        return f"transpose {a} {b}", f"What is the shape of the transpose of a ({a}, {b}) matrix?", f"It has the shape ({b}, {a})."
    d = c if c != b else c + 1
    return f"nomatmul {a} {b} {d}", f"Can I multiply a ({a}, {b}) matrix by a ({d}, {a}) matrix?", \
        f"No. The inner sizes are {b} and {d}, and they must be equal."


KINDS = [(sums, 14), (differences, 9), (products, 4), (quotients, 1), (sums_in_steps, 1.5), (word_sums, 0.6), (comparisons, 1.6),
         (counting, 1), (neighbours, 0.8), (parity, 0.8), (doubles, 0.7), (lists, 1.6), (problems, 2.2), (shapes, 1.6)]


class Numbers:
    def __init__(self):
        self.decks = {"+": Deck(ordered=False), "-": Deck(ordered=True)}

    def question(self, rng):
        make = rng.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0]
        return make(rng, self.decks) if make in (sums, differences) else make(rng)
