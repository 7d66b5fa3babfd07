"""The gradients of every case are TensorFlow's, and every gradient function has a case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime.client as tf
from runtime.graph.gradients.gradient_functions import GRADIENT_FUNCTIONS
from tests.conformance.case import Answer, read_golden
from tests.gradients.gradient_case import (
    GradientCase,
    cases_of,
    digest,
    families,
    feeds,
    forward_graph,
    has_gradient,
    split_answer,
    weights,
)

# TensorFlow has no gradients for these or wrong ones, or other samples; test_slopes.py and
# tests/unit/runtime/graph/gradients check them.
WITHOUT_ANSWER = {
    "BatchNormWithGlobalNormalization", "IRFFT3D", "MatrixDiagPartV2", "MatrixDiagV2",
    "MatrixSetDiagV2", "QuantizeAndDequantize", "QuantizeAndDequantizeV4Grad", "RFFT3D", "Snapshot",
    "StatelessParameterizedTruncatedNormal", "TopK",
}  # fmt: skip

# Its gradient is the one of CTCLoss; TensorFlow has no CPU kernel either.
WITHOUT_KERNEL = {"CTCLossV2"}

# TensorFlow runs them in compiled functions only; test_xla.py checks them.
OF_COMPILED_FUNCTIONS = {"XlaEinsum", "XlaSharding"}

# Ops that TensorFlow does not have; tests/unit/runtime/op_packages checks them.
OF_PACKAGES = {"MaxSpanningTree"}


def stored() -> list[Any]:
    found = []
    for family in families():
        golden = read_golden(f"gradients_{family}")
        found += [
            pytest.param(case, golden.get(name), id=f"{family}-{name}")
            for name, case in cases_of(family).items()
        ]
    return found


def gradients_of(case: GradientCase) -> list[Any]:
    graph, ys, inputs = forward_graph(case)
    xs = [x for x in inputs if has_gradient(x.dtype.numpy)]
    fed = feeds(case)
    with graph.as_default(), tf.Session() as session:
        found: list[Any] = []
        for _ in range(case.order):
            ys = [y for y in ys if has_gradient(y.dtype.numpy)]
            begun = [weights(np.asarray(value)) for value in session.run(ys, fed)]
            found = tf.gradients(ys, xs, [tf.constant(each) for each in begun])
            ys = [tf.convert_to_tensor(dx) for dx in found if dx is not None]
        values = iter(session.run(ys, fed))
        return [None if dx is None else next(values) for dx in found]


@pytest.mark.parametrize(("case", "answer"), stored())
def test_gradients_are_tensorflows(
    case: GradientCase, answer: tuple[str, tuple[Answer, ...]] | None
) -> None:
    assert answer is not None, "not recorded: run tools/record/gradients.py"
    assert answer[0] == digest(case), "the case changed: run tools/record/gradients.py"
    expected = split_answer(answer[1][0].values)
    found = gradients_of(case)
    assert [each is None for each in found] == [each is None for each in expected]
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if theirs is None:
            continue
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
        np.testing.assert_allclose(
            ours, theirs, case.tolerance, case.tolerance * float(largest), err_msg=f"x{index}"
        )


def test_every_gradient_function_has_a_case() -> None:
    used: set[str] = set()
    for family in families():
        for case in cases_of(family).values():
            graph, _, _ = forward_graph(case)
            used.update(each.type for each in graph.get_operations())
            if case.order == 2:
                used.update(_ops_of_first_order(case))
    unused = WITHOUT_ANSWER | WITHOUT_KERNEL | OF_COMPILED_FUNCTIONS | OF_PACKAGES
    assert set(GRADIENT_FUNCTIONS) - used == unused


def _ops_of_first_order(case: GradientCase) -> set[str]:
    graph, ys, xs = forward_graph(case)
    with graph.as_default():
        tf.gradients(ys, xs)
    return {each.type for each in graph.get_operations()}
