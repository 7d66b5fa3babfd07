"""Texts of shapes, and of positions in arrays, as they occur in TensorFlow's messages.

TF: tensorflow/core/framework/tensor_shape.cc (DebugString)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def shape_text(shape: Iterable[int] | None) -> str:
    """Return the text of a partial shape: `[2,?]` for (2, −1), `<unknown>` for None."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if size < 0 else str(size) for size in shape)}]"


def sizes_text(sizes: Iterable[int]) -> str:
    """Return the text of sizes as plain numbers: `[2,-1]` for (2, −1)."""
    return f"[{','.join(map(str, sizes))}]"


def position_text(flat: int, shape: Sequence[int]) -> str:
    """Return the text of the index of an element in an array of `shape`, such as `[1,2]`.

    `flat` is the element's row-major index. If the array is a scalar, the text is "".

    TF: tensorflow/core/util/util.h (SliceDebugString)
    """
    return sizes_text(int(each) for each in np.unravel_index(flat, shape)) if shape else ""
