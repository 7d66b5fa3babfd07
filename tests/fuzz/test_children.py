"""Children that crash, hang or end are findings, and the inputs after them still run."""

from __future__ import annotations

import os
import signal
import time

from tests.fuzz.children import Limits, enter, run_in_children

LIMITS = Limits(seconds=1.0, memory_bytes=8 << 30)


def run(number: int) -> str:
    if number == 2:
        enter("before the crash")
        os.kill(os.getpid(), signal.SIGTERM)
    if number == 4:
        enter("before the hang")
        while True:
            time.sleep(0.01)
    if number == 5:
        os._exit(1)
    return "FINDING of a kind" if number == 3 else "answer"


def test_findings_are_reported_with_their_phase() -> None:
    reports: dict[int, str] = {}
    counts = run_in_children(run, range(8), 2, LIMITS, reports.__setitem__)
    assert counts == {"answer": 4, "CRASH": 1, "FINDING": 1, "HANG": 1, "crash": 1}
    assert reports == {
        2: f"CRASH {signal.SIGTERM.value} before the crash",
        3: "FINDING of a kind",
        4: f"HANG {signal.SIGKILL.value} before the hang",
    }
