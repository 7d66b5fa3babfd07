"""Runs inputs in child processes, which may crash, hang or use too much memory.

A child handles inputs one after the other. When it ends before its time, the input at which it was
is a finding, and a new child goes on with the next.
"""

from __future__ import annotations

import collections
import dataclasses
import faulthandler
import os
import pathlib
import re
import resource
import selectors
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from typing import IO

INPUTS_A_CHILD = 500  # so that memory which a child does not give back stays small
_POLL_SECONDS = 0.5
_SHOW_STACKS = signal.SIGUSR1
_STACKS_SECONDS = 0.1
_LARGEST_FILE = 1 << 28  # bytes
_TICKS = os.sysconf("SC_CLK_TCK")  # a second of processor time, in /proc/<pid>/stat
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a child may use.

    For one input it has `seconds` of processor time, so that a busy machine makes no findings, and
    `wall_seconds`. `memory_bytes` is the address space that it may take beyond what it has at its
    start; resident memory that grows by more than `growth_bytes` is a finding.
    """

    seconds: float
    wall_seconds: float
    memory_bytes: int
    growth_bytes: int


@dataclasses.dataclass
class _Child:
    pid: int
    pipe: int
    trace: IO[bytes]
    numbers: list[int]
    text: bytes = b""
    phase: str = ""
    done: int = 0
    since: float = 0.0
    used: float = 0.0  # seconds of processor time when the input began

    def begin(self) -> None:
        self.since, self.used = time.monotonic(), _processor_seconds(self.pid)

    def is_late(self, limits: Limits) -> bool:
        return (
            time.monotonic() - self.since > limits.wall_seconds
            or _processor_seconds(self.pid) - self.used > limits.seconds
        )


def run_in_children(
    run: Callable[[int], str],
    numbers: Sequence[int],
    children: int,
    limits: Limits,
    report: Callable[[int, str], None],
    start: Callable[[], object] = lambda: None,
    inputs_a_child: int = INPUTS_A_CHILD,
) -> dict[str, int]:
    """Return how often each outcome came, by its first word.

    `start` is called once in each child. `run` returns the outcome of an input. One in capitals is
    a finding, which is reported, as are CRASH (the child ended), HANG and MEMORY. `run` names the
    phase of an input with `enter`, which such a report shows; before the first, a crash or hang is
    no finding. Raises RuntimeError if a child does not start.
    """
    waiting = [
        list(numbers[at : at + inputs_a_child]) for at in range(0, len(numbers), inputs_a_child)
    ]
    living = _Children(limits, report)
    while waiting or living.count:
        while waiting and living.count < children:
            living.add(_fork(run, start, waiting.pop(0), limits))
        for ended in living.read():
            rest = living.end(ended)
            if rest:
                waiting.insert(0, rest)
        living.kill_late()
    return dict(living.outcomes)


class _Children:
    """The children that live, and the outcomes that they have told."""

    def __init__(self, limits: Limits, report: Callable[[int, str], None]) -> None:
        self.outcomes: collections.Counter[str] = collections.Counter()
        self._limits = limits
        self._report = report
        self._selector = selectors.DefaultSelector()

    @property
    def count(self) -> int:
        return len(self._selector.get_map())

    def add(self, child: _Child) -> None:
        self._selector.register(child.pipe, selectors.EVENT_READ, child)

    def read(self) -> list[_Child]:
        """Read what children tell; return those that have ended."""
        ended = []
        for key, _ in self._selector.select(_POLL_SECONDS):
            child: _Child = key.data
            content = os.read(child.pipe, 1 << 16)
            if not content:
                ended.append(child)
            *lines, child.text = (child.text + content).split(b"\n")
            for line in lines:
                self._take(child, line.decode(errors="replace"))
        return ended

    def _take(self, child: _Child, line: str) -> None:
        kind, _, text = line.partition(" ")
        if kind == "done":
            self._note(child.numbers[child.done], text)
            child.done += 1
            child.phase = ""
            child.since = 0.0
        else:
            child.phase = line

    def _note(self, number: int, outcome: str) -> None:
        word = outcome.split(" ", 1)[0]
        self.outcomes[word] += 1
        if word.isupper():
            self._report(number, outcome)

    def end(self, child: _Child) -> list[int]:
        """Note how a child has ended; return the numbers that another one must run."""
        self._selector.unregister(child.pipe)
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        child.trace.seek(0)
        trace = child.trace.read().decode(errors="replace")
        child.trace.close()
        rest = child.numbers[child.done :]
        if not rest:
            return []
        if child.phase == "starting":
            raise RuntimeError(f"A child does not start (status {status}):\n{trace}")
        is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        word = "HANG" if is_killed else "CRASH"
        # Before the first phase the input did not get to what is tested.
        where = f"{child.phase} {_deepest(trace)}".strip()
        self._note(rest[0], f"{word if child.phase else word.lower()} {status} {where}")
        return rest[1:]

    def kill_late(self) -> None:
        """Kill the children whose input takes too long, after they have written their stacks."""
        for key in list(self._selector.get_map().values()):
            child: _Child = key.data
            if not child.since:
                child.begin()
            elif child.is_late(self._limits):
                os.kill(child.pid, _SHOW_STACKS)
                time.sleep(_STACKS_SECONDS)
                os.kill(child.pid, signal.SIGKILL)


def enter(phase: str) -> None:
    """Tell the parent what the child does next."""
    if _pipe:
        os.write(_pipe[0], f"{phase}\n".encode())


_pipe: list[int] = []  # to the parent, in a child


def _fork(
    run: Callable[[int], str], start: Callable[[], object], numbers: list[int], limits: Limits
) -> _Child:
    reading, writing = os.pipe()
    trace = tempfile.TemporaryFile()  # noqa: SIM115 # closed when the child has ended
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(pid, reading, trace, numbers)
    try:
        os.close(reading)
        _pipe[:] = [writing]
        _set_up(trace, limits)
        enter("starting")
        start()
        enter("")
        growth = _Growth(limits.growth_bytes)
        for number in numbers:
            outcome = run(number).replace("\n", " ")
            outcome = growth.outcome() or outcome
            os.write(writing, f"done {outcome}\n".encode())
    except BaseException:
        trace.write(traceback.format_exc().encode())
        trace.flush()
    finally:
        os._exit(0)


def _set_up(trace: IO[bytes], limits: Limits) -> None:
    silence = os.open(os.devnull, os.O_WRONLY)  # ops print
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    faulthandler.enable(trace)
    faulthandler.register(_SHOW_STACKS, trace)
    now = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    resource.setrlimit(resource.RLIMIT_AS, (now + limits.memory_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE,) * 2)


class _Growth:
    """Notices that resident memory has grown too much since the last time it had."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._before = _peak_memory()

    def outcome(self) -> str:
        grown = _peak_memory() - self._before
        if grown <= self._limit:
            return ""
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._before = _peak_memory()
        return f"MEMORY {grown >> 20} MB"


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _processor_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS  # utime and stime


def _deepest(trace: str) -> str:
    """Return the innermost place in this project of a trace that faulthandler wrote."""
    found = re.search(r'File ".*?((?:runtime|server)/[^"]+)", line \d+ in (\S+)', trace)
    return f"at {found[1]}:{found[2]}" if found else trace[-200:]
