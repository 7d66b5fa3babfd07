"""Gradients of element-wise functions, computed from their results, and BroadcastGradientArgs.

In all gradient functions `y` is the result of the function and `dy` the gradient with respect to
`y`; they return the gradient with respect to x.

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
    """ReciprocalGrad: return −dy · y², the gradient of y = 1 / x."""
    return -dy * np.square(np.conjugate(y))


def rsqrt_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """RsqrtGrad: return −dy · y³ / 2, the gradient of y = 1 / sqrt(x)."""
    out = np.conjugate(y)
    return _zero_where_zero(dy, dy * np.square(out) * out * out.dtype.type(-0.5))


def _zero_where_zero(dy: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    return np.where(dy == 0, gradient.dtype.type(0), gradient)


def sqrt_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """SqrtGrad: return dy / (2 y), the gradient of y = sqrt(x).

    The result is 0 if dy is 0, even if y is 0.
    """
    return _zero_where_zero(dy, dy * y.dtype.type(0.5) / np.conjugate(y))


def sigmoid_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """SigmoidGrad: return dy · y · (1 − y), the gradient of y = sigmoid(x)."""
    return dy * y * (1 - y)


def tanh_grad(y: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """TanhGrad: return dy · (1 − y²), the gradient of y = tanh(x)."""
    return dy * (1 - np.square(y))


def _gradient(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Kernel:
    """Return a kernel that applies `function` to tensors with the same number of elements.

    The kernel raises InvalidArgumentError if the numbers of elements differ.
    """

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
    """BroadcastGradientArgs: return the axes along which shapes `s0` and `s1` are broadcast.

    A gradient of the broadcast shape, summed over the first (second) result, is the gradient with
    respect to a tensor of shape `s0` (`s1`). Raises InvalidArgumentError if the shapes do not
    broadcast.
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
