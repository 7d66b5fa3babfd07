"""Sparse training ops: rows that are named several times, and steps that are cancelled."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from runtime.api import CancellationManager, CancelledError
from runtime.framework.dtypes import DataType
from runtime.framework.resources.variable import Variable
from runtime.kernels.state.training import Rule, _sparse_apply


@dataclasses.dataclass
class Context:
    """What the kernels use of a context."""

    cancellation: CancellationManager
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def attr(self, name: str) -> Any:
        return self.attrs[name]


def variable(values: Any) -> Variable:
    made = Variable(DataType.FLOAT, "v")
    made.assign(np.array(values, np.float32))
    return made


def momentum_like(var: np.ndarray, accum: np.ndarray, lr: Any, grad: np.ndarray, _: Any) -> None:
    """Depends on the order of the gradients of a row."""
    accum[...] = accum * 2 + grad
    var -= lr * accum


def adding(var: np.ndarray, accum: np.ndarray, lr: Any, grad: np.ndarray, _: Any) -> None:
    accum += grad
    var -= lr


def apply(rule: Any, var: Variable, accum: Variable, grad: Any, indices: Any, **given: Any) -> None:
    kernel = _sparse_apply(Rule(rule, 2), "SparseApplyMomentum", False)
    context = Context(given.get("cancellation") or CancellationManager())
    scalar = np.float32(0.5)
    kernel(
        context, var, accum, scalar, np.array(grad, np.float32), np.array(indices, np.int32), scalar
    )


@pytest.mark.parametrize("width", [(), (3,)], ids=["numbers", "rows"])
@pytest.mark.parametrize("seed", range(5))
def test_the_gradients_of_a_row_are_applied_in_their_order(
    seed: int, width: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, 6, [0, 1, 5, 20, 60][seed])
    grad = rng.integers(-4, 5, (len(indices), *width)).astype(np.float32)
    var, accum = variable(np.zeros((7, *width))), variable(np.zeros((7, *width)))
    want_var, want_accum = np.zeros((7, *width), np.float32), np.zeros((7, *width), np.float32)
    for index, row in zip(indices, grad, strict=True):
        momentum_like(want_var[index : index + 1], want_accum[index : index + 1], 0.5, row, 0)
    apply(momentum_like, var, accum, grad, indices)
    np.testing.assert_array_equal(var.read(), want_var)
    np.testing.assert_array_equal(accum.read(), want_accum)


@pytest.mark.parametrize("indices", [[1] * 9, [0, 1, 1, 2, 2, 2, 1, 0, 1]])
def test_a_cancelled_update_ends_between_two_rounds_and_changes_nothing(indices: list[int]) -> None:
    cancellation = CancellationManager()
    rounds = 0

    def rule(*inputs: Any) -> None:
        nonlocal rounds
        rounds += 1
        momentum_like(*inputs)
        if rounds == 2:
            cancellation.cancel(CancelledError("enough"))

    var, accum = variable(np.ones((3, 2))), variable(np.ones((3, 2)))
    with pytest.raises(CancelledError, match=r"^enough$"):
        apply(rule, var, accum, np.ones((9, 2)), indices, cancellation=cancellation)
    assert rounds == 2
    assert (var.read() == 1).all()
    assert (accum.read() == 1).all()


def test_every_round_handles_only_its_own_positions() -> None:
    """A row named n times takes work in the order of n, not of n²."""
    seen = 0

    class Counting(np.ndarray):
        """Notes how many numbers the positions of all rounds are picked from."""

        def __getitem__(self, key: Any) -> Any:
            nonlocal seen
            if isinstance(key, np.ndarray):
                seen += key.size
            return super().__getitem__(key)

    count = 1000
    kernel = _sparse_apply(Rule(adding, 2), "SparseApplyMomentum", False)
    scalar = np.float32(0.5)
    grad = np.ones((count, 1), np.float32).view(Counting)
    indices = np.zeros(count, np.int32).view(Counting)
    kernel(
        Context(CancellationManager()),
        variable(np.zeros((1, 1))),
        variable(np.zeros((1, 1))),
        scalar,
        grad,
        indices,
        scalar,
    )
    assert seen <= 10 * count
