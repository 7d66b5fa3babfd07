"""Xla ops whose kernels TensorFlow runs only inside a compiled function."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.api import InvalidArgumentError
from runtime.client import ops
from runtime.framework.dtypes import DataType
from tests.unit.runtime.kernels.xla.xla_steps import run

F32 = DataType.FLOAT


@pytest.mark.parametrize(("condition", "expected"), [(True, -3.0), (False, 9.0)])
def test_a_branch_is_called(condition: bool, expected: float) -> None:
    functions = {
        "then_branch": ([F32], lambda x: ops.Neg(x)),
        "else_branch": ([F32], lambda x: ops.Square(x)),
    }
    (got,) = run("XlaIf", np.bool_(condition), [np.float32(3)], functions=functions, Tout=[F32])
    assert got == expected


def test_the_only_replica_is_number_0() -> None:
    got = run("XlaReplicaId")
    assert (got, np.asarray(got).dtype) == (0, np.int32)


@pytest.mark.parametrize(("exponent", "mantissa"), [(0, 3), (3, -1)])
def test_a_precision_needs_bits(exponent: int, mantissa: int) -> None:
    with pytest.raises(InvalidArgumentError, match="Need at least 1 exponent bit"):
        run("XlaReducePrecision", np.ones(3, np.float32), exponent_bits=exponent,
            mantissa_bits=mantissa)  # fmt: skip
