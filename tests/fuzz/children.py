"""Runs inputs in child processes, which may crash, hang or use too much memory.

A child handles inputs one after the other. When it ends before its time, the input at which it was
is a finding, and a new child goes on with the next.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import resource
import selectors
import signal
import time
import traceback
from collections.abc import Callable, Sequence

_INPUTS_A_CHILD = 500  # so that memory which a child does not give back stays small


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a child may use for one input (seconds), and at all (bytes of address space)."""

    seconds: float
    memory_bytes: int


@dataclasses.dataclass
class _Child:
    pid: int
    pipe: int
    numbers: list[int]
    text: bytes = b""
    phase: str = ""
    done: int = 0
    since: float = 0.0


def run_in_children(
    run: Callable[[int], str],
    numbers: Sequence[int],
    children: int,
    limits: Limits,
    report: Callable[[int, str], None],
) -> dict[str, int]:
    """Return how often each outcome came, by its first word.

    `run` returns the outcome of an input. One in capitals is a finding, which is reported, as are
    CRASH (the child ended) and HANG. `run` names the phase of an input with `enter`, which such a
    report shows; before the first, a crash or hang is no finding.
    """
    waiting = [
        list(numbers[at : at + _INPUTS_A_CHILD]) for at in range(0, len(numbers), _INPUTS_A_CHILD)
    ]
    counts: collections.Counter[str] = collections.Counter()
    selector = selectors.DefaultSelector()

    def note(number: int, outcome: str) -> None:
        word = outcome.split(" ", 1)[0]
        counts[word] += 1
        if word.isupper():
            report(number, outcome)

    def start(chunk: list[int]) -> None:
        child = _fork(run, chunk, limits)
        selector.register(child.pipe, selectors.EVENT_READ, child)

    def end(child: _Child) -> None:
        selector.unregister(child.pipe)
        os.close(child.pipe)
        _, status = os.waitpid(child.pid, 0)
        rest = child.numbers[child.done :]
        if rest:
            is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            word = "HANG" if is_killed else "CRASH"
            # Before the first phase the input did not get to what is tested.
            note(rest[0], f"{word if child.phase else word.lower()} {status} {child.phase}")
            if rest[1:]:
                waiting.insert(0, rest[1:])

    while waiting or selector.get_map():
        while waiting and len(selector.get_map()) < children:
            start(waiting.pop(0))
        for key, _ in selector.select(1.0):
            child: _Child = key.data
            content = os.read(child.pipe, 1 << 16)
            if not content:
                end(child)
                continue
            *lines, child.text = (child.text + content).split(b"\n")
            for line in lines:
                kind, _, text = line.decode(errors="replace").partition(" ")
                if kind == "done":
                    note(child.numbers[child.done], text)
                    child.done += 1
                    child.phase = ""
                else:
                    child.phase = line.decode(errors="replace")
                child.since = time.monotonic()
        for key in list(selector.get_map().values()):
            if time.monotonic() - key.data.since > limits.seconds:
                os.kill(key.data.pid, signal.SIGKILL)
    return dict(counts)


def enter(phase: str) -> None:
    """Tell the parent what the child does next."""
    os.write(1, f"{phase}\n".encode())


def _fork(run: Callable[[int], str], numbers: list[int], limits: Limits) -> _Child:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(pid, reading, numbers, since=time.monotonic())
    try:
        os.close(reading)
        os.dup2(writing, 1)
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in numbers:
            outcome = run(number).replace("\n", " ")
            os.write(1, f"done {outcome}\n".encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
