"""Diag and DiagPart: kernels for tensors whose diagonal is itself a tensor of any rank.

TF: tensorflow/core/kernels/diag_op.cc
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.array.boxing import box


def diag(diagonal: np.ndarray) -> np.ndarray:
    """Diag: return a tensor [d1, …, dk, d1, …, dk] with the given `diagonal` [d1, …, dk].

    All elements off the diagonal are zero.
    """
    diagonal = box(diagonal)
    if not diagonal.ndim:
        raise InvalidArgumentError("Input must be at least rank 1, got 0")
    sizes = (diagonal.size, diagonal.size)
    check_allocation(sizes, diagonal.dtype)
    result = np.zeros(sizes, diagonal.dtype)
    np.fill_diagonal(result, diagonal.ravel())
    return result.reshape(diagonal.shape * 2)


def diag_part(value: np.ndarray) -> np.ndarray:
    """DiagPart: return the diagonal [d1, …, dk] of a tensor [d1, …, dk, d1, …, dk]."""
    value = box(value)
    if value.ndim % 2:
        raise InvalidArgumentError(
            "The rank of the tensor should be                                          "
            f"even and positive, got shape {shape_text(value.shape)}"
        )
    half = value.ndim // 2
    for axis, (one, other) in enumerate(zip(value.shape, value.shape[half:], strict=False)):
        if one != other:
            raise InvalidArgumentError(
                f"Invalid shape {shape_text(value.shape)}: dimensions {axis} and {axis + half} "
                "do not match."
            )
    size = math.prod(value.shape[:half])
    return value.reshape(size, size).diagonal().reshape(value.shape[:half])


KERNELS = (
    KernelDef("Diag", diag),
    KernelDef("DiagPart", diag_part),
)
