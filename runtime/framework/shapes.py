"""Shapes as TensorFlow writes them in its messages.

TF: tensorflow/core/framework/tensor_shape.cc (DebugString)
"""

from __future__ import annotations

from collections.abc import Iterable


def shape_text(shape: Iterable[int] | None) -> str:
    """`[2,?]` for (2, −1); `<unknown>` for None."""
    if shape is None:
        return "<unknown>"
    return f"[{','.join('?' if size < 0 else str(size) for size in shape)}]"
