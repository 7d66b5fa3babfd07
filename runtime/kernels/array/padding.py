"""Kernels that enlarge tensors by margins (Pad, MirrorPad) or by repetition (Tile).

TF: tensorflow/core/kernels/{pad_op,mirror_pad_op,tile_ops}.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def pad(value: np.ndarray, paddings: np.ndarray) -> np.ndarray:
    """Pad: surround `value` with zeros; `paddings[d]` is (before, after) for dimension d."""
    return pad_v2(value, paddings, b"" if value.dtype.hasobject else value.dtype.type(0))


def pad_v2(value: np.ndarray, paddings: np.ndarray, constant: np.ndarray | bytes) -> np.ndarray:
    """PadV2: surround `value` with the scalar `constant`.

    `paddings[d]` is (before, after) for dimension d.
    """
    if np.ndim(constant):
        raise InvalidArgumentError(
            f"constant_values must be a scalar. Found: {shape_text(np.shape(constant))}"
        )
    margins = _margins(value, paddings, " ")
    for before, after in margins:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")
    sizes = [
        before + size + after for size, (before, after) in zip(value.shape, margins, strict=True)
    ]
    check_allocation(sizes, value.dtype)
    result = np.empty(sizes, value.dtype)
    result[...] = constant
    # A scalar string is unwrapped, because numpy would store the array itself as an element.
    result[_inside(value.shape, margins)] = value if value.ndim else value[()]
    return result


def _inside(shape: tuple[int, ...], margins: list[list[int]]) -> tuple[slice, ...]:
    """Return the slices of the padded tensor that hold the input, whose shape is `shape`."""
    return tuple(
        slice(before, before + size) for size, (before, _) in zip(shape, margins, strict=True)
    )


def _margins(value: np.ndarray, paddings: np.ndarray, separator: str) -> list[list[int]]:
    """Return `paddings` as [[before, after], …], one pair per dimension of `value`.

    Raises InvalidArgumentError if `paddings` is not of shape [rank, 2]; `separator` stands between
    the two shapes in the message.
    """
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise InvalidArgumentError(
            f"paddings must be a matrix with 2 columns: {shape_text(paddings.shape)}"
        )
    if value.ndim != paddings.shape[0]:
        raise InvalidArgumentError(
            "The first dimension of paddings must be the rank of inputs"
            f"{shape_text(paddings.shape)}{separator}{shape_text(value.shape)}"
        )
    margins: list[list[int]] = paddings.tolist()
    return margins


def mirror_pad(value: np.ndarray, paddings: np.ndarray, *, mode: str) -> np.ndarray:
    """MirrorPad: return `value` with margins that mirror its elements.

    If `mode` is SYMMETRIC, the element at the border is repeated; if it is REFLECT, it is not.
    """
    margins = _margins(value, paddings, ", ")
    border = 1 if mode == "REFLECT" else 0
    for size, (before, after) in zip(value.shape, margins, strict=True):
        _check_mirror(before, after, size, border, "")
    sizes = [
        before + size + after for size, (before, after) in zip(value.shape, margins, strict=True)
    ]
    check_allocation(sizes, value.dtype)
    result = value
    for axis, (before, after) in enumerate(margins):
        if before or after:
            result = np.take(result, _mirrored(value.shape[axis], before, after, border), axis)
    return result


def _mirrored(size: int, before: int, after: int, border: int) -> np.ndarray:
    """Return, for each index of a mirror-padded dimension, the index of its source element."""
    positions = np.arange(size)
    head = positions[border : border + before][::-1]
    tail = positions[::-1][border : border + after]
    return np.concatenate((head, positions, tail))


def _check_mirror(before: int, after: int, size: int, border: int, kind: str) -> None:
    if before < 0 or after < 0:
        raise InvalidArgumentError(f"paddings must be non-negative: {before} {after}")
    if before > size - border or after > size - border:
        relation = ("less than", "not less than") if border else ("no greater than", "greater than")
        raise InvalidArgumentError(
            f"paddings must be {relation[0]} the {kind}dimension size: {before}, {after} "
            f"{relation[1]} {size}"
        )


def mirror_pad_grad(value: np.ndarray, paddings: np.ndarray, *, mode: str) -> np.ndarray:
    """MirrorPadGrad: return the gradient with respect to the input of MirrorPad.

    The gradient of each margin element in `value` is added to the element that it mirrors.
    """
    margins = _margins(value, paddings, " ")
    border = 1 if mode == "REFLECT" else 0
    result = value
    for axis, (before, after) in enumerate(margins):
        size = value.shape[axis] - before - after
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before}, {after}")
        if size <= 0:
            raise InvalidArgumentError(
                "Total paddings must be less than the input dimension size: "
                f"{before + after} was not less than {value.shape[axis]}"
            )
        _check_mirror(before, after, size, border, "output ")
        if before or after:
            folded = np.moveaxis(result, axis, 0)
            total = folded[before : before + size].copy()
            total[border : border + before] += folded[:before][::-1]
            total[size - border - after : size - border] += folded[before + size :][::-1]
            result = np.moveaxis(total, 0, axis)
    return result


def tile(value: TensorValue, multiples: np.ndarray) -> TensorValue:
    """Tile: repeat the input `multiples[d]` times along dimension d."""
    array = box(value)
    if multiples.ndim != 1 or multiples.size != array.ndim:
        if multiples.ndim != 1:
            raise InvalidArgumentError(
                f"Expected multiples to be 1-D, but got shape {shape_text(multiples.shape)}"
            )
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {array.ndim} "
            f"but got length {multiples.size}"
        )
    counts = multiples.tolist()
    for axis, count in enumerate(counts):
        if count < 0:
            raise InvalidArgumentError(f"Expected multiples[{axis}] >= 0, but got {count}")
    sizes = [count * size for count, size in zip(counts, array.shape, strict=True)]
    check_allocation(sizes, array.dtype)
    if 0 in sizes:
        return np.empty(sizes, array.dtype)
    # [d0, d1] is viewed as [1, d0, 1, d1] and broadcast to [m0, d0, m1, d1]: one copy, no loop.
    interleaved = [part for size in array.shape for part in (1, size)]
    stretched = [part for pair in zip(counts, array.shape, strict=True) for part in pair]
    return unbox(np.broadcast_to(array.reshape(interleaved), stretched).reshape(sizes))


KERNELS = (
    KernelDef("MirrorPad", mirror_pad),
    KernelDef("MirrorPadGrad", mirror_pad_grad),
    KernelDef("Pad", pad),
    KernelDef("PadV2", pad_v2),
    KernelDef("Tile", tile),
)
