"""Differences that docs/kernel_differences.md documents: found again, they are not counted."""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance.case import Answer, Case

Answers = list[Answer | str]
Rule = Callable[[Case, Answers, list[Answer]], bool]


def _accepted_here(*words: str) -> Rule:
    """TensorFlow refuses with one of these words what this runtime answers."""

    def rule(_: Case, ours: Answers, theirs: list[Answer]) -> bool:
        answered = all(not isinstance(answer, str) and not answer.code for answer in ours)
        return answered and any(word in answer.message for answer in theirs for word in words)

    return rule


# (ops, or () for all; rule; what the page says)
RULES: tuple[tuple[tuple[str, ...], Rule, str], ...] = (
    ((), _accepted_here("only supports NHWC", "NHWC tensor format for now"), "channels first"),
)


def reason_for(op: str, case: Case, ours: Answers, theirs: list[Answer]) -> str:
    """What docs/kernel_differences.md says of a difference; empty when it says nothing."""
    for ops, rule, reason in RULES:
        if (not ops or op in ops) and rule(case, ours, theirs):
            return reason
    return ""
