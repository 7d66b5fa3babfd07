"""Recorded conformance cases by the op that they test: the starting points of random cases."""

from __future__ import annotations

import collections
import functools
import zlib

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, cases_of, families
from tools.oracle_comparison.left_out import reason_left_out

# Cases of these families test several ops at once, block, or repeat other families: they are used
# only for ops without other cases.
LAST_RESORT = (
    "datasets", "dataset_arguments", "dataset_pipelines", "element_types", "queues", "barriers",
    "readers", "loops", "step_state", "unusual_inputs", "unusual_arguments", "unusual_numbers",
    "clock", "files", "checkpoint", "checkpoint_remapping", "checkpoint_v1",
)  # fmt: skip
SOURCES = ("Placeholder", "Const", "NoOp")
MAX_BORROWED = 24  # cases of an op that is not the rarest op of any case


@functools.cache
def seeds_by_op() -> dict[str, list[Case]]:
    """Return op → the recorded cases to start from, in the order of their names.

    A case belongs to the rarest op in it. An op to which no case belongs borrows the smallest of
    the cases that contain it.
    """
    borrowed: dict[str, list[Case]] = collections.defaultdict(list)
    plain, others = _recorded_cases()
    for case in plain + others:
        for op in _ops(case) - _own_seeds().keys():
            borrowed[op].append(case)
    smallest = {
        op: sorted(cases, key=lambda case: (len(case.graph.node), case.name))[:MAX_BORROWED]
        for op, cases in borrowed.items()
    }
    found = {**_own_seeds(), **smallest}
    return {op: sorted(found[op], key=lambda case: case.name) for op in sorted(found)}


def is_borrowed(op: str) -> bool:
    """Return whether the op's cases belong to other ops."""
    return op not in _own_seeds()


@functools.cache
def _own_seeds() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = collections.defaultdict(list)
    plain, _ = _recorded_cases()
    frequency = collections.Counter(op for case in plain for op in _ops(case))
    for case in plain:
        if ops := _ops(case):
            found[min(ops, key=lambda op: (frequency[op], op))].append(case)
    return found


@functools.cache
def _recorded_cases() -> tuple[list[Case], list[Case]]:
    """Return the cases that may belong to an op, and those that can only be borrowed."""
    plain, others = [], []
    for family in families():
        for case in cases_of(family):
            if any(reason_left_out(op) for op in _all_ops(case) - set(SOURCES)):
                continue
            last = family in LAST_RESORT or case.graph.library.function
            (others if last else plain).append(case)
    return plain, others


def _ops(case: Case) -> set[str]:
    return {node.op for node in case.graph.node} - set(SOURCES)


def _all_ops(case: Case) -> set[str]:
    """Return the ops of the graph and of its functions."""
    bodies = (node.op for body in case.graph.library.function for node in body.node_def)
    return {*(node.op for node in case.graph.node), *bodies}


def subject(case: Case, op: str) -> pb.NodeDef:
    """Return the first node of the case with the op."""
    return next(node for node in case.graph.node if node.op == op)


def is_single(case: Case) -> bool:
    """Return whether the case has one node besides placeholders, constants and NoOps."""
    return sum(node.op not in SOURCES for node in case.graph.node) == 1


def leading_attr(op: str) -> str | None:
    """Return the op's leading type attribute: that of the first input with one, else the first."""
    op_def = op_def_registry.look_up(op)
    typed = [argument.type_attr for argument in op_def.input_arg if argument.type_attr]
    typed += [attr.name for attr in op_def.attr if attr.type == "type"]
    return typed[0] if typed else None


def dtype_of(case: Case, op: str) -> DataType | None:
    """Return the leading type of a recorded case, None if the op has no type attribute."""
    attr = leading_attr(op)
    value = subject(case, op).attr.get(attr or "")
    number = value.type if value else 0
    return DataType(number % 100) if number else None


def pick(seeds: list[Case], key: str) -> Case:
    """Return the case with the highest hash, so that adding a case seldom changes the choice."""
    return max(seeds, key=lambda case: zlib.crc32(f"{key}/{case.name}".encode()))
