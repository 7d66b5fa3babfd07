"""Children that crash, hang, grow or end are findings, and the inputs after them still run."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tests.fuzz.children import Limits, enter, run_in_children

LIMITS = Limits(seconds=1.0, wall_seconds=100.0, memory_bytes=2 << 30, growth_bytes=100 << 20)
WITHOUT_TIME = Limits(seconds=100.0, wall_seconds=0.5, memory_bytes=2 << 30, growth_bytes=100 << 20)


def run(number: int) -> str:
    if number == 2:
        enter("before the crash")
        os.kill(os.getpid(), signal.SIGTERM)
    if number == 4:
        enter("before the hang")
        while True:
            pass
    if number == 5:
        os._exit(1)
    if number == 6:
        assert len(bytearray(150 << 20)) == 150 << 20
    return "FINDING of a kind" if number == 3 else "answer"


def test_findings_are_reported_with_their_phase() -> None:
    reports: dict[int, str] = {}
    counts = run_in_children(run, range(9), 2, LIMITS, reports.__setitem__)
    assert counts == {"answer": 4, "CRASH": 1, "FINDING": 1, "HANG": 1, "MEMORY": 1, "crash": 1}
    assert reports.pop(4).startswith(f"HANG {signal.SIGKILL.value} before the hang")
    assert reports.pop(6).startswith("MEMORY 1")
    assert reports == {2: f"CRASH {signal.SIGTERM.value} before the crash", 3: "FINDING of a kind"}


def test_a_child_that_waits_for_ever_is_a_finding() -> None:
    def wait(number: int) -> str:
        enter("waiting")
        threading.Event().wait()
        return "answer"

    counts = run_in_children(wait, [0], 1, WITHOUT_TIME, lambda number, outcome: None)
    assert counts == {"HANG": 1}


def test_memory_beyond_the_limit_is_not_there() -> None:
    def take(number: int) -> str:
        try:
            return f"answer {len(bytearray(3 << 30))}"
        except MemoryError:
            return "refused"

    assert run_in_children(take, [0], 1, LIMITS, lambda number, outcome: None) == {"refused": 1}


def test_a_child_that_does_not_start_is_no_finding() -> None:
    def fail() -> None:
        raise ValueError("no such model")

    with pytest.raises(RuntimeError, match="no such model"):
        run_in_children(run, [0], 1, LIMITS, lambda number, outcome: None, start=fail)
