"""A sample of the conformance cases over each wire."""

from __future__ import annotations

import pytest

from runtime.api import OpError
from tests.conformance.case import Answer, Case, assert_matches
from tests.conformance.test_cases import parameters
from tests.integration.targets.target import Target
from tests.ray_cluster import HAS_RAY

# tests/conformance runs all cases on direct sessions; the other tests say what ray requires.
TARGETS = ("grpc", "http", *(("ray",) if HAS_RAY else ()))
EVERY = 25


def sample() -> list[object]:
    single = [p for p in parameters() if len(p.values[0].steps) == 1]
    return single[::EVERY]


@pytest.mark.parametrize(("case", "recorded"), sample())
def test_case(target: Target, case: Case, recorded: tuple[str, tuple[Answer, ...]]) -> None:
    (answer,) = recorded[1]
    (step,) = case.steps
    try:
        session = target.session(case.graph, isolate_session_state=True)
    except OpError as error:  # a graph that TensorFlow's Python refuses to build as well
        assert answer.code == error.code, error.message
        return
    if answer.code:
        with pytest.raises(OpError) as caught:
            session.run(step.feeds, step.fetches, step.targets)
        # A server's sessions have budgets, which a node may exceed before its kernel checks inputs.
        if "sessions.max_session_bytes" not in caught.value.message:
            assert caught.value.code == answer.code, caught.value.message
    else:
        assert_matches(case, session.run(step.feeds, step.fetches, step.targets), answer)
