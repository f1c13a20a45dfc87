"""The loop of lang_bench's scalar_loop in Python: nanoseconds for a turn."""
import time


def work(n):
    s = 0
    i = 0
    while i < n:
        s = s + i % 7
        i = i + 1
    return s


TURNS = 10_000_000
best = min((lambda start: (work(TURNS), time.perf_counter() - start)[1])(time.perf_counter()) for _ in range(3))
print(f"{best / TURNS * 1e9:.1f} ns a turn, {best:.3f} s for {TURNS} turns")
