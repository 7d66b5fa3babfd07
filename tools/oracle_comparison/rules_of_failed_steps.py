"""Differences after a step that failed in both, as rules.

What a failed step has done to the state that outlives it is chance, or more than it should be.
"""

from __future__ import annotations

import re

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers
from tools.oracle_comparison.rules_of_iterators import agreed_steps

_OF_QUEUES = ("QueueEnqueue", "QueueDequeue")


def beside_a_refused_queue_op(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Only steps after one that failed with several queue operations in it differ.

    Whether the others had done their part by then is chance.
    """
    ops = {node.name: node.op for node in case.graph.node}
    for number in range(agreed_steps(case, ours, theirs)):
        step = case.steps[number]
        asked = [ops[name.split(":")[0]] for name in (*step.fetches, *step.targets)]
        if theirs[number].code and sum(op.startswith(_OF_QUEUES) for op in asked) > 1:
            return True
    return False


def set_although_refused(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Only steps after one in which both refused to set an accumulator's step differ."""
    ops = {node.name: node.op for node in case.graph.node}
    for answer in theirs[: agreed_steps(case, ours, theirs)]:
        refused = re.search(r"must be scalar.*\{\{node (\S+)\}\}", answer.message, re.DOTALL)
        if refused and ops.get(refused[1], "").endswith("AccumulatorSetGlobalStep"):
            return True
    return False
