"""Rules for documented differences of iterators (docs/kernel_differences.md).

From a certain step on, TensorFlow's answers are not determined, or depend on a dataset that this
runtime does not keep; the answers to earlier steps must agree.
"""

from __future__ import annotations

import dataclasses

import protos as pb
from runtime.foundation.errors import Code
from tests.conformance.case import Answer, Case
from tools.oracle_comparison.agreement import compare
from tools.oracle_comparison.rules_of_difference import Answers

_GETTERS = (
    "IteratorGetNext", "IteratorGetNextAsOptional", "IteratorGetNextSync",
    "MultiDeviceIteratorGetNextFromShard",
)  # fmt: skip
Nodes = dict[str, pb.NodeDef]


def after_a_step_that_ended_one(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Only steps after one that read several iterators, one of which had ended, differ.

    Whether the others were read before the step failed is not determined.
    """
    nodes = _nodes(case)
    return any(
        theirs[step].code == Code.OUT_OF_RANGE
        and sum(each.op in _GETTERS for each in _above(nodes, *case.steps[step].fetches)) > 1
        for step in range(agreed_steps(case, ours, theirs))
    )


def asked_twice_in_a_step(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The elements of each step agree, up to their order in steps that read an iterator twice."""
    nodes = _nodes(case)
    for step, got, want in zip(case.steps, ours, theirs, strict=True):
        getters = [each for each in _above(nodes, *step.fetches) if each.op in _GETTERS]
        is_shared = len({each.input[0] for each in getters}) < len(getters)
        if isinstance(got, str) or got.code != want.code:
            return False
        one, other = ([value.tolist() for value in each.values] for each in (got, want))
        if one != other and not (is_shared and sorted(map(repr, one)) == sorted(map(repr, other))):
            return False
    return True


def restored_into_another_dataset(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Only a restore and later steps differ, and the iterators' datasets have other constants."""
    nodes = _nodes(case)
    restores = {node.name for node in case.graph.node if node.op == "DeserializeIterator"}
    steps = enumerate(case.steps)
    first = next((n for n, step in steps if restores & set(step.targets)), len(case.steps))
    made = [node.input[0] for node in case.graph.node if node.op == "MakeIterator"]
    return _differ_in_a_number(nodes, made) and agreed_steps(case, ours, theirs) >= first


def chosen_by_speed(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """ChooseFastestDataset of datasets with other constants; codes and shapes agree."""
    nodes = _nodes(case)
    differ = any(
        _differ_in_a_number(nodes, list(node.input))
        for node in case.graph.node
        if node.op.endswith("ChooseFastestDataset")
    )
    return differ and all(
        not isinstance(got, str)
        and got.code == want.code
        and [each.shape for each in got.values] == [each.shape for each in want.values]
        for got, want in zip(ours, theirs, strict=True)
    )


def _differ_in_a_number(nodes: Nodes, outputs: list[str]) -> bool:
    """Return whether the outputs depend on different constants."""
    numbers = [
        [
            each.attr["value"].tensor.SerializeToString(deterministic=True)
            for each in _above(nodes, output)
            if each.op == "Const"
        ]
        for output in outputs
    ]
    return any(each != numbers[0] for each in numbers)


def agreed_steps(case: Case, ours: Answers, theirs: list[Answer]) -> int:
    """Return the number of steps, from the first on, whose answers agree."""
    for count in range(1, len(case.steps) + 1):
        begun = dataclasses.replace(case, steps=case.steps[:count])
        if compare(begun, ours[:count], theirs[:count]).difference:
            return count - 1
    return len(case.steps)


def _nodes(case: Case) -> Nodes:
    return {node.name: node for node in case.graph.node}


def _above(nodes: Nodes, *outputs: str) -> list[pb.NodeDef]:
    """Return the nodes that the outputs depend on, each once, depth first in input order."""
    found: dict[str, pb.NodeDef] = {}
    waiting = list(reversed(outputs))
    while waiting:
        name = waiting.pop().lstrip("^").split(":")[0]
        if name not in found:
            found[name] = nodes[name]
            waiting += reversed(nodes[name].input)
    return list(found.values())
