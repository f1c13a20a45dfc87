#!/usr/bin/env python3
"""Runs the built `tl` the way a person or a script would. Usage: cli_test.py PATH_TO_TL

The environment names drivers that do not exist, so that this machine's own do not matter. TL_TEST_SIM is the folder of
the simulated GPU's libraries, with TL_TEST_SIM_PACK its kernels; TL_TEST_SANITIZE is not empty in a build that is slow.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

TL = None


def run(*arguments, env=None, **options):
    return subprocess.run([TL, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(env or {})}, **options)


def simulated(vendor, lanes=32):
    folder = os.environ["TL_TEST_SIM"]
    env = {"SIMGPU_WARP": str(lanes), "TL_KERNEL_PACKS": os.environ["TL_TEST_SIM_PACK"]}
    if vendor == "cuda":
        return env | {"TL_CUDA_DRIVER": f"{folder}/libsimcuda.so", "TL_NVRTC": f"{folder}/libsimnvrtc.so"}
    return env | {"TL_HIP_DRIVER": f"{folder}/libsimhip.so", "TL_HIPRTC": f"{folder}/libsimhiprtc.so"}


# Under ThreadSanitizer the simulated GPU's pack has the two modules whose tests run there; the others would be
# compiled here, for minutes.
PACKED = os.environ["TL_TEST_SIM_MODULES"].split(",")
WHOLE_PACK = unittest.skipIf(len(PACKED) == 2, "the simulated GPU has two modules here")


class Version(unittest.TestCase):
    def test_prints_the_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^tl \d+\.\d+\.\d+\n$")

    @unittest.skipIf(os.environ.get("TL_TEST_SANITIZE"), "a sanitizer takes its own time to start")
    def test_starts_in_under_ten_milliseconds(self):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            run("--version")
            times.append(time.perf_counter() - start)
        self.assertLess(min(times), 0.010)  # the best: the rest is the machine being busy

    def test_opens_no_gpu_library_and_starts_no_thread(self):
        with tempfile.TemporaryDirectory() as folder:
            run("--version", env={"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{folder}/log"})
            logs = [open(os.path.join(folder, name), encoding="utf-8").read() for name in os.listdir(folder)]
        text = "\n".join(logs)
        self.assertIn("libstdc++", text)  # the log is really there
        self.assertNotRegex(text, r"(?i)libcuda|nvrtc|amdhip|hiprtc|cublas|rocblas|simcuda|simhip|no-such-library")
        self.assertNotRegex(text, r"libhwy")  # it would measure the clock for 4 ms

    def test_the_log_would_show_a_gpu_library(self):
        """The check above can fail: the same log of a command that looks for devices names the library it opens."""
        with tempfile.TemporaryDirectory() as folder:
            run("devices", env=simulated("cuda") | {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{folder}/log"})
            text = "\n".join(open(os.path.join(folder, name), encoding="utf-8").read() for name in os.listdir(folder))
        self.assertIn("libsimcuda", text)


class Usage(unittest.TestCase):
    def check(self, arguments, message):
        result = run(*arguments)
        self.assertEqual(result.returncode, 2, result)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("tl: error: "), result.stderr)
        self.assertIn(message, result.stderr)

    def test_unknown_commands_suggest_the_nearest(self):
        self.check(["devcies"], "there is no command 'devcies'; did you mean 'devices'?")
        self.check(["demo", "memroy"], "there is no command 'memroy'; did you mean 'memory'?")

    def test_a_word_like_none_suggests_nothing(self):
        self.check(["xylophone"], "there is no command 'xylophone'\n")

    def test_unknown_flags_suggest_the_nearest(self):
        self.check(["devices", "--jsno"], "there is no option '--jsno'; did you mean '--json'?")
        self.check(["demo", "memory", "--byte=3"], "there is no option '--byte'; did you mean '--bytes'?")
        self.check(["--verzion"], "there is no option '--verzion'; did you mean '--version'?")

    def test_bad_values_are_usage_errors(self):
        self.check(["demo", "memory", "--bytes", "many"], "'many' is not a number of bytes")
        self.check(["demo", "memory", "--bytes", "0"], "must be at least 1")
        self.check(["demo", "memory", "--bytes", "99999999999999999999"], "more than 64 bits")
        self.check(["demo", "memory", "--bytes", "-5"], "'-5' is not a number of bytes")
        self.check(["demo", "memory", "--clones", "0"], "--clones")
        self.check(["demo", "memory", "--device", "toaster"], "toaster")
        self.check(["demo", "memory", "--bytes"], "--bytes")

    def test_a_command_is_needed(self):
        for arguments in ([], ["demo"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, result)
            self.assertIn("devices" if not arguments else "subcommand", result.stderr)

    def test_help_names_the_commands_and_exits_0(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("devices", result.stdout)
        result = run("demo", "memory", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--clones", result.stdout)


class Programs(unittest.TestCase):
    """What `tl run` does beside running; programs themselves are in tests/lang/scripts."""

    PROGRAM = "main { let a = ones([64, 64]) let b = a b[0, 0] = 5 print(sum(b)) }"

    def run_program(self, program, *flags, **env):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prog.tl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            return run("run", "-q", "--device", "cpu", *flags, path, env=env)

    def test_no_device_is_opened_without_a_tensor(self):
        with tempfile.TemporaryDirectory() as folder:
            log = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": f"{folder}/log"}
            path = os.path.join(folder, "prog.tl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('main { print("hi") }')
            result = run("run", "-q", path, env=simulated("cuda") | log)
            text = "\n".join(open(os.path.join(folder, name), encoding="utf-8").read()
                             for name in os.listdir(folder) if name.startswith("log"))
        self.assertEqual(result.stdout, "hi\n")
        self.assertNotIn("libsimcuda", text)

    def test_memory_can_be_followed(self):
        result = self.run_program(self.PROGRAM, TL_DEBUG_MEMORY="1")
        self.assertEqual((result.returncode, result.stdout), (0, "4100\n"))
        for event in (r"alloc block \d+, 16384 bytes on cpu at .*prog\.tl:1", r"share 16384 bytes on cpu at .*prog\.tl:1",
                      r"detach block \d+, 16384 bytes on cpu from block \d+", r"return block \d+, 16384 bytes on cpu"):
            self.assertRegex(result.stderr, r"(?m)^\[GPU_MEMORY\] " + event)
        counts = [result.stderr.count(f"[GPU_MEMORY] {kind} ") for kind in ("alloc", "return")]
        self.assertEqual(counts[0], counts[1])

    def test_builtins_are_timed(self):
        result = self.run_program(self.PROGRAM, TL_PERF="1")
        self.assertRegex(result.stderr, r"(?m)^\[PERF\] ones\(\): \d+\.\d{3}ms$")
        self.assertRegex(result.stderr, r"(?m)^\[PERF\] sum\(f32\): \d+\.\d{3}ms$")

    def test_the_pool_tells_what_it_did(self):
        result = self.run_program(self.PROGRAM, TL_BUFFER_STATS="1", TL_BUFFER_MAX_MB="1")
        self.assertRegex(result.stderr, r"=== Buffer Pool Stats: Program Execution ===\nPooled buffers: \d+\n")
        self.assertRegex(result.stderr, r"Reuse rate: \d+\.\d%")
        result = self.run_program(self.PROGRAM, TL_BUFFER_MAX_MB="many")
        self.assertEqual(result.returncode, 1)
        self.assertIn("TL_BUFFER_MAX_MB is 'many'", result.stderr)

    def test_bench_blocks_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "prog.tl")
            with open(path, "w", encoding="utf-8") as file:
                file.write("bench quick { let x = 1 + 1 } bench sums { let s = sum(ones([8])) }")
            result = run("bench", "--json", "-r", "2", "--device", "cpu", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = json.loads(result.stdout)
            self.assertEqual([row["bench"] for row in rows], ["quick", "sums"])
            for row in rows:
                self.assertLessEqual(row["seconds_min"], row["seconds_median"])
            with open(path, "w", encoding="utf-8") as file:
                file.write("main { }")
            result = run("bench", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn("has no bench blocks", result.stderr)

    def test_files_can_be_refused(self):
        for program in ('main { print(read_text("/etc/passwd")) }', 'main { let f = write_text f("x", "y") }',
                        'main { "x".remove_file() }', 'import "other.tl" main { }'):
            result = self.run_program(program, "--no-files")
            self.assertEqual(result.returncode, 1, program)
            self.assertIn("this program may not use files", result.stderr)
        self.assertEqual(self.run_program(self.PROGRAM, "--no-files").stdout, "4100\n")


class Devices(unittest.TestCase):
    FIELDS = {"device", "kind", "index", "name", "architecture", "memory_total", "memory_free", "driver_version",
              "runtime_version", "math_libraries", "warp_width"}

    def json(self, *arguments, env=None):
        result = run("devices", "--json", *arguments, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_without_a_gpu_it_explains_and_exits_0(self):
        result = run("devices")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^cpu ")
        self.assertRegex(result.stdout, r"(?m)^no CUDA: .*was not found")
        self.assertRegex(result.stdout, r"(?m)^no ROCm: .*was not found")

    def test_json_without_a_gpu(self):
        data = self.json()
        self.assertEqual([d["device"] for d in data["devices"]], ["cpu"])
        cpu = data["devices"][0]
        self.assertLessEqual(self.FIELDS, set(cpu))
        self.assertGreater(cpu["memory_total"], cpu["memory_free"])
        self.assertGreater(cpu["memory_free"], 0)
        self.assertEqual([d["kind"] for d in data["drivers"]], ["cuda", "rocm"])
        for driver in data["drivers"]:
            self.assertEqual(driver["devices"], 0)
            self.assertNotEqual(driver["reason"], "")

    def test_json_with_a_simulated_gpu(self):
        for vendor, lanes in (("cuda", 32), ("cuda", 64), ("rocm", 32), ("rocm", 64)):
            with self.subTest(vendor=vendor, lanes=lanes):
                data = self.json(env=simulated(vendor, lanes))
                gpus = [d for d in data["devices"] if d["kind"] == vendor]
                self.assertGreaterEqual(len(gpus), 1)
                self.assertLessEqual(self.FIELDS, set(gpus[0]))
                self.assertEqual(gpus[0]["device"], f"{vendor}:0")
                self.assertEqual(gpus[0]["warp_width"], lanes)
                self.assertNotEqual(gpus[0]["driver_version"], "")
                driver = next(d for d in data["drivers"] if d["kind"] == vendor)
                self.assertEqual(driver["reason"], "")
                self.assertEqual(driver["devices"], len(gpus))

    @WHOLE_PACK
    def test_modules_are_loaded_and_listed(self):
        for vendor in ("cuda", "rocm"):
            with self.subTest(vendor=vendor):
                data = self.json("--modules", env=simulated(vendor))
                modules = {m["name"]: m for d in data["devices"] if d["kind"] == vendor for m in d["modules"]}
                self.assertEqual(set(PACKED), set(modules))
                for module in modules.values():
                    self.assertNotIn("problem", module)
                    self.assertEqual(module["origin"], "from a pack")
                    self.assertGreater(module["bytes"], 0)
                result = run("devices", "--modules", env=simulated(vendor))
                self.assertRegex(result.stdout, rf"kernel modules on {vendor}:0")

    def test_a_pipe_gets_no_colour(self):
        self.assertNotIn("\x1b", run("devices").stdout)

    def test_a_closed_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TL, "devices"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn("could not be written", result.stderr)


class DemoMemory(unittest.TestCase):
    def demo(self, *arguments, env=None):
        result = run("demo", "memory", *arguments, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_small_on_the_cpu(self):
        text = self.demo("--bytes", "1MiB", "--clones", "10")
        self.assertRegex(text, r"take 1\.00 MiB")
        self.assertRegex(text, r"clone it 10 times .* 11 ")  # the original and ten clones own it
        self.assertIn("Memory report", text)
        self.assertTrue(text.endswith("everything was returned\n"), text)
        # The clones stand where the tensor stands; the written one does not.
        addresses = re.findall(r"(?m)(0x[0-9a-f]+)$", text)
        self.assertEqual(len(addresses), 4, text)
        self.assertEqual(len(set(addresses[:3])), 1, text)
        self.assertNotEqual(addresses[3], addresses[0])

    def test_the_smallest(self):
        self.demo("--bytes", "1", "--clones", "1")

    def test_on_simulated_gpus(self):
        for vendor in ("cuda", "rocm"):
            with self.subTest(vendor=vendor):
                text = self.demo("--bytes", "64KiB", "--clones", "1000", env=simulated(vendor))
                self.assertIn(f" on {vendor}:0: ", text)  # the best device is the GPU
                # The bytes before and after what is written, or all of them: never through the host.
                self.assertRegex(text, r"filled by (1 copy|2 copies) on the device")
                text = self.demo("--device", "cpu", "--bytes", "64KiB", env=simulated(vendor))
                self.assertIn(" on cpu: ", text)

    def test_a_device_that_is_not_there_is_an_error(self):
        result = run("demo", "memory", "--device", "cuda:0")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^tl: error: .*CUDA.*was not found")
        result = run("demo", "memory", "--device", "rocm:9", env=simulated("rocm"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^tl: error: .*rocm:9")

    def test_too_much_memory_is_an_error_with_numbers(self):
        result = run("demo", "memory", "--device", "cuda", "--bytes", "4PiB", env=simulated("cuda"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^tl: error: .*cuda:0 has no room for 4\.00 PiB")


class DemoTensors(unittest.TestCase):
    def demo(self, *arguments, env=None):
        result = run("demo", "tensors", *arguments, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_on_the_cpu(self):
        text = self.demo()
        self.assertIn("[[ 1.,  5.,  9.],\n [ 2.,  6., 10.]]\nTensor[[2, 3], f32]\n", text)
        self.assertIn("48 B in use, for both", text)  # the view takes nothing
        self.assertIn("memory of its own: 96 B in use, then 144 B", text)
        self.assertIn("\n [-1., -1., -1., -1.],\n", text)
        self.assertIn("\n[4., 5., 6., 7.]\n", text)  # the original has its row
        self.assertTrue(text.endswith("everything was returned\n"), text)

    @WHOLE_PACK
    def test_on_simulated_gpus(self):
        # Up to the product of matrices, whose additions go in another order, the numbers are those of the CPU.
        def numbers(text):
            return re.findall(r"(?m)^ ?\[.*$", text.partition("softmax")[0])

        here = self.demo()
        for vendor in ("cuda", "rocm"):
            with self.subTest(vendor=vendor):
                there = self.demo(env=simulated(vendor))
                self.assertIn(f" on {vendor}:0: ", there)
                self.assertIn(f"Tensor[[64, 64], bf16, {vendor}:0]", there)
                self.assertEqual(numbers(there), numbers(here))
                self.assertTrue(there.endswith("everything was returned\n"), there)

    def test_wrong_devices_are_refused(self):
        self.assertEqual(run("demo", "tensors", "--device", "toaster").returncode, 2)
        self.assertEqual(run("demo", "tensors", "--device", "cuda:0").returncode, 1)


class Ops(unittest.TestCase):
    def test_lists_every_op_under_its_family(self):
        result = run("ops")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertIn("copy", lines)
        self.assertRegex(lines[lines.index("copy") + 1], r"^op +dtypes +what it gives$")
        self.assertRegex(result.stdout, r"(?m)^flatten\(x, first = 0, last = -1\) +any +Dimensions first to last")

    def test_tells_about_one_op(self):
        result = run("ops", "reshape")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("reshape(x, shape)\n\nAnother shape"), result.stdout)
        self.assertIn("family  copy\n", result.stdout)
        self.assertIn("dtypes  u8 u32 i16 i32 i64 f8e4m3 f16 bf16 f32 f64 bool\n", result.stdout)

    def test_json_has_a_row_for_every_op(self):
        rows = json.loads(run("ops", "--json").stdout)
        self.assertEqual(len({row["name"] for row in rows}), len(rows))
        for row in rows:
            self.assertEqual(list(row), ["name", "family", "signature", "dtypes", "help"])
            self.assertRegex(row["name"], r"^[a-z][a-z0-9_]*$")
            self.assertRegex(row["signature"], r"^\(.*\)$")
            self.assertTrue(row["help"].endswith("."), row)
            self.assertTrue(row["dtypes"], row)
        one = json.loads(run("ops", "copy", "--json").stdout)
        self.assertEqual(one, [row for row in rows if row["name"] == "copy"])

    def test_an_unknown_op_suggests_the_nearest(self):
        for arguments in (["ops", "reshpae"], ["ops", "reshpae", "--json"]):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertEqual(result.stderr, "tl: error: ops: there is no op 'reshpae'; did you mean 'reshape'?\n")


def gguf_string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf(keys, tensors, data):
    """A GGUF file: keys are (name, type code, encoded value), tensors (name, sizes, type code, offset)."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, code, value in keys:
        out += gguf_string(name) + struct.pack("<I", code) + value
    for name, sizes, code, offset in tensors:
        out += gguf_string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, code, offset)
    return out + bytes(-len(out) % 32) + data


class Quantize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = self.path("m.gguf")
        data = struct.pack("<512f", *(i % 17 - 8 for i in range(512))) + struct.pack("<256f", *([1.0] * 256))
        with open(self.model, "wb") as file:
            file.write(gguf([("general.architecture", 8, gguf_string("llama"))],
                            [("blk.0.attn_q.weight", (256, 2), 0, 0), ("blk.0.attn_norm.weight", (256,), 0, 2048)],
                            data))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_writes_a_smaller_model_that_can_be_inspected(self):
        out = self.path("q.gguf")
        result = run("quantize", self.model, out, "q4_k_m")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("Q4_K_M, 1 of 2 tensors changed, 3.00 KiB to 1.28 KiB", result.stdout)
        tensors = json.loads(run("inspect", "--json", out).stdout)["tensors"]
        self.assertEqual([each["type"] for each in tensors], ["Q4_K", "F32"])
        again = run("quantize", out, self.path("again.gguf"), "Q8_0")
        self.assertEqual(again.returncode, 1)
        self.assertIn("blk.0.attn_q.weight is Q4_K already", again.stderr)
        self.assertFalse(os.path.exists(self.path("again.gguf")))
        self.assertEqual(run("quantize", "--requantize", out, self.path("again.gguf"), "Q8_0").returncode, 0)

    def test_says_what_it_would_do(self):
        result = run("quantize", "--dry-run", self.model, self.path("none.gguf"), "Q8_0")
        self.assertEqual(result.returncode, 0)
        self.assertIn("nothing was written", result.stdout)
        self.assertFalse(os.path.exists(self.path("none.gguf")))

    def test_wrong_arguments_are_explained(self):
        for arguments, message in (((self.model, self.path("x.gguf"), "Q9"), "there is no recipe 'Q9'; there are F32"),
                                   ((self.model, self.model, "Q8_0"), "is the file that is read"),
                                   ((self.path("no.gguf"), self.path("x.gguf"), "Q8_0"), "No such file"),
                                   ((self.model, self.path("no/x.gguf"), "Q8_0"), "cannot be created")):
            result = run("quantize", *arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(message, result.stderr)


class Convert(unittest.TestCase):
    """A checkpoint with one layer, converted as a person would."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(self.path("tiny-model"))
        self.config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
                       "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1, "vocab_size": 4,
                       "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}
        self.write("config.json", json.dumps(self.config))
        self.write("tokenizer.json", json.dumps({
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
            "added_tokens": [{"id": 3, "content": "<s>", "special": True}]}))
        shapes = {"model.embed_tokens": (4, 32), "model.norm": (32,), "lm_head": (4, 32)}
        layer = {"input_layernorm": (32,), "post_attention_layernorm": (32,), "self_attn.q_proj": (32, 32),
                 "self_attn.k_proj": (16, 32), "self_attn.v_proj": (16, 32), "self_attn.o_proj": (32, 32),
                 "mlp.gate_proj": (64, 32), "mlp.up_proj": (64, 32), "mlp.down_proj": (32, 64)}
        shapes.update({f"model.layers.0.{name}": shape for name, shape in layer.items()})
        header, at = {}, 0
        for name, shape in shapes.items():
            size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[f"{name}.weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        with open(self.path("tiny-model/model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"\0\x3f" * (at // 2))  # all 0.5

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(f"tiny-model/{name}"), "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_folder_becomes_a_model_that_can_be_inspected(self):
        result = run("convert", self.path("tiny-model"), "-o", self.path("out.gguf"), "--outtype", "q8_0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("out.gguf: llama, Q8_0, 12 tensors, 9,568 parameters, 4 tokens, ", result.stdout)
        found = json.loads(run("inspect", "--json", self.path("out.gguf")).stdout)
        self.assertEqual({each["type"] for each in found["tensors"]}, {"F32", "Q8_0"})
        self.assertIn("Tiny Model", json.dumps(found))

    def test_without_a_name_it_goes_beside_the_checkpoint(self):
        result = run("convert", self.path("tiny-model/model.safetensors"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(os.path.exists(self.path("tiny-model/Tiny-Model-BF16.gguf")))
        again = run("convert", self.path("tiny-model"))  # replaces it
        self.assertEqual(again.returncode, 0, again.stderr)
        result = run("convert", ".", "--type", "F32", "--split-max-size", "8K", "--name", "x",
                     cwd=self.path("tiny-model"))
        self.assertIn("/x-F32-00001-of-", result.stdout)

    def test_says_what_it_would_do_and_what_someone_should_know(self):
        self.write("config.json", json.dumps({**self.config, "sliding_window": 64}))
        result = run("convert", self.path("tiny-model"), "-o", self.path("out.gguf"), "--dry-run")
        self.assertEqual(result.returncode, 0)
        self.assertIn("nothing was written", result.stdout)
        self.assertIn("tl: note: ", result.stderr)
        self.assertIn("sliding window of 64 tokens is left out", result.stderr)
        self.assertFalse(os.path.exists(self.path("out.gguf")))

    def test_failures_are_one_line_and_leave_nothing(self):
        out = ["-o", self.path("out.gguf")]
        for change, arguments, message in (
                ({}, [self.path("none"), *out], "there is no such file or folder"),
                ({}, [self.path("tiny-model"), *out, "--type", "Q9"], "there is no recipe 'Q9'"),
                ({}, [self.path("tiny-model"), *out, "--split-max-size", "much"], "much"),
                ({"architectures": ["GPT2LMHeadModel"]}, [self.path("tiny-model"), *out],
                 "'GPT2LMHeadModel' cannot be converted; known are LlamaForCausalLM"),
                ({"hidden_size": None}, [self.path("tiny-model"), *out], "there is no key 'hidden_size'"),
                ({"num_hidden_layers": 2}, [self.path("tiny-model"), *out],
                 "tensor 'model.layers.1.input_layernorm.weight' is in none")):
            self.write("config.json", json.dumps({**self.config, **change}))
            result = run("convert", *arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertIn(message, result.stderr)
            self.assertEqual(os.listdir(self.folder.name), ["tiny-model"])


MAKE_MODEL = os.path.join(os.path.dirname(__file__), "../../tools/make_model.py")
SMALL = ["--layers", "2", "--width", "256", "--vocabulary", "512", "--feed-forward", "512", "--heads", "4",
         "--kv-heads", "2", "--drawn", "5000"]


class Load(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = os.path.join(cls.folder.name, "m.gguf")
        subprocess.run([sys.executable, MAKE_MODEL, *SMALL, cls.model], check=True, capture_output=True)

    def load(self, *arguments, env=None):
        result = run("load", self.model, "--json", "--check", *arguments, env=env)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def test_the_made_model_is_a_llama(self):
        data = json.loads(run("inspect", "--json", self.model).stdout)
        keys = {each["key"]: each["value"] for each in data["metadata"]}
        self.assertEqual(keys["general.architecture"], "llama")
        self.assertEqual(keys["llama.attention.head_count_kv"], 2)
        shapes = {each["name"]: each["shape"] for each in data["tensors"]}
        self.assertEqual(len(shapes), 2 * 9 + 3)
        self.assertEqual(shapes["blk.1.attn_k.weight"], [128, 256])
        self.assertEqual(shapes["blk.0.ffn_down.weight"], [256, 512])
        self.assertEqual(shapes["token_embd.weight"], [512, 256])

    def test_other_architectures_have_their_parts(self):
        path = os.path.join(self.folder.name, "g.gguf")
        for architecture, tensors, key in (("gemma3", 2 * 13 + 2, "gemma3.rope.freq_base_swa"),
                                           ("phi3", 2 * 6 + 3, "phi3.attention.sliding_window"),
                                           ("qwen2", 2 * 12 + 3, "qwen2.block_count")):
            subprocess.run([sys.executable, MAKE_MODEL, *SMALL, "--architecture", architecture, "--window", "16", path],
                           check=True, capture_output=True)
            data = json.loads(run("inspect", "--json", path).stdout)
            self.assertIn(key, [each["key"] for each in data["metadata"]])
            self.assertEqual(len(data["tensors"]), tensors, architecture)

    def test_shapes_that_cannot_be_are_refused(self):
        for arguments in (["--heads", "3"], ["--layers", "0"], ["--kv-heads", "3"], ["--rope-size", "7"],
                          ["--head-size", "0"], ["--architecture", "phi3", "--head-size", "32"],
                          ["--rope-factor", "0"], ["--window", "-1"]):
            result = subprocess.run([sys.executable, MAKE_MODEL, *SMALL, *arguments, "x.gguf"], capture_output=True)
            self.assertEqual(result.returncode, 2, arguments)

    def test_the_cpu_uses_the_file_where_it_is(self):
        once = self.load("--device", "cpu")["runs"][0]
        self.assertEqual((once["tensors"], once["blocks"], once["mapped_bytes"]), (21, 0, once["bytes"]))
        copied = self.load("--device", "cpu", "--copy")["runs"][0]
        self.assertEqual((copied["blocks"], copied["blocks_returned"], copied["mapped_bytes"]), (21, 21, 0))
        self.assertEqual(copied["device_bytes"], once["bytes"])

    def test_a_gpu_gets_and_gives_back_every_byte(self):
        for vendor, device in (("cuda", "cuda:0"), ("rocm", "rocm:0")):
            data = self.load("--device", device, "--times", "2", "--threads", "3", env=simulated(vendor))
            self.assertEqual((data["device"], len(data["runs"])), (device, 2))
            for each in data["runs"]:
                self.assertEqual((each["blocks"], each["blocks_returned"]), (21, 21))
                self.assertEqual(each["device_bytes"], each["bytes"])
                self.assertGreaterEqual(each["trimmed_bytes"], each["driver_bytes"])
                self.assertLessEqual(each["pinned_bytes"], 32 << 20)
                self.assertTrue(each["checked"])

    def test_people_read_what_it_did(self):
        result = run("load", self.model, "--device", "cpu", "--copy", "--check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for text in ("21 tensors to cpu", "GB/s", "every byte is as in the file", "21 of 21 blocks came back"):
            self.assertIn(text, result.stdout)

    def test_a_terminal_sees_how_far_it_is(self):
        mine, theirs = os.openpty()
        try:
            result = subprocess.run([TL, "load", self.model, "--device", "cpu", "--copy"], stdout=subprocess.DEVNULL,
                                    stderr=theirs, timeout=120, check=False)
            shown = os.read(mine, 1 << 16).decode()
        finally:
            os.close(mine)
            os.close(theirs)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(shown, r"^\rload \[.*\] +\d+% .*/2\.\d+ MiB .*[\w.]+\x1b\[K")
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown))  # and nothing is left of it

    def test_wrong_arguments_are_explained(self):
        for arguments, code, message in ((["no.gguf"], 1, "No such file"), ([__file__], 1, "this is no GGUF file"),
                                         ([self.model, "--device", "cuda:0"], 1, "CUDA"),
                                         ([self.model, "--threads", "65"], 2, "--threads"),
                                         ([self.model, "--times", "0"], 2, "--times"), ([], 2, "model")):
            result = run("load", *arguments)
            self.assertEqual((result.returncode, result.stdout), (code, ""))
            self.assertIn(message, result.stderr)


class TokenizerTrain(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.corpus = self.path("corpus.txt", "<|user|>hug the pug<|eot|><|assistant|>hug the hugs<|eot|>\n<|end|>\n" * 20)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def test_what_is_written_is_a_vocabulary(self):
        out = self.path("t.gguf")
        result = run("tokenizer", "train", self.corpus, "-o", out, "--vocab", "270", "--special", "<|tool|>")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"t\.gguf: 270 tokens, 6 of them special, 8 merges; .* bytes each\n$")
        text = "<|user|>hug 42<|eot|>"
        ids = run("tokenize", out, "--special", "-p", text)
        self.assertEqual((ids.returncode, ids.stderr), (0, ""))
        self.assertEqual(ids.stdout.split()[:2], ["0", "3"])  # <|end|> begins a text
        self.assertLess(len(ids.stdout.split()), 9)
        back = run("tokenize", out, "--decode", "--special", "-p", ids.stdout)
        self.assertEqual(back.stdout, "<|end|>" + text)
        again = self.path("again.gguf")
        run("tokenizer", "train", self.corpus, "-o", again, "--vocab", "270", "--special", "<|tool|>")
        with open(out, "rb") as first, open(again, "rb") as second:
            self.assertEqual(first.read(), second.read())

    def test_a_small_text_has_fewer_tokens_than_asked_for(self):
        result = run("tokenizer", "train", self.corpus, "-o", self.path("t.gguf"), "--vocab", "5000")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"note: the text has no more pairs that are frequent enough: \d+ tokens, not 5000")

    def test_chat_templates_come_from_a_file(self):
        given = self.path("t.jinja", "{{ messages[0]['content'] }}!")
        for argument, message in ((given, "messages[0]['content']"), ("none", None)):
            out = self.path("t.gguf")
            result = run("tokenizer", "train", self.corpus, "-o", out, "--vocab", "270", "--chat-template", argument)
            self.assertEqual(result.returncode, 0, result.stderr)
            shown = run("inspect", out).stdout
            self.assertEqual("chat_template" in shown, message is not None)
            self.assertIn(message or "", shown)

    def test_a_tokenizer_json_has_its_config_beside_it(self):
        out = self.path("tokenizer.json")
        result = run("tokenizer", "train", self.corpus, "-o", out, "--vocab", "270")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(out, encoding="utf-8") as file:
            made = json.load(file)
        self.assertEqual((len(made["model"]["vocab"]), len(made["model"]["merges"])), (270, 9))
        self.assertEqual([token["content"] for token in made["added_tokens"]][:2], ["<|end|>", "<|eot|>"])
        with open(self.path("tokenizer_config.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["eos_token"], "<|end|>")
        result = run("tokenizer", "train", self.corpus, "-o", "/no/such/folder/t.json", "--vocab", "270")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/no/such/folder/t.json: it cannot be written", result.stderr)

    def test_what_cannot_be_used_is_an_error(self):
        out = self.path("t.gguf")
        for arguments, message in (
                ([self.path("empty.txt", ""), "-o", out], "there is no text to learn from"),
                ([self.corpus, "-o", out, "--vocab", "100"], "a vocabulary of 100 tokens is not possible"),
                ([self.corpus, "-o", out, "--pre", "toaster"], "the pre-tokenizer 'toaster'"),
                ([self.corpus, "-o", self.path("t.txt")], "it must end in .gguf or .json"),
                (["no.txt", "-o", out], "No such file")):
            result = run("tokenizer", "train", *arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""), result)
            self.assertIn(message, result.stderr)
            self.assertFalse(os.path.exists(out))
        self.assertEqual(run("tokenizer", "train", self.corpus).returncode, 2)
        self.assertEqual(run("tokenizer").returncode, 2)


class Tokenize(unittest.TestCase):
    """A vocabulary of pairs: ids 0 <unk>, 1 <s>, 2 </s>, 3 on the bytes, 259 the space, a, b, ab, a control token."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        words = [("<unk>", 2), ("<s>", 3), ("</s>", 3)] + [(f"<0x{byte:02X}>", 6) for byte in range(256)]
        words += [("\u2581", 1), ("a", 1), ("b", 1), ("ab", 1), ("<|end|>", 3)]

        def array(code, items):
            return struct.pack("<IQ", code, len(items)) + b"".join(items)

        self.model = os.path.join(self.folder.name, "m.gguf")
        with open(self.model, "wb") as file:
            file.write(gguf([("tokenizer.ggml.model", 8, gguf_string("llama")),
                             ("tokenizer.ggml.tokens", 9, array(8, [gguf_string(word) for word, _ in words])),
                             ("tokenizer.ggml.token_type", 9, array(5, [struct.pack("<i", kind) for _, kind in words]))],
                            [], b""))

    def good(self, *arguments, **options):
        result = run("tokenize", self.model, *arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_ids_pieces_and_json(self):
        self.assertEqual(self.good("-p", "ab b"), "1 259 262 259 261\n")
        self.assertEqual(self.good("--no-bos", input="ab\n"), "259 262 13\n")
        self.assertEqual(self.good("-p", "a\u00e9", "--pieces"),
                         '      1  "<s>"\n    259  " "\n    260  "a"\n    198  "\\xc3"\n    172  "\\xa9"\n')
        self.assertEqual(json.loads(self.good("-p", "ab", "--json")), [1, 259, 262])
        tokens = json.loads(self.good("-p", "a\u00e9", "--json", "--pieces"))
        self.assertEqual(tokens[0], {"id": 1, "text": "<s>", "piece": "<s>", "special": True})
        self.assertEqual(tokens[3], {"id": 198, "text": "<0xC3>", "bytes": [195], "special": False})
        self.assertEqual(self.good("-p", "", "--no-bos"), "\n")

    def test_special_tokens_are_read_when_asked(self):
        self.assertEqual(self.good("-p", "a<|end|>", "--special"), "1 259 260 263\n")
        self.assertNotIn("263", self.good("-p", "a<|end|>"))

    def test_the_way_back(self):
        self.assertEqual(self.good("--decode", "-p", "[1, 259, 262, 13]"), "ab\n")
        self.assertEqual(self.good("--decode", "--special", "-p", "1 259 262 263"), "<s> ab<|end|>")
        for text in ("", "ab a\u6f22\n\n", "  x  ", "\U0001f999"):
            self.assertEqual(self.good("--decode", input=self.good(input=text)), text)
        self.assertEqual(json.loads(self.good("--decode", "--json", "-p", "262")), {"text": "ab"})

    def test_what_cannot_be_used_is_an_error(self):
        for arguments, options, message in (
                (["--decode", "-p", "1 x2"], {}, 'tokenize: there should be a token id at byte 2, not "x2"'),
                (["--decode", "-p", "999"], {}, "tokenizer: there is no token 999; the vocabulary has 264"),
                (["--decode", "-p", "99999999999"], {}, "there should be a token id at byte 0"),
                ([], {"input": "ab\udcff", "errors": "surrogateescape"}, "tokenize: the text is not UTF-8: byte 2 is 0xff")):
            result = run("tokenize", self.model, *arguments, **options)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(message, result.stderr)
        empty = os.path.join(self.folder.name, "empty.gguf")
        with open(empty, "wb") as file:
            file.write(gguf([], [], b""))
        for path, message in ((empty, "there is no key tokenizer.ggml.model"), ("no.gguf", "No such file")):
            result = run("tokenize", path, "-p", "x")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(message, result.stderr)


class Inspect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def save(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def model(self):
        numbers = struct.pack("<IQ8i", 5, 8, *range(8))
        words = struct.pack("<IQ", 8, 2) + gguf_string("a") + gguf_string(b"\xff\n")
        nested = struct.pack("<IQ", 9, 1) + struct.pack("<IQ2B", 0, 2, 7, 8)
        return self.save("m.gguf", gguf(
            [("general.architecture", 8, gguf_string("llama")), ("eps", 6, struct.pack("<f", 1e-5)),
             ("none", 6, struct.pack("<f", float("nan"))), ("big", 10, struct.pack("<Q", 2**64 - 1)),
             ("numbers", 9, numbers), ("words", 9, words), ("nested", 9, nested), ("yes", 7, b"\1"),
             ("template", 8, gguf_string("x" * 100)), ("escape", 8, gguf_string("\x1b[31m\x9b"))],
            [("w.weight", (64, 2), 2, 0), ("n.weight", (8,), 0, 96), ("old.weight", (4,), 4, 0)], bytes(128)))

    def good(self, *arguments):
        result = run("inspect", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def bad(self, path, message):
        for flags in ([], ["--json"]):
            result = run("inspect", path, *flags)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertTrue(result.stderr.startswith("tl: error: "), result.stderr)
            self.assertIn(message, result.stderr)

    def test_a_gguf_file_as_text(self):
        path = self.model()
        text = self.good(path)
        self.assertIn(f"{path}: GGUF version 3, 3 tensors, 140 parameters, ", text)
        self.assertIn(", 6.12 bits per weight\n", text)  # (72 + 32) * 8 / (128 + 8)
        self.assertRegex(text, r"(?m)^eps +f32 +1e-05$")
        self.assertRegex(text, r"(?m)^numbers +i32\[8\] +\[0, 1, 2, 3, 4, 5, \.\.\.\]$")
        self.assertRegex(text, r'(?m)^words +string\[2\] +\["a", "\\xff\\n"\]$')
        self.assertRegex(text, r"(?m)^nested +array\[1\] +\[\[7, 8\]\]$")
        self.assertRegex(text, r"(?m)^template +string +x{60}\.\.\.$")
        self.assertRegex(text, r"(?m)^escape +string +\\x1b\[31m\\xc2\\x9b$")
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"(?m)^w\.weight +\(2, 64\) +Q4_0 +72 +\d+$")
        self.assertRegex(text, r"(?m)^old\.weight +\(4,\) +code 4 +\? +\d+$")
        self.assertRegex(text, r"(?m)^Q4_0 +1 +128 +72$")
        full = self.good(path, "--full")
        self.assertIn("[0, 1, 2, 3, 4, 5, 6, 7]", full)
        self.assertIn("x" * 100, full)

    def test_parts_of_the_report(self):
        path = self.model()
        self.assertNotIn("w.weight", self.good(path, "--metadata"))
        self.assertIn("general.architecture", self.good(path, "--metadata"))
        self.assertNotIn("general.architecture", self.good(path, "--tensors"))
        self.assertIn("w.weight", self.good(path, "--tensors"))
        self.assertNotIn("tensors", json.loads(self.good(path, "--metadata", "--json")))
        self.assertNotIn("metadata", json.loads(self.good(path, "--tensors", "--json")))

    def test_a_gguf_file_as_json(self):
        path = self.model()
        report = json.loads(self.good(path, "--json"))
        self.assertEqual((report["format"], report["version"], report["alignment"]), ("gguf", 3, 32))
        self.assertEqual((report["parts"], report["parameters"], report["tensor_bytes"]), ([path], 140, 104))
        self.assertEqual(report["file_bytes"], os.path.getsize(path))
        values = {row["key"]: row["value"] for row in report["metadata"]}
        self.assertEqual(list(values)[:3], ["general.architecture", "eps", "none"])
        self.assertEqual((values["eps"], values["none"], values["big"], values["yes"]), (1e-5, "nan", 2**64 - 1, True))
        self.assertEqual((values["words"], values["nested"]), (["a", "\ufffd\n"], [[7, 8]]))
        self.assertEqual((values["numbers"], values["template"]), (list(range(6)), "x" * 100))
        rows = {row["key"]: row for row in report["metadata"]}
        self.assertEqual((rows["numbers"]["count"], rows["numbers"]["element_type"]), (8, "i32"))
        self.assertTrue(rows["numbers"]["shortened"])
        self.assertNotIn("shortened", rows["words"])
        self.assertEqual([row["name"] for row in report["tensors"]], ["w.weight", "n.weight", "old.weight"])
        self.assertEqual(report["tensors"][0]["shape"], [2, 64])
        self.assertEqual((report["tensors"][2]["type_code"], report["tensors"][2]["bytes"]), (4, None))
        self.assertEqual([row["type"] for row in report["types"]], ["F32", "Q4_0", "code 4"])
        full = json.loads(self.good(path, "--json", "--full"))
        self.assertEqual([row["value"] for row in full["metadata"] if row["key"] == "numbers"], [list(range(8))])

    def test_a_model_in_parts(self):
        for number in (0, 1):
            self.save(f"p-{number + 1:05}-of-00002.gguf", gguf(
                [("split.no", 2, struct.pack("<H", number)), ("split.count", 2, struct.pack("<H", 2)),
                 ("split.tensors.count", 5, struct.pack("<i", 2))], [(f"t{number}", (8,), 0, 0)], bytes(32)))
        path = os.path.join(self.folder.name, "p-00002-of-00002.gguf")
        text = self.good(path)
        self.assertIn("GGUF version 3, 2 parts, 2 tensors, 16 parameters", text)
        self.assertRegex(text, r"(?m)^t1 +\(8,\) +F32 +32 +\d+ +2$")
        self.assertEqual(len(json.loads(self.good(path, "--json"))["parts"]), 2)
        os.remove(os.path.join(self.folder.name, "p-00001-of-00002.gguf"))
        self.bad(path, "part 1 is missing")

    def test_other_formats(self):
        header = json.dumps({"__metadata__": {"format": "pt"},
                             "w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}).encode()
        path = self.save("m.safetensors", struct.pack("<Q", len(header)) + header + bytes(12))
        text = self.good(path)
        self.assertIn("safetensors, 1 tensor, 6 parameters", text)
        self.assertRegex(text, r"(?m)^format +string +pt$")
        self.assertRegex(text, r"(?m)^w +\(2, 3\) +BF16 +12 +\d+$")
        self.assertEqual(json.loads(self.good(path, "--json"))["tensors"][0]["bytes"], 12)

        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"
        array = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(24)
        text = self.good(self.save("a.npy", array))
        self.assertRegex(text, r"(?m)^ *\(2, 3\) +<f4 +24 +\d+$")
        path = os.path.join(self.folder.name, "a.npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", array)
            archive.writestr("y.npy", array.replace(b"'<f4'", b"[    "))
        text = self.good(path)
        self.assertRegex(text, r"(?m)^x +\(2, 3\) +<f4 +24$")
        self.assertRegex(text, r"(?m)^y +\(\) +unsupported +\?$")
        self.assertEqual(json.loads(self.good(path, "--json"))["format"], "npz")

    def test_what_cannot_be_read_is_an_error(self):
        self.bad(os.path.join(self.folder.name, "nothing.gguf"), "No such file or directory")
        self.bad(self.save("x.gguf", b"not a model"), "x.gguf: byte 0: the magic is not 'GGUF'")
        self.bad(self.save("x.bin", b"not a model"), "x.bin: is no GGUF, safetensors, npy or npz file")
        self.bad(self.save("big.gguf", b"FUGG" + bytes(20)), "big-endian")
        with open(self.model(), "rb") as file:
            whole = file.read()
        self.bad(self.save("cut.gguf", whole[:100]), "cut.gguf: byte ")
        self.bad(self.folder.name, "Is a directory")
        result = run("inspect")
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    TL = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
