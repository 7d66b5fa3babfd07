"""Every conformance case on every executor."""

from __future__ import annotations

import importlib
import pathlib

import pytest

from runtime.foundation.errors import OpError
from runtime.framework.kernel_registry import KernelRegistry
from runtime.kernels import kernel_defs
from tests.conformance.case import Answer, Case, assert_matches, read_golden
from tests.conformance.interim import InterimSession

FAMILIES = sorted(p.stem for p in (pathlib.Path(__file__).parent / "cases").glob("[a-z]*.py"))
REGISTRY = KernelRegistry(kernel_defs())


def parameters() -> list[object]:
    result: list[object] = []
    for family in FAMILIES:
        golden = read_golden(family)
        for case in importlib.import_module(f"tests.conformance.cases.{family}").CASES:
            result.append(pytest.param(case, golden.get(case.name), id=f"{family}-{case.name}"))
    return result


@pytest.mark.parametrize(("case", "recorded"), parameters())
def test_case(case: Case, recorded: tuple[str, tuple[Answer, ...]] | None) -> None:
    assert recorded is not None, "no recorded answer: run tools/record_cases.py"
    digest, answers = recorded
    assert digest == case.digest, "the case changed: run tools/record_cases.py"
    session = InterimSession(case.graph, REGISTRY)
    for step, want in zip(case.steps, answers, strict=True):
        if want.code:
            with pytest.raises(OpError) as caught:
                session.run(step.feeds, step.fetches, step.targets)
            assert caught.value.code == want.code, caught.value.message
            if case.message:
                assert caught.value.with_node("result").message == want.message
        else:
            assert_matches(case, session.run(step.feeds, step.fetches, step.targets), want)
