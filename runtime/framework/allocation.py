"""The allocation guard: raises before a tensor that exceeds the size limit is allocated.

Kernels whose output can be far larger than their inputs (Fill, BroadcastTo, Tile, Range, OneHot,
…) call `check_allocation` first. Where a session has a memory budget, its runs check the outputs of
all other kernels (`executors/memory_watch.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.shapes import sizes_text

MAX_RANK = 64  # numpy's limit; TensorFlow's is 254
STRING_BYTES = 24  # TF: sizeof(tstring)
_limit = [1 << 34]  # maximum bytes of a tensor in this process, set once at start


def set_tensor_limit(max_bytes: int) -> None:
    """Set the maximum size in bytes that a tensor may have in this process."""
    _limit[0] = max_bytes


def tensor_limit() -> int:
    """Return the maximum size in bytes that a tensor may have."""
    return _limit[0]


def check_allocation(shape: Iterable[int], dtype: np.dtype | type) -> None:
    """Raise unless a tensor of this shape and dtype may be allocated.

    Raises InvalidArgumentError if a dimension is negative, if the number of elements exceeds int64,
    or if numpy can't represent the shape. Raises ResourceExhaustedError with TensorFlow's text
    (`OOM when allocating tensor with shape[…]`) if the tensor needs more than `tensor_limit()`.
    """
    sizes = [int(size) for size in shape]
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    _check_element_count(sizes)
    needed = math.prod(sizes) * element_bytes(dtype)
    check_representable(sizes)
    check_bytes(sizes, dtype, needed)


def check_bytes(shape: Sequence[int], dtype: np.dtype | type, needed: int) -> None:
    """Raise ResourceExhaustedError if a tensor has more than `tensor_limit()` bytes.

    `needed` are its bytes, those of its strings included; `shape` and `dtype` are for the message.
    """
    if needed > _limit[0]:
        raise ResourceExhaustedError(
            f"OOM when allocating tensor with shape{sizes_text(shape)} "
            f"and type {np.dtype(dtype).name}: {needed} bytes needed, the limit is {_limit[0]}"
        )


def element_bytes(dtype: np.dtype | type) -> int:
    """Return the bytes of an element, without a string's text.

    numpy lets no other thread run while it writes objects: their number must be bounded.
    """
    return STRING_BYTES if np.dtype(dtype).hasobject else np.dtype(dtype).itemsize


def check_representable(shape: Sequence[int]) -> None:
    """Raise InvalidArgumentError if no numpy array can have the shape, however few its bytes.

    numpy limits the rank and, if the array is empty, the product of the non-zero dimensions.
    """
    if len(shape) > MAX_RANK:
        raise InvalidArgumentError(
            f"A tensor has {len(shape)} dimensions; at most {MAX_RANK} are supported"
        )
    if 0 in shape and math.prod(filter(None, shape)) >= 1 << 59:
        raise InvalidArgumentError(f"Shape {list(shape)} has too many elements")


def _check_element_count(sizes: list[int]) -> None:
    """Raise InvalidArgumentError with TensorFlow's text if the element count exceeds int64."""
    count = 1
    for size in sizes:
        if count * size >= 1 << 63:
            raise InvalidArgumentError(
                f"Encountered overflow when multiplying {count} with {size}, result: -1"
            )
        count *= size
