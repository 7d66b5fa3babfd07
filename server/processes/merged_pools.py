"""The thread pools of several processes as those of one server: pools of one name are one pool.

Those of processes on several machines stay apart: they say where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_RATIO = "run_ratio"
# What tells pools apart; all but the name are missing on one machine.
_IDENTITY = ("name", "node", "host", "replica")
# What describes a pool, and is the same in each process.
_SAME = frozenset({"name", "low_priority", "intra_op_threads"})


def merged_pools(pools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures of pools, those of one name added up, in their first order."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for pool in pools:
        identity = tuple(map(pool.get, _IDENTITY))
        if identity not in merged:
            merged[identity] = dict(pool)
            continue
        whole = merged[identity]
        for key, value in pool.items():
            if key not in _SAME and isinstance(value, int | float):
                whole[key] += value
        threads = whole.get("num_threads")
        if _RATIO in whole and threads:
            whole[_RATIO] = whole["running"] / threads
    return list(merged.values())
