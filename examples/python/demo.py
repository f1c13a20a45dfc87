#!/usr/bin/env python3
"""Tallow beside NumPy: one memory, two libraries. With a GGUF file, a chat as well.

    TALLOW_LIBRARY=build/release/lib/libtallow_c.so python3 examples/python/demo.py [MODEL.gguf [TEMPLATE]]
"""

import sys

import numpy

import tallow

# NumPy's memory as a tensor, nothing copied; Tallow computes; the result as an array, nothing copied.
points = numpy.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], dtype="float32")
x = tallow.from_dlpack(points)
squares = tallow.op("sum", x * x, [1])
distances = numpy.from_dlpack(tallow.op("sqrt", squares))
print("distances:", distances.tolist())

points[0] = [5.0, 12.0]  # the memory is NumPy's: the tensor shows it
print("after a write by NumPy:", numpy.from_dlpack(tallow.op("sqrt", tallow.op("sum", x * x, [1]))).tolist())

# The other way round what was shared stays as it is: a write by Tallow goes to other memory.
y = tallow.tensor([1, 2, 3])
shown = numpy.from_dlpack(y)
y.write(numpy.array([7, 8, 9], dtype="float32"))
print("what NumPy sees:", shown.tolist(), "and the tensor:", numpy.from_dlpack(y).tolist())

# Views have strides, and borrowed memory is given back when its last tensor is gone.
columns = tallow.from_dlpack(points.T)
print("columns:", columns.shape, numpy.array_equal(numpy.from_dlpack(columns), points.T))
print("borrowed while tensors show it:", tallow.memory()["mapped_bytes"] > 0)
del x, y, columns, squares, distances, shown
print("borrowed afterwards:", tallow.memory()["mapped_bytes"], "live:", tallow.memory()["live_bytes"])

try:
    tallow.op("matmul", tallow.tensor([[1, 2]]), tallow.tensor([[1, 2]]))
except tallow.Error as error:
    print("error:", error)

if len(sys.argv) > 1:
    model = tallow.Model(sys.argv[1], chat_template=sys.argv[2] if len(sys.argv) > 2 else None)
    print("tokens:", len(model.tokenize("Hello there")))
    chat = model.chat(system="You are brief.", max_tokens=16, temperature=0.0)
    for message in ("Hello!", "And who are you?"):
        print("> " + message)
        answer = chat.say(message, on_text=lambda text: print(text, end="", flush=True))
        print(f"\n[{len(answer)} characters]")
