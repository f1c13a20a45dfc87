#!/usr/bin/env python3
"""Runs `tl train` on a tiny model. Usage: train_test.py PATH_TO_TL

The environment is that of cli_test.py.
"""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cli_test
from cli_test import MAKE_MODEL, WHOLE_PACK, run, simulated

TEXT = "\n<|end|>\n".join(["the cat sat on the mat", "the dog sat on the log", "a bird sang in the tree"] * 4) + "\n"
SIZES = {"layers": 1, "width": 32, "heads": 4, "kv_heads": 2, "ffn": 64, "context": 16}


class Train(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.models = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.models.cleanup)
        cls.tokenizer = os.path.join(cls.models.name, "tokenizer.gguf")
        subprocess.run([sys.executable, MAKE_MODEL, "--layers", "1", "--width", "64", "--vocabulary", "300",
                        "--feed-forward", "64", "--heads", "2", "--kv-heads", "1", "--drawn", "5000", cls.tokenizer],
                       check=True, capture_output=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.save("train.txt", TEXT)
        self.save("held-out.txt", "the cat sang in the tree\n")
        self.settings = {"train": self.path("train.txt"), "held_out": [self.path("held-out.txt")],
                         "tokenizer": self.tokenizer, "output": self.path("m.gguf"), "output_type": "F32",
                         "architecture": dict(SIZES), "batch": 2, "steps": 20, "rate": 0.01, "warmup": 2,
                         "print_every": 5, "evaluate_every": 10, "save_every": 10}

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def config(self):
        return self.save("train.json", json.dumps(self.settings))

    def train(self, *arguments, device="cpu", **options):
        return run("train", self.config(), "--device", device, *arguments, **options)

    def good(self, *arguments, **options):
        result = self.train(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def bad(self, message, *arguments):
        result = self.train(*arguments)
        self.assertEqual(result.returncode, 1, result)
        self.assertTrue(result.stderr.startswith("tl: error: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(message, result.stderr)

    def table(self, name="m.csv"):
        with open(self.path(name), encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_from_a_text_to_a_model_that_talks(self):
        out = self.good()
        self.assertRegex(out, r"(?m)^model: 0\.02 M parameters, vocabulary 300, 1 layers, .* on cpu$")
        self.assertRegex(out, r"(?m)^train: 12 documents, 268 B, \d+ tokens \(\d\.\d\d bytes each\), \d+ rows$")
        self.assertRegex(out, r"(?m)^step 10/20  loss \d\.\d{4}  held-out \d\.\d{4}  lr \S+  [\d,]+ tokens/s  0:0\d left")
        self.assertRegex(out, r"(?m)^held-out: loss \d\.\d{4}, \d+\.\d{4} bits per byte, \d+ tokens$")
        self.assertRegex(out, r"(?m)^memory: parameters .*, peak .*, all returned \(cpu\)$")
        rows = self.table()
        self.assertEqual([row["step"] for row in rows], ["1", "5", "10", "15", "20"])
        self.assertLess(float(rows[-1]["loss"]), float(rows[0]["loss"]) - 1)
        self.assertEqual([row["held_out"] != "" for row in rows], [False, False, True, False, False])
        self.assertEqual(sorted(os.listdir(self.folder)), ["held-out.txt", "m.csv", "m.gguf", "m.held-out.tokens", "m.state",
                                                           "m.train.tokens", "train.json", "train.txt"])
        text = run("generate", self.path("m.gguf"), "-p", "the", "-n", "5", "--device", "cpu", "--quiet")
        self.assertEqual(text.returncode, 0, text.stderr)

    def test_options_stand_above_the_file(self):
        out = self.good("--steps", "3", "--set", "warmup=1", "--set", "architecture.layers=2", "--output",
                        self.path("n.gguf"), "--precision", "bf16")
        self.assertIn("2 layers", out)
        self.assertEqual(self.table("n.csv")[-1]["step"], "3")

    def test_goes_on_where_it_was_stopped(self):
        self.settings["print_every"] = 1
        self.good()
        whole = self.table()
        os.remove(self.path("m.state"))
        self.good("--set", "save_every=0", "--time-limit", "0.001")  # which is no time at all
        self.assertEqual(self.table(), [])
        out = self.good("--resume", "--steps", "20")
        self.assertIn("resumed after step 0", out)
        self.assertIn("tokenised before", out)
        for row, same in zip(self.table(), whole, strict=True):
            self.assertAlmostEqual(float(row["loss"]), float(same["loss"]), delta=1e-5)
        self.assertIn("will be replaced; --resume goes on from it", self.good())

    def test_a_signal_saves_and_resuming_gives_the_same_losses(self):
        self.settings |= {"print_every": 1, "steps": 400}
        for which in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([cli_test.TL, "train", self.config(), "--device", "cpu"],
                                  stdout=subprocess.PIPE, text=True) as child:
                for line in child.stdout:
                    if line.startswith("step   3/"):
                        child.send_signal(which)
                        break
                out = child.stdout.read()
                self.assertEqual(child.wait(60), 130)
            stopped = re.search(r"stopped by a signal at step (\d+) of 400; --resume goes on", out)
            self.assertTrue(stopped, out)
            self.assertIn("all returned", out)
            step = int(stopped[1])
            before = self.table()
            self.assertEqual(before[-1]["step"], stopped[1])
            self.good("--resume", "--time-limit", "4")
            after = self.table()
            self.assertGreater(len(after), step)
            self.assertEqual(after[:step], before)
            self.assertEqual([int(row["step"]) for row in after], list(range(1, len(after) + 1)))

    def test_a_time_limit_is_kept(self):
        self.settings |= {"steps": 1000000}
        start = time.monotonic()
        out = self.good("--time-limit", "4")
        self.assertLess(time.monotonic() - start, 12)  # on a busy machine
        self.assertRegex(out, r"out of time at step \d+ of 1000000; --resume goes on from \S+m\.state")
        self.assertTrue(os.path.exists(self.path("m.gguf")))

    def test_what_cannot_be_trained_is_said(self):
        settings = dict(self.settings)
        self.bad("there is no key 'stepz' here; did you mean 'steps'?", "--set", "stepz=4")
        self.bad("'nonsense' is not KEY=VALUE", "--set", "nonsense")
        self.bad("key 'architecture.heads' is 5, which does not divide the width, 32", "--set", "architecture.heads=5")
        self.bad("key 'architecture.kv_heads' is 3, which does not divide the heads, 4", "--set",
                 "architecture.kv_heads=3")
        self.bad("key 'architecture.vocabulary' is 99, and ", "--set", "architecture.vocabulary=99")
        self.bad("nothing.txt': No such file or directory", "--set", "train=" + self.path("nothing.txt"))
        self.bad("nothing.gguf", "--set", "tokenizer=" + self.path("nothing.gguf"))
        self.bad("empty.txt: is empty", "--set", "train=" + self.save("empty.txt", ""))
        self.bad("blank.txt: has no document", "--set", "held_out=" + self.save("blank.txt", "\n<|end|>\n\n"))
        self.bad("m.state: there is no state to resume from", "--resume")
        del self.settings["train"]
        self.bad("there is no key 'train'")
        self.settings = settings
        result = run("train", self.path("none.json"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("none.json", result.stderr)
        self.assertEqual(run("train").returncode, 2)

    def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_state(self):
        self.good("--steps", "4", "--set", "warmup=0")
        with open(self.path("m.state"), "rb") as file:
            good = file.read()
        self.bad("The state of step 4 is kept", "--resume", "--rate", "1e30", "--set", "clip=0", "--set", "warmup=0")
        with open(self.path("m.state"), "rb") as file:
            self.assertEqual(file.read(), good)
        self.assertEqual(self.good("--resume").count("resumed after step 4"), 1)

    def test_another_vocabulary_cannot_go_on(self):
        self.good("--steps", "4")
        other = self.path("other.gguf")
        with open(self.tokenizer, "rb") as file:
            whole = file.read()
        self.assertEqual(whole.count(b"</s>"), 1)
        with open(other, "wb") as file:
            file.write(whole.replace(b"</s>", b"</t>"))
        self.bad("was saved with another vocabulary than that of " + other, "--resume", "--set", "tokenizer=" + other)

    @WHOLE_PACK
    def test_the_same_losses_on_a_gpu(self):
        self.good("--steps", "4", "--set", "print_every=1")
        here = self.table()
        result = self.train("--steps", "4", "--set", "print_every=1", device="cuda:0",
                            env=simulated("cuda") | {"TL_MEMORY_CHECK": "1"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("All GPU memory properly released.", result.stderr)
        for row, same in zip(self.table(), here, strict=True):
            self.assertAlmostEqual(float(row["loss"]), float(same["loss"]), delta=1e-3)


if __name__ == "__main__":
    cli_test.TL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
