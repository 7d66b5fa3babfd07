"""Gradient functions of Fourier transforms of complex and of real signals.

The transforms are linear, so each gradient is the adjoint transform of the output's gradient. Real
transforms crop their input to `fft_length`, so their gradients are padded with zeros.

TF: tensorflow/python/ops/signal/fft_ops.py
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.gradients.matrix_nodes import batch_shape, columns, tail_shape
from runtime.graph.node import Endpoint, Node

_SUFFIXES = {1: "", 2: "2D", 3: "3D"}  # rank of the transform → end of the ops' names
_COMPLEX = {DataType.FLOAT: DataType.COMPLEX64, DataType.DOUBLE: DataType.COMPLEX128}


def _count(ops: GradientNodes, x: Endpoint, rank: int) -> Endpoint:
    """Return the number of elements of one signal: the product of the last `rank` sizes of x."""
    output: Endpoint = ops.Prod(tail_shape(ops, x, rank), ops.indices([0]))
    return output


def _forward(rank: int, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    size = ops.Cast(_count(ops, grads[0], rank), DstT=type_of(grads[0]))
    return [ops.Mul(ops.add(f"IFFT{_SUFFIXES[rank]}", grads[0]), size)]


def _inverse(rank: int, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    size = ops.Cast(_count(ops, grads[0], rank), DstT=type_of(grads[0]))
    return [ops.RealDiv(ops.add(f"FFT{_SUFFIXES[rank]}", grads[0]), size)]


def _fitted(ops: GradientNodes, x: Endpoint, shape: Endpoint) -> Endpoint:
    """Return x cropped at the ends of its dimensions, or padded there with zeros, to `shape`."""
    kept = ops.Minimum(ops.Shape(x), shape)
    zeros = ops.ZerosLike(kept)
    part = ops.Slice(x, zeros, kept)
    output: Endpoint = ops.Pad(part, ops.Pack([zeros, ops.Sub(shape, kept)], axis=1))
    return output


def _real_forward(
    rank: int, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    """RFFT: return the real part of the adjoint of the full transform.

    The op drops the second half of the spectrum, whose gradient is therefore zero.
    """
    x, length = node.inputs
    full = ops.ConcatV2([batch_shape(ops, grads[0], rank), length], ops.indices(0))
    spectrum = _fitted(ops, grads[0], full)
    signal = ops.add(f"IFFT{_SUFFIXES[rank]}", spectrum)
    real = ops.Real(signal, Tout=type_of(x))
    size = ops.Cast(_count(ops, spectrum, rank), DstT=type_of(x))
    return [_fitted(ops, ops.Mul(real, size), ops.Shape(x)), None]


def _real_inverse(
    rank: int, ops: GradientNodes, node: Node, grads: Sequence[Endpoint]
) -> Gradients:
    """IRFFT: return the spectrum of the gradient, with the weight 2 for what the op uses twice.

    The op reads each element of its half spectrum twice (itself and its conjugate), except for the
    first of a line and, if the length is even, the last.
    """
    x, length = node.inputs
    dtype = type_of(grads[0])
    spectrum = ops.add(f"RFFT{_SUFFIXES[rank]}", grads[0], length, Tcomplex=_COMPLEX[dtype])
    last = columns(ops, length, -1, None)
    odd = ops.FloorMod(last, ops.indices(2))
    inner = ops.Sub(ops.AddV2(tail_shape(ops, spectrum, 1), odd), ops.indices(2))
    weights = ops.ConcatV2(
        [
            ops.constant([1], dtype),
            ops.Fill(inner, ops.like(2, grads[0])),
            ops.Fill(ops.Sub(ops.indices([1]), odd), ops.like(1, grads[0])),
        ],
        ops.indices(0),
    )
    size = ops.Cast(_count(ops, grads[0], rank), DstT=dtype)
    weights = ops.Cast(ops.RealDiv(weights, size), DstT=type_of(spectrum))
    return [_fitted(ops, ops.Mul(spectrum, weights), ops.Shape(x)), None]


_BY_NAME = {"FFT": _forward, "IFFT": _inverse, "RFFT": _real_forward, "IRFFT": _real_inverse}

FOURIER_GRADIENTS: dict[str, GradientFunction] = {
    f"{name}{suffix}": functools.partial(function, rank)
    for name, function in _BY_NAME.items()
    for rank, suffix in _SUFFIXES.items()
}
