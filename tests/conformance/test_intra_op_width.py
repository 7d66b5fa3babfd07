"""Kernels that split their rows between threads give TensorFlow's answers at every width.

The size from which work is split is lowered to the minimum, so that the smallest case is split.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.api import new_session
from runtime.foundation import intra_op_pool
from runtime.foundation.intra_op_pool import set_thread_width
from runtime.kernels.linalg import matrix_product
from runtime.kernels.math import broadcasting, element_blocks
from runtime.kernels.nn import activations
from tests.conformance.case import Answer, Case, assert_matches, cases_of, read_golden
from tests.conformance.test_cases import options

FAMILIES = (
    "activation_gradients",
    "activations",
    "bias",
    "convolution",
    "convolution_gradients",
    "einsum",
    "matmul",
    "normalization",
    "pooling",
)
WIDTHS = (1, 2, 4)


def answered_cases(family: str) -> list[tuple[Case, tuple[Answer, ...]]]:
    """Return the cases of a family that succeed, with their answers."""
    golden = read_golden(family)
    return [
        (case, golden[case.name][1])
        for case in cases_of(family)
        if not any(answer.code for answer in golden[case.name][1])
    ]


def parameters() -> list[object]:
    return [
        pytest.param(case, answers, id=f"{family}-{case.name}")
        for family in FAMILIES
        for case, answers in answered_cases(family)
    ]


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Set the number of threads for one kernel, and let kernels split work of any size."""
    monkeypatch.setattr(intra_op_pool, "MIN_BLOCK_NANOSECONDS", 1e-9)
    monkeypatch.setattr(activations, "BLOCK", 1)
    monkeypatch.setattr(element_blocks, "BLOCK", 1)
    monkeypatch.setattr(element_blocks, "THREADED_BLOCK", 1)
    for module in (broadcasting, element_blocks):
        monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(broadcasting, "SMALL_ENOUGH", 0)
    monkeypatch.setattr(matrix_product, "_LARGE", 0)
    monkeypatch.setattr(matrix_product, "_ALIGNMENT", 1)
    monkeypatch.setattr(matrix_product, "is_blas_single", lambda: True)
    set_thread_width(request.param)
    yield request.param
    set_thread_width(0)


@pytest.mark.parametrize(("case", "wanted"), parameters())
def test_case_at_width(case: Case, wanted: tuple[Answer, ...], width: int) -> None:
    session = new_session(options("DEFAULT"))
    session.create(case.graph)
    for step, want in zip(case.steps, wanted, strict=True):
        assert_matches(case, session.run(step.feeds, step.fetches, step.targets), want)


def test_these_families_do_split(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """MatMul cases split their work into as many blocks as the width."""
    calls: list[int] = []
    run = intra_op_pool.intra_op_pool.run

    def counted(work: intra_op_pool.Work, bounds: list[int], width: int) -> None:
        calls.append(len(bounds) - 1)
        run(work, bounds, width)

    monkeypatch.setattr(intra_op_pool.intra_op_pool, "run", counted)
    for case, _ in answered_cases("matmul")[:20]:
        session = new_session(options("DEFAULT"))
        session.create(case.graph)
        for step in case.steps:
            session.run(step.feeds, step.fetches, step.targets)
    assert max(calls, default=1) == width
