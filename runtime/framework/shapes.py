"""Shapes, and positions in them, in the form of TensorFlow's messages.

TF: tensorflow/core/framework/tensor_shape.cc (DebugString)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def shape_text(shape: Iterable[int] | None) -> str:
    """The text of a partial shape: `[2,?]` for (2, −1); `<unknown>` for None."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def sizes_text(sizes: Iterable[int]) -> str:
    """The text of sizes as plain numbers: `[2,-1]` for (2, −1)."""
    return f"[{','.join(map(str, sizes))}]"


def position_text(flat: int, shape: Sequence[int]) -> str:
    """The index of element `flat` (row-major) in an array of `shape`: `[1,2]`; "" for a scalar.

    TF: tensorflow/core/util/util.h (SliceDebugString)
    """
    return sizes_text(int(each) for each in np.unravel_index(flat, shape)) if shape else ""
