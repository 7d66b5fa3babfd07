"""Binary kernels made from numpy ufuncs, with TensorFlow's error if shapes do not broadcast.

The ops with such kernels are the most frequent of all. Therefore a kernel adds only a size check
and a `try` to the bare ufunc.

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
SMALL_ENOUGH = 1 << 24  # elements; if x.size * y.size is less, no allocation check is needed


def incompatible_shapes(x: np.ndarray, y: np.ndarray) -> InvalidArgumentError:
    """Return the error that says that the shapes of `x` and `y` do not broadcast."""
    return InvalidArgumentError(
        f"Incompatible shapes: {shape_text(np.shape(x))} vs. {shape_text(np.shape(y))}"
    )


def broadcast_shape(x: np.ndarray, y: np.ndarray) -> tuple[int, ...]:
    """Return the shape that `x` and `y` broadcast to.

    Raises InvalidArgumentError if the two shapes do not broadcast.
    """
    try:
        return np.broadcast_shapes(np.shape(x), np.shape(y))
    except ValueError:
        raise incompatible_shapes(x, y) from None


def check_broadcast_allocation(*inputs: np.ndarray) -> None:
    """Raise ResourceExhaustedError if the broadcast inputs exceed the size limit of a tensor."""
    try:
        shape = np.broadcast_shapes(*(np.shape(each) for each in inputs))
    except ValueError:
        return  # the kernel raises the error for these shapes
    check_allocation(shape, inputs[-1].dtype)


def binary(function: Binary) -> Binary:
    """Return a kernel that broadcasts its two inputs and applies `function`.

    `function` must be a ufunc or a composition of ufuncs.
    """

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
    """Return a kernel like `binary(ufunc)` that overwrites `x` if the result fits there."""
    elsewhere = binary(ufunc)

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        try:
            return ufunc(x, y, out=x)
        except (ValueError, TypeError):  # x is too small for the result, or a numpy scalar
            return elsewhere(x, y)

    return kernel


def unary_in_place(ufunc: np.ufunc) -> Callable[[ArrayOrScalar], ArrayOrScalar]:
    """Return a kernel that overwrites `x` with `ufunc(x)`, unless `x` is a numpy scalar."""

    def kernel(x: ArrayOrScalar) -> ArrayOrScalar:
        return ufunc(x, out=x) if isinstance(x, np.ndarray) else ufunc(x)

    return kernel


def in_float32(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a half-precision kernel that computes `function` in float32 and rounds once."""

    def kernel(*inputs: np.ndarray) -> np.ndarray:
        wide = (np.asarray(each, np.float32) for each in inputs)
        return np.asarray(function(*wide)).astype(inputs[0].dtype)

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel
