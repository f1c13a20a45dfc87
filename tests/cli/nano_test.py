#!/usr/bin/env python3
"""Tests the texts that tallow-nano is trained on, and what commands do without a model. Usage: nano_test.py PATH_TO_TL

The environment is that of cli_test.py.
"""

import os
import pty
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

import cli_test
from cli_test import MAKE_MODEL, SMALL, run

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
NANO = os.path.join(SOURCE, "models/nano")
ROLES = re.compile(r"(<\|system\|>[^<]+<\|eot\|>)?(<\|user\|>.+?<\|eot\|><\|assistant\|>.+?<\|eot\|>)+", re.DOTALL)


def write_corpus(folder, *options):
    subprocess.run([sys.executable, os.path.join(NANO, "corpus.py"), folder, "--megabytes", "0.6", *options], check=True,
                   capture_output=True, timeout=120)
    texts = []
    for name in ("train.txt", "held-out.txt"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts.append(file.read())
    return texts


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.train, cls.held_out = write_corpus(os.path.join(cls.folder.name, "a"))
        cls.documents = cls.train.rstrip("\n").split("\n<|end|>\n")
        cls.kept = cls.held_out.rstrip("\n").split("\n<|end|>\n")

    def test_the_seed_decides(self):
        self.assertEqual(write_corpus(os.path.join(self.folder.name, "b")), [self.train, self.held_out])
        self.assertNotEqual(write_corpus(os.path.join(self.folder.name, "c"), "--seed", "2")[0], self.train)

    def test_chats_are_turns_of_user_and_assistant(self):
        chats = [text for text in self.documents + self.kept if "<|" in text]
        self.assertGreater(len(chats), 1000)
        for text in chats:
            self.assertIsNotNone(ROLES.fullmatch(text), text)

    def test_sums_are_right(self):
        found = re.findall(r"(\d+) ([+*-]) (\d+) = (-?\d+)", self.train + self.held_out)
        self.assertGreater(len(found), 500)
        for a, sign, b, result in found:
            right = {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign]
            self.assertEqual(int(result), right, (a, sign, b))

    def test_no_sum_is_left_out(self):
        sys.path.insert(0, NANO)
        from arithmetic import Deck
        rng = random.Random(1)
        for ordered, count in ((False, 10000), (True, 5050)):
            deck, drawn = Deck(ordered), set()
            for _ in range(2 * count):
                drawn.add(deck.draw(rng))
            self.assertEqual(len(drawn), count)

    def test_no_slot_is_left_open(self):
        for text in self.documents + self.kept:
            self.assertNotRegex(re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL), r"[{}\[\]]{2}|\{\w+\}|\[\w+\|")

    def test_what_is_held_out_is_not_trained_on(self):
        sums = {(a, b) for a, b in re.findall(r"(?<!\d)(\d\d) \+ (\d\d) (?:=|is) ", self.held_out)}
        trained = {(a, b) for a, b in re.findall(r"(?<!\d)(\d\d) \+ (\d\d) (?:=|is) ", self.train)}
        self.assertGreater(len(trained), 200)
        self.assertTrue(sums - trained)
        self.assertFalse(set(self.kept) & set(self.documents))
        # Whether a sum is held out does not depend on the draw.
        sys.path.insert(0, NANO)
        from corpus import is_held_out  # noqa: the folder is known only here
        for a, b in trained:
            if max(int(a), int(b)) > 12:
                self.assertFalse(is_held_out(f"{a}+{b}", 20), (a, b))

    def test_a_story_has_what_was_asked_for(self):
        asked = re.findall(r"story about an? (\w+) who lost an? (?:\w+ )?(\w+)[.?,]?[^<]*<\|eot\|>"
                           r"<\|assistant\|>(.*?)<\|eot\|>", self.train, re.DOTALL)
        self.assertGreater(len(asked), 5)
        for hero, thing, text in asked:
            self.assertIn(hero, text.lower())
            self.assertIn(thing.split()[-1], text)

    def test_programs_in_answers_are_right(self):
        sys.path.insert(0, NANO)
        from questions import read_facts
        programs = set()
        for name in ("facts_tallow", "facts_language", "facts_tensors", "smalltalk"):
            for fact in read_facts(os.path.join(NANO, f"{name}.txt")):
                for text in fact.say + [answer for _, answer in fact.follow]:
                    programs.update(re.findall(r"```tl\n(.*?)```", text, re.DOTALL))
        self.assertGreater(len(programs), 20)
        paths = []
        for number, program in enumerate(sorted(programs)):
            paths.append(os.path.join(self.folder.name, f"{number}.tl"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(program)
        result = run("check", *paths)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def test_the_chat_template_writes_what_the_texts_have(self):
        tokenizer = os.path.join(self.folder.name, "tokenizer.gguf")
        corpus = os.path.join(self.folder.name, "a", "train.txt")
        result = run("tokenizer", "train", corpus, "-o", tokenizer, "--vocab", "1024")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        chat = next(text for text in self.documents if text.startswith("<|user|>") and text.count("<|user|>") == 1)
        template = run("inspect", "--full", "--json", tokenizer).stdout
        self.assertIn("'<|' + message['role'] + '|>' + message['content'] | trim + '<|eot|>'", template)
        ids = run("tokenize", tokenizer, "--special", input=chat).stdout.split()
        self.assertEqual(ids[:2], ["0", "3"])         # <|end|><|user|>
        self.assertEqual((ids.count("1"), ids.count("4"), ids[-1]), (2, 1, "1"))  # <|eot|> twice, <|assistant|> once
        self.assertEqual(run("tokenize", tokenizer, "--decode", "--special", "-p", " ".join(ids[1:])).stdout, chat)


class DefaultModel(unittest.TestCase):
    """A copy of the program in folders of its own, with a small model where the default one is looked for."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = os.path.realpath(folder.name)
        cls.model = cls.path("small.gguf")
        subprocess.run([sys.executable, MAKE_MODEL, *SMALL, cls.model], check=True, capture_output=True)
        for place in ("tree/build/release/bin", "tree/models/nano", "prefix/bin", "prefix/share/tallow/models", "alone/bin"):
            os.makedirs(cls.path(place))
        for place in ("tree/build/release/bin", "prefix/bin", "alone/bin"):
            shutil.copy(cli_test.TL, cls.path(place, "tl"))
        shutil.copy(cls.model, cls.path("tree/models/nano/tallow-nano.gguf"))
        shutil.copy(cls.model, cls.path("prefix/share/tallow/models/tallow-nano.gguf"))

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.root, *names)

    def run_at(self, place, *arguments, model="", **options):
        return subprocess.run([self.path(place, "tl"), *arguments], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "TL_MODEL": model}, **options)

    def test_generate_and_the_others_use_it(self):
        for place, model in (("tree/build/release/bin", ""), ("prefix/bin", ""), ("alone/bin", self.model)):
            result = self.run_at(place, "generate", "-p", "hello", "-n", "4", "--greedy", "--device", "cpu", model=model)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, r"answer: 4 tokens in .*\nmemory: model .*, all returned \(cpu\)")
        how = ["-p", "hello", "-n", "4", "--greedy", "--device", "cpu", "--json"]
        named = run("generate", self.model, *how).stdout
        default = self.run_at("prefix/bin", "generate", *how).stdout
        self.assertIn(self.path("prefix/share/tallow/models/tallow-nano.gguf"), default)
        tokens = re.compile(r'"tokens": \[[^\]]*\]')
        self.assertEqual(tokens.search(named)[0], tokens.search(default)[0])
        self.assertRegex(self.run_at("prefix/bin", "tokenize", "-p", "hello").stdout, r"^[\d ]+\n$")
        out = self.path("out.npy")
        result = self.run_at("prefix/bin", "logits", "--tokens", "1,2", "-o", out, "--device", "cpu")
        self.assertIn("f32 (2, 512)", result.stdout)
        result = self.run_at("prefix/bin", "bench", "-p", "4", "-n", "2", "-r", "1", "--device", "cpu")
        self.assertRegex(result.stdout, r"pp4 .*\n.*tg2 ")

    def test_the_variable_counts_first(self):
        result = self.run_at("prefix/bin", "tokenize", "-p", "x", model="/no/such.gguf")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("TL_MODEL: there is no file '/no/such.gguf'", result.stderr)

    def test_without_one_the_places_are_named(self):
        for arguments in (["generate", "-p", "x"], ["chat", "--ask", "x"], ["bench"], ["tokenize", "-p", "x"],
                          ["logits", "--tokens", "1", "-o", "x.npy"], ["demo", "chat"]):
            result = self.run_at("alone/bin", *arguments)
            self.assertEqual(result.returncode, 1, result)
            place = self.path("alone/share/tallow/models/tallow-nano.gguf")
            self.assertIn(f"tallow-nano.gguf is not there (looked for {place} and ", result.stderr)
            self.assertIn("name a GGUF file, or set TL_MODEL", result.stderr)

    ASK = ["--template", "chatml", "-n", "6", "--greedy", "--device", "cpu"]

    def test_questions_of_the_command_line_are_answered(self):
        result = self.run_at("prefix/bin", "chat", *self.ASK, "--ask", "hello", "--ask", "and you?")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?s)^> hello\n.+\n> and you\?\n.+\n$")
        self.assertRegex(result.stderr, r"prompts: \d+ tokens in .* \(.* tokens/s\), "
                                        r"answers: 12 tokens in .* \(.* tokens/s\)\nmemory: model ")
        # It is one chat: the second answer is what a pipe of both messages gets.
        piped = self.run_at("prefix/bin", "chat", *self.ASK, "--quiet", input="hello\nand you?\n")
        self.assertEqual(re.sub(r"(?m)^> .*\n", "", result.stdout), piped.stdout)
        result = self.run_at("prefix/bin", "chat", *self.ASK, "--ask", "")
        self.assertIn("--ask has no text", result.stderr)

    def test_the_demo_asks_three_questions_without_a_terminal(self):
        result = self.run_at("prefix/bin", "demo", "chat", "--device", "cpu", "--template", "chatml",
                             stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?s)^Tallow \S+ on cpu: .*\n\n> What is Tallow\?\n.+\n"
                                        r"> What is 23 \+ 45\?\n.+\n> Tell me a story .*\n.+\n$")
        self.assertRegex(result.stderr, r"answers: \d+ tokens in .* \(.* tokens/s\)\nmemory: model .*, all returned \(cpu\)")

    def test_the_demo_opens_a_chat_at_a_terminal(self):
        main, other = pty.openpty()
        command = [self.path("prefix/bin/tl"), "demo", "chat", "--device", "cpu", "--template", "chatml"]
        process = subprocess.Popen(command, stdin=other, stdout=other, stderr=subprocess.PIPE,
                                   env={**os.environ, "TL_MODEL": "", "TERM": "dumb"})
        os.close(other)
        shown = b""
        while b"> " not in shown and select.select([main], [], [], 60)[0]:
            shown += os.read(main, 4096)
        self.assertIn(b"/help for help", shown)
        os.write(main, b"/quit\n")
        process.communicate(timeout=60)
        os.close(main)
        self.assertEqual(process.returncode, 0)



class TheModel(unittest.TestCase):
    """What README.md shows is what the model says."""

    def blocks(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
            found = re.findall(r"```text\n(> .*?)```", file.read(), re.S)
        self.assertEqual(len(found), 2)
        return found

    def test_the_demo_is_as_shown(self):
        result = run("demo", "chat", "--device", "cpu", stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(self.blocks()[0], result.stdout)
        self.assertIn("all returned", result.stderr)

    def test_the_chat_is_as_shown(self):
        shown = self.blocks()[1]
        asked = re.findall(r"(?m)^> (.*)$", shown)
        self.assertGreater(len(asked), 3)
        questions = [part for question in asked for part in ("--ask", question)]
        result = run("chat", "--greedy", "--device", "cpu", *questions, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, shown)

    def test_it_is_small(self):
        self.assertLessEqual(os.path.getsize(os.path.join(NANO, "tallow-nano.gguf")), 8_000_000)


if __name__ == "__main__":
    cli_test.TL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
