"""Tensors whose elements are Python objects, at rank 0.

Resources and variants travel as bare objects when they are scalars and as object arrays
otherwise; strings are object arrays at every rank. Kernels that move elements around box what
comes in and unbox what goes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def box(value: Any) -> np.ndarray:
    """Any tensor value as an array; a bare object becomes an array of rank 0."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    array = np.empty((), object)
    array[()] = value
    return array


def unbox(result: Any) -> Any:
    """A result as tensors are passed on: a rank-0 resource or variant bare, bytes in an array."""
    if isinstance(result, np.ndarray):
        if result.ndim or not result.dtype.hasobject or isinstance(result.item(), bytes):
            return result
        return result.item()
    return box(result) if isinstance(result, bytes) else result
