"""Every conformance case with an op that an engine can compute, on OpenVINO."""

from __future__ import annotations

import importlib.util

import pytest

from tests.conformance.case import Answer, Case
from tests.conformance.cluster_cases import with_constants
from tests.conformance.test_cases import check, options
from tests.conformance.test_clusters import parameters

if importlib.util.find_spec("openvino") is None:
    pytest.skip("the extra openvino is not installed", allow_module_level=True)


@pytest.mark.parametrize(("case", "answers"), parameters())
def test_case(case: Case, answers: tuple[Answer, ...]) -> None:
    how = options("DEFAULT")
    how.clusters, how.engine = "force", "openvino"
    check(with_constants(case), answers, how)
