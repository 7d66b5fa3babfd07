"""Warm up an engine: until nothing runs in the background and the time of a run is steady."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

WINDOW_SECONDS = 0.3
LEAST_RUNS = 2  # of a window, however slow
STEADY = 0.95  # a window below this fraction of the one before it means that runs still get faster
IDLE = 0.1  # processor time per wall time below which a process is idle
LIMIT_SECONDS = 90.0


def warm_up(
    run: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
    wait: Callable[[], None] | None = None,
) -> float:
    """Run until two windows in a row take the same time; return the median seconds of the last.

    `wait` is called between windows; by default it waits until the process is idle, so that what
    the engine compiles in the background is finished. Gives up after LIMIT_SECONDS.
    """
    wait = wait or wait_until_idle
    end = clock() + LIMIT_SECONDS
    before = float("inf")
    while True:
        median = statistics.median(window(run, clock))
        if median >= STEADY * before or clock() > end:
            return median
        before = median
        wait()


def window(run: Callable[[], object], clock: Callable[[], float]) -> list[float]:
    """Return the seconds of the runs of a window."""
    return timed_runs(run, WINDOW_SECONDS, LEAST_RUNS, clock)


def timed_runs(
    run: Callable[[], object],
    seconds: float,
    least: int,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the seconds of each run for `seconds`, at least of `least` runs."""
    times: list[float] = []
    end = clock() + seconds
    while len(times) < least or clock() < end:
        started = clock()
        run()
        times.append(clock() - started)
    return times


def wait_until_idle(
    clock: Callable[[], float] = time.perf_counter,
    processor_time: Callable[[], float] = time.process_time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when this process has used almost no processor time for a moment, or at the limit."""
    end = clock() + LIMIT_SECONDS
    quiet = 0
    while quiet < 3 and clock() < end:
        used, started = processor_time(), clock()
        sleep(0.05)
        quiet = quiet + 1 if processor_time() - used < IDLE * (clock() - started) else 0
