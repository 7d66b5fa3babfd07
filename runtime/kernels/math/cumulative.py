"""Kernels for running sums, products and log-sum-exps along an axis.

TF: tensorflow/core/kernels/scan_ops.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import NUMBER_TYPES
from runtime.framework.shapes import shape_text


def _scan(ufunc: np.ufunc, identity: float) -> Callable[..., np.ndarray]:
    """Return a kernel that accumulates with `ufunc`.

    `identity` is the value over no elements, with which an exclusive scan starts.
    """

    def kernel(x: np.ndarray, axis: np.ndarray, *, exclusive: bool, reverse: bool) -> np.ndarray:
        if np.ndim(axis):
            raise InvalidArgumentError(
                f"ScanOp: axis must be a scalar, not {shape_text(axis.shape)}"
            )
        rank, position = x.ndim, int(axis)
        if not -rank <= position < rank:
            shown = position + rank if position < 0 else position
            raise InvalidArgumentError(
                f"ScanOp: Expected scan axis in the range [{-rank}, {rank}), but got {shown}"
            )
        ordered = np.flip(x, position) if reverse else x
        if ufunc is np.logaddexp and not (x < np.inf).all():
            result = _non_finite_logsumexps(ordered, position)
        else:
            result = ufunc.accumulate(ordered, axis=position, dtype=x.dtype)
        if exclusive:
            result = _shifted(result, position, identity)
        return np.flip(result, position) if reverse else result

    kernel.__name__ = kernel.__qualname__ = f"cumulative_{ufunc.__name__}"
    return kernel


def _non_finite_logsumexps(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the running log-sum-exps of `x` if it contains NaN or ∞, as TensorFlow computes them.

    A NaN in `x` counts as the sum so far, due to TensorFlow's comparisons; ∞ + ∞ gives NaN.
    """
    result = np.empty_like(x)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(result, axis, 0)
    total = np.full(source.shape[1:], -np.inf, x.dtype)
    for place in range(len(source)):
        check_task()
        item = np.where(np.isnan(source[place]), total, source[place])
        lost = np.isnan(total) | ((item == np.inf) & (total == np.inf))
        total = np.where(lost, np.array(np.nan, x.dtype), np.logaddexp(total, item))
        target[place] = total
    return result


def _shifted(inclusive: np.ndarray, axis: int, identity: float) -> np.ndarray:
    """Return `inclusive` shifted by one along `axis`, with `identity` in the first place."""
    result = np.empty_like(inclusive)
    target, source = np.moveaxis(result, axis, 0), np.moveaxis(inclusive, axis, 0)
    target[:1] = identity
    target[1:] = source[:-1]
    return result


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Cumsum", _scan(np.add, 0), {"T": NUMBER_TYPES}),
    KernelDef("Cumprod", _scan(np.multiply, 1), {"T": NUMBER_TYPES}),
    KernelDef("CumulativeLogsumexp", _scan(np.logaddexp, -np.inf)),
)
