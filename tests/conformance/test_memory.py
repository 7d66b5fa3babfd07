"""The memory rows of kernels hold for every recorded case: they are bounds, and not absurd ones."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tests.conformance.case import cases_of, families
from tests.conformance.case_runs import run
from tests.conformance.kernel_calls import NOT_OF_INPUTS, SLACK, Call, calls_seen, traced

# A call of a recorded case is small; what needs more than this would be refused without reason.
MOST = 1 << 22
# Tables that a kernel makes at its first call, whatever its inputs are.
TABLES = {"RandomIndexShuffle": 1 << 23, "SobolSample": 1 << 26, "UnicodeScript": 1 << 23}


class Watch:
    """Runs kernels, and notes those whose bound does not hold."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.seen: set[str] = set()
        self._calls = 0

    def run(self, call: Call) -> Any:
        try:
            bound = call.bound()
        except Exception as error:  # only inputs that the kernel refuses may be wrong
            result = call.run()
            self.wrong.append(f"{call.op}: its row raises {error!r}")
            return result
        self._calls += 1
        number = self._calls
        with traced():
            return self._run_traced(call, bound, number)

    def _run_traced(self, call: Call, bound: int, number: int) -> Any:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = call.run()
        peak = tracemalloc.get_traced_memory()[1] - before
        if number != self._calls or call.op in NOT_OF_INPUTS:
            return result  # a kernel that called a function is more than itself
        self.seen.add(call.op)
        if peak > bound + SLACK and (call.kernel.needs_context or call.allocated() > bound + SLACK):
            self.wrong.append(f"{call.op} allocated {peak} bytes, its row says {bound}")
        if bound > MOST + TABLES.get(call.op, 0):
            self.wrong.append(f"{call.op} allocated {peak} bytes, but its row says {bound}")
        return result


@pytest.mark.parametrize("family", families())
def test_kernels_allocate_what_their_rows_say(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    with calls_seen(watch.run, monkeypatch):
        for case in cases_of(family):
            run(case)
    assert watch.wrong == []
