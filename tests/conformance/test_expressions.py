"""Every case with an op that expressions have, with expressions of one operation and more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime.executors import step_plan
from runtime.executors.expressions import expression, groups
from runtime.executors.expressions.expression import Expression
from tests.conformance.case import Answer, Case
from tests.conformance.test_cases import check, options, parameters

pytest.importorskip("numexpr")

MOST_ELEMENTS = 2000


class SmallInputs:
    """In place of the inputs that an expression knows: all whose results would be learned."""

    def __contains__(self, inputs: expression.Inputs) -> bool:
        shapes = inputs[::2]
        try:
            size = np.prod(np.broadcast_shapes(*shapes))
        except ValueError:  # the kernel says what is wrong
            return False
        return () not in shapes and 0 < size <= MOST_ELEMENTS


def has_expressions(case: Case) -> bool:
    functions = [node for each in case.graph.library.function for node in each.node_def]
    return any(node.op in groups._OPERATIONS for node in [*case.graph.node, *functions])


CASES = [each for each in parameters() if has_expressions(each.values[0])]  # type: ignore[attr-defined]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of operations of the expressions that ran."""
    seen: list[int] = []
    make, call = Expression.__init__, Expression.__call__

    def init(self: Expression, group: groups.Group) -> None:
        make(self, group)
        self._compiled = expression._compiled(group)
        self.known = SmallInputs()  # type: ignore[assignment]

    def called(self: Expression, *values: Any) -> np.ndarray:
        seen.append(self._group.end - self._group.begin)
        return call(self, *values)

    monkeypatch.setattr(Expression, "__init__", init)
    monkeypatch.setattr(Expression, "__call__", called)
    monkeypatch.setattr(groups, "LEAST_OPERATIONS", 1)
    monkeypatch.setattr(step_plan, "GENERATE_AT_RUN", 1)
    return seen


@pytest.mark.parametrize(("case", "recorded"), CASES)
def test_case(case: Case, recorded: tuple[str, tuple[Answer, ...]], calls: list[int]) -> None:
    check(case, recorded[1], options("DEFAULT"))


def test_cases_run_expressions(calls: list[int]) -> None:
    """Else the tests above would be those of kernels."""
    for each in CASES[:: max(1, len(CASES) // 100)]:
        case, recorded = each.values  # type: ignore[attr-defined]
        check(case, recorded[1], options("DEFAULT"))
    assert len(calls) > 20
