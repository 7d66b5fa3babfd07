"""Partial shapes: shapes of which some dimensions, or the rank, may be unknown.

TF: tensorflow/core/framework/tensor_shape.cc (PartialTensorShape)
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.shapes import shape_text

PartialShape = tuple[int, ...] | None  # −1 is an unknown dimension, None an unknown rank
Shapes = tuple[PartialShape, ...]  # one partial shape for each component of an element


def shape_from_tensor(value: object) -> PartialShape:
    """Return the shape whose sizes are the elements of a vector; the scalar −1 is unknown rank.

    Raises InvalidArgumentError if a size is below −1, if `value` is another scalar than −1, or if
    its rank is above 1.
    """
    array = np.asarray(value)
    if array.ndim == 0:
        if int(array) != -1:
            raise InvalidArgumentError(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return None
    if array.ndim > 1:
        raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {array.ndim}")
    shape = tuple(array.tolist())
    for size in shape:
        if size < -1:
            raise InvalidArgumentError(f"Dimension {size} must be >= -1")
    return shape


def is_fully_defined(shape: PartialShape) -> TypeGuard[tuple[int, ...]]:
    """Return whether the rank and every dimension are known."""
    return shape is not None and all(size >= 0 for size in shape)


def is_compatible(one: PartialShape, other: PartialShape) -> bool:
    """Return whether a fully defined shape exists that matches both shapes."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        a == b or a < 0 or b < 0 for a, b in zip(one, other, strict=True)
    )


def merge(one: PartialShape, other: PartialShape) -> PartialShape:
    """Return the shape that has the known dimensions of both shapes.

    Raises InvalidArgumentError if the shapes are not compatible.
    """
    if one is not None and other is not None and len(one) != len(other):
        raise InvalidArgumentError(
            f"PartialTensorShape: Incompatible ranks during merge: {len(one)} vs. {len(other)}"
        )
    if not is_compatible(one, other):
        raise InvalidArgumentError(
            "PartialTensorShape: Incompatible shapes during merge: "
            f"{shape_text(one)} vs. {shape_text(other)}"
        )
    if one is None or other is None:
        return one if other is None else other
    return tuple(max(a, b) for a, b in zip(one, other, strict=True))


def common_shape(one: PartialShape, other: PartialShape) -> PartialShape:
    """Return the most specific shape that matches both shapes.

    A dimension is unknown in it if the two shapes differ there; so is the rank if the ranks differ.
    """
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else -1 for a, b in zip(one, other, strict=True))
