"""Discrete Fourier transforms over the last one, two or three dimensions.

TF: tensorflow/core/kernels/fft_ops.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.shapes import shape_text


def _check_rank(input: np.ndarray, rank: int) -> None:
    if np.ndim(input) < rank:
        raise InvalidArgumentError(
            f"Input must have rank of at least {rank} but got: {shape_text(np.shape(input))}"
        )


def _complex_transform(transform: Callable[..., np.ndarray], rank: int) -> Kernel:
    """Return the kernel of FFT or IFFT over the last `rank` dimensions.

    The kernel returns a complex tensor of the shape of its complex input.
    """

    def kernel(input: np.ndarray) -> np.ndarray:
        _check_rank(input, rank)
        if not input.size:
            return input
        return transform(input, axes=tuple(range(-rank, 0))).astype(input.dtype, copy=False)

    return kernel


def _lengths(fft_length: np.ndarray, rank: int) -> list[int]:
    if np.shape(fft_length) != (rank,):
        raise InvalidArgumentError(f"fft_length must have shape [{rank}]")
    lengths = [int(each) for each in fft_length]
    for index, each in enumerate(lengths):
        if each < 0:
            raise InvalidArgumentError(f"fft_length[{index}] must >= 0, but got: {each}")
    return lengths


def _check_long_enough(input: np.ndarray, needed: list[int]) -> None:
    for axis, length in zip(range(-len(needed), 0), needed, strict=True):
        size = input.shape[axis]
        if size and size < length:
            raise InvalidArgumentError(
                f"Input dimension {input.ndim + axis} must have length of at least {length} "
                f"but got: {size}"
            )


def _real_transform(rank: int) -> Kernel:
    """Return the kernel of RFFT over the last `rank` dimensions: real to complex.

    The input is cropped, never padded, to `fft_length`. If n is the last element of `fft_length`,
    the last dimension of the result has n // 2 + 1 elements.
    """

    def kernel(input: np.ndarray, fft_length: np.ndarray, *, Tcomplex: DataType) -> np.ndarray:  # noqa: N803
        _check_rank(input, rank)
        lengths = _lengths(fft_length, rank)
        output = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
        return _transform(np.fft.rfftn, input, lengths, lengths, output, Tcomplex.numpy)

    return kernel


def _inverse_real_transform(rank: int) -> Kernel:
    """Return the kernel of IRFFT over the last `rank` dimensions: complex to real.

    If the last element of `fft_length` is n, the last dimension must have at least n // 2 + 1
    elements; it has n elements after the transform.
    """

    def kernel(input: np.ndarray, fft_length: np.ndarray, *, Treal: DataType) -> np.ndarray:  # noqa: N803
        _check_rank(input, rank)
        lengths = _lengths(fft_length, rank)
        needed = [*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0]
        return _transform(np.fft.irfftn, input, lengths, needed, lengths, Treal.numpy)

    return kernel


def _transform(
    function: Callable[..., np.ndarray],
    input: np.ndarray,
    lengths: list[int],
    needed: list[int],
    output: list[int],
    dtype: np.dtype,
) -> np.ndarray:
    _check_long_enough(input, needed)
    shape = (*input.shape[: -len(lengths)], *output)
    check_allocation(shape, dtype)
    if not input.size or not math.prod(shape):
        return np.zeros(shape, dtype)
    return function(input, s=lengths, axes=tuple(range(-len(lengths), 0))).astype(dtype, copy=False)


NAMES = {1: "", 2: "2D", 3: "3D"}
WIDTHS = ((DataType.FLOAT, DataType.COMPLEX64), (DataType.DOUBLE, DataType.COMPLEX128))

KERNELS: tuple[KernelDef, ...] = (
    *(
        KernelDef(f"{name}{suffix}", _complex_transform(transform, rank), expensive=True)
        for rank, suffix in NAMES.items()
        for name, transform in (("FFT", np.fft.fftn), ("IFFT", np.fft.ifftn))
    ),
    *(
        KernelDef(
            f"{name}{suffix}", make(rank), {"Treal": (real,), "Tcomplex": (whole,)}, expensive=True
        )
        for rank, suffix in NAMES.items()
        for name, make in (("RFFT", _real_transform), ("IRFFT", _inverse_real_transform))
        for real, whole in WIDTHS
    ),
)
