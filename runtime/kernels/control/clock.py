"""The time of day.

TF: tensorflow/core/kernels/logging_ops.cc (TimestampOp)
"""

from __future__ import annotations

import time

import numpy as np

from runtime.framework.op_kernel import KernelDef


def timestamp() -> np.ndarray:
    """Seconds since the epoch."""
    return np.array(time.time(), np.float64)


KERNELS = (KernelDef("Timestamp", timestamp),)
