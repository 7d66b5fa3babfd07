"""XlaScatter: windows of updates are joined into a tensor by a function of two scalars.

TF: tensorflow/compiler/tf2xla/kernels/scatter_nd_op.cc, xla_scatter in jax2tf
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import NameAttrList
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.kernels.xla.attributes import check_dimensions, dimension_numbers_of, others
from runtime.kernels.xla.computations import Computation
from runtime.kernels.xla.indexing import batch_pairs, full_starts, index_vectors


def xla_scatter(
    context: OpKernelContext,
    operand: np.ndarray,
    scatter_indices: np.ndarray,
    updates: np.ndarray,
    *,
    update_computation: NameAttrList,
    dimension_numbers: str,
) -> np.ndarray:
    """XlaScatter: a copy of `operand`, into which the windows of `updates` are joined in order.

    `update_computation` gets the element that is there and the update. A window that reaches over
    an edge is left out.
    """
    operand, indices, updates = map(np.asarray, (operand, scatter_indices, updates))
    numbers = dimension_numbers_of(pb.ScatterDimensionNumbers, dimension_numbers)
    batch = batch_pairs(
        numbers.input_batching_dims,
        numbers.scatter_indices_batching_dims,
        numbers.index_vector_dim,
        operand.shape,
        indices.shape,
    )
    gone = [*numbers.inserted_window_dims, *(place for place, _ in batch)]
    check_dimensions("inserted_window_dims", gone, operand.ndim)
    check_dimensions("scatter_dims_to_operand_dims", numbers.scatter_dims_to_operand_dims,
                     operand.ndim)  # fmt: skip
    vectors = index_vectors(indices, numbers.index_vector_dim)
    starts = full_starts(vectors, operand.ndim, numbers.scatter_dims_to_operand_dims, batch)
    windows = _windows(updates, operand, starts.shape[:-1], numbers.update_window_dims, gone)
    places, values = _flat(operand.shape, starts.reshape(-1, operand.ndim), windows)
    result = operand.copy()
    _join(result.reshape(-1), places, values, Computation(context, update_computation))
    return result


def _windows(
    updates: np.ndarray,
    operand: np.ndarray,
    shape: tuple[int, ...],
    window_dims: Sequence[int],
    gone: Sequence[int],
) -> np.ndarray:
    """Return the updates as [windows, *sizes], with a size for each dimension of the operand."""
    check_dimensions("update_window_dims", window_dims, updates.ndim)
    kept = others(operand.ndim, gone)
    scattered = others(updates.ndim, window_dims)
    sizes = dict(zip(kept, (updates.shape[each] for each in window_dims), strict=False))
    if (
        len(window_dims) != len(kept)
        or tuple(updates.shape[each] for each in scattered) != shape
        or any(size > operand.shape[place] for place, size in sizes.items())
    ):
        raise InvalidArgumentError(
            f"Updates of shape {list(updates.shape)} with the window dimensions "
            f"{list(window_dims)} do not fit indices of {list(shape)} and an operand of "
            f"{list(operand.shape)}"
        )
    ordered = updates.transpose([*scattered, *window_dims])
    whole = [sizes.get(place, 1) for place in range(operand.ndim)]
    return ordered.reshape(int(np.prod(shape, dtype=np.int64)), *whole)


def _flat(
    shape: tuple[int, ...], starts: np.ndarray, windows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the elements of the windows that fit go in the flat tensor, and the elements."""
    sizes = np.array(windows.shape[1:], np.int64)
    fits = np.all((starts >= 0) & (starts <= np.array(shape, np.int64) - sizes), axis=1)
    steps = [int(np.prod(shape[place + 1 :], dtype=np.int64)) for place in range(len(shape))]
    places = starts[fits] @ np.array(steps, np.int64)
    for size, step in zip(windows.shape[1:], steps, strict=True):
        places = places[..., np.newaxis] + np.arange(size) * step
    return places.reshape(-1), windows[fits].reshape(-1)


def _join(flat: np.ndarray, places: np.ndarray, values: np.ndarray, join: Computation) -> None:
    """Join values into `flat` in place; those of one place in their order."""
    if not places.size:
        return
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    begins = np.flatnonzero(is_first)
    lengths = np.diff(np.r_[begins, len(ordered)])
    for turn in range(int(lengths.max())):
        check_task()
        now = begins[lengths > turn] + turn  # the next value of each place that has one
        where = ordered[now]
        (flat[where],) = join(flat[where], values[order[now]])


KERNELS = (KernelDef("XlaScatter", xla_scatter, expensive=True),)
