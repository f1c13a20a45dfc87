#!/usr/bin/env python3
"""Runs the commands of `tl` that run a model: generate, logits, bench, chat. Usage: generate_test.py PATH_TO_TL

The environment is that of cli_test.py.
"""

import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import cli_test
from cli_test import MAKE_MODEL, SMALL, WHOLE_PACK, run, simulated

SLOW = bool(os.environ.get("TL_TEST_SANITIZE"))


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = cls.path("m.gguf")
        subprocess.run([sys.executable, MAKE_MODEL, *SMALL, cls.model], check=True, capture_output=True)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def good(self, command, *arguments, model=None, **options):
        result = run(command, model or self.model, *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def bad(self, arguments, message, code=1, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, code, result)
        self.assertIn(message, result.stderr)
        self.assertIn("tl: error: ", result.stderr)
        return result

    def patched(self, name, old, new):
        """A copy of the model with some bytes changed."""
        with open(self.model, "rb") as file:
            whole = file.read()
        self.assertEqual(whole.count(old), 1, old)
        with open(self.path(name), "wb") as file:
            file.write(whole.replace(old, new))
        return self.path(name)


class Generate(WithModel):
    def text(self, *arguments, **options):
        return self.good("generate", "--quiet", *arguments, **options).stdout

    def test_writes_what_comes_after_a_prompt(self):
        result = self.good("generate", "-p", "hello", "-n", "12", "--seed", "1")
        self.assertTrue(result.stdout.endswith("\n"))
        self.assertRegex(result.stderr, r"prompt: \d+ tokens in .* tokens/s\), answer: 12 tokens in .*, length\n")
        self.assertRegex(result.stderr, r"(?m)^memory: model 2\.\d+ MiB, cache .*, peak .*, all returned \(cpu\)$")
        self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_a_seed_decides(self):
        first = self.text("-p", "hello", "-n", "12", "--seed", "5")
        self.assertEqual(self.text("-p", "hello", "-n", "12", "--seed", "5"), first)
        self.assertNotEqual(self.text("-p", "hello", "-n", "12", "--seed", "6"), first)
        self.assertNotEqual(self.text("-p", "hello", "-n", "12", "-t", "5", "--top-k", "0", "--min-p", "0"),
                            self.text("-p", "hello", "-n", "12", "-t", "5", "--top-k", "0", "--min-p", "0"))

    def test_the_prompt_may_come_from_a_pipe(self):
        greedy = self.text("-p", "hello", "-n", "9", "--greedy")
        self.assertEqual(self.text("-n", "9", "--temperature", "0", input="hello\n"), greedy)
        self.assertEqual(self.text("-n", "9", "--greedy", "--no-stream", input="hello"), greedy)
        self.assertEqual(self.text("-n", "9", "--greedy", "--threads", "1", "--chunk", "2", input="hello"), greedy)

    def test_json_tells_all(self):
        data = json.loads(self.text("-p", "hello", "-n", "7", "--greedy", "--json", "--ignore-end"))
        self.assertEqual((data["finish_reason"], len(data["tokens"]), data["device"]), ("length", 7, "cpu"))
        self.assertEqual(data["text"] + "\n", self.text("-p", "hello", "-n", "7", "--greedy", "--ignore-end"))
        numbers = data["timings"]
        self.assertEqual(numbers["generated_tokens"], 7)
        self.assertGreater(numbers["prompt_tokens_per_second"], 0)
        self.assertGreater(numbers["answer_tokens_per_second"], 0)
        self.assertTrue(data["memory"]["returned"])
        self.assertGreaterEqual(data["memory"]["peak"], data["memory"]["model"] + data["memory"]["cache"])

    def test_several_at_once_are_as_one_by_one(self):
        prompts = ["one", "and two", "three and more " * 3]
        alone = [json.loads(self.text("-p", each, "-n", "8", "--greedy", "--json"))["tokens"] for each in prompts]
        for arguments, options in (([x for each in prompts for x in ("-p", each)], {}),
                                   (["--lines", "--parallel", "2"], {"input": "\n".join(prompts) + "\n"})):
            data = json.loads(self.text(*arguments, "-n", "8", "--greedy", "--json", **options))
            self.assertEqual([each["tokens"] for each in data["results"]], alone)
            self.assertEqual([each["prompt"] for each in data["results"]], prompts)
        text = self.text("-p", "one", "-p", "two\n", "-n", "4", "--greedy")
        self.assertRegex(text, r'(?s)^1: "one"\n.*\n\n2: "two\\n"\n.*\n$')

    def test_a_prefix_that_prompts_share_is_computed_once(self):
        start = "the same words again and again, " * 8
        alone = [json.loads(self.text("-p", start + x, "-n", "6", "--greedy", "--json"))["tokens"] for x in "ab"]
        data = json.loads(self.text("-p", start + "a", "-p", start + "b", "-n", "6", "--greedy", "--json"))
        self.assertEqual([each["tokens"] for each in data["results"]], alone)
        self.assertGreater(data["results"][0]["timings"]["reused_tokens"], 64)

    def test_stop_strings_end_the_text(self):
        whole = self.text("-p", "hello", "-n", "40", "--greedy", "--ignore-end").rstrip("\n")
        middle = len(whole) // 2
        stop = whole[middle:middle + 5]
        cut = json.loads(self.text("-p", "hello", "-n", "40", "--greedy", "--ignore-end", "--json", "--stop", "xyzzy",
                                   "--stop", stop))
        self.assertEqual(cut["finish_reason"], "stop string")
        self.assertEqual(cut["text"], whole[:whole.index(stop)])

    def test_a_full_context_ends_or_shifts(self):
        arguments = ["-p", "hello", "--context", "48", "-n", "100", "--greedy", "--ignore-end", "--json"]
        ended = json.loads(self.text(*arguments))
        self.assertEqual(ended["finish_reason"], "length")
        self.assertEqual(len(ended["tokens"]) + ended["timings"]["prompt_tokens"], 49)
        shifted = json.loads(self.text(*arguments, "--context-policy", "shift"))
        self.assertEqual(len(shifted["tokens"]), 100)
        self.assertGreater(shifted["timings"]["shifts"], 0)
        self.assertEqual(shifted["tokens"][:len(ended["tokens"])], ended["tokens"])

    def test_messages_of_a_chat(self):
        raw = json.loads(self.text("-p", "hello", "-n", "2", "--json", "--raw"))
        chat = json.loads(self.text("-p", "hello", "-n", "2", "--json", "--chat", "--template", "chatml", "--system",
                                    "Be brief."))
        self.assertGreater(chat["timings"]["prompt_tokens"], raw["timings"]["prompt_tokens"] + 20)

    def test_caches_of_every_type(self):
        for kind in ("f32", "bf16", "q8_0"):
            data = json.loads(self.text("-p", "hello", "-n", "8", "--greedy", "--json", "--cache-type", kind))
            self.assertEqual(len(data["tokens"]), 8, kind)

    def test_the_memory_check_reports_that_all_came_back(self):
        result = self.good("generate", "-p", "hello", "-n", "4", env={"TL_MEMORY_CHECK": "1"})
        self.assertRegex(result.stderr, r"\n=== CPU Memory Check: Before Execution ===\nCPU memory allocated: "
                                        r"\d+\.\d\d MB\n={42}\n\n")
        self.assertRegex(result.stderr, r"\n=== CPU Memory Check: After Execution ===\nCPU memory allocated: "
                                        r"\d+\.\d\d MB\nMemory change: \+0\.00 MB\n\nBuffer Pool Stats:\n"
                                        r"  Pooled buffers: \d+\n  Pool memory: \d+\.\d\d MB\n  Reuse rate: \d+\.\d%\n"
                                        r"\n✅ No memory leaks detected\n   All CPU memory properly released.\n={41}\n")

    def test_quiet_is_quiet(self):
        self.assertEqual(self.good("generate", "-p", "hello", "-n", "4", "--quiet").stderr, "")


class BadInput(WithModel):
    def expect(self, message, *arguments, code=1, model=None, **options):
        """Every failure leaves nothing on the device, in one line that says what it was."""
        env = options.pop("env", {}) | {"TL_MEMORY_CHECK": "1"}
        result = self.bad(["generate", model or self.model, *arguments], message, code, env=env, **options)
        self.assertNotIn("leak detected", result.stderr)
        self.assertEqual(len(re.findall("tl: error: ", result.stderr)), 1, result.stderr)
        self.assertNotIn("terminate", result.stderr)

    def test_models_that_are_broken(self):
        with open(self.model, "rb") as file:
            whole = file.read()
        for size, message in ((100, "byte"), (len(whole) // 2, "is cut short"), (len(whole) - 1, "is cut short")):
            with open(self.path("cut.gguf"), "wb") as file:
                file.write(whole[:size])
            self.expect("cut.gguf", "-p", "x", model=self.path("cut.gguf"))
        del message
        self.expect("has no tensor 'blk.1.attn_v.weight'", "-p", "x",
                    model=self.patched("missing.gguf", b"blk.1.attn_v.weight", b"blk.1.attn_w.weight"))
        key = b"llama.feed_forward_length" + struct.pack("<I", 4)
        self.expect("ffn_", "-p", "x",
                    model=self.patched("shape.gguf", key + struct.pack("<I", 512), key + struct.pack("<I", 256)))
        self.expect("architecture", "-p", "x",
                    model=self.patched("arch.gguf", cli_test.gguf_string("general.architecture") + struct.pack("<I", 8) +
                                       cli_test.gguf_string("llama"),
                                       cli_test.gguf_string("general.architecture") + struct.pack("<I", 8) +
                                       cli_test.gguf_string("lamma")))
        self.expect("No such file", "-p", "x", model=self.path("none.gguf"))
        self.expect("GGUF", "-p", "x", model=__file__)

    def test_a_vocabulary_of_another_size(self):
        name = cli_test.gguf_string("token_embd.weight")
        self.expect("512", "-p", "x", model=self.patched(
            "vocabulary.gguf", name + struct.pack("<IQQ", 2, 256, 512), name + struct.pack("<IQQ", 2, 256, 500)))

    def test_prompts_that_cannot_be_used(self):
        self.expect("the prompt is empty", "-p", "")
        self.expect("the prompt is empty", input="")
        self.expect("the prompt is empty", input="\n")
        self.expect("the prompt is empty", "--lines", input="\n\n")
        self.expect("generate: the text is not UTF-8: byte 2 is 0xff", input="ab\udcffc", errors="surrogateescape")
        self.expect("tokens, and the context holds 16", "-p", "word " * 30, "--context", "16")
        self.expect("has no chat template; --template takes one of chatml", "-p", "x", "--chat")
        self.expect("there is no template 'none'; there are chatml", "-p", "x", "--chat", "--template", "none")

    def test_one_bad_prompt_of_several(self):
        result = self.bad(["generate", self.model, "-p", "good", "-p", "word " * 30, "--context", "32", "-n", "4",
                           "--greedy"], "prompt 2: generate: the prompt has ")
        self.assertRegex(result.stdout, r'(?s)^1: "good"\n.+\n\n2: ')

    def test_devices_that_are_not_there(self):
        self.expect("CUDA", "-p", "x", "--device", "cuda:0")
        self.expect("rocm:9", "-p", "x", "--device", "rocm:9", env=simulated("rocm"))

    def test_options_that_cannot_be(self):
        for arguments, message in ((["--top-p", "7"], "--top-p"), (["-t", "-1"], "--temperature"),
                                   (["-n", "-5"], "--max-tokens"), (["--seed", "x"], "--seed"),
                                   (["--cache-type", "f8"], "--cache-type"), (["--device", "toaster"], "toaster"),
                                   (["--context", "-1"], "--context"), (["--threads", "5000"], "--threads"),
                                   (["--logit-bias", "12"], "'12' is not ID=VALUE"), (["--parallel", "-1"], "--parallel"),
                                   (["--context-policy", "never"], "--context-policy"),
                                   (["--system", "x"], "--chat"), (["--chat", "--raw"], "--raw")):
            self.bad(["generate", self.model, "-p", "x", *arguments], message, code=2)
        self.expect("longer than the 2048 that the model was trained for", "-p", "x", "--context", "4096")
        self.expect("logit_bias", "-p", "x", "--logit-bias", "512=1")
        self.expect("a stop string is empty", "-p", "x", "--stop", "")

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for more in ([], ["--json"], ["-p", "second"]):
                result = subprocess.run([cli_test.TL, "generate", self.model, "-p", "hello", "-n", "50", *more],
                                        stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
                self.assertEqual(result.returncode, 1, more)
                self.assertIn("could not be written", result.stderr)
        process = subprocess.Popen([cli_test.TL, "generate", self.model, "-p", "x", "-n", "-1", "--ignore-end",
                                    "--context-policy", "shift"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()  # `| head -c 10`
        error = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(60), 1)
        self.assertIn("could not be written", error)

    def test_ctrl_c_in_the_middle(self):
        process = subprocess.Popen([cli_test.TL, "generate", self.model, "-p", "hello", "-n", "-1", "--ignore-end",
                                    "--context-policy", "shift"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=os.environ | {"TL_MEMORY_CHECK": "1"})
        self.assertTrue(process.stdout.read(20))
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("tl: error: generate: it was interrupted\n", error.decode())
        self.assertIn("No memory leaks detected", error.decode())
        self.assertRegex(error.decode(), r"answer: \d+ tokens in .*, cancelled\n")
        self.assertTrue(out.endswith(b"\n"))


class Logits(WithModel):
    def logits(self, *arguments, **options):
        out = self.path("out.npy")
        self.good("logits", "-o", out, *arguments, **options)
        with open(out, "rb") as file:
            data = file.read()
        self.assertTrue(data.startswith(b"\x93NUMPY"))
        size = struct.unpack("<H", data[8:10])[0]
        shape = tuple(int(x) for x in re.search(rb"'shape': \((\d+), (\d+)\)", data).groups())
        self.assertIn(b"'<f4'", data)
        return shape, struct.unpack(f"<{shape[0] * shape[1]}f", data[10 + size:])

    def assertNear(self, first, second):
        self.assertEqual(first[0], second[0])
        self.assertLess(max(abs(x - y) for x, y in zip(first[1], second[1])), 1e-2)

    def test_every_position_has_a_row_however_it_is_cut(self):
        ids = "1,300,301,302,40,50,60"
        shape, values = self.logits("--tokens", ids)
        self.assertEqual(shape, (7, 512))
        self.assertGreater(max(values), min(values))
        self.assertNear(self.logits("--tokens", ids, "--chunk", "3"), (shape, values))
        self.assertNear(self.logits("--tokens", "[1 300 301 302 40 50 60]", "--step"), (shape, values))

    def test_text_is_tokenized(self):
        ids = run("tokenize", self.model, "-p", "hello").stdout
        self.assertEqual(self.logits("-p", "hello"), self.logits("--tokens", ids))

    def test_what_cannot_be_used_is_an_error(self):
        out = self.path("none.npy")
        for arguments, message in ((["--tokens", "1,512"], "token 512"), (["--tokens", "1,x"], "token id at byte 2"),
                                   ([], "there are no tokens"), (["--tokens", ","], "there are no tokens"),
                                   (["--tokens", "1 2 3", "--context", "2"], "the context holds 2")):
            self.bad(["logits", self.model, "-o", out, *arguments], message)
            self.assertFalse(os.path.exists(out))
        self.bad(["logits", self.model, "--tokens", "1", "-o", self.path("no/x.npy")], "x.npy")
        self.bad(["logits", self.model, "--tokens", "1"], "--out is required", code=2)


class Bench(WithModel):
    def test_a_table(self):
        result = self.good("bench", "-p", "16,32", "-n", "4", "-d", "0,8", "-r", "2")
        rows = result.stdout.splitlines()
        self.assertRegex(rows[0], r"^model +size +params +device +threads +test +tokens/s +\+/-$")
        self.assertEqual([re.search(r"(pp|tg)\d+( @ d\d+)?", row).group() for row in rows[1:]],
                         ["pp16", "pp32", "tg4", "pp16 @ d8", "pp32 @ d8", "tg4 @ d8"])
        self.assertIn("memory: model ", result.stderr)

    def test_json_of_two_models(self):
        data = json.loads(self.good("bench", self.model, "-p", "8", "-n", "2", "-r", "3", "--json", "--quiet").stdout)
        self.assertEqual([model["model"] for model in data], [self.model] * 2)
        for model in data:
            self.assertEqual([each["test"] for each in model["tests"]], ["pp8", "tg2"])
            self.assertTrue(model["memory"]["returned"])
            for each in model["tests"]:
                self.assertEqual(len(each["seconds"]), 3)
                self.assertGreater(each["tokens_per_second"], 0)

    def test_depths_beyond_what_the_model_was_trained_for(self):
        result = self.good("bench", "-p", "0", "-n", "2", "-d", "2100", "-r", "1")
        self.assertIn("tg2 @ d2100", result.stdout)

    def test_what_cannot_be_measured(self):
        self.bad(["bench", self.model, "-p", "0", "-n", "0"], "there is nothing to measure")
        self.bad(["bench", self.model, "-p", "-1"], "--prompt", code=2)


class Chat(WithModel):
    OPTIONS = ["-n", "6", "--seed", "3", "--ignore-end"]

    def chat(self, *lines, options=()):
        template = [] if "--template" in options else ["--template", "chatml"]
        return self.good("chat", *self.OPTIONS, *template, *options, input="\n".join(lines) + "\n")

    def test_a_line_is_a_message(self):
        result = self.chat("hello", "", "again")
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertNotIn(">", result.stdout[:1])
        self.assertIn("all returned", result.stderr)
        once = self.chat("hello").stdout
        self.assertTrue(result.stdout.startswith(once))
        self.assertGreater(len(result.stdout), len(once))

    def test_only_what_is_new_is_computed(self):
        text = self.chat("a long first message " * 5, "/stats", "second", "/stats", "/retry", "/stats",
                         options=["--template", "zephyr"]).stdout  # whose turns end with a control token
        held = [int(each) for each in re.findall(r"context +(\d+) of", text)]
        found = re.findall(r"prompt +(\d+) tokens, (\d+) of them from the cache, (\d+) computed", text)
        prompts, reused, computed = ([int(each[i]) for each in found] for i in range(3))
        self.assertEqual([a + b for a, b in zip(reused, computed)], prompts)
        self.assertEqual(reused, [0, held[0], prompts[1] - 1])  # all that was there, whatever the answer's tokens

    def test_a_retry_computes_one_token_and_says_something_else(self):
        text = self.chat("hello", "/retry", "/stats", options=["-t", "3", "--min-p", "0", "--top-k", "0"]).stdout
        answers = text.split("context")[0]
        self.assertRegex(text, r"tokens, \d+ of them from the cache, 1 computed")
        self.assertNotEqual(answers[:len(answers) // 2], answers[len(answers) // 2:])

    def test_branches_save_and_load(self):
        first, second = self.path("1.json"), self.path("2.json")
        self.chat("/system Be brief.", "one", f"/save {first}", "/fork", "two", f"/save {second}", "/switch 1",
                  "/system Be long.", "/reset", f"/save {self.path('3.json')}")
        with open(first, encoding="utf-8") as file:
            saved = json.load(file)
        with open(second, encoding="utf-8") as file:
            longer = json.load(file)
        self.assertEqual([each["role"] for each in saved["messages"]], ["user", "assistant"])
        self.assertEqual((saved["system"], saved["messages"]), ("Be brief.", longer["messages"][:2]))
        self.assertEqual(longer["messages"][2], {"role": "user", "content": "two"})
        with open(self.path("3.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"system": "Be long.", "messages": []})
        # Loaded in another process it goes on the same way.
        loaded = self.chat(f"/load {first}", "two").stdout
        self.assertEqual(loaded.rstrip("\n"), longer["messages"][3]["content"].rstrip("\n"))

    def test_commands(self):
        for name in ("/help", "/system", "/reset", "/fork", "/switch", "/save", "/load", "/stats", "/retry", "/quit"):
            self.assertIn(name, self.chat("/help").stdout)
        self.assertEqual(self.chat("/quit", "hello").stdout, "")
        self.assertNotEqual(self.chat("//quit").stdout, "")
        one, joined = self.path("a.json"), self.path("b.json")
        self.chat("two\\", "lines", f"/save {joined}", "/reset", "x", f"/save {one}")
        with open(joined, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["messages"][0]["content"], "two\nlines")

    def test_what_goes_wrong_in_a_script_ends_it(self):
        for lines, message in ((["/halp"], "there is no command '/halp'; did you mean '/help'?"),
                               (["/switch 2"], "there is no chat 2; there are 1"),
                               (["/switch x"], "/switch needs a number from 1 to 1"),
                               (["/save"], "/save needs a file"), (["/load /none"], "No such file"),
                               ([f"/load {__file__}"], "is no saved chat"), (["/save /none/x"], "could not be written"),
                               (["/retry"], "there is no answer yet"), (["a\udcff"], "not UTF-8: byte 1 is 0xff"),
                               (["word " * 600], "tokens, and the context holds 2048")):
            self.bad(["chat", self.model, *self.OPTIONS, "--template", "chatml"], message, input="\n".join(lines + ["hello"]) + "\n",
                     errors="surrogateescape")
        self.bad(["chat", self.model], "has no chat template", input="hello\n")

    def test_a_full_context_forgets_the_oldest_turns_when_asked(self):
        lines = ["the first message", "the second message", "the third message", "the fourth", f"/save {self.path('s')}"]
        result = run("chat", self.model, *self.OPTIONS, "--template", "chatml", "--context", "128", input="\n".join(lines) + "\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/reset begins a new one", result.stderr)
        self.chat(*lines, options=["--context", "128", "--context-policy", "shift"])
        with open(self.path("s"), encoding="utf-8") as file:
            messages = json.load(file)["messages"]
        self.assertLess(len(messages), 8)
        self.assertEqual(messages[-2]["content"], "the fourth")


class Terminal:
    """A chat at a terminal, typed into."""

    def __init__(self, *arguments):
        self.mine, theirs = pty.openpty()
        env = os.environ | {"TERM": "xterm", "LANG": "C.UTF-8"}
        env.pop("NO_COLOR", None)
        self.process = subprocess.Popen([cli_test.TL, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env,
                                        start_new_session=True,
                                        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
        os.close(theirs)
        self.shown = ""

    def until(self, pattern, seconds=60):
        """Reads until the pattern is there, and takes away what was read."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.shown):
            if time.monotonic() > end or not select.select([self.mine], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"waited for {pattern!r}, there is {self.shown!r}")
            try:
                data = os.read(self.mine, 4096)
            except OSError:
                data = b""  # the program has ended
            if not data:
                raise AssertionError(f"the program ended; {pattern!r} is not in {self.shown!r}")
            self.shown += data.decode(errors="replace")
        found = re.search(pattern, self.shown)
        before, self.shown = self.shown[:found.end()], self.shown[found.end():]
        return before

    def type(self, text):
        os.write(self.mine, text.encode())

    def close(self):
        code = None
        try:
            code = self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.mine)
        return code


class ChatAtATerminal(WithModel):
    def test_typed_lines_interrupts_and_the_end(self):
        terminal = Terminal("chat", self.model, "--template", "chatml", "--seed", "1", "--ignore-end",
                            "--context-policy", "shift", "--context", "256")
        terminal.until("/help for help")
        terminal.until("> ")
        terminal.type("/system Be brief, g\u00f6del.\n")
        terminal.until("system: Be brief, g\u00f6del.")
        terminal.until("> ")
        terminal.type("never sent\x03")  # dropped at the prompt
        terminal.until("> ")
        terminal.type("hello\n")  # an answer without an end
        terminal.until("(?s)hello.{60}")
        terminal.type("\x03")
        terminal.until("the answer was stopped")
        terminal.until("> ")
        terminal.type("/stats\n")
        self.assertIn("of 256 positions", terminal.until("answer +[0-9,]+ tokens"))
        terminal.until("> ")
        terminal.type("\x10\x10\n")  # two lines back in the history: hello
        terminal.until("(?s)hello.{60}")
        terminal.type("\x03")
        terminal.until("the answer was stopped")
        terminal.until("> ")
        terminal.type("/switch 7\n")
        terminal.until("there is no chat 7")  # and it goes on
        terminal.until("> ")
        terminal.type("\x04")
        terminal.until("all returned")
        self.assertEqual(terminal.close(), 0)


@WHOLE_PACK
class OnSimulatedGpus(WithModel):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.path("tiny.gguf")
        subprocess.run([sys.executable, MAKE_MODEL, "--layers", "1", "--width", "64", "--vocabulary", "300",
                        "--feed-forward", "64", "--heads", "2", "--kv-heads", "1", "--drawn", "5000", cls.model],
                       check=True, capture_output=True)

    def test_the_same_text_as_on_the_cpu(self):
        here = json.loads(self.good("generate", "-p", "hi", "-n", "5", "--greedy", "--json").stdout)
        for vendor in ("cuda", "rocm"):
            result = self.good("generate", "-p", "hi", "-n", "5", "--greedy", "--json", "--device", f"{vendor}:0",
                               env=simulated(vendor) | {"TL_MEMORY_CHECK": "1"})
            there = json.loads(result.stdout)
            self.assertEqual((there["device"], there["tokens"]), (f"{vendor}:0", here["tokens"]))
            self.assertIn("=== GPU Memory Check: After Execution ===", result.stderr)
            self.assertIn("All GPU memory properly released.", result.stderr)

    def test_too_little_memory_is_an_error_wherever_it_shows(self):
        failed = 0
        for kilobytes in (1, 64, 512, 2048, 4096, 6144):
            result = run("generate", self.model, "-p", "hi", "-n", "3", "--device", "cuda:0",
                         env=simulated("cuda") | {"TL_MEMORY_CHECK": "1", "SIMGPU_MEMORY": str(kilobytes << 10)})
            self.assertIn(result.returncode, (0, 1), result.stderr)
            self.assertNotIn("leak detected", result.stderr)
            if result.returncode == 1:
                failed += 1
                self.assertRegex(result.stderr, r"tl: error: .*(has no room for|out of memory)")
        self.assertGreater(failed, 0)


if __name__ == "__main__":
    cli_test.TL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
