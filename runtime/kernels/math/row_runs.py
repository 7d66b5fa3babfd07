"""Combining all rows that have the same id, for segment sums, embeddings and scattered updates.

The rows are sorted by id, then each run of equal ids is combined. `ufunc.reduceat` over rows would
be ten times slower, because it handles one element at a time.
"""

from __future__ import annotations

import math

import numpy as np

from runtime.foundation.running_task import check_task

_RADIX = 1 << 16  # numpy sorts 16-bit integers by radix: ten times as fast as by comparison


def stable_order(numbers: np.ndarray, limit: int) -> np.ndarray:
    """Return the indices that sort `numbers`, integers in [0, `limit`), stably."""
    if limit <= _RADIX:
        return np.argsort(numbers.astype(np.uint16), kind="stable")
    if limit > _RADIX * _RADIX or len(numbers) < 1024:
        return np.argsort(numbers, kind="stable")
    order = np.argsort((numbers % _RADIX).astype(np.uint16), kind="stable")
    high = (numbers // _RADIX).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")]


def combine_runs(
    ufunc: np.ufunc, data: np.ndarray, rows: np.ndarray | None, starts: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """Combine the rows of `data` in each run with `ufunc`; return `[runs, …]` in `dtype`.

    Run i has the rows of `data` whose indices are `rows[starts[i]:starts[i + 1]]`. If `rows` is
    None, it is `data[starts[i]:starts[i + 1]]`. Of n rows, each run longer than √n is reduced
    separately. All shorter runs are combined together: first their first and second rows, then the
    third rows, and so on.
    """
    count = len(data) if rows is None else len(rows)
    if math.prod(data.shape[1:]) == 1:
        flat = data if rows is None else data[rows]
        return ufunc.reduceat(flat.astype(dtype, copy=False), starts, axis=0, dtype=dtype)
    lengths = np.diff(starts, append=count)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    combined = np.empty((len(starts), *data.shape[1:]), dtype)
    long = int(np.searchsorted(-lengths, -math.isqrt(count), "left"))
    for run in range(long):
        part = slice(starts[run], starts[run] + lengths[run])
        run_rows = data[part] if rows is None else data[rows[part]]
        ufunc.reduce(run_rows, axis=0, out=combined[run], dtype=dtype)
    starts, lengths, short = starts[long:], lengths[long:], combined[long:]
    if len(starts):
        short[...] = data[starts if rows is None else rows[starts]]
        reaching = np.searchsorted(-lengths, -np.arange(1, int(lengths[0])), "left")
        for step, runs in enumerate(reaching.tolist(), start=1):
            check_task()
            at = starts[:runs] + step
            ufunc(short[:runs], data[at if rows is None else rows[at]], out=short[:runs])
    result = np.empty_like(combined)
    result[order] = combined
    return result


def run_starts(ordered: np.ndarray) -> np.ndarray:
    """Return the index at which each run of equal numbers begins; `ordered` must not be empty."""
    changes = np.empty(len(ordered), bool)
    changes[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=changes[1:])
    return np.flatnonzero(changes)
