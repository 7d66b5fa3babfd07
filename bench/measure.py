"""Measurement for the benchmarks: timed loops, median and percentiles, Markdown tables."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

TURN_SECONDS = 4.0  # for which one row is measured before the next row
WINDOW_SECONDS = 0.1  # part of a turn; most disturbances by the machine affect one window only


def seconds_of(call: Callable[[], object], repeats: int, warm_up: int = 3) -> list[float]:
    """Return the wall time in seconds of each of `repeats` calls after `warm_up` untimed calls."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def quickest(call: Callable[[], object], seconds: float) -> float:
    """Return the shortest wall time of the calls made in about `seconds`, at least three.

    Other work on the machine only adds time, so the shortest is nearest to the call's own time.
    """
    call()
    best, end, count = float("inf"), time.perf_counter() + seconds, 0
    while count < 3 or time.perf_counter() < end:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
        count += 1
    return best


def seconds_alone(run: Callable[[], object], runs: int = 200) -> float:
    """Return the seconds of one run in a loop without pauses: the median of five rounds."""
    rounds = []
    for _ in range(6):  # the first warms up
        started = time.perf_counter()
        for _ in range(runs):
            run()
        rounds.append((time.perf_counter() - started) / runs)
    return median(rounds[1:])


def open_loop(run: Callable[[], object], seconds: float, interval: float) -> list[float]:
    """Return the seconds from each run's due time to its end; a run is due every `interval`.

    Stops after three times `seconds` if the runs cannot keep up.
    """
    result: list[float] = []
    due = time.perf_counter() + interval
    end = due + seconds
    while due < end and time.perf_counter() < end + 2 * seconds:
        delay = due - time.perf_counter()
        if delay > 0:
            time.sleep(delay)
        run()
        result.append(time.perf_counter() - due)
        due += interval
    return result


def in_turns(
    rows: Mapping[str, Callable[[], contextlib.AbstractContextManager[object]]],
    run: Callable[[], object],
    seconds: float,
    interval: float,
) -> dict[str, list[list[float]]]:
    """Measure `open_loop` while each row's work runs, the rows in turn.

    Args:
        rows: name → function whose context manager runs the row's work meanwhile.
        seconds: measured for each row in total.

    Returns:
        name → windows of WINDOW_SECONDS, each the latencies of its runs in seconds.
    """
    seen: dict[str, list[list[float]]] = {name: [] for name in rows}
    size = round(WINDOW_SECONDS / interval)
    for _ in range(max(1, round(seconds / TURN_SECONDS))):
        for name, begin in rows.items():
            with begin():
                turn = open_loop(run, TURN_SECONDS, interval)
            seen[name] += [turn[i : i + size] for i in range(0, len(turn) - size + 1, size)]
    return seen


def priority_table(rows: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Return a table of the rows' latencies and their ratios to the first row, which is idle."""
    idle: list[float] = []
    lines = []
    for name, windows in rows.items():
        of_windows = [percentile(window, 99) for window in windows]
        seen = [each for window in windows for each in window]
        figures = [percentile(seen, 99), median(of_windows), percentile(of_windows, 25)]
        idle = idle or figures
        shown = [f"{median(seen) * 1e3:.2f}"]
        for figure, of_idle in zip(figures, idle, strict=True):
            shown.append(f"{figure * 1e3:.2f} ({figure / of_idle:.2f})")
        lines.append([name, *shown])
    head = ["beside", "p50 ms", "p99 ms (÷ idle)"]
    head += [f"p99 of {WINDOW_SECONDS:g} s, half of them below", "a quarter of them below"]
    return table(head, lines)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which `percent` per cent of the values are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes (Linux, pages of 4096 bytes)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
