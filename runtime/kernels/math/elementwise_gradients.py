"""Gradients of element-wise functions, in terms of their results, and BroadcastGradientArgs.

TF: tensorflow/core/kernels/{cwise_ops_gradients.h,bcast_ops.cc}
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import COMPLEX_TYPES, HALF_TYPES, SINGLE_AND_DOUBLE
from runtime.framework.shapes import shape_text, sizes_text
from runtime.kernels.math.broadcasting import in_float32


def reciprocal_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """−dy · y², for y = 1 / x."""
    return -dy * np.square(np.conjugate(y))


def rsqrt_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """−dy · y³ / 2, for y = 1 / sqrt(x)."""
    out = np.conjugate(y)
    return _zero_where_zero(dy, dy * np.square(out) * out * out.dtype.type(-0.5))


def _zero_where_zero(dy: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    return np.where(dy == 0, gradient.dtype.type(0), gradient)


def sqrt_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """dy / (2 y), for y = sqrt(x); 0 where dy is 0, even if y is 0."""
    return _zero_where_zero(dy, dy * y.dtype.type(0.5) / np.conjugate(y))


def sigmoid_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """dy · y · (1 − y), for y = sigmoid(x)."""
    return dy * y * (1 - y)


def tanh_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """dy · (1 − y²), for y = tanh(x)."""
    return dy * (1 - np.square(y))


def _gradient(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Kernel:
    """Make a kernel that raises InvalidArgumentError unless both tensors have one size."""

    def kernel(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
        if np.size(y) != np.size(dy):
            raise InvalidArgumentError(
                "The two arguments to a cwise op must have same number of elements, got "
                f"{np.size(y)} and {np.size(dy)}"
            )
        return function(y, np.reshape(dy, np.shape(y)))

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


def broadcast_gradient_args(s0: np.ndarray, s1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The axes to sum over to undo the broadcasting of shapes s0 and s1 to each other.

    Raises InvalidArgumentError if the shapes do not broadcast.
    """
    for index, each in enumerate((s0, s1)):
        if np.ndim(each) != 1:
            raise InvalidArgumentError(f"In[{index}] must be a vector.{shape_text(each.shape)}")
    none = np.zeros(0, s0.dtype)
    if np.array_equal(s0, s1):
        return none, none
    rank = max(s0.size, s1.size)
    left, right = (np.concatenate([np.ones(rank - s.size, s.dtype), s]) for s in (s0, s1))
    if ((left != right) & (left != 1) & (right != 1)).any():
        raise InvalidArgumentError(f"Incompatible shapes: {sizes_text(s0)} vs. {sizes_text(s1)}")
    axes = np.arange(rank, dtype=s0.dtype)
    return axes[left == 1], axes[right == 1]


GRADIENTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "ReciprocalGrad": reciprocal_grad,
    "InvGrad": reciprocal_grad,
    "RsqrtGrad": rsqrt_grad,
    "SqrtGrad": sqrt_grad,
    "SigmoidGrad": sigmoid_grad,
    "TanhGrad": tanh_grad,
}

KERNELS: tuple[KernelDef, ...] = (
    *(
        KernelDef(op, _gradient(function), {"T": SINGLE_AND_DOUBLE + COMPLEX_TYPES})
        for op, function in GRADIENTS.items()
    ),
    *(
        KernelDef(op, _gradient(in_float32(function)), {"T": HALF_TYPES})
        for op, function in GRADIENTS.items()
    ),
    KernelDef("BroadcastGradientArgs", broadcast_gradient_args),
)
