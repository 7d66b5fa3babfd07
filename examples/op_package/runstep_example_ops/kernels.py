"""The kernels of Clamped and RunningCount."""

from __future__ import annotations

import threading

import numpy as np

from runtime.api import InvalidArgumentError, KernelDef, OpKernelContext


def clamped(x: np.ndarray, *, limit: float) -> np.ndarray:
    """Clamped: return `x`, no element of which is farther from 0 than `limit`."""
    if limit < 0:
        raise InvalidArgumentError(f"limit must not be negative, got {limit}")
    return np.asarray(np.clip(x, -limit, limit))


def _clamped_bytes(x: np.ndarray) -> int:
    """Return the most bytes that a call allocates; operators bound the memory of a step by it."""
    return int(x.nbytes)


class _Count:
    """How many elements a node of a session has seen."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # guards total
        self.total = 0


def running_count(context: OpKernelContext, x: np.ndarray) -> np.ndarray:
    """RunningCount: return how many elements this node has seen in this session."""
    count = context.kernel_state(_Count)
    with count.lock:
        count.total += x.size
        return np.asarray(count.total, np.int64)


KERNELS = (
    KernelDef("Clamped", clamped, memory=_clamped_bytes),
    KernelDef("RunningCount", running_count, memory=lambda context, x: 8),
)
