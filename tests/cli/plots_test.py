#!/usr/bin/env python3
"""Runs what `tl` draws and what it shows while work goes on: --plot, `tl mem`, bars. Usage: plots_test.py PATH_TO_TL

The environment is that of cli_test.py.
"""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import xml.etree.ElementTree as ElementTree

import cli_test
from cli_test import MAKE_MODEL, SMALL, WHOLE_PACK, run, simulated

SVG = "{http://www.w3.org/2000/svg}"

LEARNS = """tensor w: float32[1] learnable = [4.0]
main {
    learn {
        objective: mean(w * w),
        optimizer: sgd(lr: 0.1),
        epochs: 20
    }
    let v = learnable([3.0])
    learn {
        optimizer: sgd(lr: 0.05)
        epochs: 7
        for i in range(epochs) { backward(sum(v * v)) }
    }
    print("end")
}
"""

# Line 4 holds 4 MiB at the peak, line 6 takes 1 MiB above it, line 10 half a MiB later.
HOLDS = """fn small() -> float32[?] { zeros([131072]) }

fn peak() {
    let large = zeros([1048576])
    let n = 3
    let top = zeros([262144])
}
main {
    peak()
    let later = small()
    print("done", len(args()))
}
"""


def drawn(path):
    """The root of a picture, which is well-formed and has what screen readers need."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg", root.tag
    assert root.find(SVG + "title").text, "no title"
    assert root.find(SVG + "desc").text, "no description"
    return root


def series(root):
    """Names of the lines and how many points each has."""
    out = {}
    for group in root.iter(SVG + "g"):
        if group.get("class") == "series":
            path = group.find(SVG + "path").get("d")
            out[group.find(SVG + "title").text] = len(re.findall("[MLH]", path))
    return out


def texts(root, kind):
    return [each.text for each in root.iter(SVG + "text") if each.get("class") == kind]


def at_terminal(*arguments, columns=100, stdout_too=False, env=None):
    """The exit code and what a terminal of so many columns gets on stderr."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    settings = {**os.environ, "TERM": "xterm", **(env or {})}
    process = subprocess.Popen([cli_test.TL, *arguments], stdin=subprocess.DEVNULL, stderr=theirs, env=settings,
                               stdout=theirs if stdout_too else subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    end = time.monotonic() + 120
    try:
        while time.monotonic() < end:
            if not select.select([mine], [], [], 1)[0]:
                continue
            part = os.read(mine, 1 << 16)
            if not part:
                break
            shown += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(mine)
        code = process.wait(timeout=60)
    return code, shown.decode()


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, text, name="p.tl"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def good(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result


class Losses(WithFolder):
    def test_every_learn_block_has_a_curve(self):
        program = self.program(LEARNS)
        plain = self.good("run", program, "--device", "cpu")
        drew = self.good("run", program, "--device", "cpu", "--plot", self.path("loss.svg"))
        self.assertEqual((drew.stdout, drew.stderr), (plain.stdout, plain.stderr))
        root = drawn(self.path("loss.svg"))
        self.assertEqual(series(root), {"p.tl:3": 20, "p.tl:9": 7})
        self.assertEqual(texts(root, "title"), ["Loss of p.tl"])
        self.assertIn("p.tl:9: 7 points from 2.542 to 9, the last 2.542.", root.find(SVG + "desc").text)

    def test_a_block_that_runs_again_goes_on_after_a_gap(self):
        program = self.program("""main {
    let w = learnable([4.0])
    for i in range(3) { learn { objective: sum(w * w), optimizer: sgd(lr: 0.1), epochs: 5 } }
}
""")
        self.good("run", "-q", program, "--device", "cpu", "--plot", self.path("l.svg"))
        root = drawn(self.path("l.svg"))
        self.assertEqual(series(root), {"p.tl:3": 15})
        path = next(each for each in root.iter(SVG + "path") if each.get("class").startswith("line"))
        self.assertEqual(path.get("d").count("M"), 3)

    def test_a_program_that_fails_has_its_curve_so_far(self):
        program = self.program(LEARNS.replace('print("end")', "panic(1)"))
        result = run("run", "-q", program, "--device", "cpu", "--plot", self.path("l.svg"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(series(drawn(self.path("l.svg"))), {"p.tl:3": 20, "p.tl:9": 7})

    def test_mistakes_are_told_at_once(self):
        program = self.program(LEARNS)
        result = run("run", program, "--device", "cpu", "--plot", self.path("no/l.svg"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("no/l.svg", result.stderr)
        result = run("run", self.program("main { print(1) }", "none.tl"), "--plot", self.path("l.svg"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no loss to plot", result.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if "svg" in name], [])


class Memory(WithFolder):
    def check(self, device, env=None):
        program = self.program(HOLDS)
        result = self.good("mem", program, "--device", device, "--json", "--plot", self.path("m.svg"), env=env)
        self.assertEqual(result.stderr.splitlines()[0], "done 0")
        data = json.loads(result.stdout)
        place = data["places"][0]
        self.assertEqual((place["place"], place["peak_line"]), (device, program + ":6"))
        lines = {each["line"]: each for each in place["lines"]}
        self.assertEqual(lines[program + ":4"]["peak_bytes"], 4 << 20)
        self.assertEqual(lines[program + ":6"]["peak_bytes"], 1 << 20)
        self.assertEqual(lines[program + ":1"]["peak_bytes"], 0)
        self.assertEqual(lines[program + ":1"]["allocated_bytes"], 1 << 19)
        self.assertEqual(list(lines)[:2], [program + ":4", program + ":6"])  # most at the peak first
        self.assertEqual(sum(each["peak_bytes"] for each in lines.values()), place["peak_bytes"])
        self.assertEqual(place["bytes_left"], 0)
        self.assertEqual(max(bytes for _, bytes in place["timeline"]), place["peak_bytes"])
        self.assertEqual(place["peaks"][0]["bytes"], place["peak_bytes"])

        root = drawn(self.path("m.svg"))
        self.assertEqual(texts(root, "note")[0], "p.tl:6 5.00 MiB")
        self.assertGreaterEqual(series(root)[device], 5)
        self.assertEqual(len(texts(root, "note")), sum(each.get("class") == "mark" for each in root.iter(SVG + "circle")))

    def test_the_line_of_the_peak_on_the_cpu(self):
        self.check("cpu")

    @WHOLE_PACK
    def test_the_line_of_the_peak_on_a_gpu(self):
        self.check("cuda:0", simulated("cuda"))

    def test_a_table_for_people(self):
        program = self.program(HOLDS)
        result = self.good("mem", program, "one", "two", "--device", "cpu", "--lines", "2")
        self.assertIn("done 2\n", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^cpu: peak 5\.00 MiB at .*p\.tl:6, .* after the start; \d+ allocations, "
                                        r"all returned$")
        self.assertRegex(result.stdout, r"(?m)^line +at the peak +allocated +times")
        self.assertRegex(result.stdout, r"(?m)^\S*p\.tl:4 +4\.00 MiB +4\.00 MiB +1$")
        self.assertRegex(result.stdout, r"(?m)^and \d+ more$")

    def test_a_write_to_shared_memory_counts_for_the_line_that_writes(self):
        program = self.program("main {\n    let a = zeros([262144])\n    let b = a\n    b[0] = 1.0\n"
                               "    print(a[0], b[0])\n}\n")
        data = json.loads(self.good("mem", program, "--device", "cpu", "--json").stdout)
        lines = {each["line"]: each for each in data["places"][0]["lines"]}
        self.assertEqual(lines[program + ":4"]["copies"], 1)
        self.assertEqual(lines[program + ":4"]["peak_bytes"], 1 << 20)

    def test_a_program_that_fails_is_shown_too(self):
        program = self.program("main {\n    let a = zeros([262144])\n    panic(1)\n}\n")
        result = run("mem", program, "--device", "cpu")
        self.assertEqual(result.returncode, 1)
        self.assertIn("panic", result.stderr)
        self.assertIn("cpu: peak 1.00 MiB at", result.stdout)

    def test_what_cannot_be_shown(self):
        self.assertIn("the program took no memory", self.good("mem", self.program("main { print(1) }")).stdout)
        result = run("mem", self.program("main { let }"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(run("mem").returncode, 2)
        result = run("mem", self.path("none.tl"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("File not found", result.stderr)


class WithModel(WithFolder):
    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.model = os.path.join(shared.name, "m.gguf")
        subprocess.run([sys.executable, MAKE_MODEL, *SMALL, cls.model], check=True, capture_output=True)


class Speeds(WithModel):
    def test_one_depth_gives_bars(self):
        self.good("bench", self.model, "--device", "cpu", "-p", "8,16", "-n", "2", "-r", "2", "--plot", self.path("b.svg"))
        root = drawn(self.path("b.svg"))
        self.assertEqual(texts(root, "panel"), ["Reading a prompt", "Writing an answer"])
        self.assertEqual(texts(root, "group"), ["pp8", "pp16", "tg2"])
        self.assertEqual(sum(each.get("class") == "bar" for each in root.iter(SVG + "g")), 3)

    def test_several_depths_give_lines(self):
        self.good("bench", self.model, self.model, "--device", "cpu", "-p", "8", "-n", "0", "-d", "0,8,16", "-r", "1",
                  "--plot", self.path("b.svg"))
        root = drawn(self.path("b.svg"))
        self.assertEqual(texts(root, "panel"), ["Reading a prompt"])
        self.assertEqual(set(series(root).values()), {6})  # both have the name of the same file

    def test_bench_blocks_give_bars(self):
        program = self.program("bench quick { let x = 1 + 1 } bench sums { let s = sum(ones([8])) }")
        self.good("bench", program, "--device", "cpu", "-r", "3", "--plot", self.path("b.svg"))
        self.assertEqual(texts(drawn(self.path("b.svg")), "group"), ["p.tl: quick", "p.tl: sums"])


class Bars(WithModel):
    def check_cleaned(self, shown):
        """Every line that was drawn is gone: what is left after the last carriage return is nothing."""
        self.assertTrue(shown.rstrip("\n").endswith("\r\x1b[K"), repr(shown[-200:]))

    def test_load_quantize_and_logits(self):
        for arguments, text in ((["load", self.model, "--device", "cpu", "--copy"], "load ["),
                                (["quantize", self.model, self.path("q.gguf"), "Q8_0"], "quantize ["),
                                (["logits", self.model, "-p", "hello world", "--step", "-o", self.path("l.npy"),
                                  "--device", "cpu"], "logits [")):
            code, shown = at_terminal(*arguments, env={"NO_COLOR": "1"})
            self.assertEqual(code, 0, shown)
            self.assertIn("\r" + text, shown)
            self.assertRegex(shown, r"\d+%")
            self.assertNotRegex(shown, r"\x1b\[3\dm")
            for line in re.split(r"\r\x1b\[K|\r|\n", re.sub(r"\x1b\[[0-9;]*[mK]", "", shown)):
                self.assertLess(len(line), 100)
            quiet, nothing = at_terminal(*arguments, "-q")
            self.assertEqual((quiet, nothing), (0, ""))
            result = run(*arguments)
            self.assertNotIn("\r", result.stderr)
            self.assertNotIn("%", result.stderr)

    def test_a_prompt_that_is_read(self):
        arguments = ["generate", self.model, "-p", "a long prompt " * 30, "-n", "2", "--chunk", "16", "--device", "cpu"]
        code, shown = at_terminal(*arguments, env={"NO_COLOR": "1"})
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"\rprompt \[[=> ]{24}\] +\d+% \d+/\d+ tokens")
        code, shown = at_terminal(*arguments, "--quiet")
        self.assertEqual((code, shown), (0, ""))

    def test_a_chat_that_is_read(self):
        arguments = ["chat", self.model, "--template", "chatml", "--ask", "a long question " * 30, "-n", "2", "--chunk", "16",
                     "--device", "cpu"]
        code, shown = at_terminal(*arguments, env={"NO_COLOR": "1"})
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"\rprompt \[[=> ]{24}\] +\d+% \d+/\d+ tokens")
        before, after = shown.rsplit("tokens/s", 1)[0].rsplit("\r", 1)
        self.assertTrue(after.startswith("\x1b[K"), "the bar is gone when the answer is there")
        self.assertEqual(at_terminal(*arguments, "--quiet"), (0, ""))

    def test_learn_blocks(self):
        program = self.program(LEARNS.replace("epochs: 20", "epochs: 3000").replace("epochs: 7", "epochs: 3000"))
        code, shown = at_terminal("run", program, "--device", "cpu")
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"\rlearn p\.tl:3 \[\x1b\[32m=*>?\x1b\[0m *\] +\d+% [\d,]+/3,000 epochs")
        self.assertRegex(shown, r"\rlearn p\.tl:9 [-|/\\] [\d,]+ steps")
        self.check_cleaned(shown)
        self.assertEqual(at_terminal("run", "-q", program, "--device", "cpu"), (0, ""))
        self.assertEqual(run("run", program, "--device", "cpu").stderr, "")

    def test_output_stands_above_the_bar(self):
        program = self.program(LEARNS)
        code, shown = at_terminal("run", program, "--device", "cpu", stdout_too=True)
        self.assertEqual(code, 0, shown)
        lines = shown.replace("\r\n", "\n")
        for line in re.findall(r".*Epoch +\d+/20: .*", lines):
            last = re.split(r"\r\x1b\[K|\r", line)[-1]
            self.assertRegex(last, r"^Epoch +\d+/20: Loss = ")
        self.assertEqual(len(re.findall(r"Epoch +\d+/20: ", lines)), 20)

    def test_an_error_finds_a_clean_line(self):
        program = self.program(LEARNS.replace("backward(sum(v * v))", "if i == 3 { panic(1) } backward(sum(v * v))"))
        code, shown = at_terminal("run", "--no-notes", program, "--device", "cpu", env={"NO_COLOR": "1"})
        self.assertEqual(code, 1)
        self.assertRegex(shown, r"\r\x1b\[K\S*.*panic")

    def test_narrow_and_dumb_terminals(self):
        arguments = ["load", self.model, "--device", "cpu", "--copy"]
        code, shown = at_terminal(*arguments, columns=20, env={"NO_COLOR": "1"})
        self.assertEqual(code, 0)
        for line in re.split(r"\r|\x1b\[K", shown):
            self.assertLess(len(line), 20)
        self.assertIn("%", shown)
        self.assertEqual(at_terminal(*arguments, env={"TERM": "dumb"}), (0, ""))


if __name__ == "__main__":
    cli_test.TL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
