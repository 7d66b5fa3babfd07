"""Shapes, and places in them, as TensorFlow writes them in its messages.

TF: tensorflow/core/framework/tensor_shape.cc (DebugString)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def shape_text(shape: Iterable[int] | None) -> str:
    """`[2,?]` for (2, −1); `<unknown>` for None."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def sizes_text(sizes: Iterable[int]) -> str:
    """`[2,-1]`: the numbers of a tensor that gives a shape, as they are."""
    return f"[{','.join(map(str, sizes))}]"


def position_text(flat: int, shape: Sequence[int]) -> str:
    """`[1,2]`: where element `flat` of an array of this shape is; empty for a scalar.

    TF: tensorflow/core/util/util.h (SliceDebugString)
    """
    return sizes_text(int(each) for each in np.unravel_index(flat, shape)) if shape else ""
