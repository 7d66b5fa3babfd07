"""Timestamp: the time of day.

TF: tensorflow/core/kernels/logging_ops.cc (TimestampOp)
"""

from __future__ import annotations

import time

import numpy as np

from runtime.framework.op_kernel import KernelDef


def timestamp() -> np.ndarray:
    """Timestamp: return the seconds since 1970-01-01 00:00 UTC as a float64 scalar."""
    return np.array(time.time(), np.float64)


KERNELS = (KernelDef("Timestamp", timestamp),)
