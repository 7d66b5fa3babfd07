"""The type in which sums of products are taken.

TF: Eigen's contractions and reductions widen Eigen::half and Eigen::bfloat16 to float
"""

from __future__ import annotations

import numpy as np


def accumulation_dtype(dtype: np.dtype) -> np.dtype:
    """float32 for the 16-bit floats, else the type itself."""
    is_half = dtype.itemsize == 2 and dtype.kind not in "iu"
    return np.dtype(np.float32) if is_half else dtype


def widen(x: np.ndarray) -> np.ndarray:
    """`x` in its accumulation type; `x` itself unless that differs."""
    return x.astype(accumulation_dtype(x.dtype), copy=False)
