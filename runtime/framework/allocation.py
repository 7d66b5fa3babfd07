"""The allocation guard: a huge result is refused before numpy asks the system for it.

Kernels whose output can be far larger than their inputs (Fill, BroadcastTo, Tile, Range, OneHot,
…) call `check_allocation` first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.shapes import sizes_text

MAX_RANK = 64  # numpy's; TensorFlow's is 254
_limit = [1 << 34]  # bytes; one process-wide number, written once at start


def set_tensor_limit(max_bytes: int) -> None:
    """Set the most bytes that a single tensor may take (process-wide)."""
    _limit[0] = max_bytes


def tensor_limit() -> int:
    """The most bytes that a single tensor may take."""
    return _limit[0]


def check_allocation(shape: Iterable[int], dtype: np.dtype | type) -> None:
    """Raise unless a tensor of this shape and dtype may be made.

    Raises InvalidArgumentError for a negative dimension or for sizes whose product no index can
    hold; ResourceExhaustedError with TensorFlow's words (`OOM when allocating tensor with
    shape[…]`) above the limit.
    """
    sizes = [int(size) for size in shape]
    for size in sizes:
        if size < 0:
            raise InvalidArgumentError(f"Dimension {size} must be >= 0")
    _check_element_count(sizes)
    needed = math.prod(sizes) * np.dtype(dtype).itemsize
    check_representable(sizes)
    if needed > _limit[0]:
        raise ResourceExhaustedError(
            f"OOM when allocating tensor with shape{sizes_text(sizes)} "
            f"and type {np.dtype(dtype).name}: {needed} bytes needed, the limit is {_limit[0]}"
        )


def check_representable(shape: Sequence[int]) -> None:
    """Raise InvalidArgumentError for a shape that no array can have, whatever its size in bytes.

    numpy multiplies the dimensions of empty arrays too, those of size 0 left out.
    """
    if len(shape) > MAX_RANK:
        raise InvalidArgumentError(
            f"A tensor has {len(shape)} dimensions; at most {MAX_RANK} are supported"
        )
    if 0 in shape and math.prod(filter(None, shape)) >= 1 << 59:
        raise InvalidArgumentError(f"Shape {list(shape)} has too many elements")


def _check_element_count(sizes: list[int]) -> None:
    """TensorFlow counts the elements of a shape in 64 bits."""
    count = 1
    for size in sizes:
        if count * size >= 1 << 63:
            raise InvalidArgumentError(
                f"Encountered overflow when multiplying {count} with {size}, result: -1"
            )
        count *= size
