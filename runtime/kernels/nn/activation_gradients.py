"""Gradients of the activation functions.

TF: tensorflow/core/kernels/relu_op_functor.h, softplus_op.h, softsign_op.h
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES, REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.math.element_blocks import choose, in_blocks
from runtime.kernels.nn.activations import SELU_SCALE, SELU_SCALE_ALPHA

Gradient = Callable[..., np.ndarray]


def _same_shape(function: Gradient) -> Gradient:
    """Make `function` raise InvalidArgumentError unless its two inputs have the same shape."""

    @functools.wraps(function)
    def kernel(gradients: np.ndarray, features: np.ndarray, **attrs: float) -> np.ndarray:
        if gradients.shape != features.shape:
            raise InvalidArgumentError(
                "Inputs to a gradient must have the same size and shape.  Input 0: "
                f"{shape_text(gradients.shape)} != input 1: {shape_text(features.shape)}"
            )
        return function(gradients, features, **attrs)

    return kernel


@_same_shape
def relu_grad(gradients: np.ndarray, features: np.ndarray) -> np.ndarray:
    """ReluGrad: return `gradients` where `features > 0`, and 0 elsewhere.

    `features` may be the input or the output of Relu.
    """
    return gradients * (features > 0).astype(gradients.dtype)


@_same_shape
def relu6_grad(gradients: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Relu6Grad: return `gradients` where `0 < features < 6`, and 0 elsewhere."""
    six = features.dtype.type(6)
    return gradients * ((features > 0) & (features < six)).astype(gradients.dtype)


@_same_shape
@in_blocks(3)
def leaky_relu_grad(gradients: np.ndarray, features: np.ndarray, *, alpha: float) -> np.ndarray:
    """LeakyReluGrad: return `gradients` where `features > 0`, and `alpha * gradients` elsewhere."""
    return choose(features > 0, gradients, gradients * gradients.dtype.type(alpha))


@_same_shape
@in_blocks(2)
def elu_grad(gradients: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """EluGrad: return the gradient of Elu with respect to its features.

    `outputs` are the outputs of Elu, `gradients` the gradients with respect to them.
    """
    number = outputs.dtype.type
    return gradients * (np.fmin(outputs, number(0)) + number(1))


@_same_shape
@in_blocks(3)
def selu_grad(gradients: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """SeluGrad: return the gradient of Selu with respect to its features.

    `outputs` are the outputs of Selu, `gradients` the gradients with respect to them.
    """
    number = outputs.dtype.type
    negative = gradients * (outputs + number(SELU_SCALE_ALPHA))
    return choose(outputs < 0, negative, gradients * number(SELU_SCALE))


@_same_shape
@in_blocks(2)
def softplus_grad(gradients: np.ndarray, features: np.ndarray) -> np.ndarray:
    """SoftplusGrad: compute `gradients * sigmoid(features)`."""
    return gradients / (np.exp(-features) + features.dtype.type(1))


@_same_shape
def softsign_grad(gradients: np.ndarray, features: np.ndarray) -> np.ndarray:
    """SoftsignGrad: compute `gradients / (1 + |features|) ** 2`."""
    return gradients / np.square(np.abs(features) + features.dtype.type(1))


KERNELS = (
    KernelDef("EluGrad", elu_grad, {"T": FLOAT_TYPES}),
    KernelDef("LeakyReluGrad", leaky_relu_grad, {"T": FLOAT_TYPES}),
    KernelDef("Relu6Grad", relu6_grad, {"T": REAL_NUMBER_TYPES}),
    KernelDef("ReluGrad", relu_grad, {"T": REAL_NUMBER_TYPES}),
    KernelDef("SeluGrad", selu_grad, {"T": FLOAT_TYPES}),
    KernelDef("SoftplusGrad", softplus_grad, {"T": FLOAT_TYPES}),
    KernelDef("SoftsignGrad", softsign_grad, {"T": FLOAT_TYPES}),
)
