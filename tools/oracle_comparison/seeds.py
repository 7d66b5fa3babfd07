"""Recorded conformance cases by the op they are about: where random cases start from."""

from __future__ import annotations

import collections
import functools
import importlib
import pathlib
import zlib

import protos as pb
from runtime.framework import op_def_registry
from runtime.framework.dtypes import DataType
from tests.conformance.case import Case

CASES = pathlib.Path(__file__).parents[2] / "tests" / "conformance" / "cases"
# Random cases of these families would touch files, wait, or compare what time says.
LEFT_OUT = (
    "checkpoint", "checkpoint_remapping", "checkpoint_v1", "clock", "datasets",
    "dataset_pipelines", "element_types", "files", "queues", "barriers", "readers", "loops",
    "step_state", "unusual_inputs",
)  # fmt: skip
# Ops of these names write or read files, or name them; their kernels have tests of their own.
FILE_OPS = (
    "Save", "Restore", "File", "Summary", "Print", "FromTextFile", "LoadAndRemap", "VocabRemap",
    "Timestamp", "Checkpoints", "PyFunc",
)  # fmt: skip
SOURCES = ("Placeholder", "Const", "NoOp")


@functools.cache
def seeds_by_op() -> dict[str, list[Case]]:
    """Op → the recorded cases about it, in the order of their names."""
    found: dict[str, list[Case]] = collections.defaultdict(list)
    cases = []
    for path in sorted(CASES.glob("[a-z]*.py")):
        if path.stem not in LEFT_OUT:
            cases += importlib.import_module(f"tests.conformance.cases.{path.stem}").CASES
    cases = [case for case in cases if not case.graph.library.function]
    frequency = collections.Counter(op for case in cases for op in _ops(case))
    for case in cases:
        ops = _ops(case)
        if ops and not any(part in op for op in ops for part in FILE_OPS):
            found[min(ops, key=lambda op: (frequency[op], op))].append(case)
    return {op: sorted(found[op], key=lambda case: case.name) for op in sorted(found)}


def _ops(case: Case) -> set[str]:
    return {node.op for node in case.graph.node} - set(SOURCES)


def subject(case: Case, op: str) -> pb.NodeDef:
    """The node of the case that the op is."""
    return next(node for node in case.graph.node if node.op == op)


def is_single(case: Case) -> bool:
    """Whether the case is one node and its inputs."""
    return sum(node.op not in SOURCES for node in case.graph.node) == 1


def leading_attr(op: str) -> str | None:
    """The attribute whose type is the case's dtype: that of the first input that has one."""
    op_def = op_def_registry.look_up(op)
    typed = [argument.type_attr for argument in op_def.input_arg if argument.type_attr]
    typed += [attr.name for attr in op_def.attr if attr.type == "type"]
    return typed[0] if typed else None


def dtype_of(case: Case, op: str) -> DataType | None:
    """The leading type of a recorded case."""
    attr = leading_attr(op)
    value = subject(case, op).attr.get(attr or "")
    number = value.type if value else 0
    return DataType(number % 100) if number else None


def pick(seeds: list[Case], key: str) -> Case:
    """One of the cases; a case added later seldom changes which (highest hash wins)."""
    return max(seeds, key=lambda case: zlib.crc32(f"{key}/{case.name}".encode()))
