"""Rules for differences after a step that failed in both runtimes.

Which changes to resources a failed step has made before it ended is not determined in TensorFlow,
or includes a change that it refused.
"""

from __future__ import annotations

import re

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers
from tools.oracle_comparison.rules_of_iterators import agreed_steps

_OF_QUEUES = ("QueueEnqueue", "QueueDequeue")


def beside_a_refused_queue_op(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Only steps after a failed step with several queue operations differ.

    Whether the other operations had completed when the step failed is not determined.
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
