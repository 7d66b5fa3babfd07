"""Clusters never give stale answers: random steps of several sessions, against numpy kernels.

The programs are those of `test_derived_values`; there every step computes everything anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import protos as pb
from runtime.api import DirectSession
from tests.property.test_derived_values import FETCHES, VARIABLES, Sessions, actions, config
from tests.property.test_derived_values import graph_def as variables_and_sums
from tests.unit.runtime.executors.derived_sessions import ONE, change
from tests.unit.runtime.sessions.graphs import direct_session

pytest.importorskip("onnxruntime")


class ClusteredSessions(Sessions):
    """The same sessions with every cluster compiled when it first runs."""

    @staticmethod
    def _new(level: Any) -> DirectSession:
        session = direct_session(variables_and_sums(), config(level), clusters="force")
        for name in VARIABLES:
            change(session, f"set_{name}", ONE)
        return session


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        np.allclose(a, b, rtol=1e-5) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(one, other, strict=True)
    )


@given(st.lists(st.tuples(st.integers(0, 3), actions), max_size=30))
@settings(max_examples=20, deadline=None)
def test_every_step_returns_what_it_returns_on_numpy_kernels(
    program: list[tuple[int, tuple[Any, ...]]],
) -> None:
    clustered = ClusteredSessions(pb.OptimizerOptions.L1)
    computed = Sessions(pb.OptimizerOptions.L0)
    for number, action in program:
        one, other = clustered.do(number, action), computed.do(number, action)
        assert same(one, other), (number, action, one, other)
    for number in range(4):
        action = ("run", list(FETCHES[:7]))
        assert same(clustered.do(number, action), computed.do(number, action))


def test_the_programs_have_clusters_in_both_forms() -> None:
    sessions = ClusteredSessions(pb.OptimizerOptions.L1)
    for value in (1, 2, 3):
        sessions.do(0, ("run", ["y"]))
        sessions.do(1, ("run", ["y"]))
        sessions.do(1, ("change", "set_v", value))
    summaries = [each for found in sessions.all[0].clusters().values() for each in found]
    assert [each.state for each in summaries] == ["compiled"] * len(summaries)
    assert max(each.forms for each in summaries) == 2
