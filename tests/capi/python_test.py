#!/usr/bin/env python3
"""Runs examples/python with the shared library and looks at what it says and leaves behind.

    python_test.py SOURCE_DIR LIBRARY PYTHON_WITH_NUMPY

Exit code 77, with the reason, when there is no Python that has NumPy.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DEMO = """\
distances: [0.0, 5.0, 10.0]
after a write by NumPy: [13.0, 5.0, 10.0]
what NumPy sees: [1.0, 2.0, 3.0] and the tensor: [7.0, 8.0, 9.0]
columns: (2, 3) True
borrowed while tensors show it: True
borrowed afterwards: 0 live: 0
error: matmul: shapes (1, 2) and (1, 2) do not fit: the inner sizes must be equal
"""

# What the demo does not show. Every claim is an assertion.
PROGRAM = """
import gc, sys, numpy, tallow
assert tallow.version.count(".") == 2

for dtype in ("uint8", "uint32", "int16", "int32", "int64", "float16", "float32", "float64"):
    array = numpy.arange(6).astype(dtype).reshape(2, 3)
    there = tallow.from_dlpack(array)
    assert there.dtype == {"uint8": "u8", "uint32": "u32", "int16": "i16", "int32": "i32", "int64": "i64",
                           "float16": "f16", "float32": "f32", "float64": "f64"}[dtype]
    back = numpy.from_dlpack(there)
    assert back.dtype == array.dtype and numpy.array_equal(back, array)
    assert numpy.shares_memory(back, array), "nothing was copied on the way"

# Strides: steps, columns, repeated rows, backwards (which is copied).
array = numpy.arange(24, dtype="float32").reshape(4, 6)
for view in (array[::2, 1::2], array.T, array[1:3], array[::-1], array[:, ::-2], array[2:2]):
    assert numpy.array_equal(numpy.from_dlpack(tallow.from_dlpack(view)), view), view

# The array lives as long as a tensor shows it, and no longer.
array = numpy.ones(1000, dtype="float32")
base = sys.getrefcount(array)
x = tallow.from_dlpack(array)
assert sys.getrefcount(array) == base + 1
y = tallow.op("narrow", x, 0, 10, 5)
del x
assert sys.getrefcount(array) == base + 1
y.write(numpy.zeros(5, dtype="float32"))
assert sys.getrefcount(array) == base and array.sum() == 1000

# A capsule that nobody takes, and one that is taken twice.
z = tallow.tensor([[1, 2], [3, 4]])
live = tallow.memory()["live_bytes"]
capsule = z.__dlpack__()
del z
assert tallow.memory()["live_bytes"] == live
del capsule
assert tallow.memory()["live_bytes"] == live - 16
z = tallow.tensor([1, 2])
class Once:
    def __init__(self, capsule): self.capsule = capsule
    def __dlpack__(self): return self.capsule
once = Once(z.__dlpack__())
assert numpy.from_dlpack(tallow.from_dlpack(once)).tolist() == [1, 2]
try:
    tallow.from_dlpack(once)
    raise SystemExit("a capsule was taken twice")
except tallow.Error as error:
    assert "taken before" in str(error)

# What was exported outlives its tensor.
shown = numpy.from_dlpack(tallow.op("exp", tallow.tensor([0.0])))
gc.collect()
assert shown.tolist() == [1.0]

a = tallow.tensor([[1.0, 2.0], [3.0, 4.0]])
assert numpy.from_dlpack(a @ a).tolist() == [[7, 10], [15, 22]]
assert numpy.from_dlpack((a + 1 - 0.5) / 0.5).tolist() == [[3, 5], [7, 9]]
values, places = tallow.op("sort", a, -1, True)
assert numpy.from_dlpack(values).tolist() == [[2, 1], [4, 3]]
assert tallow.op("cat", [a, a], 0).shape == (4, 2)
assert tallow.op("full", [2], 3, "i64", "cpu").dtype == "i64"
assert numpy.from_dlpack(tallow.op("einsum", "ij,jk->ik", [a, a])).tolist() == [[7, 10], [15, 22]]
assert a.clone().shares_memory_with(a) and a.device == "cpu" and "4" in repr(a)
del a, z, y, values, places, shown, once, there, back
gc.collect()
assert tallow.memory()["live_bytes"] == 0 and tallow.memory()["mapped_bytes"] == 0, tallow.memory()
print("all claims hold")
"""

# The model is random: what it says does not matter, but that it says it again does.
TALK = """
import sys, tallow
model = tallow.Model(sys.argv[1])
pieces = []
text = model.generate("hello", on_text=pieces.append, max_tokens=8, temperature=0.0, ignore_end=1)
assert "".join(pieces) == text and text
assert model.generate("hello", max_tokens=8, temperature=0.0, ignore_end=1) == text
assert len(model.generate("hello", on_text=lambda piece: False, max_tokens=8, temperature=0.0, ignore_end=1)) < len(text)
assert len(model.tokenize("hello")) > 0
try:
    model.chat()
    raise SystemExit("a chat without a template")
except tallow.Error as error:
    assert "has no chat template" in str(error)
try:
    model.generate("x", warmth=3)
except tallow.Error as error:
    assert "there is no option 'warmth'" in str(error)
print("it talks")
"""


def main():
    source, library, python = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    if not python:
        print("skipped: no Python here has NumPy (Debian's package is python3-numpy)")
        return 77
    folder = source / "examples/python"
    environment = dict(os.environ, TALLOW_LIBRARY=library, PYTHONPATH=str(folder), PYTHONDONTWRITEBYTECODE="1")

    def run(*command):
        done = subprocess.run([python, *command], env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            sys.exit(f"{command[0]}... gave {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    out = run(str(folder / "demo.py"))
    if out != DEMO:
        sys.exit(f"demo.py printed\n{out}\ninstead of\n{DEMO}")
    assert run("-c", PROGRAM) == "all claims hold\n"
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "model.gguf")
        run(str(source / "tools/make_model.py"), "--layers", "2", "--width", "64", "--vocabulary", "320", "--feed-forward",
            "64", "--heads", "2", "--kv-heads", "2", "--context", "256", model)
        assert run("-c", TALK, model) == "it talks\n"
        talk = run(str(folder / "demo.py"), model, "chatml")[len(DEMO):]
        assert re.fullmatch(r"tokens: \d+\n> Hello!\n.*\n\[\d+ characters\]\n> And who are you\?\n.*\n\[\d+ characters\]\n", talk,
                            re.DOTALL), talk
    print("examples/python is right")
    return 0


sys.exit(main())
