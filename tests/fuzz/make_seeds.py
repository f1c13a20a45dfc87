#!/usr/bin/env python3
"""Writes the small files that the fuzzers start from: make_seeds.py FOLDER

A folder for each kind (gguf, safetensors, npy, program, sentencepiece, template, tokenizer) gets a few files of some
hundred bytes; beside it is a list of its files, NAME.txt, as libFuzzer's -seed_inputs takes it.
"""

import io
import json
import pathlib
import struct
import sys
import zipfile


def string(text, wide=True):
    raw = text.encode()
    return struct.pack("<Q" if wide else "<I", len(raw)) + raw


def gguf(version, keys, tensors, data, alignment=32):
    wide = version > 1
    out = b"GGUF" + struct.pack("<I" + ("QQ" if wide else "II"), version, len(tensors), len(keys))
    for name, code, value in keys:
        out += string(name, wide) + struct.pack("<I", code) + value
    for name, sizes, code, offset in tensors:
        out += string(name, wide) + struct.pack("<I", len(sizes))
        out += struct.pack(f"<{len(sizes)}{'Q' if wide else 'I'}", *sizes) + struct.pack("<IQ", code, offset)
    return out + bytes(-len(out) % alignment) + data


def gguf_array(code, values, wide=True):
    return struct.pack("<I" + ("Q" if wide else "I"), code, len(values)) + b"".join(values)


def gguf_seeds():
    scalars = [("u8", 0, b"\1"), ("i8", 1, b"\xff"), ("u16", 2, b"\1\2"), ("i16", 3, b"\1\2"),
               ("u32", 4, bytes(4)), ("i32", 5, bytes(4)), ("f32", 6, struct.pack("<f", 1.5)), ("bool", 7, b"\1"),
               ("string", 8, string("text")), ("u64", 10, bytes(8)), ("i64", 11, bytes(8)),
               ("f64", 12, struct.pack("<d", 1.5))]
    inner = gguf_array(0, [b"\1", b"\2"])
    arrays = [("words", 9, gguf_array(8, [string("a"), string("bc")])), ("nested", 9, gguf_array(9, [inner, inner])),
              ("bools", 9, gguf_array(7, [b"\0", b"\1"])), ("none", 9, gguf_array(9, []))]
    yield gguf(3, scalars, [], b"")
    yield gguf(3, arrays, [("x", (32,), 2, 0)], bytes(32))
    yield gguf(2, [("general.alignment", 4, struct.pack("<I", 8))],
               [("a", (4, 2), 0, 0), ("b", (3,), 24, 32), ("old", (7,), 4, 0)], bytes(40), 8)
    yield gguf(1, [("words", 9, gguf_array(8, [string("a", False)], False))], [("x", (2, 2), 1, 0)], bytes(32))
    yield gguf(3, [("split.no", 2, b"\0\0"), ("split.count", 2, b"\2\0"), ("split.tensors.count", 5, bytes(4))], [], b"")


def safetensors(header, data):
    return struct.pack("<Q", len(header)) + header + data


def safetensors_seeds():
    tensor = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}
    yield safetensors(json.dumps({"__metadata__": {"k": "v"}, "x": tensor}).encode() + b"  ", bytes(8))
    yield safetensors(json.dumps({"a": {**tensor, "dtype": "BF16", "shape": [4]},
                                  "b": {"extra": [1, {"y": None}], "dtype": "F4", "shape": [2], "data_offsets": [8, 9]},
                                  }).encode(), bytes(9))
    yield safetensors(b"{}", b"")


def npy(version, text, data):
    raw = text.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(raw)) + raw + data


def npz(method, members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=method == zipfile.ZIP_STORED) as member:
                member.write(content)
    return out.getvalue()


def npy_seeds():
    plain = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", bytes(24))
    other = npy(2, "{'descr': '>i2', 'fortran_order': True, 'shape': (2L,)}", bytes(4))
    yield plain
    yield other
    yield npy(3, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", bytes(4))
    yield npz(zipfile.ZIP_STORED, [("x.npy", plain)])
    yield npz(zipfile.ZIP_DEFLATED, [("x.npy", plain), ("y.npy", other)])


def field(number, value):
    """A field of a protocol buffer: small whole numbers, floats and bytes."""
    if isinstance(value, float):
        return bytes([number * 8 + 5]) + struct.pack("<f", value)
    tag = bytes([number * 8 % 128 + 128, number // 16]) if number > 15 else bytes([number * 8])
    if isinstance(value, int):
        return tag + bytes([value])
    return bytes([number * 8 + 2, len(value)]) + value


def sentencepiece_seeds():
    def piece(text, score, kind):
        return field(1, field(1, text.encode()) + field(2, score) + field(3, kind))
    trainer = field(2, field(3, 2) + field(4, 32) + field(40, 0) + field(41, 1) + field(42, 2))
    yield (piece("<unk>", 0.0, 2) + piece("<s>", 0.0, 3) + piece("\u2581the", -1.5, 1) + piece("<0x0A>", 0.0, 6) +
           trainer)
    yield piece("a", 0.0, 4) + field(3, field(1, b"nmt_nfkc") + field(3, 0) + field(4, 0)) + field(5, b"x")
    yield field(1, field(1, b"b"))


def template_seeds():
    yield (b"{%- for m in messages -%}{{ '<|' + m.role + '|>' ~ m['content'] | trim }}{% if loop.last and not loop.first %}"
           b"{{ loop.index0 }}{% elif m.x is defined %}{{ m.tool_calls | tojson(indent=2) }}{% else %}x{% endif %}{%- endfor %}")
    yield (b"{% set ns = namespace(a=1, b=[]) %}{% for x in l if x > 1 %}{% set ns.a = ns.a + x %}{% else %}-{% endfor %}"
           b"{% macro f(a, b=2) %}{{ a }}{{ varargs }}{{ caller() }}{% endmacro %}{% call f(1) %}{{ ns.a }}{% endcall %}")
    yield (b"{{ s.strip().split(' ')[::-1] }}{{ d.items() | list }}{{ [1, 'a', none, 2.5] }}{{ l | sort | map('string') | join(',') }}"
           b"{{ '%05.2f' % 3.14159 }}{{ '{:>5}|{0}'.format(n) if n is number else none }}{{ 7 // 2 ** -1 % 3 }}")
    yield (b"{% raw %}{{ }}{% endraw %}{# c -#} {% filter upper %}a{% endfilter %}{% with a = (1, 2) %}{{ a }}{% endwith %}"
           b"{% set x | trim %} y {% endset %}{{ x[1:-1:2] }}{{ l | selectattr('a', 'equalto', 1) | list | length }}")


def program_seeds():
    yield b"""import "lib.tl"
entity Person = {alice, bob}
tensor w: float16[1, ?] learnable = [0.5]
relation lives_in(p: Person, c: entity) embed float16[64] learnable
rule Grand(x, z) <- Parent(x, y), not Dead(x), x != z
A(x) :- B(x, "k", 3)
Y[i, k] ~ W[i, j] * X[j, k]
embedding E { entities: auto dimension: 8 init: xavier }
struct P<T> { x: float, q: Other<int> }
impl Drop for P { fn drop(self) -> void {} }
"""
    yield b"""fn f(x: float32[2, n], y: int = 3) -> (int, float) { return x + y as int } // note
const N = 3
main {
  let (a, b) = (1, 2.5e-3); y := a[i + 1, :, 1:-1, ::2]
  if not a and b <-1 { 1 } else if a < b { 2 } else { 3 }
  for (k, v) in {"a": 1} { continue }
  for e in {alice, bob} { break }
  let h = match q { 0 | -1 => "z", P { x: 1.0, y } if a > 3 => 2, (p, _) => { return 3 } }
  let l = [x * 2 for x in 0..9 if x > 1]
}
"""
    yield b"""main {
  R(alice, X)? where X > 3, not Q(X)
  infer { forward R(x)? gradient S(y)? }
  learn { e = x * w objective: e, optimizer: sgd(lr: 0.1), epochs: 50 }
  let f = |x, y: int = 3| x + y /* c */
  let g = fn(x) -> int { x }
  Box<int>::make(3).x[0] += inv w ** -2
  a ~ b @ c
  tensor t: float32[2] = {:}
  with T { panic("x {}", 1) } while i < 3 { i += 1 } loop { break }
  python import a.b as c
}
test t { assert(1 == 1) }
bench b { f(1, dim: 2, keep=true) }
"""


def vocabulary(model, words, keys, text):
    """A file of the vocabulary with the text after it; the fuzzer takes the last quarter as text."""
    arrays = [("tokenizer.ggml.model", 8, string(model)),
              ("tokenizer.ggml.tokens", 9, gguf_array(8, [string(word) for word, _, _ in words])),
              ("tokenizer.ggml.scores", 9, gguf_array(6, [struct.pack("<f", score) for _, score, _ in words])),
              ("tokenizer.ggml.token_type", 9, gguf_array(5, [struct.pack("<i", kind) for _, _, kind in words]))]
    file = gguf(3, arrays + keys, [], b"")
    raw = text.encode()
    return file + (raw * (1 + len(file) // len(raw)))[:len(file) // 3]


def tokenizer_seeds():
    base = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("<0x41>", 0, 6), ("a", -1, 1), ("b", -2, 1), ("ab", -3, 1),
            ("<|x|>", 0, 4)]
    yield vocabulary("llama", base + [("\u2581", -1, 1), ("\u2581a", -2, 1)], [], "a b<s> ab<|x|>\u00e9 ")
    merges = [("tokenizer.ggml.merges", 9, gguf_array(8, [string("a b"), string("\u0120 a")]))]
    for pre in ("gpt-2", "llama-bpe", "tekken", "deepseek-v3", "gemma4"):
        yield vocabulary("gpt2", base + [("\u0120", 0, 1), ("\u0120a", 0, 1)],
                         merges + [("tokenizer.ggml.pre", 8, string(pre))], "a ab 123 It's \u6f22\n")
    charsmap = [("tokenizer.ggml.precompiled_charsmap", 9, gguf_array(0, [bytes([b]) for b in b"\4\0\0\0\0\0\0\0x\0"])),
                ("tokenizer.ggml.add_space_prefix", 7, b"\1"), ("tokenizer.ggml.remove_extra_whitespaces", 7, b"\1")]
    yield vocabulary("t5", base + [("\u2581", -1, 1)], charsmap, "a  b ab<|x|>")


def main(folder):
    for name, seeds in {"gguf": gguf_seeds(), "safetensors": safetensors_seeds(), "npy": npy_seeds(),
                        "program": program_seeds(), "sentencepiece": sentencepiece_seeds(),
                        "template": template_seeds(),
                        "tokenizer": tokenizer_seeds()}.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        paths = []
        for number, seed in enumerate(seeds):
            paths.append(folder / name / str(number))
            paths[-1].write_bytes(seed)
        (folder / f"{name}.txt").write_text(",".join(map(str, paths)), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
