"""Python operators and indexing of tensors, against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.client import Session, constant, float32, float64, placeholder
from tests.unit.runtime.client.evaluation import value_of

X = np.array([[1.0, -2.0, 3.5], [4.0, 5.0, -6.0]], np.float32)
OPERATORS = {
    "add": lambda x: x + 1, "radd": lambda x: 1 + x, "sub": lambda x: x - 1,
    "rsub": lambda x: 1 - x, "mul": lambda x: x * 2, "div": lambda x: x / 2,
    "rdiv": lambda x: 2 / x, "floordiv": lambda x: x // 2, "mod": lambda x: x % 2,
    "pow": lambda x: x**2, "rpow": lambda x: 2**x, "neg": lambda x: -x, "abs": lambda x: abs(x),
    "matmul": lambda x: x @ np.ones((3, 2), np.float32), "less": lambda x: x < 1,
    "less_equal": lambda x: x <= 1, "greater": lambda x: x > 1, "greater_equal": lambda x: x >= 1,
    "array_first": lambda x: np.float32(2) * x,
    "and": lambda x: (x > 1) & (x < 4), "or": lambda x: (x > 1) | (x < 0),
    "xor": lambda x: (x > 1) ^ (x < 4), "not": lambda x: ~(x > 1),
    "index": lambda x: x[0], "negative": lambda x: x[-1, 1], "range": lambda x: x[:, 1:3],
    "step": lambda x: x[:, ::2], "ellipsis": lambda x: x[..., 0], "axis": lambda x: x[:, None, 1],
    "backwards": lambda x: x[::-1],
}  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_operators_do_what_numpy_s_do(graph, operator):
    x = placeholder(float32, [None, 3])
    result = Session().run(operator(x), {x: X})
    np.testing.assert_allclose(result, operator(X), rtol=1e-6)
    assert result.dtype == operator(X).dtype


def test_integers_divide_to_floats_and_bits_combine(graph):
    assert value_of(constant(3) / 2) == 1.5
    assert (constant(3) / 2).dtype is float64
    assert value_of(constant(6) | 1) == 7
    assert value_of(~constant(6)) == -7
    assert value_of(constant([1, 2, 3])[constant(1)]) == 2
    with pytest.raises(TypeError, match=r"are valid indices, got 1\.5"):
        constant([1])[1.5]
