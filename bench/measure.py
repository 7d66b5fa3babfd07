"""How the benchmarks measure: repeated runs, the median and the 99th percentile, plain tables."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def seconds_of(call: Callable[[], object], repeats: int, warm_up: int = 3) -> list[float]:
    """Wall time of each of `repeats` calls, after some that do not count."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def quickest(call: Callable[[], object], seconds: float) -> float:
    """The shortest wall time of calls over about `seconds`, at least three of them.

    Other work on the machine only ever adds time: the shortest says most about the call itself.
    """
    call()
    best, end, count = float("inf"), time.perf_counter() + seconds, 0
    while count < 3 or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
        count += 1
    return best


def open_loop(run: Callable[[], object], seconds: float, load: float) -> list[float]:
    """Seconds from the due instant of each run to its end, at `load` of what runs alone reach."""
    for _ in range(50):
        run()
    started = time.perf_counter()
    for _ in range(200):
        run()
    interval = (time.perf_counter() - started) / 200 / load
    result: list[float] = []
    due = time.perf_counter() + interval
    end = due + seconds
    while due < end:
        delay = due - time.perf_counter()
        if delay > 0:
            time.sleep(delay)
        run()
        result.append(time.perf_counter() - due)
        due += interval
    return result


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` per cent of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def resident_bytes() -> int:
    """Resident memory of this process (Linux)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
