"""Activation functions: Relu and its variants, Softplus, Softsign, Softmax, LogSoftmax.

TF: tensorflow/core/kernels/relu_op_functor.h, softplus_op.h, softsign_op.h, softmax_op_functor.h
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.intra_op_pool import shard
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import FLOAT_TYPES, REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import ArrayOrScalar
from runtime.kernels.math.accumulation import widen
from runtime.kernels.math.element_blocks import (
    BLOCK,
    CLIP_DTYPES,
    CLIP_FROM,
    THREADED_BLOCK,
    block_size,
    in_blocks,
    on_threads,
)

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def relu(features: np.ndarray) -> np.ndarray:
    """Relu: compute `max(features, 0)`; NaN remains NaN."""
    return on_threads(np.maximum, features, features.dtype.type(0))


def relu6(features: np.ndarray) -> np.ndarray:
    """Relu6: compute `min(max(features, 0), 6)`; NaN remains NaN."""
    return on_threads(_from_0_to_6, features, features.dtype.type(0))


def _from_0_to_6(x: np.ndarray, zero: np.generic, out: np.ndarray | None = None) -> np.ndarray:
    """Return `min(max(x, zero), 6)`, written into `out` if that is given."""
    six = x.dtype.type(6)
    contiguous = x.flags.c_contiguous and (out is None or out.flags.c_contiguous)
    if x.size < CLIP_FROM or x.dtype not in CLIP_DTYPES or not contiguous:
        positive = np.maximum(x, zero, out=out)
        return np.minimum(positive, six, out=positive if isinstance(positive, np.ndarray) else None)
    if x.dtype.kind != "f":
        return np.asarray(np.clip(x, zero, six, out=out))
    result = np.empty_like(x) if out is None else out
    flat, target = x.reshape(-1), result.reshape(-1)
    for start in range(0, x.size, THREADED_BLOCK):
        part = slice(start, start + THREADED_BLOCK)
        np.clip(flat[part], zero, six, out=target[part])
        np.add(target[part], zero, out=target[part])  # −0.0 becomes 0.0, as in np.maximum
    return result


def relu_in_place(features: ArrayOrScalar) -> np.ndarray:
    """Relu: compute the same as `relu`, and write the result into `features`."""
    if not isinstance(features, np.ndarray):  # it is a numpy scalar
        return relu(np.asarray(features))
    return on_threads(np.maximum, features, features.dtype.type(0), features)


def relu6_in_place(features: ArrayOrScalar) -> np.ndarray:
    """Relu6: compute the same as `relu6`, and write the result into `features`."""
    if not isinstance(features, np.ndarray):  # it is a numpy scalar
        return relu6(np.asarray(features))
    return on_threads(_from_0_to_6, features, features.dtype.type(0), features)


def leaky_relu(features: np.ndarray, *, alpha: float) -> np.ndarray:
    """LeakyRelu: return `features` where they are positive, and `alpha * features` elsewhere."""
    scaled = features * features.dtype.type(alpha)
    if 0 < alpha <= 1:
        return np.maximum(features, scaled)
    return np.where(features > 0, features, scaled)


@in_blocks(2)
def elu(features: np.ndarray) -> np.ndarray:
    """Elu: return `features` where they are not negative, and `exp(features) - 1` elsewhere."""
    zero = features.dtype.type(0)
    return np.add(np.expm1(np.minimum(features, zero)), np.maximum(features, zero))


@in_blocks(2)
def selu(features: np.ndarray) -> np.ndarray:
    """Selu: compute `scale * features` where features are positive.

    Elsewhere, compute `scale * alpha * (exp(features) - 1)`.
    """
    number = features.dtype.type
    result = np.multiply(number(SELU_SCALE_ALPHA), np.expm1(np.minimum(features, number(0))))
    result += number(SELU_SCALE) * np.maximum(features, number(0))
    return result


@in_blocks(3)
def softplus(features: np.ndarray) -> np.ndarray:
    """Softplus: compute `log(1 + exp(features))` without overflow."""
    wide = widen(features)
    small = np.log1p(np.exp(np.negative(np.abs(wide))))
    return np.add(small, np.maximum(wide, 0)).astype(features.dtype, copy=False)


def softsign(features: np.ndarray) -> np.ndarray:
    """Softsign: compute `features / (1 + |features|)`."""
    return features / (np.abs(features) + features.dtype.type(1))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Softmax: return the exponentials of `logits` divided by their sum over the last dimension."""
    return _apply_to_rows(logits, _softmax_rows)


def _softmax_rows(rows: np.ndarray, out: np.ndarray) -> None:
    np.subtract(rows, rows.max(axis=-1, keepdims=True, initial=-np.inf), out=out)
    np.exp(out, out=out)
    out *= np.reciprocal(out.sum(axis=-1, keepdims=True))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """LogSoftmax: return the logarithm of the softmax of `logits` over the last dimension."""
    return _apply_to_rows(logits, _log_softmax_rows)


def _log_softmax_rows(rows: np.ndarray, out: np.ndarray) -> None:
    np.subtract(rows, rows.max(axis=-1, keepdims=True, initial=-np.inf), out=out)
    out -= np.log(np.exp(out).sum(axis=-1, keepdims=True))


def _apply_to_rows(
    logits: np.ndarray, function: Callable[[np.ndarray, np.ndarray], None]
) -> np.ndarray:
    """Apply `function(rows, out)` to blocks of rows of `logits`; return what it writes to `out`.

    A row is the last dimension. `rows` and `out` have the accumulation dtype of `logits`.
    """
    if logits.ndim < 1:
        raise InvalidArgumentError(
            f"logits must have >= 1 dimension, got {shape_text(logits.shape)}"
        )
    rows = widen(logits)
    result = np.empty(rows.shape, rows.dtype)
    if logits.size <= BLOCK:
        function(rows, result)
        return result.astype(logits.dtype, copy=False)
    columns = logits.shape[-1]
    rows, flat = rows.reshape(-1, columns), result.reshape(-1, columns)
    at_once = max(1, block_size(logits.size) // columns)

    def work(start: int, limit: int) -> None:
        for first in range(start, limit, at_once):
            part = slice(first, min(first + at_once, limit))
            function(rows[part], flat[part])

    shard(len(rows), 2 * columns, work)
    return result.astype(logits.dtype, copy=False)


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
