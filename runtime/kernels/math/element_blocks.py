"""Element-wise functions composed of several ufuncs, computed block by block.

The temporary arrays of a block fit in the cache of one core. The blocks are divided among as many
threads as the intra-op width of the step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.foundation.intra_op_pool import shard, thread_width

BLOCK = 32768  # elements: 128 KB of float32
# The block size if there are several threads: during shorter numpy calls the threads would
# mostly wait for the GIL.
THREADED_BLOCK = 131072
# np.clip takes one pass where np.maximum and np.minimum take two, but 2 µs more for the call.
CLIP_FROM = 16384  # elements
# For half types np.clip is not always faster, and it returns bfloat16 as float32. If −0.0 is
# clipped to a bound of 0.0, np.clip keeps −0.0, while np.maximum and np.minimum return the bound.
CLIP_DTYPES = frozenset(
    np.dtype(each)
    for each in (
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float32, np.float64),
    )
)
NANOSECONDS = 0.4  # time to add one element of a large array, limited by memory bandwidth


def block_size(total: int) -> int:
    """Return the number of elements in a block, for an array of `total` elements."""
    if total >= 2 * THREADED_BLOCK and thread_width() > 1:
        return THREADED_BLOCK
    return BLOCK


def in_blocks(
    nanoseconds: float,
) -> Callable[[Callable[..., np.ndarray]], Callable[..., np.ndarray]]:
    """Return a decorator for functions that are to be called on flat blocks of their tensors.

    The function must be element-wise and return the dtype of the first tensor. Tensors of different
    shapes are passed whole; scalars are passed as vectors of one element. `nanoseconds` is the
    approximate time for one element in one thread.
    """

    def decorate(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        @functools.wraps(function)
        def kernel(*tensors: np.ndarray, **attrs: Any) -> np.ndarray:
            first = tensors[0]
            if not first.ndim and all(not each.ndim for each in tensors):
                return function(*(np.reshape(each, 1) for each in tensors), **attrs).reshape(())
            if first.size <= BLOCK or any(each.shape != first.shape for each in tensors[1:]):
                return function(*tensors, **attrs)
            flat = [np.ravel(each) for each in tensors]
            result = np.empty(first.size, first.dtype)
            size = block_size(first.size)

            def work(start: int, limit: int) -> None:
                for begin in range(start, limit, size):
                    part = slice(begin, min(begin + size, limit))
                    result[part] = function(*(each[part] for each in flat), **attrs)

            shard(first.size, nanoseconds, work, THREADED_BLOCK)
            return result.reshape(first.shape)

        return kernel

    return decorate


LARGE = 1 << 19  # elements; numpy adds this many in 0.2 ms


def on_threads(
    ufunc: Callable[..., np.ndarray], x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None
) -> np.ndarray:
    """Return `ufunc(x, y)`, computed on several threads of the step if `x` is large.

    `ufunc` is a ufunc, or an element-wise function of the same arguments `x`, `y` and `out`.
    One thread is used unless `y` is a scalar, or has the shape of `x` or of the last dimension of
    `x`. The result is written into `out` if that is given and contiguous.
    """
    if x.size < LARGE or thread_width() == 1 or not (np.ndim(x) and x.flags.c_contiguous):
        return ufunc(x, y, out=out)
    rows: np.ndarray
    if np.ndim(y) == 0:
        rows, others = x.reshape(-1), None
    elif y.shape == x.shape and y.flags.c_contiguous:
        rows, others = x.reshape(-1), y.reshape(-1)
    elif y.shape == x.shape[-1:]:
        rows, others = x.reshape(-1, y.size), None
    else:
        return ufunc(x, y, out=out)
    if out is None or not out.flags.c_contiguous:
        result = np.empty(x.shape, ufunc(rows[:0], y if others is None else others[:0]).dtype)
    else:
        result = out
    target = result.reshape(rows.shape)

    def work(start: int, limit: int) -> None:
        part = slice(start, limit)
        ufunc(rows[part], y if others is None else others[part], out=target[part])

    shard(len(rows), NANOSECONDS * x.size / len(rows), work)
    return result


_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def choose(condition: np.ndarray, chosen: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return `np.where(condition, chosen, otherwise)` for arrays of one shape.

    It is computed without a branch for each element. `np.where` takes ten times as long if the
    condition changes often.
    """
    signed = _SIGNED.get(chosen.dtype.itemsize)
    if signed is None or chosen.dtype.hasobject or chosen.dtype != otherwise.dtype:
        return np.where(condition, chosen, otherwise)
    mask = condition.astype(signed)
    np.negative(mask, out=mask)  # if the condition is true, all bits are now set
    bits = otherwise.view(signed)
    mask &= np.bitwise_xor(chosen.view(signed), bits)
    mask ^= bits
    return mask.view(chosen.dtype)
