"""The dtype in which sums and sums of products are accumulated.

TF: Eigen's contractions and reductions widen Eigen::half and Eigen::bfloat16 to float
"""

from __future__ import annotations

import numpy as np


def accumulation_dtype(dtype: np.dtype) -> np.dtype:
    """Return float32 for a 16-bit float type, otherwise `dtype` itself."""
    is_half = dtype.itemsize == 2 and dtype.kind not in "iu"
    return np.dtype(np.float32) if is_half else dtype


def widen(x: np.ndarray) -> np.ndarray:
    """Return `x` in its accumulation dtype, without a copy if it has that dtype already."""
    return x.astype(accumulation_dtype(x.dtype), copy=False)
