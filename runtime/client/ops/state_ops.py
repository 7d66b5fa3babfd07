"""Updates of some rows of a variable (`scatter_update` and similar), and `count_up_to`.

TF: tensorflow/python/ops/state_ops.py
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.client.framework.argument_types import TensorLike
from runtime.client.framework.operation import Tensor
from runtime.client.ops import op_function
from runtime.client.ops.variables import Variable


def _scatter(kind: str, words: str) -> Callable[..., Tensor]:
    def scatter(
        ref: Variable,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
    ) -> Tensor:
        if not ref.is_resource:
            op = op_function(f"Scatter{kind}")
            after: Tensor = op(ref.handle, indices, updates, use_locking=use_locking, name=name)
            return after
        change = op_function(f"ResourceScatter{kind}")
        with ref.graph.as_default():
            done = change(ref.handle, indices, updates, dtype=ref.dtype, name=name)
            with ref.graph.control_dependencies([done]):
                return ref.read_value()

    scatter.__doc__ = f"""{words} the rows `indices` of a variable; returns its value after that.

    `updates` has a row per index, or is a scalar.
    """
    return scatter


scatter_update = _scatter("Update", "Set")
scatter_add = _scatter("Add", "Add `updates` to")
scatter_sub = _scatter("Sub", "Subtract `updates` from")
scatter_mul = _scatter("Mul", "Multiply `updates` with")
scatter_div = _scatter("Div", "Divide by `updates`")
scatter_min = _scatter("Min", "Take the smaller of `updates` and")
scatter_max = _scatter("Max", "Take the larger of `updates` and")


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """Return the value of an integer variable, and then increment the variable.

    The step fails with OUT_OF_RANGE if the new value would be above `limit`.
    """
    if ref.is_resource:
        before: Tensor = op_function("ResourceCountUpTo")(ref.handle, limit, ref.dtype, name=name)
    else:
        before = op_function("CountUpTo")(ref.handle, limit, name=name)
    return before
