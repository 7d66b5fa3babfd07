"""Binary kernels made from numpy ufuncs, with TensorFlow's error if shapes do not broadcast.

A kernel made here adds only a size check and a `try` to the bare ufunc: these are the most
frequent ops of all.

TF: tensorflow/core/kernels/cwise_ops_common.cc (BinaryOpShared)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import ArrayOrScalar
from runtime.kernels.math.element_blocks import LARGE, on_threads

Binary = Callable[[np.ndarray, np.ndarray], np.ndarray]
SMALL_ENOUGH = 1 << 24  # elements; smaller products of the inputs' sizes need no allocation check


def incompatible_shapes(x: np.ndarray, y: np.ndarray) -> InvalidArgumentError:
    """The error for two shapes that do not broadcast."""
    return InvalidArgumentError(
        f"Incompatible shapes: {shape_text(np.shape(x))} vs. {shape_text(np.shape(y))}"
    )


def broadcast_shape(x: np.ndarray, y: np.ndarray) -> tuple[int, ...]:
    """The shape of `x` and `y` together; InvalidArgumentError unless theirs broadcast."""
    try:
        return np.broadcast_shapes(np.shape(x), np.shape(y))
    except ValueError:
        raise incompatible_shapes(x, y) from None


def check_broadcast_allocation(*inputs: np.ndarray) -> None:
    """Raise ResourceExhaustedError if the inputs broadcast to more than a tensor may hold."""
    try:
        shape = np.broadcast_shapes(*(np.shape(each) for each in inputs))
    except ValueError:
        return  # the op itself raises its own error
    check_allocation(shape, inputs[-1].dtype)


def binary(function: Binary) -> Binary:
    """Make a kernel with two broadcast inputs from a ufunc or a composition of ufuncs."""

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if x.size * y.size > SMALL_ENOUGH:
            check_broadcast_allocation(x, y)
            if isinstance(function, np.ufunc) and x.size >= LARGE:
                return _on_threads(function, x, y)
        try:
            return function(x, y)
        except ValueError:
            raise incompatible_shapes(x, y) from None

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


def _on_threads(ufunc: np.ufunc, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    try:
        return on_threads(ufunc, x, y)
    except ValueError:
        raise incompatible_shapes(x, y) from None


def binary_in_place(ufunc: np.ufunc) -> Binary:
    """Make a kernel like `binary(ufunc)` that overwrites `x` if the result fits there."""
    elsewhere = binary(ufunc)

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        try:
            return ufunc(x, y, out=x)
        except (ValueError, TypeError):  # x would have to grow, or is a numpy scalar
            return elsewhere(x, y)

    return kernel


def unary_in_place(ufunc: np.ufunc) -> Callable[[ArrayOrScalar], ArrayOrScalar]:
    """Make a kernel that overwrites `x` with `ufunc(x)`, unless `x` is a numpy scalar."""

    def kernel(x: ArrayOrScalar) -> ArrayOrScalar:
        return ufunc(x, out=x) if isinstance(x, np.ndarray) else ufunc(x)

    return kernel


def in_float32(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Make a half-precision kernel that computes `function` in float32 and rounds once."""

    def kernel(*inputs: np.ndarray) -> np.ndarray:
        wide = (np.asarray(each, np.float32) for each in inputs)
        return np.asarray(function(*wide)).astype(inputs[0].dtype)

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel
