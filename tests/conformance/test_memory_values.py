"""Which bounds of kernels read values: a compiled step remembers the others by shapes alone.

Each recorded call is varied: its shapes stay, and one input at a time gets other numbers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from runtime.executors.memory_checks import VALUE_INPUTS
from runtime.executors.steady_work import ITERATIVE_OPS, STEADY_OPS
from runtime.kernels.lazy_registry import op_index
from tests.conformance.case import Case, cases_of, families
from tests.conformance.case_runs import run
from tests.conformance.kernel_calls import Call, calls_seen
from tests.conformance.shown_types import nodes_of

NUMBERS = (0, 1, -1, 1000)
ROOMS = {modules[0].split(".")[0] for modules in op_index().values()}
BOUNDED = {
    op
    for room in ROOMS
    for op in importlib.import_module(f"runtime.kernels.{room}.memory_needs").MEMORY_NEEDS
}
CALLS = 6  # of an op that are varied


class Variations:
    """Notes the inputs, by op and position, whose values change a bound."""

    def __init__(self) -> None:
        self.found: dict[str, set[int]] = {}
        self._calls: dict[str, int] = {}

    def is_wanted(self, case: Case) -> bool:
        """Return whether a case may have calls to vary."""
        return any(
            self._calls.get(node.op, 0) < CALLS for node in nodes_of(case) if node.op in BOUNDED
        )

    def see(self, call: Call) -> Any:
        result = call.run()
        seen = self._calls[call.op] = self._calls.get(call.op, 0) + 1
        if callable(call.kernel.memory) and seen <= CALLS:
            bound = _bound(call)
            for position, variant in _variants(call):
                if _bound(variant) != bound:
                    self.found.setdefault(call.op, set()).add(position)
        return result


def _variants(call: Call) -> Iterator[tuple[int, Call]]:
    kinds = "fcVbiu" if call.op in STEADY_OPS else "fcVb"  # V: bfloat16 and its like
    for position, value in enumerate(call.inputs):
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in kinds:
            continue
        for number in NUMBERS:
            if number >= 0 or value.dtype.kind != "u":
                inputs = list(call.inputs)
                inputs[position] = np.full(np.shape(value), number, value.dtype)
                yield position, call.with_inputs(inputs)


def _bound(call: Call) -> int | None:
    try:
        return call.bound()
    except Exception:  # the kernel refuses the inputs
        return None


def test_bounds_that_read_values_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    variations = Variations()
    with calls_seen(variations.see, monkeypatch):
        for family in families():
            for case in filter(variations.is_wanted, cases_of(family)):
                run(case)
    found = {op: at for op, at in variations.found.items() if op not in ITERATIVE_OPS}
    assert {op for op in found if not found[op] <= VALUE_INPUTS.get(op, frozenset())} == set()
    assert {"QuantizedConcat", "RaggedRange", "Where"} <= found.keys()
