"""Kernels that move blocks of spatial positions into the depth or the batch, or back.

TF: tensorflow/core/kernels/{depthtospace,spacetodepth,spacetobatch,batchtospace}_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text


def depth_to_space(value: np.ndarray, *, block_size: int) -> np.ndarray:
    """DepthToSpace: move depth into blocks of s × s positions, s = `block_size`.

    Shapes: [b, h, w, c·s²] becomes [b, h·s, w·s, c].
    """
    batch, height, width, depth = _check_image(value, "be: 4 instead of:")
    if depth % (block_size * block_size):
        raise InvalidArgumentError(
            f"Input depth dimension {depth} should be divisible by: {block_size * block_size}"
        )
    channels = depth // (block_size * block_size)
    blocks = value.reshape(batch, height, width, block_size, block_size, channels)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(
        batch, height * block_size, width * block_size, channels
    )


def space_to_depth(value: np.ndarray, *, block_size: int) -> np.ndarray:
    """SpaceToDepth: move blocks of s × s positions into the depth, s = `block_size`.

    Shapes: [b, h·s, w·s, c] becomes [b, h, w, c·s²].
    """
    batch, height, width, depth = _check_image(value, "be 4 instead of")
    if height % block_size or width % block_size:
        raise InvalidArgumentError(
            f"Image width {width} and height {height} should be divisible by block_size: "
            f"{block_size}"
        )
    rows, columns = height // block_size, width // block_size
    blocks = value.reshape(batch, rows, block_size, columns, block_size, depth)
    return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(
        batch, rows, columns, block_size * block_size * depth
    )


def _check_image(value: np.ndarray, expected: str) -> tuple[int, int, int, int]:
    if value.ndim != 4:
        raise InvalidArgumentError(f"Input rank should {expected} {value.ndim}")
    batch, height, width, depth = value.shape
    return batch, height, width, depth


def space_to_batch_nd(
    value: np.ndarray, block_shape: np.ndarray, paddings: np.ndarray
) -> np.ndarray:
    """SpaceToBatchND: pad `value` with zeros, then move blocks of positions into the batch."""
    blocks, margins = _check_blocks(value, block_shape, paddings, "paddings")
    for axis, (before, after) in enumerate(margins):
        if before < 0 or after < 0:
            raise InvalidArgumentError("Paddings must be non-negative")
        padded = value.shape[axis + 1] + before + after
        if padded % blocks[axis]:
            raise InvalidArgumentError(
                f"padded_shape[{axis}]={padded} is not divisible by block_shape[{axis}]="
                f"{blocks[axis]}"
            )
    spatial = [
        size + before + after
        for size, (before, after) in zip(value.shape[1:], margins, strict=False)
    ]
    sizes = (value.shape[0], *spatial, *value.shape[1 + len(blocks) :])
    check_allocation(sizes, value.dtype)
    padded_value = np.zeros(sizes, value.dtype)
    inside = tuple(
        slice(before, before + size)
        for size, (before, _) in zip(value.shape[1:], margins, strict=False)
    )
    padded_value[(slice(None), *inside)] = value
    return _into_batch(padded_value, blocks)


def _into_batch(value: np.ndarray, blocks: list[int]) -> np.ndarray:
    """Move blocks of n1 × n2 × … positions into the batch; `blocks` is [n1, n2, …].

    Shapes: [b, s1·n1, …, R…] becomes [n1·…·b, s1, …, R…].
    """
    count = len(blocks)
    batch, rest = value.shape[0], value.shape[1 + count :]
    outer = [size // block for size, block in zip(value.shape[1:], blocks, strict=False)]
    split = [part for pair in zip(outer, blocks, strict=True) for part in pair]
    positions = value.reshape(batch, *split, *rest)
    order = [
        *range(2, 2 * count + 1, 2),
        0,
        *range(1, 2 * count, 2),
        *range(2 * count + 1, positions.ndim),
    ]
    return positions.transpose(order).reshape(batch * math.prod(blocks), *outer, *rest)


def batch_to_space_nd(value: np.ndarray, block_shape: np.ndarray, crops: np.ndarray) -> np.ndarray:
    """BatchToSpaceND: move blocks from the batch back into spatial positions, then crop."""
    blocks, margins = _check_blocks(value, block_shape, crops, "crops")
    product = math.prod(blocks)
    if value.shape[0] % product:
        raise InvalidArgumentError(
            f"Input batch dimension ({value.shape[0]}) is not divisible by product of block sizes "
            f"({product})"
        )
    count = len(blocks)
    spatial, rest = value.shape[1 : 1 + count], value.shape[1 + count :]
    sizes = [size * block for size, block in zip(spatial, blocks, strict=True)]
    for axis, (before, after) in enumerate(margins):
        if before < 0 or after < 0:
            raise InvalidArgumentError("Crops must be non-negative")
        if sizes[axis] < before + after:
            raise InvalidArgumentError(
                f"cropped_shape[{axis}]={sizes[axis] - before - after} must be non-negative"
            )
    batch = value.shape[0] // product
    positions = value.reshape(*blocks, batch, *spatial, *rest)
    pairs = [part for axis in range(count) for part in (count + 1 + axis, axis)]
    order = [count, *pairs, *range(2 * count + 1, positions.ndim)]
    merged = positions.transpose(order).reshape(batch, *sizes, *rest)
    inside = tuple(
        slice(before, size - after) for size, (before, after) in zip(sizes, margins, strict=True)
    )
    return merged[(slice(None), *inside)]


def _check_blocks(
    value: np.ndarray, block_shape: np.ndarray, margins: np.ndarray, name: str
) -> tuple[list[int], list[list[int]]]:
    """Return the block sizes [s1, …] and the margins [[before, after], …] of those dimensions.

    Raises InvalidArgumentError if the shapes do not fit or a block size is not positive.
    """
    if block_shape.ndim != 1:
        raise InvalidArgumentError(f"block_shape rank should be 1 instead of {block_shape.ndim}")
    count = block_shape.size
    if value.ndim < 1 + count:
        raise InvalidArgumentError(f"input rank should be >= {1 + count} instead of {value.ndim}")
    if margins.shape != (count, 2):
        raise InvalidArgumentError(
            f"{name} should have shape [{count}, 2] instead of {shape_text(margins.shape)}"
        )
    blocks: list[int] = block_shape.tolist()
    if any(block < 1 for block in blocks):
        raise InvalidArgumentError("All values in block_shape must be positive")
    return blocks, margins.tolist()


def space_to_batch(value: np.ndarray, paddings: np.ndarray, *, block_size: int) -> np.ndarray:
    """SpaceToBatch: apply SpaceToBatchND with square blocks to images [b, h, w, c]."""
    _check_rank_4(value)
    return space_to_batch_nd(value, np.array([block_size, block_size]), paddings)


def batch_to_space(value: np.ndarray, crops: np.ndarray, *, block_size: int) -> np.ndarray:
    """BatchToSpace: apply BatchToSpaceND with square blocks to images [b, h, w, c]."""
    _check_rank_4(value)
    return batch_to_space_nd(value, np.array([block_size, block_size]), crops)


def _check_rank_4(value: np.ndarray) -> None:
    if value.ndim != 4:
        raise InvalidArgumentError(f"Input rank should be: 4instead of: {value.ndim}")


CHANNELS_LAST = {"data_format": ("NHWC",)}

KERNELS = (
    KernelDef("BatchToSpace", batch_to_space),
    KernelDef("BatchToSpaceND", batch_to_space_nd),
    KernelDef("DepthToSpace", depth_to_space, CHANNELS_LAST),
    KernelDef("SpaceToBatch", space_to_batch),
    KernelDef("SpaceToBatchND", space_to_batch_nd),
    KernelDef("SpaceToDepth", space_to_depth, CHANNELS_LAST),
)
