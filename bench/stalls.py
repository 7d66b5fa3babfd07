"""Notice when a core of the machine stands still: `python -m bench.stalls [--seconds 10]`.

The host of a virtual machine can take a core away, for 20 ms and more. No program on the machine
causes such a stall, and the kernel does not always count it. A watcher on each core finds it: a
process of the highest priority (SCHED_FIFO) that sleeps for a millisecond at a time and notes when
it wakes up more than LATE_SECONDS late. It waits for nothing on its core but the kernel's own work,
so while it waits nothing else runs there either.

Benchmarks of short delays (`latencies_beside_stalls`) give the p99 twice: of all, and of those
tenths of a second in which no core stood still. How many these are is in the table as well. If the
work of a row caused the stalls, it would have fewer of these tenths than the idle row.

The watchers take 1 to 3 % of each core. To have the highest priority, a process must be allowed to
(CAP_SYS_NICE); if it is not, stalls are not known, and there is only the p99 of all.

Such a benchmark also keeps idle cores awake (`cores_awake`). A host that is busy lets a core that
has halted wait before it runs again, so the idle row would have more of these waits than others:
1.7 to 3 % of the time instead of 0.2 to 0.3 %. The command above does not keep them awake.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from bench.measure import Window, in_turns, latency_figures, seconds_alone

# A host that is busy takes cores away for 0.2 to 0.9 ms at a time, for half of 50 ms. On a core
# that is never idle, 99 of 100 wake-ups are less than 0.13 ms late.
LATE_SECONDS = 0.0005
PERIOD_SECONDS = 0.001
# What has waited for a stall to end delays what comes after it.
AFTERWARDS_SECONDS = 0.02
LATENCY_DEVICE = pathlib.Path("/dev/cpu_dma_latency")
ROOT = pathlib.Path(__file__).parent.parent
NOT_ALLOWED = 77  # the exit status of a watcher without the priority


class Stalls:
    """The stalls that `watched` has found so far; `is_known` is false if it can't find any."""

    def __init__(self, files: Sequence[pathlib.Path] = ()) -> None:
        self._files = files
        self.is_known = bool(files)

    def seen(self) -> np.ndarray:
        """Return the stalls of all cores: float64 [stalls, 2], the instants of begin and end.

        They are of `time.perf_counter()`, which is the same in all processes.
        """
        lines = [line for file in self._files for line in file.read_text().splitlines(True)]
        ended = [line.split() for line in lines if line.endswith("\n")]
        return np.array(ended, np.float64).reshape(-1, 2)


@contextlib.contextmanager
def cores_awake(device: pathlib.Path = LATENCY_DEVICE) -> Iterator[None]:
    """Let no core of the machine halt inside the context, if this process may say so (Linux).

    The kernel keeps what was asked for while the device is open.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = stack.enter_context(device.open("wb", buffering=0))
            file.write(struct.pack("i", 0))  # the µs that a core may take to wake up
        yield


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


def is_disturbed(window: Window, stalls: np.ndarray) -> bool:
    """Return whether one of `stalls`, as `Stalls.seen` returns them, delays a run of the window."""
    begin, end = window.begin - AFTERWARDS_SECONDS, window.begin + window.seconds
    return bool(((stalls[:, 0] < end) & (stalls[:, 1] > begin)).any())


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


def figures_in_turns(
    rows: Mapping[str, Callable[[], contextlib.AbstractContextManager[object]]],
    run: Callable[[], object],
    seconds: float,
    load: float,
) -> dict[str, dict[str, float]]:
    """Measure an open loop beside each row's work; return what `latencies_beside_stalls` returns.

    `rows`, `run` and `seconds` are as of `in_turns`. A run is due at `load` (0 to 1) of the rate
    that one thread reaches alone.
    """
    with cores_awake(), watched() as stalls:
        interval = seconds_alone(run) / load
        return latencies_beside_stalls(in_turns(rows, run, seconds, interval), stalls)


def stalled_share(seconds: float) -> tuple[float, float] | None:
    """Watch the cores; return the share of their time that they stood still, and the longest in s.

    Returns None if stalls can't be known.
    """
    with watched() as stalls:
        if not stalls.is_known:
            return None
        time.sleep(seconds)
        begins, ends = stalls.seen().T
    lengths = ends - begins
    share = float(lengths.sum()) / seconds / len(os.sched_getaffinity(0))
    return share, float(lengths.max(initial=0.0))


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
