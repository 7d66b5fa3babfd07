"""Rules for Xla ops, which TensorFlow runs in compiled functions only."""

from __future__ import annotations

from runtime.foundation.errors import Code
from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers

_TYPES = ("LhsT", "RhsT", "preferred_element_type")


def refused_by_the_compiler(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The compiler refused the op, with UNKNOWN, and it is refused here, too."""
    return any(
        want.code == Code.UNKNOWN
        and "error: loc(" in want.message
        and not isinstance(got, str)
        and got.code == Code.INVALID_ARGUMENT
        for got, want in zip(ours, theirs, strict=True)
    )


def of_another_type(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """A convolution has another type than one of its inputs."""
    return any(
        len({node.attr[name].type for name in _TYPES}) > 1
        for node in case.graph.node
        if node.op == "XlaConvV2"
    )


def dilated(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """An op has dilations."""
    return any(
        set(node.attr["dilations"].list.i) - {1}
        for node in case.graph.node
        if "dilations" in node.attr
    )
