"""Activation functions: the rectifiers, the soft ones, softmax.

TF: tensorflow/core/kernels/relu_op_functor.h, softplus_op.h, softsign_op.h, softmax_op_functor.h
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.accumulation import widen
from runtime.kernels.register_types import FLOAT_TYPES, REAL_NUMBER_TYPES

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def relu(features: np.ndarray) -> np.ndarray:
    """`max(features, 0)`; NaN stays NaN."""
    return np.maximum(features, features.dtype.type(0))


def relu6(features: np.ndarray) -> np.ndarray:
    """`min(max(features, 0), 6)`."""
    number = features.dtype.type
    positive = np.maximum(features, number(0))
    in_place = positive if isinstance(positive, np.ndarray) else None
    return np.minimum(positive, number(6), out=in_place)


def relu_in_place(features: np.ndarray) -> np.ndarray:
    """`relu` into `features`."""
    if not isinstance(features, np.ndarray):  # a numpy scalar
        return relu(features)
    return np.maximum(features, features.dtype.type(0), out=features)


def relu6_in_place(features: np.ndarray) -> np.ndarray:
    """`relu6` into `features`."""
    if not isinstance(features, np.ndarray):  # a numpy scalar
        return relu6(features)
    positive = relu_in_place(features)
    return np.minimum(positive, features.dtype.type(6), out=positive)


def leaky_relu(features: np.ndarray, *, alpha: float) -> np.ndarray:
    """`features` where positive, else `alpha * features`."""
    return np.where(features > 0, features, features * features.dtype.type(alpha))


def elu(features: np.ndarray) -> np.ndarray:
    """`features` where not negative, else `exp(features) - 1`."""
    return np.where(features < 0, np.expm1(np.minimum(features, features.dtype.type(0))), features)


def selu(features: np.ndarray) -> np.ndarray:
    """Scaled exponential linear unit."""
    number = features.dtype.type
    negative = number(SELU_SCALE_ALPHA) * np.expm1(np.minimum(features, number(0)))
    return np.where(features < 0, negative, number(SELU_SCALE) * features)


def softplus(features: np.ndarray) -> np.ndarray:
    """`log(1 + exp(features))` without overflow."""
    return np.logaddexp(features, features.dtype.type(0)).astype(features.dtype, copy=False)


def softsign(features: np.ndarray) -> np.ndarray:
    """`features / (1 + |features|)`."""
    return features / (np.abs(features) + features.dtype.type(1))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Normalised exponentials over the last dimension."""
    shifted = _shifted(logits)
    exponentials = np.exp(shifted, out=shifted)
    exponentials /= exponentials.sum(axis=-1, keepdims=True)
    return exponentials.astype(logits.dtype, copy=False)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithm of softmax over the last dimension."""
    shifted = _shifted(logits)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted.astype(logits.dtype, copy=False)


def _shifted(logits: np.ndarray) -> np.ndarray:
    """`logits` less the largest of each row, in the type that sums are taken in."""
    if logits.ndim < 1:
        raise InvalidArgumentError(
            f"logits must have >= 1 dimension, got {shape_text(logits.shape)}"
        )
    wide = widen(logits)
    return np.subtract(wide, wide.max(axis=-1, keepdims=True, initial=-np.inf))


KERNELS = (
    KernelDef("Elu", elu, {"T": FLOAT_TYPES}),
    KernelDef("LeakyRelu", leaky_relu, {"T": FLOAT_TYPES}),
    KernelDef("LogSoftmax", log_softmax, {"T": FLOAT_TYPES}),
    KernelDef("Relu", relu, {"T": REAL_NUMBER_TYPES}, fresh=True, in_place=relu_in_place),
    KernelDef("Relu6", relu6, {"T": REAL_NUMBER_TYPES}, fresh=True, in_place=relu6_in_place),
    KernelDef("Selu", selu, {"T": FLOAT_TYPES}),
    KernelDef("Softmax", softmax, {"T": FLOAT_TYPES}),
    KernelDef("Softplus", softplus, {"T": FLOAT_TYPES}),
    KernelDef("Softsign", softsign, {"T": FLOAT_TYPES}),
)
