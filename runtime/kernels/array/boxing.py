"""Conversion between scalar resources or variants and numpy arrays.

Kernels pass a scalar resource or variant as a bare Python object and a resource or variant tensor
of higher rank as an object array. A string tensor is an object array at every rank. Kernels that
move elements box their inputs and unbox their results.
"""

from __future__ import annotations

import numpy as np

from runtime.framework.tensor_value import TensorValue


def box(value: TensorValue) -> np.ndarray:
    """Return `value` as an array; a bare object becomes an array of rank 0."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array


def unbox(result: TensorValue) -> TensorValue:
    """Return `result` as a bare object if it is a scalar resource or variant, else as an array."""
    if isinstance(result, np.ndarray):
        if result.ndim or not result.dtype.hasobject or isinstance(result.item(), bytes):
            return result
        return result.item()
    return box(result) if isinstance(result, bytes) else result
