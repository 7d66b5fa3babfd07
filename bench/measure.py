"""Measurement for the benchmarks: timed loops, median and percentiles, memory, JSON files."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TURN_SECONDS = 4.0  # for which one row is measured before the next row
SETTLE_SECONDS = 0.5  # at the start of a turn, not measured: steps of the row before still run
WINDOW_SECONDS = 0.1  # part of a turn; most disturbances by the machine affect one window only


class Window(NamedTuple):
    """A part of a turn: its first instant, its duration, and the latencies of its runs, all in s.

    The instant is of `time.perf_counter()`.
    """

    begin: float
    seconds: float
    latencies: Sequence[float]


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
) -> dict[str, list[Window]]:
    """Measure `open_loop` while each row's work runs, the rows in turn.

    Args:
        rows: name → function whose context manager runs the row's work meanwhile.
        seconds: measured for each row in total.

    Returns:
        name → windows of WINDOW_SECONDS.
    """
    seen: dict[str, list[Window]] = {name: [] for name in rows}
    size = round(WINDOW_SECONDS / interval)
    for _ in range(max(1, round(seconds / TURN_SECONDS))):
        for name, begin in rows.items():
            with begin():
                open_loop(run, SETTLE_SECONDS, interval)
                begin_turn = time.perf_counter()
                turn = open_loop(run, TURN_SECONDS, interval)
            for first in range(0, len(turn) - size + 1, size):
                latencies = turn[first : first + size]
                duration = size * interval + latencies[-1]  # the last run may end late
                seen[name].append(Window(begin_turn + first * interval, duration, latencies))
    return seen


def latency_figures(
    rows: Mapping[str, Sequence[Sequence[float]]],
) -> dict[str, dict[str, float]]:
    """Return the figures of rows of windows of latencies in seconds; the first row is idle.

    name → `p50_ms`; `p99_ms`, `window_p99_ms` (the median of the windows' p99) and
    `window_p99_quartile_ms` (the lower quartile of them); of these three the ratios to the idle
    row, `p99_of_idle` and so on.
    """
    figures: dict[str, dict[str, float]] = {}
    idle: dict[str, float] = {}
    for name, windows in rows.items():
        of_windows = [percentile(window, 99) for window in windows]
        seen = [each for window in windows for each in window]
        tails = {
            "p99_ms": percentile(seen, 99) * 1e3,
            "window_p99_ms": median(of_windows) * 1e3,
            "window_p99_quartile_ms": percentile(of_windows, 25) * 1e3,
        }
        idle = idle or tails
        ratios = {
            f"{key.removesuffix('_ms')}_of_idle": value / idle[key] for key, value in tails.items()
        }
        figures[name] = {"p50_ms": median(seen) * 1e3, **tails, **ratios}
    return figures


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which `percent` per cent of the values are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def median_ratio(values: Sequence[float], to: Sequence[float]) -> float:
    """Return the median of the ratios of values that were measured in turns.

    What disturbs the machine for longer than a turn affects both values of a pair.
    """
    return median([value / other for value, other in zip(values, to, strict=True)])


def resident_bytes(process: int | str = "self") -> int:
    """Return the resident memory of a process in bytes (Linux, pages of 4096 bytes)."""
    with open(f"/proc/{process}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def write_json(file: pathlib.Path, figures: object) -> None:
    """Write figures, floats with six significant digits."""
    text = json.dumps(rounded(figures), indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def rounded(figures: object) -> object:
    """Return figures with floats of six significant digits, which JSON can represent."""
    match figures:
        case float():
            return float(f"{figures:.6g}") if math.isfinite(figures) else None
        case dict():
            return {key: rounded(value) for key, value in figures.items()}
        case list() | tuple():
            return [rounded(value) for value in figures]
    return figures
