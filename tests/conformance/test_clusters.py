"""Every conformance case with an op that an engine can compute, with all clusters compiled.

A fed input that an emitter wants to be a constant becomes one; with two feeds of it in one case,
the case stays as it is.
"""

from __future__ import annotations

import pytest

from runtime.clusters.emitters import EMITTERS
from tests.conformance.case import Answer, Case, cases_of, families, read_golden
from tests.conformance.cluster_cases import ops_of, with_constants
from tests.conformance.test_cases import check, options


def parameters() -> list[object]:
    return [
        pytest.param(case, read_golden(family)[case.name][1], id=f"{family}-{case.name}")
        for family in families()
        for case in cases_of(family)
        if ops_of(case.graph) & EMITTERS.keys()
    ]


@pytest.mark.parametrize(("case", "answers"), parameters())
def test_case(case: Case, answers: tuple[Answer, ...]) -> None:
    how = options("DEFAULT")
    how.clusters = "force"
    check(with_constants(case), answers, how)
