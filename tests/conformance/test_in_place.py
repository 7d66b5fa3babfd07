"""Kernels that may write into their inputs' memory give TensorFlow's recorded answers.

Their inputs must come from kernels that are `fresh`, whose results share no memory with any input.

The first input of each recorded case passes through two `Neg` nodes: its values are unchanged, but
its memory belongs to the step, so that the kernel may reuse it. The fed arrays must not change.
"""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import OpError, new_session
from runtime.executors import plan_text, step_plan
from runtime.framework.dtypes import DataType
from runtime.registrations import kernel_registry
from tests.conformance.case import Answer, Case, assert_matches, cases_of, read_golden
from tests.conformance.test_cases import FAMILIES, options

NEGATED = ("HALF", "BFLOAT16", "FLOAT", "DOUBLE", "COMPLEX64", "INT8", "INT16", "INT32", "INT64")
TYPES = frozenset(DataType[name] for name in NEGATED)


def parameters() -> list[object]:
    """Return cases of one node with an in-place kernel, whose first input can be negated."""
    registry = kernel_registry()
    result: list[object] = []
    for family in FAMILIES:
        golden = read_golden(family)
        for case in cases_of(family):
            node = case.graph.node[-1]
            first = next((each for each in case.graph.node if each.name == "input_0"), None)
            if (
                node.name == "result"
                and first is not None
                and DataType(first.attr["dtype"].type) in TYPES
                and any(kernel.in_place for kernel in registry.kernels_of(node.op))
            ):
                result.append(
                    pytest.param(case, golden[case.name][1][0], id=f"{family}-{case.name}")
                )
    return result


def with_own_memory(case: Case) -> pb.GraphDef:
    """Return the case's graph with two `Neg` nodes before the first input."""
    graph = pb.GraphDef()
    graph.CopyFrom(case.graph)
    result = graph.node[-1]
    source = result.input[0]
    data_type = next(each for each in graph.node if each.name == "input_0").attr["dtype"].type
    for name in ("negative", "positive"):
        negation = graph.node.add(name=name, op="Neg", input=[source])
        negation.attr["T"].type = data_type
        source = name
    result.input[0] = source
    return graph


@pytest.mark.parametrize(("case", "want"), parameters())
def test_case_in_place(case: Case, want: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_plan, "GENERATE_AT_RUN", 1)
    monkeypatch.setattr(plan_text, "NODES_A_PART", 2)
    how = options("DEFAULT")
    how.config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    session = new_session(how)
    session.create(with_own_memory(case))
    (step,) = case.steps
    before = {name: value.copy() for name, value in step.feeds.items()}
    if want.code:
        with pytest.raises(OpError) as caught:
            session.run(step.feeds, step.fetches, step.targets)
        assert caught.value.code == want.code, caught.value.message
    else:
        assert_matches(case, session.run(step.feeds, step.fetches, step.targets), want)
    for name, value in before.items():
        assert step.feeds[name].tobytes() == value.tobytes()


def fresh_cases() -> list[object]:
    """Return the cases of one node whose kernels are all `fresh` and which succeed."""
    registry = kernel_registry()
    result: list[object] = []
    for family in FAMILIES:
        golden = read_golden(family)
        for case in cases_of(family):
            node = case.graph.node[-1]
            kernels = registry.kernels_of(node.op)
            if (
                node.name == "result"
                and kernels
                and all(kernel.fresh for kernel in kernels)
                and not any(answer.code for answer in golden[case.name][1])
            ):
                result.append(pytest.param(case, id=f"{family}-{case.name}"))
    return result


@pytest.mark.parametrize("case", fresh_cases())
def test_a_fresh_result_shares_no_memory_with_the_inputs(case: Case) -> None:
    session = new_session(options("DEFAULT"))
    session.create(case.graph)
    for step in case.steps:
        first = session.run(step.feeds, ["result:0"])[0]
        for fed in step.feeds.values():
            assert not np.shares_memory(first, fed)
