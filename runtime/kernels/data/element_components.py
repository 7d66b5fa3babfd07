"""Components of dataset elements: slicing and stacking of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def row(component: np.ndarray, index: int) -> TensorValue:
    """Return the slice of `component` at `index` of the first dimension."""
    return unbox(component[index, ...])


def stack(values: Sequence[TensorValue]) -> np.ndarray:
    """Stack tensors of equal shapes along a new first dimension.

    Raises InvalidArgumentError if the shapes differ.
    """
    arrays = [box(value) for value in values]
    first = arrays[0]
    for array in arrays:
        if array.shape != first.shape:
            raise InvalidArgumentError(_mismatch(first, array))
    check_allocation((len(arrays), *first.shape), first.dtype)
    return np.stack(arrays)


def _mismatch(first: np.ndarray, other: np.ndarray) -> str:
    what = "number of elements does" if first.size != other.size else "shapes do"
    return (
        f"Cannot add tensor to the batch: {what} not match. "
        f"Shapes are: [tensor]: {shape_text(other.shape)}, [batch]: {shape_text(first.shape)}"
    )


def nested_text(value: TensorValue) -> bytes:
    """Return the shape and contents of a tensor as bytes.

    Two tensors of the same dtype have equal bytes only if the tensors are equal.
    """
    array = box(value)
    if array.dtype.hasobject:
        return repr((array.shape, array.ravel().tolist())).encode()
    return repr(array.shape).encode() + array.tobytes()
