"""Sums, differences, small products, comparisons, counting and the like: (key, question, answer).

The key says what may be held out; empty where all of a kind must be known.
"""

from words import WORDS, phrase


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


def key_of(a, sign, b):
    return f"{a}{sign}{b}" if max(a, b) > 12 else ""


def sums(rng, decks):
    a, b = decks["+"].draw(rng)
    if rng.random() < 0.5 and max(a, b) <= 12:
        a, b = b, a
    return key_of(a, "+", b), phrase(rng, "ask sum", a=a, b=b), restated(rng, f"{a} + {b}", a + b)


def sums_in_steps(rng):
    a, b = rng.randint(10, 99), rng.randint(10, 99)
    tens_a, tens_b, ones = a // 10 * 10, b // 10 * 10, a % 10 + b % 10
    keys = [key_of(a, "+", b), key_of(tens_a, "+", tens_b), key_of(tens_a + tens_b, "+", ones)]
    answer = (f"The tens: {tens_a} + {tens_b} = {tens_a + tens_b}. The ones: {a % 10} + {b % 10} = {ones}. "
              f"Together: {tens_a + tens_b} + {ones} = {a + b}.")
    return " & ".join(keys), phrase(rng, "ask steps", a=a, b=b), answer


def differences(rng, decks):
    a, b = decks["-"].draw(rng)
    if rng.random() < 0.08:
        a, b = b, a
    return key_of(a, "-", b), phrase(rng, "ask difference", a=a, b=b), restated(rng, f"{a} - {b}", a - b)


def products(rng):
    a, b = rng.randint(0, 12), rng.randint(0, 12)
    return f"{a}*{b}" if min(a, b) > 10 else "", phrase(rng, "ask product", a=a, b=b), restated(rng, f"{a} * {b}", a * b)


def quotients(rng):
    b, c = rng.randint(1, 12), rng.randint(0, 12)
    return "", phrase(rng, "ask quotient", a=b * c, b=b), restated(rng, f"{b * c} / {b}", c)


def word_sums(rng):
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    names = WORDS["number words"]
    answer = f"{names[a].capitalize()} plus {names[b]} is {names[a + b]}." if rng.random() < 0.6 else f"{a} + {b} = {a + b}."
    return "", phrase(rng, "ask word sum", names[a], names[b]), answer


def comparisons(rng):
    a, b = rng.sample(range(100), 2)
    key, way = f"{a}<{b}", rng.randrange(4)
    if way == 0:
        return key, phrase(rng, "ask larger", a, b), f"{max(a, b)} is larger than {min(a, b)}."
    if way == 1:
        return key, phrase(rng, "ask smaller", a, b), f"{min(a, b)} is smaller than {max(a, b)}."
    if way == 2:
        said = f"Yes, {a} is larger than {b}." if a > b else f"No, {a} is smaller than {b}."
        return key, f"Is {a} larger than {b}?", said
    said = f"Yes, {a} is less than {b}." if a < b else f"No, {a} is more than {b}."
    return key, f"Is {a} less than {b}?", said


def counting(rng):
    start, count = rng.choice([1, 1, 1, 0, rng.randint(2, 80)]), rng.randint(3, 12)
    numbers = list(range(start, start + count))
    way = rng.random()
    if way < 0.6:
        text = f"Count from {start} to {numbers[-1]}."
        if start == 1 and rng.random() < 0.7:
            text = f"Count to {numbers[-1]}."
    elif way < 0.8:
        numbers.reverse()
        text = phrase(rng, "ask down", numbers[0], start)
    else:
        numbers = list(range(2, 2 * count + 1, 2))
        text = f"Count by twos to {numbers[-1]}."
    return f"count {text}", text, ", ".join(map(str, numbers)) + "."


def neighbours(rng):
    n = rng.randint(1, 99)
    if rng.random() < 0.5:
        return f"after {n}", phrase(rng, "ask after", n), phrase(rng, "say after", n, n + 1)
    return f"before {n}", phrase(rng, "ask before", n), f"{n - 1} comes before {n}."


def parity(rng):
    n = rng.randint(0, 99)
    is_odd = n % 2 == 1
    word, way = "odd" if is_odd else "even", rng.randrange(3)
    if way == 0:
        return f"parity {n}", f"Is {n} even or odd?", f"{n} is {word}."
    if way == 1:
        return f"parity {n}", f"Is {n} even?", f"{'No' if is_odd else 'Yes'}, {n} is {word}."
    return f"parity {n}", f"Is {n} odd?", f"{'Yes' if is_odd else 'No'}, {n} is {word}."


def doubles(rng):
    n = rng.randint(1, 50)
    if rng.random() < 0.5:
        return f"double {n}", phrase(rng, "ask double", n), f"Twice {n} is {2 * n}."
    return f"half {n}", phrase(rng, "ask half", 2 * n), f"Half of {2 * n} is {n}."


def lists(rng):
    numbers = rng.sample(range(100), rng.randint(3, 5))
    shown = ", ".join(map(str, numbers))
    way = rng.randrange(3)
    if way == 0:
        return f"sort {shown}", phrase(rng, "ask sort", shown), ", ".join(map(str, sorted(numbers))) + "."
    if way == 1:
        return f"max {shown}", phrase(rng, "ask largest", shown), f"The largest is {max(numbers)}."
    return f"min {shown}", phrase(rng, "ask smallest", shown), f"The smallest is {min(numbers)}."


def problems(rng):
    who, other = rng.sample(WORDS["holders"], 2)
    item, a, b = rng.choice(WORDS["items"]), rng.randint(2, 30), rng.randint(1, 20)
    way = rng.randrange(4)
    if way == 0:
        question = f"{who} has {a} {item} and gets {b} more. How many {item} does {who} have?"
        return key_of(a, "+", b), question, f"{a} + {b} = {a + b}. {who} has {a + b} {item}."
    if way == 1:
        question = f"{who} has {a} {item} and {other} has {b}. How many do they have together?"
        return key_of(a, "+", b), question, f"{a} + {b} = {a + b}. Together they have {a + b} {item}."
    if way == 2:
        a, b = max(a, b), min(a, b)
        question = f"{who} has {a} {item} and gives {b} to {other}. How many {item} are left?"
        return key_of(a, "-", b), question, f"{a} - {b} = {a - b}. {who} has {a - b} {item} left."
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    question = f"There are {a} boxes with {b} {item} each. How many {item} are there?"
    return "", question, f"{a} * {b} = {a * b}. There are {a * b} {item}."


def shapes(rng):
    """Tensors in numbers: elements of a shape, shapes of products."""
    a, b, c = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 9)
    way = rng.randrange(4)
    if way == 0:
        return f"elements {a} {b}", phrase(rng, "ask elements", a, b), f"It has {a} * {b} = {a * b} elements."
    if way == 1:
        return f"matmul {a} {b} {c}", phrase(rng, "ask product shape", a, b, c), f"The product has the shape ({a}, {c})."
    if way == 2:
        question = f"What is the shape of the transpose of a ({a}, {b}) matrix?"
        return f"transpose {a} {b}", question, f"It has the shape ({b}, {a})."
    d = c if c != b else c + 1
    question = f"Can I multiply a ({a}, {b}) matrix by a ({d}, {a}) matrix?"
    return f"nomatmul {a} {b} {d}", question, f"No. The inner sizes are {b} and {d}, and they must be equal."


KINDS = [(sums, 14), (differences, 9), (products, 4), (quotients, 1), (sums_in_steps, 1.5), (word_sums, 0.6),
         (comparisons, 1.6), (counting, 1), (neighbours, 0.8), (parity, 0.8), (doubles, 0.7), (lists, 1.6),
         (problems, 2.2), (shapes, 1.6)]


class Numbers:
    def __init__(self):
        self.decks = {"+": Deck(ordered=False), "-": Deck(ordered=True)}

    def question(self, rng):
        make = rng.choices([kind for kind, _ in KINDS], [weight for _, weight in KINDS])[0]
        return make(rng, self.decks) if make in (sums, differences) else make(rng)
