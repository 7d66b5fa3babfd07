"""Element-wise functions of several steps, worked out block by block.

A block's temporaries stay in a core's own cache, and blocks are shared among the threads of the
step's intra-op width.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.foundation.intra_op_pool import shard, thread_width

BLOCK = 32768  # elements: 128 KB of float32
# Of several threads: short calls of numpy would have them wait for the interpreter by turns.
THREADED_BLOCK = 131072
NANOSECONDS = 0.4  # an addition of one element of a large array: the memory's time


def block_size(total: int) -> int:
    """Elements to work on at once, of `total`."""
    if total >= 2 * THREADED_BLOCK and thread_width() > 1:
        return THREADED_BLOCK
    return BLOCK


def in_blocks(
    nanoseconds: float,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A kernel that gives `function` vectors of at most BLOCK elements of its tensors.

    The function is element-wise and keeps the type of the first tensor; they have one shape, or it
    is called on the whole of them. It never sees a scalar. `nanoseconds` is the time of one element
    in one thread, roughly.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def kernel(*tensors: Any, **attrs: Any) -> Any:
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


LARGE = 1 << 19  # elements; numpy takes 0.2 ms for an addition of so many


def on_threads(ufunc: np.ufunc, x: Any, y: Any, out: Any = None) -> Any:
    """`ufunc(x, y)` on the threads of the step where x is large.

    For a y that is a scalar, has the shape of x, or the size of its last dimension; all others go
    to one thread.
    """
    if x.size < LARGE or thread_width() == 1 or not (np.ndim(x) and x.flags.c_contiguous):
        return ufunc(x, y, out=out)
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
    """`numpy.where` of arrays of one shape and a plain type, without a branch for each element.

    numpy's own takes ten times as long where the condition changes often.
    """
    signed = _SIGNED.get(chosen.dtype.itemsize)
    if signed is None or chosen.dtype.hasobject or chosen.dtype != otherwise.dtype:
        return np.where(condition, chosen, otherwise)
    mask = condition.astype(signed)
    np.negative(mask, out=mask)  # all bits where it holds
    bits = otherwise.view(signed)
    mask &= np.bitwise_xor(chosen.view(signed), bits)
    mask ^= bits
    return mask.view(chosen.dtype)
