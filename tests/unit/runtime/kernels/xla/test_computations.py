"""Functions of scalars that can't be called for arrays are called element by element."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import InvalidArgumentError
from runtime.client import constant, ops
from runtime.framework.dtypes import DataType
from tests.unit.runtime.kernels.xla.xla_steps import run, vector

F32 = DataType.FLOAT
X = np.random.default_rng(5).normal(size=(6, 7)).astype(np.float32)


def packed_sum(a: object, b: object) -> object:
    """The sum by a reduction, which would be wrong for arrays."""
    return ops.Sum(ops.Pack([a, b]), constant(vector(0)))


def test_a_function_that_is_not_elementwise_is_called_for_each_element() -> None:
    functions = {"reducer": ([F32, F32], packed_sum)}
    got = run("XlaReduce", X, np.float32(1), dimensions_to_reduce=[0], functions=functions)
    np.testing.assert_allclose(got, 1 + X.sum(0), 1e-5)


def test_a_comparator_that_is_not_elementwise_sorts() -> None:
    def before(a: object, b: object) -> object:
        return ops.Less(packed_sum(a, a), packed_sum(b, b))

    (got,) = run("XlaVariadicSort", [X], np.int32(1), is_stable=True,
                 functions={"comparator": ([F32, F32], before)})  # fmt: skip
    np.testing.assert_array_equal(got, np.sort(X, 1))


def test_a_function_of_other_arguments_is_refused() -> None:
    functions = {"reducer": ([F32] * 3, lambda a, b, c: ops.AddN([a, b, c]))}
    with pytest.raises(InvalidArgumentError, match="takes 3 arguments, it is called with 2"):
        run("XlaReduce", X, np.float32(1), dimensions_to_reduce=[0], functions=functions)


@pytest.mark.parametrize("dimensions", [[2], [-1], [0, 0]])
def test_dimensions_that_are_none_are_refused(dimensions: list[int]) -> None:
    functions = {"reducer": ([F32, F32], lambda a, b: ops.AddV2(a, b))}
    with pytest.raises(InvalidArgumentError, match="must be different dimensions of a tensor"):
        run("XlaReduce", X, np.float32(1), dimensions_to_reduce=dimensions, functions=functions)
