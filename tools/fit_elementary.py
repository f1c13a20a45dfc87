#!/usr/bin/env python3
"""Fits the polynomials of src/kernels/elementary.h and prints their coefficients (needs mpmath).

Each is a Chebyshev fit at 60 digits, rounded to the type; what it prints beside a name is the
largest error of the fit itself, which a function then adds to a far larger leading term.
"""
import struct
from mpmath import (asin, atan, chebyfit, cos, erf, erfc, exp, floor, log, mp, mpf, pi, polyval, sin, sinh, sqrt,
                    tan, tanh)

mp.dps = 60


def as_float(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def hexed(x, suffix):
    if suffix == "f":
        return as_float(x).hex() + "f"
    return float(x).hex()


def series(f):
    """f(z) for z > 0 as it is; near 0 by a point a little off it, where 60 digits leave enough."""
    return lambda z: f(z if abs(z) > mpf(10) ** -12 else mpf(10) ** -12)


JOBS = {
    # name: (function of the polynomial's argument, interval, terms f32, terms f64)
    "exp_tail": (series(lambda r: (exp(r) - 1 - r) / r**2), (-0.3475, 0.3475), 5, 10),
    "log_tail": (series(lambda z: ((log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z)) - 2) / z), (0, 0.02945), 4, 7),
    "log_tail2": (series(lambda z: ((log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z)) / 2 - 1 - z / 3) / z**2),
                  (0, 0.02945), 4, 9),
    "sin_tail": (series(lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z), (0, 0.6300), 4, 6),
    "cos_tail": (series(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2), (0, 0.6300), 3, 6),
    "tan_tail": (series(lambda z: (tan(sqrt(z)) / sqrt(z) - 1) / z), (0, 0.6300), 7, 15),
    "atan_tail": (series(lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z), (0, 1.0), 9, 21),
    "asin_tail": (series(lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z), (0, 0.2501), 5, 13),
    "tanh_tail": (series(lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z), (0, 0.3026), 5, 12),
    "sinh_tail": (series(lambda z: (sinh(sqrt(z)) / sqrt(z) - 1) / z), (0, 1.0), 4, 8),
    "erf_tail": (series(lambda z: erf(sqrt(z)) / sqrt(z) - 1), (0, 1.0), 8, 14),
}
for name, (f, interval, n32, n64) in JOBS.items():
    for suffix, n in (("f", n32), ("", n64)):
        c = chebyfit(f, interval, n)
        rounded = [mpf(as_float(v) if suffix else float(v)) for v in c]
        worst = 0
        a, b = map(mpf, interval)
        for i in range(201):
            z = a + (b - a) * i / 200
            worst = max(worst, abs(polyval(rounded, z) - f(z)))
        print(f"// {name} {'float' if suffix else 'double'}: {float(worst):.3g} = 2^{float(log(worst, 2)):.1f}")
        print(", ".join(hexed(v, suffix) for v in reversed(c)))


def scaled_erfc(center, end):
    def f(t):
        x = center * (1 + t) / (1 - t)
        return (1 + 2 * x) * exp(x * x) * erfc(x)
    to_t = lambda x: (mpf(x) - center) / (mpf(x) + center)
    return f, (mpf(-1), to_t(end))


for suffix, n, center, end in (("f", 12, 2, 10.1), ("", 24, 4, 27.3)):
    f, interval = scaled_erfc(center, end)
    c = chebyfit(f, interval, n)
    rounded = [mpf(as_float(v) if suffix else float(v)) for v in c]
    worst = max(abs(polyval(rounded, t) / f(t) - 1)
                for t in [interval[0] + (interval[1] - interval[0]) * i / 200 for i in range(201)])
    print(f"// erfc {'float' if suffix else 'double'} center {center}: 2^{float(log(worst, 2)):.1f}")
    print(", ".join(hexed(v, suffix) for v in reversed(c)))

# ---- constants as sums of two or three numbers of the type


def parts(name, x, count):
    for convert in (as_float, float):
        rest, out = x, []
        for _ in range(count):
            out.append(convert(rest).hex())
            rest -= mpf(convert(rest))
        print(f"// {name}: {', '.join(out)}")


parts("ln 2", log(mpf(2)), 2)
parts("log2 e", 1 / log(mpf(2)), 2)
parts("log10 e", 1 / log(mpf(10)), 2)
parts("pi / 2", pi / 2, 3)
parts("2 sqrt(2 / pi)", 2 * sqrt(2 / pi), 2)
parts("2 sqrt(2 / pi) 0.044715", 2 * sqrt(2 / pi) * mpf("0.044715"), 2)
# log10(2) in two parts, of which the first is short enough to be multiplied by an exponent exactly
for bits in (16, 41):
    step = mpf(2) ** (bits + 1)
    high = floor(log(mpf(2), 10) * step) / step
    print(f"// log10(2) short: {float(high).hex()}, {float(log(mpf(2), 10) - high).hex()}")

mp.prec = 1400
bits = 2 / pi
words = []
for _ in range(19):
    bits *= mpf(2) ** 64
    words.append(int(bits))
    bits -= words[-1]
print("// 2 / pi:", ", ".join(f"0x{word:016x}ull" for word in words))
