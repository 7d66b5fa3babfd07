"""Run recorded cases node by node: nothing is folded or moved to another thread."""

from __future__ import annotations

import protos as pb
from runtime.api import OpError, SessionOptions, new_session
from tests.conformance.case import Case


def run(case: Case) -> None:
    """Run the steps of a case up to the first error; `test_cases.py` compares what they give."""
    options = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
    options.config.graph_options.optimizer_options.opt_level = pb.OptimizerOptions.L0
    session = new_session(options)
    try:
        session.create(case.graph)
        for step in case.steps:
            session.run(step.feeds, step.fetches, step.targets)
    except OpError:
        return
