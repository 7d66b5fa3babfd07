"""Notice when a core of the machine stands still: `python -m bench.stalls [--seconds 10]`.

The host of a virtual machine can take a core away, for 20 ms and more. No program on the machine
causes such a stall, and the kernel does not always count it. A watcher on each core finds it: a
process of the highest priority (SCHED_FIFO) that sleeps for a millisecond at a time and notes when
it wakes up more than LATE_SECONDS late. It waits for nothing on its core but the kernel's own work,
so while it waits nothing else runs there either.

Benchmarks of short delays (`latencies_beside_stalls`) give the p99 twice: of all, and of those
tenths of a second in which no core stood still. The share of the others is in the table as well: a
row that has more of them than the idle one would do more to the machine than it should.

The watchers take 1 % of each core. To have the highest priority, a process must be allowed to
(CAP_SYS_NICE); if it is not, stalls are not known, and there is only the p99 of all.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.measure import Window, latency_figures

LATE_SECONDS = 0.001
PERIOD_SECONDS = 0.001
# What has waited for a stall to end delays what comes after it.
AFTERWARDS_SECONDS = 0.02
ROOT = pathlib.Path(__file__).parent.parent
NOT_ALLOWED = 77  # the exit status of a watcher without the priority


class Stall(NamedTuple):
    """When a core stood still, by `time.perf_counter()`, which is the same in all processes."""

    begin: float
    end: float


class Stalls:
    """The stalls that `watched` has found so far; `is_known` is false if it can't find any."""

    def __init__(self, files: Sequence[pathlib.Path] = ()) -> None:
        self._files = files
        self.is_known = bool(files)

    def seen(self) -> list[Stall]:
        """Return the stalls of all cores."""
        lines = [line for file in self._files for line in file.read_text().splitlines(True)]
        return [Stall(*map(float, line.split())) for line in lines if line.endswith("\n")]


@contextlib.contextmanager
def watched() -> Iterator[Stalls]:
    """Watch the cores of this process inside the context."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = [folder / str(core) for core in sorted(os.sched_getaffinity(0))]
        watchers = [stack.enter_context(_watcher(file)) for file in files]
        # Each says so when it has begun, or ends.
        begun = [watcher.stdout is not None and watcher.stdout.read(1) for watcher in watchers]
        yield Stalls(files if all(begun) else ())


@contextlib.contextmanager
def _watcher(file: pathlib.Path) -> Iterator[subprocess.Popen[bytes]]:
    file.touch()
    command = [sys.executable, "-m", "bench.stalls", "--watch", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def watch(file: pathlib.Path) -> None:
    """Note stalls in a file, a line for each, for ever; its name is the number of the core."""
    os.sched_setaffinity(0, {int(file.name)})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_max(1)))
    except PermissionError:
        sys.exit(NOT_ALLOWED)
    gc.disable()
    print(end=".", flush=True)
    with file.open("a") as lines:
        for begin, end in late_wake_ups(time.perf_counter, time.sleep):
            print(begin, end, file=lines, flush=True)


def late_wake_ups(
    clock: Callable[[], float], sleep: Callable[[float], object]
) -> Iterator[tuple[float, float]]:
    """Yield from when until when this thread has slept too long, each time that it has."""
    before = clock()
    while True:
        sleep(PERIOD_SECONDS)
        now = clock()
        due = before + PERIOD_SECONDS
        if now > due + LATE_SECONDS:
            yield due, now
            now = clock()
        before = now


def is_disturbed(window: Window, stalls: Sequence[Stall]) -> bool:
    """Return whether a stall delays a run of the window."""
    begin, end = window.begin - AFTERWARDS_SECONDS, window.begin + window.seconds
    return any(each.begin < end and each.end > begin for each in stalls)


def latencies_beside_stalls(
    rows: Mapping[str, Sequence[Window]], stalls: Stalls
) -> dict[str, dict[str, float]]:
    """Return the figures of `latency_figures`, and what is known of stalls.

    That is: `still_share`, of the windows that no stall disturbs, and `still_p99_ms` of these, with
    its ratio to the idle row, `still_p99_of_idle`. If there are none, there is only the share.
    """
    figures = latency_figures(
        {name: [each.latencies for each in windows] for name, windows in rows.items()}
    )
    if not stalls.is_known:
        return figures
    seen = stalls.seen()
    others = {
        name: [each.latencies for each in windows if not is_disturbed(each, seen)]
        for name, windows in rows.items()
    }
    for name, windows in rows.items():
        figures[name]["still_share"] = len(others[name]) / len(windows)
    idle = next(iter(others))
    if others[idle]:
        measured = {name: windows for name, windows in others.items() if windows}
        for name, row in latency_figures(measured).items():
            for key in ("p99_ms", "p99_of_idle"):
                figures[name][f"still_{key}"] = row[key]
    return figures


def stalled_share(seconds: float) -> tuple[float, float] | None:
    """Watch the cores; return the share of their time that they stood still, and the longest in s.

    Returns None if stalls can't be known.
    """
    with watched() as stalls:
        if not stalls.is_known:
            return None
        time.sleep(seconds)
        seen = [each.end - each.begin for each in stalls.seen()]
    return sum(seen) / seconds / len(os.sched_getaffinity(0)), max(seen, default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--watch", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        watch(options.watch)
    found = stalled_share(options.seconds)
    if found is None:
        sys.exit("Stalls can't be known: this process may not have the highest priority")
    share, longest = found
    print(f"The cores stood still for {share:.2%} of the time, at most for {longest * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
