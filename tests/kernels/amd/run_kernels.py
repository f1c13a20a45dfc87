#!/usr/bin/env python3
"""Runs the AMD machine code of the FILL and CAST modules in an emulator and compares with numpy.

    run_kernels.py FOLDER [gfx1100 gfx942 ...]

FOLDER holds <module>.<gfx>.hsaco, as compile_all.py or the build leave them; a module without an
image there is a failure, except `probe` (the primitives of gpu.h), which is run when it is there.
Environment: AMD_EMULATE_DIR is the folder with emulate.py, TINYGRAD a tinygrad checkout, and a
`clang` is on the PATH. One process per target. Prints a line per family and a summary; the exit
status says whether everything was right.

Every kernel runs contiguous (whole vectors and a remainder, aligned and not) and strided (with the
32-bit and the 64-bit walk). All buffers are surrounded by guard bytes. The expected casts come from
exact rational numbers, so nothing here rounds twice.
"""
import ctypes
import faulthandler
import math
import os
import struct
import subprocess
import sys
import time
from fractions import Fraction

import numpy as np

GUARD = 0xA5
MARGIN = 256
THREADS = 256
rng = np.random.default_rng(7)

# ---- what kernels take


class Dim(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("multiplier", ctypes.c_uint64),
                ("shift", ctypes.c_uint32)]


def strided_type(operands):
    class Strided(ctypes.Structure):
        _fields_ = [("count", ctypes.c_int64), ("rank", ctypes.c_uint32),
                    ("narrow", ctypes.c_uint16), ("contiguous", ctypes.c_uint16), ("dim", Dim * 8),
                    ("stride", ctypes.c_int64 * 8 * operands)]
    return Strided


def walk(shape, *strides, narrow=True, contiguous=False):
    """The layout struct of gpu_args.h, with dimensions as they come: nothing merged."""
    s = strided_type(len(strides))()
    s.count, s.rank = math.prod(shape), len(shape)
    s.narrow, s.contiguous = narrow, contiguous
    bits = 32 if narrow else 64
    for d, size in enumerate(reversed(shape)):
        shift = (size - 1).bit_length()
        s.dim[d] = Dim(size, (((1 << shift) - size) << bits) // size + 1, shift)
        for k, stride in enumerate(strides):
            s.stride[k][d] = stride[len(shape) - 1 - d]
    return s


class Memory:
    """Bytes at a chosen distance from a 64-byte boundary, between guard bytes."""

    def __init__(self, array, shift=0):
        array = np.ascontiguousarray(array)
        self.dtype, self.bytes = array.dtype, array.nbytes
        self.room = np.full(array.nbytes + 2 * MARGIN + 64, GUARD, np.uint8)
        self.at = -self.room.ctypes.data % 64 + MARGIN + shift
        self.room[self.at:self.at + self.bytes] = array.reshape(-1).view(np.uint8)

    def pointer(self):
        return struct.pack("<Q", self.room.ctypes.data + self.at)

    def read(self):
        guards = np.concatenate([self.room[:self.at], self.room[self.at + self.bytes:]])
        if not (guards == GUARD).all():
            raise AssertionError("a write outside the buffer")
        return self.room[self.at:self.at + self.bytes].view(self.dtype).copy()


def launch(image, kernel, args, blocks=2, threads=THREADS, dynamic_shared=0):
    grid = blocks if isinstance(blocks, tuple) else (blocks,)
    block = threads if isinstance(threads, tuple) else (threads,)
    values = [a.pointer() if isinstance(a, Memory) else
              bytes(a) if isinstance(a, ctypes.Structure) else a.tobytes() for a in args]
    image.dispatch(kernel, grid, block, values, dynamic_shared)


# ---- numbers: every dtype as raw bits, and its values as exact fractions

RAW = {"u8": np.uint8, "u32": np.uint32, "i16": np.int16, "i32": np.int32, "i64": np.int64,
       "f8e4m3": np.uint8, "f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64,
       "bool": np.uint8}
# exponent bits, mantissa bits, has infinity
FLOATS = {"f8e4m3": (4, 3, False), "f16": (5, 10, True), "bf16": (8, 7, True), "f32": (8, 23, True),
          "f64": (11, 52, True)}
NAN, INF = "nan", "inf"


def decode_float(dtype, raw):
    """(sign, magnitude): the magnitude is a Fraction, INF or NAN."""
    exponent_bits, mantissa_bits, has_infinity = FLOATS[dtype]
    sign = raw >> (exponent_bits + mantissa_bits)
    exponent = raw >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = raw & (1 << mantissa_bits) - 1
    top = exponent == (1 << exponent_bits) - 1
    if top and has_infinity:
        return sign, NAN if mantissa else INF
    if top and mantissa == (1 << mantissa_bits) - 1:
        return sign, NAN
    if exponent:
        mantissa += 1 << mantissa_bits
    scale = max(exponent, 1) - ((1 << exponent_bits - 1) - 1) - mantissa_bits
    return sign, Fraction(mantissa) * Fraction(2) ** scale


def encode_float(dtype, sign, magnitude):
    """Nearest even; None stands for any NaN."""
    exponent_bits, mantissa_bits, has_infinity = FLOATS[dtype]
    bias = (1 << exponent_bits - 1) - 1
    top = ((1 << exponent_bits) - 1 << mantissa_bits) - 1 if has_infinity else 0x7e
    sign <<= exponent_bits + mantissa_bits
    if magnitude == NAN:
        return None
    if magnitude == INF:
        return sign | (top + 1 if has_infinity else top)
    if magnitude == 0:
        return sign
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    steps = round(magnitude / Fraction(2) ** (exponent - mantissa_bits))  # Python rounds to even
    raw = steps + (exponent + bias - 1 << mantissa_bits)  # a carry moves into the exponent
    return sign | (raw if raw <= top else top + 1 if has_infinity else top)


def cast_one(source, target, raw):
    """The bits of one converted value; None where any NaN will do."""
    if source == target and source != "bool":
        return raw
    if source in FLOATS:
        sign, magnitude = decode_float(source, raw)
    else:
        number = int(raw != 0) if source == "bool" else raw
        sign, magnitude = int(number < 0), Fraction(abs(number))
    if target == "bool":
        return int(magnitude != 0)
    if target in FLOATS:
        return encode_float(target, sign, magnitude)
    info = np.iinfo(RAW[target])
    if source not in FLOATS:
        bits = info.bits
        low = number & (1 << bits) - 1
        return low - (1 << bits) if info.min < 0 and low >> bits - 1 else low
    if magnitude == NAN:
        return 0
    if magnitude == INF:
        return info.min if sign else info.max
    return min(max(math.trunc(-magnitude if sign else magnitude), info.min), info.max)


def is_nan(dtype, raw):
    return decode_float(dtype, int(raw))[1] == NAN


def boundary_values(dtype):
    """Ends, ties and traps of all types, as bits of this one, and some random bits."""
    raw = RAW[dtype]
    if dtype == "bool":
        values = [0, 1, 2, 128, 255]
    elif dtype in FLOATS:
        points = [Fraction(p) for p in (
            "0 1/4 1/2 1 3/2 2 5/2 127 128 255 511/2 256 447 448 464 465 "
            "32767 32768 65504 65519 65520 65535").split()]
        points += [Fraction(2) ** e for e in
                   (-149, -134, -133, -126, -25, -24, -14, -10, -9, -6, 127)]
        points += [Fraction(2) ** e + d for e in (31, 32, 63) for d in (-1, 0, 1)]
        # just beside ties of f16, bf16 and f8: where rounding twice goes wrong
        points += [1 + Fraction(1, 1 << b) + t for b in (4, 8, 11) for t in
                   (0, Fraction(1, 1 << 40), -Fraction(1, 1 << 40), Fraction(1, 1 << 23))]
        points += [Fraction(2) ** -25 * (1 + Fraction(1, 1 << 45)), Fraction(2) ** 128]
        values = [encode_float(dtype, s, p) for p in points for s in (0, 1)]
        values += [encode_float(dtype, s, INF) for s in (0, 1)]
        exponent_bits, mantissa_bits, has_infinity = FLOATS[dtype]
        all_ones = (1 << exponent_bits + mantissa_bits) - 1
        values += [all_ones, all_ones | all_ones + 1, 1, all_ones + 2]
    else:
        info = np.iinfo(raw)
        values = [0, 1, 2, 127, 128, 255, 256, 257, 2049, 2051, 32767, 32768, 65503, 65519, 65520,
                  65535, 65536, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32,
                  (1 << 40) + (1 << 32) + 1, (1 << 56) + (1 << 48), (1 << 56) + (1 << 48) + 1,
                  (1 << 63) - 1, 257 << 20, (257 << 20) + 1, (257 << 20) - 1]
        values += [-v for v in values] + [info.min, info.max]
        values = [v for v in values if info.min <= v <= info.max]
    values = np.array(values, raw)
    noise = np.frombuffer(rng.bytes(values.itemsize * (203 - len(values))), raw)
    return np.concatenate([values, noise])


# ---- families


class Family:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.start = name, 0, 0, time.time()
        self.problems = []

    def check(self, what, run):
        try:
            problem = run()
        except Exception as e:  # the emulator's refusals and guard bytes, with the kernel's name
            problem = f"{type(e).__name__}: {e}"
        if problem:
            self.failed += 1
            self.problems.append(f"{what}: {problem}")
        else:
            self.passed += 1

    def report(self):
        print(f"{'FAIL' if self.failed else 'ok  '} {self.name}: {self.passed} of "
              f"{self.passed + self.failed} runs, {time.time() - self.start:.1f} s", flush=True)
        for p in self.problems[:6]:
            print(f"       {p}", flush=True)


def differ(got, want):
    bad = np.flatnonzero(np.asarray(got) != np.asarray(want))
    if not len(bad):
        return None
    i = bad[0]
    return f"{len(bad)} of {len(got)} values differ, first at {i}: {got[i]} instead of {want[i]}"


def differ_cast(dtype, got, want, source):
    for i, (g, w) in enumerate(zip(got.tolist(), want)):
        if g != w and not (w is None and is_nan(dtype, g)):
            return f"element {i}: {source[i]} became {g} instead of {w}"
    return None


def cast_family(image, source):
    family = Family(f"cast from {source}")
    values = boundary_values(source)
    n = len(values)
    # the same values seen through a transposed, gapped and broadcast layout of 210 elements
    shape, strides = (3, 5, 2, 7), (7, 21, 0, 1)
    places = places_of(shape, strides)
    for target in RAW:
        name = f"cast_{source}_{target}"
        want = [cast_one(source, target, int(v)) for v in values]

        def contiguous(shift_in, shift_out, count):
            out = Memory(np.zeros(count, RAW[target]), shift_out)
            at = walk((count,), (1,), contiguous=True)
            launch(image, name, [Memory(values[:count], shift_in), out, at], blocks=1)
            return differ_cast(target, out.read(), want[:count], values)

        def strided(narrow):
            out = Memory(np.zeros(len(places), RAW[target]))
            at = walk(shape, strides, narrow=narrow)
            launch(image, name, [Memory(values), out, at], blocks=1)
            return differ_cast(target, out.read(), [want[p] for p in places], values[places])

        family.check(f"{name} contiguous", lambda: contiguous(0, 0, n))
        family.check(f"{name} misaligned",
                     lambda: contiguous(np.dtype(RAW[source]).itemsize, 0, 37))
        family.check(f"{name} strided", lambda: strided(True))
        family.check(f"{name} strided, 64-bit walk", lambda: strided(False))
    family.report()
    return family


SIZES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def fill_family(image):
    family = Family("fill")
    for size, raw in SIZES.items():
        value = raw(0x1122334455667788 & (1 << 8 * size) - 1)
        for shift in range(0, 16, max(size, 3 if size == 1 else size)):
            for count in (0, 1, 15, 16, 33, 3000 // size):
                def run():
                    out = Memory(np.zeros(count, raw), shift)
                    launch(image, f"fill_{size}", [out, value, np.int64(count)])
                    return differ(out.read(), np.full(count, value))
                family.check(f"fill_{size} of {count} at {shift}", run)
    family.report()
    return family


def copy2d_family(image):
    family = Family("copy2d")
    for size, raw in SIZES.items():
        each = 16 // size
        # rows, cols, source stride, destination stride, shift of the source
        for rows, cols, near, far, shift in (
                (5, 3 * each, 4 * each, 3 * each, 0), (1, 40 * each, 40 * each, 40 * each, 0),
                (3, 3 * each, 4 * each, 3 * each, size), (7, 3, 5, 4, 0), (300, 1, 2, 1, 0),
                (1, 1000, 1000, 1000, 0), (2, 257, 300, 257, 0), (0, 4, 4, 4, 0), (4, 0, 4, 4, 0)):
            def run():
                src = rng.integers(0, 256, (max(rows * near, 1)) * size, np.uint8).view(raw)
                before = rng.integers(0, 256, (max(rows * far, 1)) * size, np.uint8).view(raw)
                dst = Memory(before)
                launch(image, f"copy2d_{size}", [Memory(src, shift), dst] +
                       [np.int64(x) for x in (rows, cols, near, far)])
                want = before.copy()
                for r in range(rows):
                    want[r * far:r * far + cols] = src[r * near:r * near + cols]
                return differ(dst.read(), want)
            family.check(f"copy2d_{size} {rows} x {cols}, strides {near} {far}, shift {shift}", run)
    family.report()
    return family


LAYOUTS = (((600,), (1,), True), ((4, 30), (1, 4), False), ((3, 5, 7), (1, 3, 16), False),
           ((2, 1, 3, 4, 2), (100, 9, 25, 2, 1), False),
           ((2,) * 8, (3, 6, 12, 24, 48, 96, 192, 1), False),
           ((1,), (5,), False))


def places_of(shape, strides):
    at = np.zeros(shape, np.int64)
    for d, (size, stride) in enumerate(zip(shape, strides)):
        at += (np.arange(size) * stride).reshape([-1 if k == d else 1 for k in range(len(shape))])
    return at.reshape(-1)


def const_set_family(image):
    family = Family("const_set")
    for size, raw in SIZES.items():
        value = raw(0x8877665544332211 & (1 << 8 * size) - 1)
        for shape, strides, contiguous in LAYOUTS:
            for narrow in (True, False):
                def run():
                    places = places_of(shape, strides)
                    want = rng.integers(0, 256, (places.max() + 1) * size, np.uint8).view(raw)
                    out = Memory(want)
                    launch(image, f"const_set_{size}",
                           [out, value, walk(shape, strides, narrow=narrow, contiguous=contiguous)])
                    want = want.copy()
                    want[places] = value
                    return differ(out.read(), want)
                family.check(f"const_set_{size} {shape} narrow {narrow}", run)
    family.report()
    return family


def copy_strided_family(image):
    family = Family("copy_strided")
    broadcast = ((4, 3, 6), (0, 6, 1), False)
    for size, raw in SIZES.items():
        for shape, strides, contiguous in LAYOUTS + (broadcast,):
            for narrow in (True, False):
                def run():
                    places = places_of(shape, strides)
                    data = rng.integers(0, 256, (places.max() + 1) * size, np.uint8).view(raw)
                    out = Memory(np.zeros(len(places), raw))
                    at = walk(shape, strides, narrow=narrow, contiguous=contiguous)
                    launch(image, f"copy_strided_{size}", [Memory(data), out, at])
                    return differ(out.read(), data[places])
                family.check(f"copy_strided_{size} {shape} narrow {narrow}", run)
    family.report()
    return family


# ---- the primitives of gpu.h


def probe_reduce_family(image, warp):
    family = Family("probe: reductions")
    for name, raw in (("f32", np.float32), ("f64", np.float64), ("i32", np.int32),
                      ("i64", np.int64)):
        for threads in (1, 5, 31, 32, 33, 63, 64, 65, 100, 127, 128, 200, 256):
            def run():
                x = rng.integers(-1000, 1000, 2 * threads).astype(raw)  # sums are exact
                outs = [Memory(np.zeros_like(x)) for _ in range(3)]
                launch(image, f"probe_reduce_{name}", [Memory(x), *outs], 2, threads)
                rows = x.reshape(2, threads)
                sums = np.repeat(rows.sum(1), threads)
                peaks = np.repeat(rows.max(1), threads)
                warps = np.concatenate([np.full(len(w), w.sum()) for r in rows
                                        for w in np.split(r, range(warp, threads, warp))])
                for out, want in zip(outs, (sums, peaks, warps)):
                    if problem := differ(out.read(), want.astype(raw)):
                        return problem
                return None
            family.check(f"probe_reduce_{name} with {threads} threads", run)

    def nan_wins():
        x = np.zeros(100, np.float32)
        x[77] = np.nan
        outs = [Memory(np.zeros_like(x)) for _ in range(3)]
        launch(image, "probe_reduce_f32", [Memory(x), *outs], 1, 100)
        return None if np.isnan(outs[1].read()).all() else "a NaN was lost"
    family.check("NaN in block_max", nan_wins)
    family.report()
    return family


def probe_warp_family(image, warp):
    family = Family("probe: shuffles, ballot, indices")
    for size, raw in ((2, np.uint16), (4, np.uint32), (8, np.uint64)):
        def run():
            x = rng.integers(0, 256, 2 * 128 * size, np.uint8).view(raw)
            outs = [Memory(np.zeros_like(x)) for _ in range(3)]
            launch(image, f"probe_shuffle_{size}", [Memory(x), *outs], 2, 128)
            rows, lane = x.reshape(-1, warp), np.arange(warp)
            down = np.where(lane + 3 < warp, lane + 3, lane)
            for out, index in zip(outs, (lane ^ 5, down, lane * 0)):
                if problem := differ(out.read(), rows[:, index].reshape(-1)):
                    return problem
            return None
        family.check(f"probe_shuffle_{size}", run)
    for threads in (256, 100):
        def run():
            x = rng.integers(0, 2, threads).astype(np.uint32)
            lanes, warps, ballots = (Memory(np.zeros(threads, t))
                                     for t in (np.uint32, np.uint32, np.uint64))
            launch(image, "probe_where", [Memory(x), lanes, warps, ballots], 1, threads)
            at = np.arange(threads)
            want = np.array([sum(int(b) << i for i, b in enumerate(x[t // warp * warp:][:warp]))
                             for t in at], np.uint64)
            return (differ(lanes.read(), at % warp) or differ(warps.read(), at // warp) or
                    differ(ballots.read(), want))
        family.check(f"probe_where with {threads} threads", run)

    def axes():
        out = Memory(np.zeros(3 * 16 * 2 * 8, np.uint32))
        launch(image, "probe_axes", [out], (3, 2), (16, 8))
        y, x = np.mgrid[0:16, 0:48]
        return differ(out.read(), (1000 * x + 10 * y + 2).reshape(-1))
    family.check("probe_axes", axes)
    family.report()
    return family


def probe_other_family(image):
    family = Family("probe: atomics, dot4, math, shared memory, walk")

    def atomics():
        x = rng.integers(-500, 500, 300).astype(np.int32)
        outs = [Memory(np.zeros(1, t)) for t in (np.int32, np.float32, np.uint32, np.uint64)]
        outs += [Memory(np.full(1, -1000, np.int32)), Memory(np.zeros(1, np.uint32)),
                 Memory(np.zeros(1, np.uint32))]
        launch(image, "probe_atomics", [Memory(x), *outs], 3, 100)
        total = int(x.sum())
        want = [total, total, total % (1 << 32), total % (1 << 64), x.max(),
                int(np.bitwise_or.reduce(np.uint32(1) << (x & 31).astype(np.uint32))), 77]
        got = [o.read()[0] for o in outs]
        return None if all(g == w for g, w in zip(got, want)) else f"{got} instead of {want}"
    family.check("probe_atomics", atomics)

    def dot4():
        a, b = (rng.integers(-128, 128, (256, 4)).astype(np.int8) for _ in range(2))
        a[0] = b[0] = -128
        out = Memory(np.zeros(256, np.int32))
        launch(image, "probe_dot4", [Memory(a.view(np.int32)), Memory(b.view(np.int32)), out], 1)
        return differ(out.read(), (a.astype(int) * b).sum(1) + 1000)
    family.check("probe_dot4", dot4)

    def math_functions():
        x = np.concatenate([rng.uniform(-20, 20, 248), [0.5, 1.5, -2.5, 1e-3, 80, -80, 1, -1]])
        x = x.astype(np.float32)
        outs = [Memory(np.zeros_like(x)) for _ in range(5)]
        launch(image, "probe_math", [Memory(x), *outs], 1)
        wide = x.astype(np.float64)
        fused = np.array([float(Fraction(float(v)) ** 2 - 1) for v in x])
        want = [np.exp(wide), np.log(np.abs(wide)), np.sqrt(np.abs(wide)),
                np.rint(wide) + np.floor(wide) + np.ceil(wide), np.copysign(np.abs(fused), wide)]
        for name, out, w in zip(("exp", "log", "sqrt", "rint", "fma"), outs, want):
            got = out.read().astype(np.float64)
            # log's error is absolute near 1; the others are judged relative to the value
            scale = np.maximum(np.abs(w), 1) if name == "log" else np.abs(w) + 1e-30
            error = np.abs(got - w) / scale
            # compilers that make code objects before v5 (abi 3) take log2(e) * x as one float
            if error.max() > (5e-6 if name == "exp" and image.abi < 3 else 5e-7):
                return f"{name}: error {error.max():.3g} at {x[error.argmax()]}"
        return None
    family.check("probe_math", math_functions)

    def dynamic_shared():
        x = rng.standard_normal(300).astype(np.float32)
        out = Memory(np.zeros_like(x))
        launch(image, "probe_dynamic_shared", [Memory(x), out], 3, 100, dynamic_shared=400)
        return differ(out.read(), x.reshape(3, 100)[:, ::-1].reshape(-1))
    family.check("probe_dynamic_shared", dynamic_shared)

    for narrow in (True, False):
        def four():
            a, b, c = (rng.integers(0, 9, s).astype(np.float32) for s in ((4, 3, 5), (5, 3), (5,)))
            at = walk((3, 4, 5), (20, 5, 1), (5, 15, 1), (1, 0, 3), (0, 0, 1), narrow=narrow)
            out = Memory(np.zeros(60, np.float32))
            launch(image, "probe_walk", [out, Memory(a), Memory(b), Memory(c), at])
            want = a.transpose(1, 0, 2) + 10 * b.T[:, None, :] + 100 * c
            return differ(out.read(), want.reshape(-1))
        family.check(f"probe_walk narrow {narrow}", four)
    family.report()
    return family


def correct_permute(emulate):
    """ds_bpermute ignores the high bits of the lane number; the emulator takes it as signed and
    reads outside its registers when a lane that is switched off holds a negative number."""
    extra = emulate._extra

    def with_permute(emu, inst, pc, arch):
        if not emu._op_name(inst).startswith("DS_BPERMUTE_B32"):
            return extra(emu, inst, pc, arch)
        first, second = struct.unpack("<II", ctypes.string_at(pc, 8))
        offset, address = first & 0xffff, second & 255
        data, target = second >> 8 & 255, second >> 24
        wave, end = emu._wave_size(arch), pc + inst.size()
        reach = 64 if arch == "cdna" else 32

        def permute(scalar, vector):
            s = (ctypes.c_uint32 * emu.SGPR_COUNT).from_address(scalar.value)
            v = np.ctypeslib.as_array((ctypes.c_uint32 * (256 * wave)).from_address(vector.value))
            v = v.reshape(256, wave)
            mask = s[126] | (s[127] << 32 if wave == 64 else 0)
            live = np.array([mask >> k & 1 for k in range(wave)], bool)
            source = (v[address] + np.uint32(offset)) // 4 % reach
            v[target] = np.where(live, np.where(live[source], v[data][source], 0), v[target])
            s[emu.PC_LO_IDX], s[emu.PC_LO_IDX + 1] = end & 0xffffffff, end >> 32
        step = emulate._Fn(permute, [0, 1])
        return (step, step), inst
    emulate._extra = with_permute


def run_target(folder, gfx):
    import emulate
    from emulate import CodeObject
    correct_permute(emulate)
    start = time.time()

    def image(module):
        return CodeObject(f"{folder}/{module}.{gfx}.hsaco")
    fill, cast = image("fill"), image("cast")
    warp = fill.kernels["fill_1"][".wavefront_size"]
    families = [fill_family(fill), copy2d_family(fill), const_set_family(fill),
                copy_strided_family(fill)]
    if os.path.exists(f"{folder}/probe.{gfx}.hsaco"):
        probe = image("probe")
        families += [probe_reduce_family(probe, warp), probe_warp_family(probe, warp),
                     probe_other_family(probe)]
    families += [cast_family(cast, source) for source in RAW]
    passed, failed = sum(f.passed for f in families), sum(f.failed for f in families)
    print(f"{gfx}: {passed} passed, {failed} failed in {time.time() - start:.0f} s", flush=True)
    return failed == 0 and passed > 0


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    folder, targets = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["gfx1100", "gfx942"]
    for variable in ("AMD_EMULATE_DIR", "TINYGRAD"):
        if not os.environ.get(variable):
            raise SystemExit(f"set {variable}; see the head of {os.path.basename(__file__)}")
    if len(targets) == 1:
        faulthandler.enable()
        sys.path.insert(0, os.environ["AMD_EMULATE_DIR"])
        return 0 if run_target(folder, targets[0]) else 1
    # the emulator keeps the instruction set of the first target it sees: one process for each
    done = [subprocess.run([sys.executable, os.path.abspath(__file__), folder, t]).returncode
            for t in targets]
    return 1 if any(done) else 0


if __name__ == "__main__":
    sys.exit(main())
