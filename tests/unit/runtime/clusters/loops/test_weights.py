"""Known forms become arrays; shapes that don't fit are declined."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.emission import DeclinedError
from runtime.clusters.loops.forms import Form, Forms, Kind
from runtime.clusters.loops.weights import Evaluation, invariants_of

W = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(4, dtype=np.float32)
forms = Forms()
MATRIX, VECTOR = (forms.make(Kind.INVARIANT, detail=i) for i in (7, 8))
X, H = (forms.make(Kind.VARIABLE, detail=i) for i in (0, 1))


def evaluate(form: Form, widths: dict[Form, int] | None = None) -> np.ndarray:
    return Evaluation({7: W, 8: B}, (widths or {}).__getitem__).array(form)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (forms.derived("add", VECTOR, VECTOR), B + B),
        (forms.derived("multiply", VECTOR, VECTOR), B * B),
        (forms.derived("add_matrices", MATRIX, MATRIX), W + W),
        (forms.derived("scale", VECTOR, parameters=0.5), B * np.float32(0.5)),
        (forms.derived("part", MATRIX, parameters=(1, 1, 2)), W[:, 2:]),
        (forms.derived("range", MATRIX, parameters=(-1, 1, 3)), W[:, 1:3]),
        (forms.derived("range", MATRIX, parameters=(0, -2, None)), W[1:]),
        (forms.derived("vector", VECTOR), B),
        (forms.derived("unpacked", MATRIX, parameters=(0, 1, 3)), W[1]),
        (forms.derived("sized_part", MATRIX, parameters=(1, 1, 1, 3)), W[:, 1:]),
        (forms.derived("sized_part", MATRIX, parameters=(-1, 2, 1, -1, 2)), W[:, 2:]),
        (forms.derived("sized_part", MATRIX, parameters=(-1, 1, 1, -1, 2)), W[:, 1:2]),
        (forms.derived("transpose", MATRIX), W.T),
        (
            forms.derived("indexed", MATRIX, parameters=(("at", 1), ("range", 1, None, 2))),
            W[1, 1::2],
        ),
        (forms.derived("as_bias", VECTOR, MATRIX), B),
        (forms.derived("as_bias", forms.constant(np.float32(2)), MATRIX), np.full(4, 2, "f")),
        (forms.derived("squeeze", forms.constant(np.ones((1, 2, 1), "f"))), np.ones(2, "f")),
        (forms.derived("rows", MATRIX, parameters=((X, H), 1)), W[1:]),
    ],
)
def test_functions(form: Form, expected: np.ndarray) -> None:
    array = evaluate(form, {X: 1, H: 2})
    np.testing.assert_array_equal(array, expected)
    assert array.dtype == np.float32


@pytest.mark.parametrize(
    "form",
    [
        forms.derived("part", MATRIX, parameters=(1, 0, 3)),
        forms.derived("add_matrices", MATRIX, VECTOR),
        forms.derived("add", MATRIX, forms.constant(np.ones(3, "f"))),
        forms.derived("as_bias", MATRIX, MATRIX),
        forms.derived("as_bias", forms.constant(np.ones(3, "f")), MATRIX),
        forms.derived("vector", MATRIX),
        forms.derived("vector", forms.constant(np.ones(1, "f"))),
        forms.derived("unpacked", MATRIX, parameters=(0, 1, 2)),
        forms.derived("unpacked", MATRIX, parameters=(0, 1, 4)),
        forms.derived("sized_part", MATRIX, parameters=(1, 0, 1, 2)),
        forms.derived("sized_part", MATRIX, parameters=(1, 0, 3, 2)),
        forms.derived("sized_part", MATRIX, parameters=(1, 0, 3, 2, -1)),
        forms.derived("indexed", VECTOR, parameters=(("at", 9),)),
        forms.derived("squeeze", VECTOR, parameters=(0,)),
        forms.derived("rows", MATRIX, parameters=((X,), 0)),
    ],
)
def test_shapes_that_do_not_fit(form: Form) -> None:
    with pytest.raises(DeclinedError):
        evaluate(form, {X: 1, H: 1})


def test_the_invariants_of_forms() -> None:
    total = forms.derived("add", MATRIX, forms.derived("scale", VECTOR, parameters=2.0))
    assert invariants_of([total, MATRIX]) == [7, 8]
    assert invariants_of([forms.constant(B)]) == []
